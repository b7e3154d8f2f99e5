"""Texts of a host's programs and of /proc, read into facts."""

from __future__ import annotations

import csv
import re
from typing import Any


def memory_mb(meminfo: str) -> int:
    """MemTotal of /proc/meminfo, in MiB."""
    match = re.search(r"^MemTotal:\s+([0-9]+) kB$", meminfo, re.MULTILINE)
    return int(match[1]) // 1024 if match else 0


def cpus(cpuinfo: str) -> tuple[int, int]:
    """Logical CPUs and sockets of /proc/cpuinfo; a kernel that names no socket has one."""
    logical = len(re.findall(r"^processor\s*:", cpuinfo, re.MULTILINE))
    sockets = set(re.findall(r"^physical id\s*:\s*([0-9]+)$", cpuinfo, re.MULTILINE))
    return logical, max(1, len(sockets))


def tracking(text: str) -> dict[str, Any]:
    """`chronyc -c tracking` (chronyc(1), tracking): the source, the offset in seconds, whether in step."""
    row = next(csv.reader([text.strip()]))
    return {"source": row[1] or row[0], "offset_s": float(row[4]), "synchronised": row[-1] != "Not synchronised"}


def source_offsets(text: str) -> dict[str, float]:
    """`chronyc -c sources`: each reachable source with its last measured offset in seconds."""
    rows = csv.reader(text.strip().splitlines())
    return {row[2]: float(row[7]) for row in rows if len(row) > 7 and row[0] == "^" and int(row[5], 8)}


def unmunge_status(text: str) -> str:
    """The word of `unmunge`: Success, Rewound credential, Invalid credential, …"""
    match = re.search(r"^STATUS:\s+(.+?)(?: \([0-9]+\))?$", text, re.MULTILINE)
    return match[1] if match else text.strip() or "no answer"


def limits(text: str) -> dict[str, str]:
    """/proc/PID/limits: the hard limits by the names that limits.conf(5) has for them."""
    known = {"Max locked memory": "memlock", "Max open files": "nofile"}
    found = {}
    for line in text.splitlines():
        match = re.match(r"^(.+?)\s{2,}(\S+)\s+(\S+)", line)
        if match and match[1] in known:
            found[known[match[1]]] = match[3]
    return found
