"""Kernel parameters: what Saltern sets, what it only raises, and the plan's word over both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

# Source: SchedMD's high-throughput page for somaxconn (4096 or more), backlog, syncookies and port
# range; TrinityX's tunables for the neighbour tables.
SET = {
    "net.core.somaxconn": "8192",
    "net.ipv4.tcp_max_syn_backlog": "8192",
    "net.ipv4.tcp_syncookies": "1",
    "net.ipv4.ip_local_port_range": "32768 65535",
    "net.ipv4.neigh.default.gc_thresh1": "2048",
    "net.ipv4.neigh.default.gc_thresh2": "4096",
    "net.ipv4.neigh.default.gc_thresh3": "8192",
}


class Floor(NamedTuple):
    """A parameter that is only ever raised."""

    least: int  # below this a host does not do
    raised: int  # what it then gets


# Kernels mostly choose more than this by themselves, and a fixed value would lower it. Source:
# SchedMD's high-throughput page (file-max at least 32832; TrinityX sets 262144), Enroot's
# requirements (namespaces). A parameter that this kernel lacks is not missed.
AT_LEAST = {
    "fs.file-max": Floor(32832, 262144),
    "user.max_user_namespaces": Floor(2, 65536),
    "user.max_mnt_namespaces": Floor(2, 65536),
    "kernel.unprivileged_userns_clone": Floor(1, 1),
}


def wanted(plan: Mapping[str, int | str | None]) -> dict[str, str]:
    """Each parameter to set: Saltern's own, under the plan's; null leaves one to the kernel."""
    merged: dict[str, int | str | None] = {**SET, **plan}
    return {name: normal(str(value)) for name, value in sorted(merged.items()) if value is not None}


def raised(
    plan: Mapping[str, int | str | None],
    found: Mapping[str, str | None],
    written: Mapping[str, str],
) -> dict[str, str]:
    """Each parameter that must rise, because it is too low now or was when the file was written.

    plan: has the last word: what it names, null too, is not here
    found: the kernel's values, None for a parameter that it lacks
    written: what stands in our file already; what was raised once stays
    """
    result = {}
    for name, floor in AT_LEAST.items():
        have = found.get(name)
        if name not in plan and have is not None and (name in written or int(have) < floor.least):
            result[name] = str(floor.raised)
    return result


def normal(value: str) -> str:
    """A value as the kernel prints it, with one blank between its parts."""
    return " ".join(value.split())


def text(parameters: Mapping[str, str]) -> str:
    """The file for /etc/sysctl.d."""
    lines = (f"{name} = {value}" for name, value in sorted(parameters.items()))
    return "\n".join(["# Written by Saltern from the plan (foundation:sysctl).", *lines, ""])


def parameters(conf: str) -> dict[str, str]:
    """What a file of /etc/sysctl.d sets (sysctl.conf(5))."""
    found = {}
    for line in conf.splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.lstrip().startswith(("#", ";")):
            found[name.strip().lstrip("-")] = normal(value)
    return found
