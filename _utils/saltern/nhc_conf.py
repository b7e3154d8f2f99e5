"""nhc.conf from the plan: a node type's checks in forms that LBNL NHC and ours read alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from saltern import nhc_match
from saltern.gates import real_memory_mb
from saltern.problem import Problem

View = Mapping[str, Any]

HEADER = "# Written by Saltern from the plan; what is changed here is written over."
# What the drain logic may take after checks and settling: some answers of scontrol.
_ANSWERS_S = 15
# Slurm kills a health check after so long (slurm.conf(5), before HealthCheckTimeout).
KILLED_S = 60
# More than any node has, in kilobytes: LBNL NHC wants an upper limit of memory.
_ANY_KB = 1024**5
# The checks that files/node_health.py has; a test compares.
CHECKS = frozenset(
    f"check_{name}"
    for names in (
        ("clock_offset", "cmd_output", "cmd_status", "eth_speed", "file_contents", "file_stat"),
        ("file_test", "fs_free", "fs_ifree", "fs_inodes", "fs_iused", "fs_mount", "fs_mount_ro"),
        ("fs_mount_rw", "fs_size", "fs_used", "gpu_count", "gpu_driver", "gpu_memory"),
        ("gpu_nvlink", "gpu_pcie", "gpu_xid", "hw_cpuinfo", "hw_eth", "hw_ib", "hw_mem"),
        ("hw_mem_free", "hw_physmem", "hw_physmem_free", "hw_swap", "hw_swap_free", "net_ping"),
        ("nvsmi_healthmon", "ps_blacklist", "ps_daemon", "ps_loadavg", "ps_service"),
        ("ps_unauth_users", "ps_userproc_lineage"),
    )
    for name in names
)


def program_s(health: View) -> int:
    """The time of checks, settling and drain logic together, in seconds."""
    return int(health["timeout_s"]) + int(health["settle_s"]) + _ANSWERS_S


def problems(health: View, nodes: Sequence[str]) -> Iterator[Problem]:
    """What is wrong with the plan's section ``health``, given the names of its nodes."""
    if program_s(health) > KILLED_S:
        yield Problem(
            "health:timeout_s",
            f"{health['timeout_s']} s with {health['settle_s']} s to settle",
            f"together at most {KILLED_S - _ANSWERS_S} s",
            f"Slurm kills a health check after {KILLED_S} s",
        )
    if health["check_timeout_s"] >= health["timeout_s"]:
        yield Problem(
            "health:check_timeout_s", f"{health['check_timeout_s']}", "less than timeout_s"
        )
    if health["provider"] == "lbnl" and health["source"] is None:
        yield Problem(
            "health:source",
            "nothing",
            "LBNL NHC's archive, with its version, file and sha256",
            "give it, or take the provider builtin, which needs no download",
        )
    for number, line in enumerate(health["lines"]):
        yield from _line(f"health:lines:{number}", line, nodes, health["provider"])


def _line(where: str, line: str, nodes: Sequence[str], provider: str) -> Iterator[Problem]:
    match, _, check = (part.strip() for part in line.partition("||"))
    try:
        if nodes and not nhc_match.hits(match, nodes):
            yield Problem(where, f"{match}, which hits no node", "a match that hits a node")
    except nhc_match.Unreadable as error:
        yield Problem(where, f"{match}: {error}", "a host match of LBNL NHC")
    name = check.split()[0] if check else ""
    assigns = "=" in name or name == "export"
    if provider == "builtin" and name not in CHECKS and not assigns:
        expected = "a check that /usr/lib/saltern/node_health --list has"
        yield Problem(where, name or "nothing", expected)


def text(view: View) -> str:
    """The whole nhc.conf of a node."""
    lines = [HEADER, f"# Node type {view['host']['node_type']}. Matches are LBNL NHC's."]
    if view["health"]["provider"] == "lbnl":
        # Who drains is Saltern's: NHC only tells.
        lines.append("* || export MARK_OFFLINE=0")
    lines += [f"* || {check}" for check in _checks(view)]
    return "\n".join([*lines, *view["health"]["lines"]]) + "\n"


def _checks(view: View) -> Iterator[str]:
    health, hardware = view["health"], view["host"]["hardware"]
    for point, mount in sorted(hardware["mounts"].items()):
        yield _mount(point, mount)
    for point, least in sorted(health["free_space"].items()):
        yield f"check_fs_free {point} {least}"
    yield _cpus(hardware)
    yield f"check_hw_physmem {real_memory_mb(hardware) * 1024} {_ANY_KB}"
    for device, speed in sorted(hardware["nics"].items()):
        yield f"check_hw_eth {device}"
        if speed:
            yield f"check_eth_speed {device} {speed}"
    for port, rate in sorted(hardware["ib_ports"].items()):
        yield f"check_hw_ib {rate} {port}"
    for daemon in health["daemons"]:
        yield f"check_ps_service {daemon}"
    yield f"check_clock_offset {round(view['foundation']['time']['max_offset_s'] * 1000)}"
    if hardware.get("gpus"):
        yield from _gpus(hardware["gpus"])
    if health["stray_processes"] == "fail":
        yield "check_ps_unauth_users die"


def _mount(point: str, mount: View) -> str:
    words = ["check_fs_mount_ro" if mount["read_only"] else "check_fs_mount_rw"]
    for letter, key in (("t", "type"), ("s", "source")):
        if mount.get(key):
            words.append(f"-{letter} '{mount[key]}'")
    return " ".join([*words, "-f", point])


def _cpus(hardware: View) -> str:
    """Sockets and cores only where the node type declares them."""
    if "cores_per_socket" not in hardware:
        return f"check_hw_cpuinfo '' '' {hardware['cpus']}"
    sockets = hardware["sockets"]
    return f"check_hw_cpuinfo {sockets} {sockets * hardware['cores_per_socket']} {hardware['cpus']}"


def _gpus(gpus: View) -> Iterator[str]:
    yield f"check_gpu_count {gpus['count']}"
    if gpus["driver"]:
        yield f"check_gpu_driver {gpus['driver']}"
    yield "check_gpu_memory"
    yield "check_gpu_xid"
    if gpus["nvlinks"]:
        yield f"check_gpu_nvlink {gpus['nvlinks']}"
    if gpus["pcie_width"]:
        yield f"check_gpu_pcie {gpus['pcie_width']}"


def url(mirror: str | None, source: View) -> str:
    """Where LBNL NHC's archive comes from; empty when the plan does not say."""
    return f"{mirror.rstrip('/')}/{source['file']}" if mirror else source["url"] or ""


def settings(view: View, scontrol: str) -> dict[str, Any]:
    """What the drain logic on a node goes by, for /etc/saltern/health.json."""
    return {"node": view["host"]["name"], "scontrol": scontrol, **view["health"], "lines": []}
