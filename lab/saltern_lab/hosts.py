"""Hosts: systemd-nspawn containers on an overlay each; power, commands, clocks.

Without systemd as the machine's PID 1 nspawn gets no scope of its own, so each container is put
into a cgroup of its own first: two systemds in one cgroup would end each other's services.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from saltern_lab import network
from saltern_lab.errors import LabError
from saltern_lab.paths import LAB_DIR, cache_dir
from saltern_lab.processes import Process, leader
from saltern_lab.record import Host, Lab
from saltern_lab.run import last_lines, run
from saltern_lab.topology import Topology

BOOT_S = 90
# Packages, sources and wheels come through the lab's mirror by address, so no host needs a name
# server; a machine's own one may answer four hosts' questions late (seen: 5 s each), and Salt asks
# at every turn.
NO_RESOLVER = "# The lab's hosts have no name server: names come from the plan.\n"
ENV = (
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME=/root",
    "LANG=C.UTF-8",
)


def running(host: Host) -> Process | None:
    """The host's PID 1 if the host runs."""
    process = Process.load(host.leader)
    return process if process and process.alive() else None


def state(host: Host) -> str:
    """`running`, `cut` (running without its cable) or `off`."""
    if not running(host):
        return "off"
    return "cut" if host.cut else "running"


def power_on(lab: Lab, name: str, topology: Topology, mirror_port: int) -> None:
    """Start a host that is off, bare on its first start. Does not wait for its boot."""
    host = lab.host(name)
    if running(host):
        return
    _end_rest(lab, name, host)
    merged = _mount(lab, name, host)
    _configure(lab, name, merged, mirror_port)
    command = ["systemd-nspawn", "--quiet", "--boot", "--register=no", "--console=pipe"]
    command += [f"--machine={lab.name}-{name}", f"--hostname={name}", f"--directory={merged}"]
    command += [f"--network-bridge={lab.bridge}", "--resolv-conf=off", "--link-journal=no"]
    for inside, folder in topology.binds.get(name, {}).items():
        (cache_dir() / folder).mkdir(parents=True, exist_ok=True)
        command.append(f"--bind={cache_dir() / folder}:{inside}")
    for inside in [path for path, hosts in topology.shared.items() if name in hosts]:
        lab.shared(inside).mkdir(parents=True, exist_ok=True)
        command.append(f"--bind={lab.shared(inside)}:{inside}")
    command += topology.nspawn.get(name, ())
    groups = _cgroups(lab, name)
    if groups is not None:
        command.append("--keep-unit")
    with (lab.disk(name) / "console.log").open("ab") as console:
        started = subprocess.Popen(
            ["sh", "-c", _into(groups or []) + 'exec "$@"', "nspawn", *command],
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=console,
            start_new_session=True,
        )
    process = Process.of(started.pid)
    host.nspawn = process.dump() if process else None
    host.boot_id = _boot_id()
    host.cut = False
    lab.save()
    host.leader = _wait_leader(lab, name, started).dump()
    lab.save()


def _wait_leader(lab: Lab, name: str, started: "subprocess.Popen[bytes]") -> Process:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        pid = leader(started.pid)
        process = Process.of(pid) if pid else None
        if process:
            return process
        if started.poll() is not None:
            break
        time.sleep(0.02)
    raise LabError(f"{name} did not start: {console_end(lab, name)}")


def console_end(lab: Lab, name: str) -> str:
    """The last lines of a host's console."""
    path = lab.disk(name) / "console.log"
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    return last_lines(text)


def wait_booted(lab: Lab, names: Iterable[str]) -> None:
    """Wait until the hosts' systemd has started everything, at most BOOT_S in all."""
    deadline = time.monotonic() + BOOT_S
    for name in names:
        while True:
            answer = probe(lab, name, ["systemctl", "is-system-running"])
            if answer in {"running", "degraded"}:
                break
            if not running(lab.host(name)):
                raise LabError(f"{name} went off while it booted: {console_end(lab, name)}")
            if time.monotonic() > deadline:
                raise LabError(
                    f"{name} did not boot within {BOOT_S} s (systemd says {answer!r}): see "
                    f"`lab/lab logs {name} --name {lab.name}`."
                )
            time.sleep(0.1)


