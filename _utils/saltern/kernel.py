"""Kernel parameters: what Saltern sets, what it only checks, and the plan's word over both."""

from __future__ import annotations

from collections.abc import Mapping

# Source: SchedMD's high-throughput page for somaxconn (4096 or more), backlog, syncookies and port range;
# TrinityX's tunables for the neighbour tables.
SET = {
    "net.core.somaxconn": "8192",
    "net.ipv4.tcp_max_syn_backlog": "8192",
    "net.ipv4.tcp_syncookies": "1",
    "net.ipv4.ip_local_port_range": "32768 65535",
    "net.ipv4.neigh.default.gc_thresh1": "2048",
    "net.ipv4.neigh.default.gc_thresh2": "4096",
    "net.ipv4.neigh.default.gc_thresh3": "8192",
}
# Kernels choose more than this by themselves; a fixed value could only lower it. Source: SchedMD's high-throughput
# page (file-max), Enroot's requirements (namespaces). A parameter that this kernel lacks is well.
AT_LEAST = {
    "fs.file-max": 32832,
    "user.max_user_namespaces": 2,
    "user.max_mnt_namespaces": 2,
    "kernel.unprivileged_userns_clone": 1,
}


def wanted(plan: Mapping[str, int | str | None]) -> dict[str, str]:
    """Each parameter to set with its value: Saltern's own, under the plan's; null leaves one to the kernel."""
    merged: dict[str, int | str | None] = {**SET, **plan}
    return {name: normal(str(value)) for name, value in sorted(merged.items()) if value is not None}


def normal(value: str) -> str:
    """A value as the kernel prints it, with one blank between its parts."""
    return " ".join(value.split())


def text(parameters: Mapping[str, str]) -> str:
    """The file for /etc/sysctl.d."""
    lines = (f"{name} = {value}" for name, value in parameters.items())
    return "\n".join(["# Written by Saltern from the plan (foundation:sysctl).", *lines, ""])
