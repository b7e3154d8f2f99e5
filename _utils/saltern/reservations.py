"""Slurm's reservations: what scontrol shows, what the plan wants, and the calls between."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from saltern import sacctmgr_values as values

Entry = Mapping[str, Any]

_TIMES = ("StartTime", "Duration")
# Flags that Slurm sets by itself, from how a reservation was asked for (scontrol(1)).
_OWN_FLAGS = frozenset({"SPEC_NODES", "ALL_NODES", "PART_NODES"})


def present(text: str) -> dict[str, dict[str, str]]:
    """`scontrol --oneliner show reservation`: the fields of each, by name."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("ReservationName="):
            continue
        words = (word.partition("=") for word in line.split())
        fields = {key: "" if value == "(null)" else value for key, _, value in words}
        found[fields["ReservationName"]] = fields
    return found


def calls(
    wanted: Mapping[str, Entry], there: Mapping[str, Entry], gone: frozenset[str], now: datetime
) -> Iterator[list[str]]:
    """Arguments of scontrol that make the wanted of what is there.

    wanted: entries of `accounts:reservations`; nodes in Slurm's spelling
    gone: names that shall not be there
    now: local time of the controllers. What is over stays over (Slurm forgets a reservation at its
        end); of what has begun, Slurm takes no other start.
    """
    for name in sorted(gone & there.keys()):
        yield ["delete", f"ReservationName={name}"]
    for name, entry in wanted.items():
        begin = datetime.fromisoformat(entry["start"])
        end = begin + timedelta(seconds=int(values.seconds(entry["duration"])))
        if end <= now:
            continue
        words = _words(entry)
        if begin <= now:
            begun = {"StartTime": "now", "EndTime": end.isoformat()}
            if name in there:
                begun = {"EndTime": end.isoformat()}
            words = {**begun, **{k: v for k, v in words.items() if k not in _TIMES}}
        if name not in there:
            yield ["create", f"ReservationName={name}", *(f"{k}={v}" for k, v in words.items())]
            continue
        changed = {key: value for key, value in words.items() if not _same(key, value, there[name])}
        if changed:
            yield ["update", f"ReservationName={name}", *(f"{k}={v}" for k, v in changed.items())]


def _words(entry: Entry) -> dict[str, str]:
    found = {"StartTime": entry["start"], "Duration": values.minutes(entry["duration"])}
    for key, word in (
        ("nodes", "Nodes"),
        ("node_count", "NodeCnt"),
        ("partition", "PartitionName"),
    ):
        if entry.get(key) is not None:
            found[word] = str(entry[key])
    for key, word in (("users", "Users"), ("accounts", "Accounts")):
        if entry.get(key):
            found[word] = values.names(entry[key])
    if entry.get("flags"):
        found["Flags"] = ",".join(sorted(entry["flags"]))
    return found


def _same(key: str, wanted: str, there: Entry) -> bool:
    shown = str(there.get(key, ""))
    if key in ("Users", "Accounts"):
        return values.names(shown) == wanted
    if key == "Flags":
        return set(wanted.split(",")) == set(shown.split(",")) - _OWN_FLAGS - {""}
    if key == "Duration":
        return values.minutes(shown) == wanted
    return shown == wanted


def text(argv: list[str]) -> str:
    """A call as a person would type it."""
    return " ".join(["scontrol", *argv])
