"""Wrong clocks: a host's time-keeping daemons see another time, through libfaketime.

The kernel's clock is the machine's, one for all hosts. So each daemon whose clock matters gets a
drop-in that loads libfaketime, and restarts: the host then looks like one whose clock is off.
"""

from saltern_lab import hosts
from saltern_lab.errors import LabError
from saltern_lab.record import Lab

UNITS = ("chrony", "munge", "slurmdbd", "slurmctld", "slurmd", "sackd")
KEEPERS = ("chrony", "munge")
DROP_IN = "lab-skew.conf"


def drop_in(seconds: int, library: str) -> str:
    """The drop-in that shifts a daemon's clock.

    chronyd runs with -x here: it measures the offset and leaves the clock as it is, so the clock
    stays wrong for whoever looks at `chronyc sources`.
    """
    return (
        "# Written by `lab/lab skew`.\n[Service]\n"
        f"Environment=LD_PRELOAD={library} FAKETIME={seconds:+d}s FAKETIME_DONT_FAKE_MONOTONIC=1\n"
        # libfaketime shares memory between a daemon's processes.
        "MemoryDenyWriteExecute=no\n"
    )


def set_skew(lab: Lab, name: str, seconds: int) -> list[str]:
    """Shift the clock of a host's daemons (0: right again); returns the restarted units."""
    if seconds == 0:
        folders = " ".join(f"/etc/systemd/system/{unit}.service.d/{DROP_IN}" for unit in UNITS)
        _shell(lab, name, f"rm -f {folders}", "Removing the skew")
    else:
        library = _library(lab, name)
        for unit in UNITS:
            folder = f"/etc/systemd/system/{unit}.service.d"
            script = f"mkdir -p {folder}; cat > {folder}/{DROP_IN}"
            _shell(lab, name, script, "Writing the skew", drop_in(seconds, library))
    _shell(lab, name, "systemctl daemon-reload", "Reloading systemd")
    used = [u for u in UNITS if hosts.probe(lab, name, ["systemctl", "is-active", u]) != "inactive"]
    first = [unit for unit in used if unit in KEEPERS]
    others = [unit for unit in used if unit not in KEEPERS]
    if first:
        _shell(lab, name, f"systemctl restart {' '.join(first)}", "Restarting chrony and munge")
    if others:
        # Not waited for: with a wrong clock they may not start, which is what one wants to see.
        script = f"systemctl reset-failed {' '.join(others)}; "
        script += f"systemctl restart --no-block {' '.join(others)}"
        _shell(lab, name, script, "Restarting Slurm's daemons")
    return used


def _library(lab: Lab, name: str) -> str:
    find = "ls /usr/lib/*/faketime/libfaketimeMT.so.1 2>/dev/null || true"
    found = _shell(lab, name, find, "Looking for libfaketime").strip()
    if not found:
        install = (
            "export DEBIAN_FRONTEND=noninteractive; apt-get -q update; "
            "apt-get -q install -y --no-install-recommends libfaketime"
        )
        _shell(lab, name, install, "Installing libfaketime in the host")
        found = _shell(lab, name, find, "Looking for libfaketime").strip()
    if not found:
        raise LabError(f"libfaketime is not to be found in {name}.")
    return found.splitlines()[0]


def _shell(lab: Lab, name: str, script: str, what: str, stdin: str | None = None) -> str:
    return hosts.execute(lab, name, ["sh", "-ec", script], what=f"{what} on {name}", stdin=stdin)
