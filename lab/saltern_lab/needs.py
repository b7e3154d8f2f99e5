"""What the lab needs from the machine: programs are installed, the rest is a sentence each."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from saltern_lab.errors import LabError
from saltern_lab.paths import cache_dir, state_dir
from saltern_lab.run import run

# program: Debian package that brings it
PROGRAMS = {
    "systemd-nspawn": "systemd-container",
    "mmdebstrap": "mmdebstrap",
    "ip": "iproute2",
    "nft": "nftables",
    "git": "git",
}
DISK_GB = 10
KERNEL = [  # what, how it is tried (in a network namespace of its own), what to do
    ("network namespaces", "true", "CONFIG_NET_NS"),
    ("bridges", "ip link add sltry0 type bridge", "CONFIG_BRIDGE, module bridge"),
    ("veth pairs", "ip link add sltry1 type veth peer name sltry2", "CONFIG_VETH, module veth"),
    (
        "address translation by nftables",
        "printf 'table ip t {\\n chain c {\\n type nat hook postrouting priority 100;\\n"
        " masquerade\\n }\\n}\\n' | nft -f -",
        "CONFIG_NFT_NAT and CONFIG_NFT_MASQ, modules nft_chain_nat and nft_masq",
    ),
]


def check(say: Callable[[str], None]) -> None:
    """Raise LabError unless a lab can run here; install programs that are missing."""
    root()
    disk(cache_dir())
    disk(state_dir())
    programs(say)
    kernel()


def root() -> None:
    """The lab mounts, makes bridges and starts containers."""
    if os.geteuid() != 0:
        raise LabError(
            "The lab needs root (it mounts, makes a bridge and starts containers): use sudo."
        )


def disk(folder: Path, need_gb: int = DISK_GB) -> None:
    """Enough room where the lab writes."""
    folder.mkdir(parents=True, exist_ok=True)
    free_gb = shutil.disk_usage(folder).free / 1e9
    if free_gb < need_gb:
        raise LabError(
            f"Too little disk: {folder} has {free_gb:.1f} GB free and a lab needs {need_gb} GB; "
            "make room, or set SALTERN_CACHE and SALTERN_STATE to folders on a larger disk."
        )


def programs(say: Callable[[str], None]) -> None:
    """Install the Debian packages of missing programs."""
    missing = sorted({package for name, package in PROGRAMS.items() if not shutil.which(name)})
    if not missing:
        return
    say(f"installing on this machine: {' '.join(missing)}")
    if not shutil.which("apt-get"):
        raise LabError(f"This machine has no apt-get; install these by hand: {' '.join(missing)}.")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    what = "Installing the lab's programs (is a package registry reachable?)"
    run(["apt-get", "-q", "update"], what=what, env=env)
    run(
        ["apt-get", "-qy", "install", "--no-install-recommends", *missing],
        what=what,
        env=env,
        timeout=1200,
    )


def kernel() -> None:
    """Try each kernel feature for real."""
    for what, command, remedy in KERNEL:
        tried = subprocess.run(
            ["unshare", "--net", "sh", "-c", command], capture_output=True, text=True, check=False
        )
        if tried.returncode != 0:
            raise LabError(
                f"This kernel has no {what} ({remedy}), which the lab needs: "
                f"{first_line(tried.stderr)}."
            )
    _overlay()


def first_line(text: str) -> str:
    """The first line of what a program said."""
    return (text.strip().splitlines() or ["it said nothing"])[0].rstrip(".")


def _overlay() -> None:
    trial = state_dir() / ".overlay-trial"
    for part in ("lower", "upper", "work", "merged"):
        (trial / part).mkdir(parents=True, exist_ok=True)
    options = f"lowerdir={trial}/lower,upperdir={trial}/upper,workdir={trial}/work"
    command = f"mount -t overlay trial -o {options} {trial}/merged"
    tried = subprocess.run(
        ["unshare", "--mount", "sh", "-c", command], capture_output=True, text=True, check=False
    )
    shutil.rmtree(trial, ignore_errors=True)
    if tried.returncode != 0:
        raise LabError(
            f"This kernel cannot mount an overlay on {state_dir()} (CONFIG_OVERLAY_FS, module "
            "overlay; the folder must not itself lie on an overlay, as in a container): "
            f"{first_line(tried.stderr)}."
        )
