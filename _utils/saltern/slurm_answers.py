"""What Slurm's programs answer, as data. Every parser here takes text that a real Slurm printed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from saltern import node_states


class Unreadable(ValueError):
    """A program printed something else than expected."""


def words(text: str) -> str:
    """What a program complained, on one line, without its name before each."""
    lines = [re.sub(r"^\w+: ", "", line).strip() for line in text.splitlines()]
    return " ".join(lines).strip()[:500]


def document(text: str) -> Any:
    """The JSON that a program printed; some print warnings before it."""
    start = text.find("{")
    try:
        return json.loads(text[start:]) if start >= 0 else _raise(text)
    except json.JSONDecodeError:
        return _raise(text)


def _raise(text: str) -> Any:
    raise Unreadable(f"expected JSON, found {text.strip()[:200]!r}")


def config(text: str) -> dict[str, str]:
    """`scontrol show config` as a dictionary."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, separator, value = line.partition("=")
        if separator and key.strip():
            found.setdefault(key.strip(), value.strip())
    return found


USABLE = frozenset({"IDLE", "ALLOCATED", "MIXED"})


def node(text: str) -> dict[str, Any]:
    """One node of `scontrol show node NAME --json`.

    ``real_memory`` is in MiB; ``slurmd_started`` in seconds since the epoch, 0 before its slurmd
    registered for the first time.
    """
    found = list(nodes(text).values())
    return found[0] if found else {}


def nodes(text: str) -> dict[str, dict[str, Any]]:
    """The nodes of `scontrol show nodes --json` by name, each as ``node`` gives it."""
    return {found["name"]: _node(found) for found in document(text).get("nodes") or []}


def _node(found: Mapping[str, Any]) -> dict[str, Any]:
    base, flags = state(found["state"])
    started = number(found.get("slurmd_start_time", 0))
    return {
        "name": found["name"],
        "base": base,
        "flags": flags,
        "reason": found.get("reason") or "",
        "real_memory": found.get("real_memory", 0),
        "version": found.get("version") or "",
        "registered": started > 0,
        "slurmd_started": started,
    }


def state(words: str | Sequence[str]) -> tuple[str, list[str]]:
    """(base, flags) of a node state: words, or a text like ``IDLE+DRAIN`` or ``down*``."""
    found = node_states.parse(words)
    return found.base, list(found.flags)


def number(value: Any) -> int:
    """A number in Slurm's JSON: plain, or ``{"set": true, "infinite": false, "number": 5}``."""
    if isinstance(value, Mapping):
        return int(value.get("number", 0)) if value.get("set") and not value.get("infinite") else 0
    return int(value)


def pings(text: str) -> dict[str, bool]:
    """Who answers, by host name, from `scontrol ping --json`."""
    return {
        ping["hostname"]: bool(ping.get("responding", ping.get("pinged") == "UP"))
        for ping in document(text)["pings"]
    }


def hardware(text: str) -> dict[str, str]:
    """The first line of `slurmd -C` as a dictionary: NodeName, CPUs, RealMemory …"""
    return dict(re.findall(r"(\w+)=(\S+)", text.split("\n", 1)[0]))


def properties(text: str) -> dict[str, str]:
    """`systemctl show` as a dictionary."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


_LOUD = re.compile(r"^.*?\b(fatal|error): ")
# A message begins with a time stamp or the daemon's name; other lines belong to the one before.
_BEGINS = re.compile(r"^(\[|\w+: )")


def reasons(log: str, limit: int = 3) -> list[str]:
    """The last errors of a daemon's log, without time stamps; up to a fatal one, if any."""
    messages: list[str] = []
    for line in log.splitlines():
        if _BEGINS.match(line) or not messages:
            messages.append(line)
        else:
            messages[-1] += f" {line.strip()}"
    found = [_LOUD.sub(r"\1: ", text).strip() for text in messages if _LOUD.match(text)]
    fatal = [number for number, text in enumerate(found) if text.startswith("fatal: ")]
    kept = found[max(0, fatal[-1] - 1) : fatal[-1] + 1] if fatal else found
    return list(dict.fromkeys(kept))[-limit:]


_STAMP = re.compile(r"^\[([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(?:[+-][0-9]{2}:?[0-9]{2}|Z)?)\]")


def since(log: str, moment: float) -> str:
    """The lines of a log (LogTimeFormat=rfc5424_ms) after a moment, seconds since the epoch."""
    kept: list[str] = []
    recent = False
    for line in log.splitlines():
        match = _STAMP.match(line)
        if match:
            stamp = datetime.fromisoformat(match[1].replace("Z", "+00:00"))
            recent = stamp.timestamp() >= moment - 1
        if recent:
            kept.append(line)
    return "\n".join(kept)
