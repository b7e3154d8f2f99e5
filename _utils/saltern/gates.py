"""Gates of phases 0 and 1: facts of a host and its view in, reasons out. Nothing here looks at the host itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from saltern import kernel
from saltern.problem import Problem

Facts = Mapping[str, Any]
View = Mapping[str, Any]


# --- phase 0: the host against the plan ---------------------------------------------------------------------


def plan(facts: Facts, view: View) -> list[Problem]:
    """Why a host is not the one that the plan declares."""
    found = [*_identity(facts, view), *_system(facts, view)]
    hardware = view["host"]["hardware"]
    if hardware is not None:
        found += _hardware(facts, hardware, f"node type {view['host']['node_type']}")
    return found


def _identity(facts: Facts, view: View) -> Iterator[Problem]:
    if facts["hostname"] != view["host"]["name"]:
        yield Problem(
            "host name",
            facts["hostname"],
            f"{view['host']['name']}, the plan's name for this minion",
            f"hostnamectl hostname {view['host']['name']}, or correct the minion's id",
        )


def _system(facts: Facts, view: View) -> Iterator[Problem]:
    wanted = view["os"]
    if (facts["os"], facts["release"]) != (wanted["name"], wanted["release"]):
        yield Problem(
            "operating system",
            f"{facts['os']} {facts['release']}",
            f"{wanted['name']} {wanted['release']} on every host",
            "reinstall the host, or correct `os` in the plan",
        )


def _hardware(facts: Facts, hardware: Mapping[str, Any], where: str) -> Iterator[Problem]:
    for name, wanted, unit in (
        ("cpus", hardware["cpus"], "CPUs"),
        ("sockets", hardware["sockets"], "sockets"),
        ("gpus", (hardware.get("gpus") or {}).get("count", 0), "GPUs"),
    ):
        if facts[name] != wanted:
            yield Problem(f"{where}, {name}", f"{facts[name]} {unit}", f"{wanted}", "repair, or correct the plan")
    real = real_memory_mb(hardware)
    if facts["memory_mb"] < real:
        yield Problem(
            f"{where}, memory_mb",
            f"{facts['memory_mb']} MiB, {real - facts['memory_mb']} MiB too few",
            f"{real} MiB or more ({hardware['memory_mb']} declared, {hardware['memory_headroom']:.0%} kept back)",
            "look for a failed module, or correct the plan",
        )
    if facts["tmp_disk_mb"] < hardware["tmp_disk_mb"]:
        yield Problem(
            f"{where}, tmp_disk_mb", f"{facts['tmp_disk_mb']} MiB in /tmp", f"{hardware['tmp_disk_mb']} MiB"
        )
    if facts["nic_speed_mbit"] < hardware["nic_speed_mbit"]:
        yield Problem(
            f"{where}, nic_speed_mbit",
            f"{facts['nic_speed_mbit']} Mbit/s on the fastest NIC",
            f"{hardware['nic_speed_mbit']} Mbit/s",
            "look at the cable and the switch port",
        )


def real_memory_mb(hardware: Mapping[str, Any]) -> int:
    """Slurm's RealMemory in MiB: what is declared, less the headroom, rounded down."""
    return int(hardware["memory_mb"] * (1 - hardware["memory_headroom"]))


# --- phase 1: the foundation ---------------------------------------------------------------------------------


def foundation(facts: Facts, view: View) -> list[Problem]:
    """Why the foundation of a host does not hold."""
    found = [
        *_names(facts["addresses"], view),
        *_clock(facts["clock"], view),
        *_limits(facts["limits"], view),
        *_sysctl(facts["sysctl"], view),
        *_accounts(facts["accounts"], view),
    ]
    if "munge" in facts:
        found += [*_munge_files(facts["munge"]), *_munge_local(facts["munge"]), *_munge_peers(facts["munge"])]
    return found


def _names(addresses: Mapping[str, str | None], view: View) -> Iterator[Problem]:
    """addresses: what this host finds for each peer's name."""
    for peers in view["peers"].values():
        for peer in peers:
            found = addresses.get(peer["name"])
            if found is None or peer["address"] not in (None, found):
                yield Problem(
                    f"name {peer['name']}",
                    found or "no address",
                    peer["address"] or "an address",
                    "look at /etc/hosts and the DNS",
                )


def _accounts(accounts: Mapping[str, Mapping[str, int] | None], view: View) -> Iterator[Problem]:
    """accounts: the uid and gid of each account of the plan on this host, None for one that is missing."""
    declared = view["foundation"]
    for name, wanted in {**declared["system_accounts"], **declared["users"]}.items():
        if name not in accounts:
            continue
        have = accounts[name]
        if have is None:
            yield Problem(f"user {name}", "no such user", f"uid {wanted['uid']}", "run the state p1_foundation.accounts")
            continue
        for number in ("uid", "gid"):
            if have[number] != wanted[number]:
                yield Problem(
                    f"user {name}",
                    f"{number} {have[number]}",
                    str(wanted[number]),
                    "give its files to the plan's id, then change it",
                )


