"""Texts of a host's programs and of /proc, read into facts."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from typing import Any


def memory_mb(meminfo: str) -> int:
    """MemTotal of /proc/meminfo, in MiB."""
    match = re.search(r"^MemTotal:\s+([0-9]+) kB$", meminfo, re.MULTILINE)
    return int(match[1]) // 1024 if match else 0


def topology(siblings: Iterable[tuple[str, str]]) -> dict[str, int]:
    """What a node type declares of CPUs, from the kernel's word on each CPU that is online.

    siblings: of each CPU, its physical_package_id and its thread_siblings_list, from
    /sys/devices/system/cpu/cpu*/topology (an offline CPU has none; /proc/cpuinfo of ARM names no
    sockets).
    """
    seen = list(siblings)
    cores = set(seen)
    sockets = max(1, len({package for package, _ in seen}))
    return {
        "cpus": len(seen),
        "sockets": sockets,
        "cores_per_socket": len(cores) // sockets,
        "threads_per_core": len(seen) // max(1, len(cores)),
    }


NVIDIA = "0x10de"
DISPLAY = "0x03"  # PCI base class of display controllers, which 3D controllers belong to


def pci_gpus(devices: Iterable[tuple[str, str]]) -> int:
    """How many of these PCI devices, given as (vendor, class), are NVIDIA GPUs."""
    return sum(
        1 for vendor, kind in devices if vendor.strip() == NVIDIA and kind.startswith(DISPLAY)
    )


def infiniband_mbit(rate: str) -> int:
    """A port's rate as /sys/class/infiniband/*/ports/*/rate has it: "400 Gb/sec (4X NDR)"."""
    match = re.match(r"([0-9.]+) Gb/sec", rate)
    return int(float(match[1]) * 1000) if match else 0


def tracking(text: str) -> dict[str, Any]:
    """`chronyc -c tracking`: whether in step, and by how much the clock is still ahead, in seconds.

    Its fifth field is positive for a slow clock, where `chronyc sources` has a minus (chronyc(1)).
    """
    row = next(csv.reader([text.strip()]))
    return {"ahead_s": 0.0 - float(row[4]), "synchronised": row[-1] != "Not synchronised"}


FALSETICKER = "x"


def source_offsets(text: str) -> dict[str, float]:
    """`chronyc -c sources`: how far ahead of each server that is heard and believed."""
    rows = csv.reader(text.strip().splitlines())
    return {
        row[2]: float(row[7])
        for row in rows
        if len(row) > 7 and row[0] in "^=" and row[1] != FALSETICKER and int(row[5], 8)
    }


def unmunge_status(text: str) -> str:
    """The word of `unmunge`: Success, Rewound credential, Invalid credential, …

    It stands in a table that names the sender, or, if the seal is not ours, in an error.
    """
    match = re.search(
        r"^(?:STATUS:|(?:\S+: )?(?:un)?munge: Error:)\s+(.+?)(?: \([0-9]+\))?$", text, re.MULTILINE
    )
    return match[1] if match else text.strip() or "no answer"


def limits(text: str) -> dict[str, str]:
    """/proc/PID/limits: the soft limits, which programs meet, by limits.conf(5)'s names."""
    known = {"Max locked memory": "memlock", "Max open files": "nofile"}
    found = {}
    for line in text.splitlines():
        match = re.match(r"^(.+?)\s{2,}(\S+)\s+(\S+)", line)
        if match and match[1] in known:
            found[known[match[1]]] = match[2]
    return found
