"""The gate of phase 1: a host's facts and view in, reasons out; nothing here looks at the host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from saltern import gates_munge, kernel
from saltern.problem import Problem

Facts = Mapping[str, Any]
View = Mapping[str, Any]


def foundation(facts: Facts, view: View) -> list[Problem]:
    """Why the foundation of a host does not hold."""
    found = [
        *_names(facts["addresses"], view),
        *_accounts(facts["accounts"], view),
        *_clock(facts["clock"], view),
        *_limits(facts["limits"], view),
        *_sysctl(facts["sysctl"], view),
    ]
    return found + (gates_munge.munge(facts["munge"]) if "munge" in facts else [])


def names(view: View) -> Sequence[str]:
    """The host names that a foundation needs to resolve: its own, and those of the few servers."""
    return sorted({view["host"]["name"], *(name for name, _ in _peers(view))})


def _peers(view: View) -> Iterator[tuple[str, str | None]]:
    for peers in view["peers"].values():
        for peer in peers:
            yield peer["name"], peer["address"]


def _names(addresses: Mapping[str, str | None], view: View) -> Iterator[Problem]:
    """addresses: what this host finds for each name, None for nothing."""
    own = view["host"]
    for name, wanted in sorted({*_peers(view), (own["name"], own["address"])}, key=str):
        found = addresses.get(name)
        if found is None or wanted not in (None, found):
            yield Problem(
                f"name {name}",
                found or "no address",
                wanted or "an address",
                "look at /etc/hosts above Saltern's block"
                if view["names"]["provider"] == "hosts"
                else "look at the DNS, or set names:provider to hosts",
            )
        elif wanted is None and found.startswith("127."):
            yield Problem(
                f"name {name}", found, "an address that others reach", "look at /etc/hosts"
            )


def _accounts(accounts: Mapping[str, Mapping[str, int] | None], view: View) -> Iterator[Problem]:
    """accounts: the uid and gid of each account of the plan here, None for one that is missing."""
    declared = view["foundation"]
    for name, wanted in {**declared["system_accounts"], **declared["users"]}.items():
        have = accounts.get(name)
        if have is None:
            yield Problem(
                f"user {name}",
                "no such user",
                f"uid {wanted['uid']}",
                "run the state p1_foundation.accounts",
            )
            continue
        for number in ("uid", "gid"):
            if have[number] != wanted[number]:
                yield Problem(
                    f"user {name}",
                    f"{number} {have[number]}",
                    f"{wanted[number]}, as the plan says",
                    "`salt-call system_account.conflicts` lists its files; move them, then the id",
                )


def _clock(clock: Facts, view: View) -> Iterator[Problem]:
    """clock: error, synchronised, offsets_s (of whom: how far ahead), rivals (daemons)."""
    time = view["foundation"]["time"]
    for rival in clock["rivals"]:
        yield Problem(
            "clock",
            f"{rival} runs beside chronyd",
            "one daemon",
            f"systemctl disable --now {rival}",
        )
    if clock["error"]:
        yield Problem(
            "clock", clock["error"], "chronyd's answer", "journalctl -u chrony -u chronyd"
        )
        return
    if not clock["synchronised"]:
        sources = ", ".join(time["sources"]) or "itself"
        yield Problem(
            "clock",
            "not synchronised",
            f"in step with {sources}",
            "`chronyc sources` shows who answers",
        )
    bound = time["max_offset_s"]
    for name, offset in clock["offsets_s"].items():
        if abs(offset) > bound:
            yield Problem(
                "clock",
                f"{offset:+.3f} s against {name}",
                f"within {bound} s",
                "`chronyc makestep` while no job runs, or look at the source",
            )


def _limits(limits: Mapping[str, Mapping[str, str]], view: View) -> Iterator[Problem]:
    """limits: what the kernel gave a process that was started as a login, and as a service."""
    for way, have in limits.items():
        for name, least in view["foundation"]["limits"].items():
            found = have.get(name)
            if found is None or _number(found) < _number(least):
                yield Problem(
                    f"limit {name} of a {way}",
                    found or "nothing readable",
                    f"{least} or more",
                    "look for a lower limit above it (files of limits.d or system.conf.d that sort "
                    "later, the container), or lower foundation:limits",
                )


def _number(value: int | str) -> float:
    return float("inf") if value in ("unlimited", "infinity") else float(value)


def _sysctl(found: Mapping[str, str | None], view: View) -> Iterator[Problem]:
    plan = view["foundation"]["sysctl"]
    for name, wanted in kernel.wanted(plan).items():
        have = found.get(name)
        if have is None:
            yield Problem(
                f"sysctl {name}",
                "no such parameter",
                wanted,
                f"set foundation:sysctl:{name} to null if this kernel cannot have it",
            )
        elif kernel.normal(have) != wanted:
            yield Problem(
                f"sysctl {name}",
                kernel.normal(have),
                wanted,
                "look for it in a later file of /etc/sysctl.d; null in foundation:sysctl leaves it "
                "to the kernel",
            )
    for name, floor in kernel.AT_LEAST.items():
        have = found.get(name)
        if have is not None and int(have) < floor.least and name not in plan:
            yield Problem(
                f"sysctl {name}",
                have,
                f"{floor.least} or more",
                f"run the state p1_foundation.kernel; or set foundation:sysctl:{name}",
            )
