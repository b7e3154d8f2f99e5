"""The gate of phase 0: a host's facts and view in, reasons out; nothing here looks at the host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from saltern import platform
from saltern.problem import Problem

Facts = Mapping[str, Any]
View = Mapping[str, Any]


def plan(facts: Facts, view: View) -> list[Problem]:
    """Why a host is not the one that the plan declares."""
    found = [*_identity(facts, view), *_system(facts, view)]
    hardware = view["host"]["hardware"]
    if hardware is not None:
        found += _hardware(facts, hardware, f"node type {view['host']['node_type']}")
    return found


def _identity(facts: Facts, view: View) -> Iterator[Problem]:
    """A host that renames itself would be unknown to Slurm, to munge's peers and to its own key."""
    name = view["host"]["name"]
    if facts["hostname"] != name:
        yield Problem(
            "host name",
            facts["hostname"],
            f"{name}, the plan's name for this minion",
            f"hostnamectl hostname {name}, or correct the minion's id; Saltern renames no host",
        )


def _system(facts: Facts, view: View) -> Iterator[Problem]:
    wanted = view["os"]
    if (facts["os"], facts["release"]) == (wanted["name"], wanted["release"]):
        return
    known = platform.is_supported(facts["os"], facts["release"])
    yield Problem(
        "operating system",
        f"{facts['os']} {facts['release']}",
        f"{wanted['name']} {wanted['release']} on every host",
        "reinstall the host, or correct `os` in the plan"
        if known
        else f"reinstall the host; Saltern knows {platform.supported()}",
    )


# fact and key of a node type, if it declares it: its unit
COUNTS = {
    "cpus": "CPUs",
    "sockets": "sockets",
    "cores_per_socket": "cores a socket",
    "threads_per_core": "threads a core",
}
# fact and key of a node type: (unit, what to do); a declared 0 asks for nothing
AT_LEAST = {
    "tmp_disk_mb": ("MiB in /tmp", "give /tmp its disk"),
    "nic_speed_mbit": ("Mbit/s on the fastest NIC", "look at the cable and the switch port"),
}


def _hardware(facts: Facts, hardware: Mapping[str, Any], where: str) -> Iterator[Problem]:
    for name, unit in COUNTS.items():
        if facts[name] != hardware.get(name, facts[name]):
            yield _differs(f"{where}, {name}", facts[name], hardware[name], unit)
    gpus = hardware.get("gpus")
    if gpus and facts["gpus"] != gpus["count"]:
        yield _differs(f"{where}, gpus", facts["gpus"], gpus["count"], "GPUs")
    yield from _memory(facts, hardware, where)
    for name, (unit, advice) in AT_LEAST.items():
        least = hardware[name]
        if facts[name] < least:
            short = least - facts[name]
            yield Problem(
                f"{where}, {name}", f"{facts[name]} {unit}, {short} too few", f"{least}", advice
            )


def _differs(where: str, found: int, declared: int, unit: str) -> Problem:
    return Problem(
        where,
        f"{found} {unit}, {found - declared:+d}",
        f"{declared}",
        "repair the host, or correct the plan",
    )


def _memory(facts: Facts, hardware: Mapping[str, Any], where: str) -> Iterator[Problem]:
    """Kernels keep some of what is fitted, more after an update: the headroom may be gone."""
    found, declared, least = facts["memory_mb"], hardware["memory_mb"], real_memory_mb(hardware)
    if found < least:
        yield Problem(
            f"{where}, memory_mb",
            f"{found} MiB, {found - declared:+d} against {declared} declared",
            f"{least} MiB or more (memory_headroom {hardware['memory_headroom']:.0%})",
            "look for a failed module, or correct the plan",
        )


def real_memory_mb(hardware: Mapping[str, Any]) -> int:
    """Slurm's RealMemory in MiB: what is declared, less the headroom, rounded down."""
    return int(hardware["memory_mb"] * (1 - hardware["memory_headroom"]))
