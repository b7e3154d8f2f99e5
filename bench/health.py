"""One run of the health checks: 20 of them, here and on a node with 256 threads."""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECKER = ROOT / "salt/p5_environment/files/node_health.py"
REPEATS = 15
THREADS = 256

# The kinds of checks that LBNL NHC's generated configuration has, in twenty lines.
CONF = """\
* || check_fs_mount_rw -f /
* || check_fs_mount_rw -f /dev/shm
* || check_fs_free / 1k
* || check_fs_free /dev/shm 1k
* || check_fs_ifree / 1
* || check_hw_cpuinfo
* || check_hw_physmem 1k 1E
* || check_hw_physmem_free 1k
* || check_hw_swap 0 1E
* || check_hw_mem 1k 1E
* || check_hw_mem_free 1k
* || check_hw_eth lo
* || check_ps_loadavg 1000000
* || check_ps_service -u root -m '*' any
* || check_ps_blacklist no-such-program
* || check_file_test -r /etc/passwd
* || check_file_test -d /etc
* || check_file_contents /etc/passwd /^root:/
* || check_cmd_output -r 0 -m /Linux/ uname -s
* || check_cmd_status -r 0 true
"""
_CPU = """\
processor\t: {cpu}
vendor_id\t: GenuineIntel
model name\t: a processor with many threads
physical id\t: {socket}
siblings\t: 128
core id\t\t: {core}
cpu cores\t: 64
flags\t\t: {flags}

"""


def _python() -> str:
    """The system's own Python, as a node has it; a shim in the path would be measured too."""
    return "/usr/bin/python3" if os.access("/usr/bin/python3", os.X_OK) else sys.executable


def check() -> dict[str, float]:
    """Medians in milliseconds, from the start of the program to its end."""
    with tempfile.TemporaryDirectory(prefix="saltern-bench-") as name:
        folder = Path(name)
        # As it stands on a node: Python keeps the module compiled beside it.
        shutil.copy(CHECKER, folder / "node_health.py")
        program = (
            f"import sys; sys.path[:0] = [{name!r}]; import node_health; node_health.program()"
        )
        (folder / "nhc.conf").write_text(CONF, encoding="utf-8")
        command = [_python(), "-IS", "-c", program, "--conf", f"{name}/nhc.conf"]
        command += ["--hung", f"{name}/hung"]
        large = _large(folder / "root")
        _passes([*command, "--only", "check_hw_cpuinfo", "2", "128", str(THREADS)], large)
        return {
            "health_check_ms": _median(command),
            "health_check_256_ms": _median([*command, "--root", str(large)]),
        }


def _passes(command: list[str], root: Path) -> None:
    """The node with 256 threads is one: otherwise its figure would say nothing."""
    where = command.index("--only")
    subprocess.run(
        [*command[:where], "--root", str(root), *command[where:]], check=True, capture_output=True
    )


def _median(command: list[str]) -> float:
    times = []
    for _ in range(REPEATS):
        began = time.monotonic()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.monotonic() - began)
    return round(statistics.median(times) * 1000, 1)


def _large(root: Path) -> Path:
    """This machine, but with the CPUs of one with 256 threads."""
    (root / "proc").mkdir(parents=True)
    flags = " ".join(f"flag{number}" for number in range(120))
    with (root / "proc/cpuinfo").open("w", encoding="utf-8") as file:
        for cpu in range(THREADS):
            socket, core = cpu % 128 // 64, cpu % 64
            file.write(_CPU.format(cpu=cpu, socket=socket, core=core, flags=flags))
    for entry in os.listdir("/proc"):
        if entry != "cpuinfo":
            (root / "proc" / entry).symlink_to(f"/proc/{entry}")
    (root / "sys/class").mkdir(parents=True)
    (root / "sys/class/net").symlink_to("/sys/class/net")
    base = root / "sys/devices/system/cpu"
    for cpu in range(THREADS):
        topology = base / f"cpu{cpu}/topology"
        topology.mkdir(parents=True)
        socket = cpu % 128 // 64
        package = f"{socket * 64}-{socket * 64 + 63},{socket * 64 + 128}-{socket * 64 + 191}\n"
        (topology / "physical_package_id").write_text(f"{socket}\n")
        (topology / "package_cpus_list").write_text(package)
        (topology / "core_cpus_list").write_text(f"{cpu % 128},{cpu % 128 + 128}\n")
    (base / "online").write_text(f"0-{THREADS - 1}\n")
    for entry in ("dev", "etc"):
        (root / entry).symlink_to(f"/{entry}")
    return root