def probe(lab: Lab, name: str, command: Sequence[str]) -> str:
    """What a short command in a host prints, whatever its exit status; empty if it cannot run."""
    try:
        done = subprocess.run(
            enter(lab, name, command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout.strip()


def enter(lab: Lab, name: str, command: Sequence[str], user: str | None = None) -> list[str]:
    """The machine's command that runs a command in a host, as root or as a user's login."""
    process = running(lab.host(name))
    if process is None:
        raise LabError(f"{name} is off: `lab/lab power-on {name} --name {lab.name}` starts it.")
    words = ["nsenter", "-t", str(process.pid), "-m", "-u", "-i", "-n", "-p", "-C"]
    words += [
        "--root",
        "--",
        "env",
        "-i",
        "--chdir=/root",
        *ENV,
        f"TERM={os.environ.get('TERM', 'dumb')}",
    ]
    if user:
        # A login shell, so that the host's own profile sets the path, as for a person.
        words += ["runuser", "-l", "-c", 'exec "$0" "$@"', "--", user, *command]
        return words
    return [*words, *command]


def execute(
    lab: Lab,
    name: str,
    command: Sequence[str],
    *,
    what: str,
    user: str | None = None,
    timeout: float = 600,
    stdin: str | None = None,
) -> str:
    """Run a command in a host; its standard output, or LabError."""
    return run(enter(lab, name, command, user), what=what, timeout=timeout, stdin=stdin)


def power_off(lab: Lab, name: str) -> bool:
    """Cut the power: SIGKILL to the host's PID 1. False if it was off.

    Killing nspawn itself would leave an orphan that blocks the next start.
    """
    host = lab.host(name)
    process = running(host)
    if process:
        process.end(signal.SIGKILL)
    _end_rest(lab, name, host)
    lab.save()
    return process is not None


def shut_down(lab: Lab, names: Iterable[str], wait_s: float = 30) -> None:
    """Shut hosts down together as a person would; whoever is on after a while loses power."""
    names = list(names)
    for name in names:
        process = running(lab.host(name))
        if process:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGRTMIN + 4)  # systemd: start poweroff.target
    deadline = time.monotonic() + wait_s
    for name in names:
        process = running(lab.host(name))
        if process:
            process.gone(max(0.0, deadline - time.monotonic()))
        power_off(lab, name)


def _end_rest(lab: Lab, name: str, host: Host) -> None:
    """After PID 1 is gone: nspawn ends by itself; unmount, remove the cgroups."""
    nspawn = Process.load(host.nspawn)
    if nspawn and not nspawn.gone(10):
        nspawn.end(signal.SIGKILL)
    host.nspawn = host.leader = None
    merged = lab.disk(name) / "merged"
    if os.path.ismount(merged):
        run(["umount", merged], what=f"Unmounting the disk of {name}")
    # nspawn leaves this folder where /run is no tmpfs, and complains about it.
    shutil.rmtree(f"/run/systemd/nspawn/propagate/{lab.name}-{name}", ignore_errors=True)
    for group in _cgroups(lab, name) or []:
        for folder, _, _ in os.walk(group, topdown=False):
            with contextlib.suppress(OSError):
                Path(folder).rmdir()
        with contextlib.suppress(OSError):
            group.parent.rmdir()  # the lab's own, with its last host


def remove_disk(lab: Lab, name: str) -> None:
    """Forget everything that a host (off) wrote."""
    shutil.rmtree(lab.disk(name), ignore_errors=True)


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def _mount(lab: Lab, name: str, host: Host) -> Path:
    """Mount the host's overlay.

    `volatile`: nothing is synced to the machine's disk, which makes packages and databases fast. A
    host's power-off loses nothing by it (the machine's page cache lives on), a machine's does.
    """
    disk = lab.disk(name)
    for part in ("upper", "work", "merged"):
        (disk / part).mkdir(parents=True, exist_ok=True)
    volatile = disk / "work" / "work" / "incompat" / "volatile"
    # The kernel refuses a volatile overlay again until this mark of it is taken away by someone who
    # knows.
    shutil.rmtree(volatile, ignore_errors=True)
    missing = [layer for layer in host.layers if not Path(layer).is_dir()]
    if missing:
        raise LabError(
            f"The disk of {name} stands on {missing[0]}, which is no longer in the cache: "
            f"`lab/lab destroy --name {lab.name}`, then `up` makes the lab anew."
        )
    options = f"lowerdir={':'.join(host.layers)},upperdir={disk}/upper,workdir={disk}/work,volatile"
    run(
        ["mount", "-t", "overlay", f"saltern-{lab.name}-{name}", "-o", options, disk / "merged"],
        what=f"Mounting the disk of {name}",
    )
    return disk / "merged"


def _configure(lab: Lab, name: str, root: Path, mirror_port: int) -> None:
    """What an installer or a hypervisor would have set: name, address, resolver, package proxy."""
    write = {
        "etc/systemd/network/10-lab.network": (
            "[Match]\nName=host0\n\n"
            f"[Link]\nMTUBytes={network.host_mtu()}\n\n"
            f"[Network]\nAddress={lab.address(name)}/24\nGateway={lab.gateway}\n"
            "LinkLocalAddressing=no\nIPv6AcceptRA=no\n"
        ),
        "etc/apt/apt.conf.d/91lab": f'Acquire::http::Proxy "http://{lab.gateway}:{mirror_port}";\n',
        "etc/hostname": f"{name}\n",
    }
    if not (root / "etc/machine-id").exists():
        write["etc/machine-id"] = f"{uuid.uuid4().hex}\n"
        write["etc/resolv.conf"] = NO_RESOLVER
    _overlay(root)
    for path, text in write.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


_FIRST_BOOT = "usr/local/sbin/first-boot"
_FIRST_BOOT_UNIT = f"""[Unit]
Description=What cloud-init or an installer would do at the first boot
ConditionPathExists=/{_FIRST_BOOT}
After=network-online.target
Wants=network-online.target

[Service]
Type=oneshot
ExecStart=/{_FIRST_BOOT}
ExecStartPost=/bin/rm /{_FIRST_BOOT}

[Install]
WantedBy=multi-user.target
"""


def prepare_first_boot(lab: Lab, name: str, script: str) -> None:
    """Lay a script on the disk of a host that never ran; its first boot runs and removes it."""
    upper = lab.disk(name) / "upper"
    unit = upper / "etc/systemd/system/first-boot.service"
    wanted = unit.parent / "multi-user.target.wants/first-boot.service"
    for path in (upper / _FIRST_BOOT, wanted):
        path.parent.mkdir(parents=True, exist_ok=True)
    (upper / _FIRST_BOOT).touch(mode=0o700)
    (upper / _FIRST_BOOT).write_text(script, encoding="utf-8")
    unit.write_text(_FIRST_BOOT_UNIT, encoding="utf-8")
    wanted.symlink_to("/etc/systemd/system/first-boot.service")


def _overlay(root: Path) -> None:
    """Lay out lab/overlay (see docs/lab.md): what a container needs and a host does not."""
    for source in sorted((LAB_DIR / "overlay").rglob("*")):
        if source.is_file():
            target = root / source.relative_to(LAB_DIR / "overlay")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


def _cgroups(lab: Lab, name: str) -> list[Path] | None:
    """The host's own cgroups, one a hierarchy; None where the machine's systemd makes them."""
    if Path("/run/systemd/system").is_dir():
        return None
    found = []
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        head, _, tail = line.partition(" - ")
        kind, _, options = tail.split(" ", 2)
        if kind == "cgroup2" or (kind == "cgroup" and "name=systemd" in options):
            found.append(Path(head.split()[4]) / "saltern" / lab.name / name)
    return found


def _into(groups: Sequence[Path]) -> str:
    """Shell text that moves the shell into cgroups (made if need be)."""
    for group in groups:
        group.mkdir(parents=True, exist_ok=True)
    return "".join(f"echo $$ > {group}/cgroup.procs && " for group in groups)


def each(names: Iterable[str], act: Callable[[str], None]) -> None:
    """Do something for each host, in their order."""
    for name in names:
        act(name)
