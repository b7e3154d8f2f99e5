"""This machine's hardware as a node type: pure reading of /proc texts."""

from typing import Any


def node_type(cpuinfo: str, meminfo: str) -> dict[str, Any]:
    """CPUs, sockets, cores, threads and memory as the plan's node types name them."""
    cpus = 0
    cores: set[tuple[str, str]] = set()
    sockets: set[str] = set()
    for block in cpuinfo.strip().split("\n\n"):
        fields = dict(part.split(":", 1) for part in block.splitlines() if ":" in part)
        values = {name.strip(): value.strip() for name, value in fields.items()}
        if "processor" not in values:
            continue
        cpus += 1
        socket = values.get("physical id", "0")
        sockets.add(socket)
        cores.add((socket, values.get("core id", values["processor"])))
    total_kb = next(
        line.split()[1] for line in meminfo.splitlines() if line.startswith("MemTotal:")
    )
    count = max(1, len(sockets))
    per_socket = max(1, len(cores) // count)
    return {
        "cpus": cpus,
        "sockets": count,
        "cores_per_socket": per_socket,
        "threads_per_core": max(1, cpus // (count * per_socket)),
        "memory_mb": int(total_kb) // 1024,
    }