def _munge_files(munge: Facts) -> Iterator[Problem]:
    """munged(8): the key is its user's and nobody else's; no parent folder may be open to others."""
    uid = munge["uid"]
    for path, mode in munge["wanted_modes"].items():
        state = munge["paths"].get(path)
        if state is None:
            yield Problem(path, "nothing", f"mode {mode}, owned by munge", "run the state p1_foundation.munge")
            continue
        if state["uid"] != uid:
            yield Problem(path, f"owner {state['uid']}", f"{uid} (munge)", f"chown munge: {path}")
        if state["mode"] != int(mode, 8):
            yield Problem(path, f"mode {state['mode']:04o}", mode, f"chmod {mode} {path}")
    for path, state in munge["parents"].items():
        if state["mode"] & 0o022 and not state["mode"] & 0o1000:
            yield Problem(
                path,
                f"mode {state['mode']:04o}, open to others without the sticky bit",
                "a parent folder of munge's files that only its owner may write",
                f"chmod go-w {path}",
            )
        if state["uid"] not in (0, uid):
            yield Problem(path, f"owner {state['uid']}", "root or munge", f"chown root {path}")


def _munge_local(munge: Facts) -> Iterator[Problem]:
    if munge["local"]["status"] != "Success":
        yield Problem("munge on this host", munge["local"]["status"], "Success", "look at the unit munge and its log")


# unmunge's word for a credential, and what it says of the key and the clock. One that was seen before, or is old,
# was still sealed with the same key: unmunge looks at the seal first.
SAME_KEY = ("Success", "Replayed credential", "Expired credential")


def _munge_peers(munge: Facts) -> Iterator[Problem]:
    """One answer is enough; no peer at all is a cluster of one host."""
    peers = munge["peers"]
    if not peers or any(peer["status"] in SAME_KEY for peer in peers.values()):
        return
    said = "; ".join(f"{name}: {peer['status']}" for name, peer in peers.items())
    advice = {
        "Rewound credential": "set the clock: the other host's is ahead",
        "Invalid credential": "the munge keys differ: run the state p1_foundation.munge on both",
    }
    hints = [advice[peer["status"]] for peer in peers.values() if peer["status"] in advice]
    yield Problem(
        "munge round trip with another host",
        said,
        "a credential of one of them that this host can read",
        hints[0] if hints else f"bring up munge there; waited {munge['waited_s']:.0f} s",
    )


def _clock(clock: Facts, view: View) -> Iterator[Problem]:
    bound = view["foundation"]["time"]["max_offset_s"]
    if clock["error"]:
        yield Problem("clock", clock["error"], "chronyd in step with a source", "look at the unit of chrony")
    elif not clock["synchronised"]:
        yield Problem(
            "clock",
            "not synchronised",
            f"in step with {', '.join(view['foundation']['time']['sources']) or 'itself'}",
            "chronyc sources",
        )
    for name, offset in clock["offsets_s"].items():
        if abs(offset) > bound:
            yield Problem(
                "clock", f"{offset:+.3f} s off {name}", f"within {bound} s", "chronyc makestep, or look at the source"
            )


def _limits(limits: Mapping[str, Mapping[str, int | str]], view: View) -> Iterator[Problem]:
    """limits: for logins and for services, what the kernel gave a process that was started there."""
    wanted = view["foundation"]["limits"]
    for way, have in limits.items():
        for name, least in wanted.items():
            if _number(have.get(name, 0)) < _number(least):
                yield Problem(
                    f"limit {name} of a {way}",
                    str(have.get(name, "unknown")),
                    str(least),
                    "look for a lower limit above it (the machine's or the container's), or lower foundation:limits",
                )


def _number(value: int | str) -> float:
    return float("inf") if value in ("unlimited", "infinity") else float(value)


def _sysctl(found: Mapping[str, str | None], view: View) -> Iterator[Problem]:
    for name, wanted in kernel.wanted(view["foundation"]["sysctl"]).items():
        have = found.get(name)
        if have is None or kernel.normal(have) != wanted:
            yield Problem(
                f"sysctl {name}",
                "no such parameter" if have is None else have,
                wanted,
                f"set foundation:sysctl:{name} to null if this kernel cannot" if have is None else "",
            )
    for name, least in kernel.AT_LEAST.items():
        have = found.get(name)
        if have is not None and int(have) < least and name not in view["foundation"]["sysctl"]:
            yield Problem(f"sysctl {name}", have, f"{least} or more", f"set foundation:sysctl:{name}")


def names(view: View) -> Sequence[str]:
    """The host names that a foundation needs to resolve."""
    return sorted({peer["name"] for peers in view["peers"].values() for peer in peers})
