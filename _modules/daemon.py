"""Daemons under systemd: how one runs, why it must be started again, and its own words if it fails.

States compare with what runs, not with what this run wrote: a run that was cut between a file and
its daemon is finished by the next.
"""

import contextlib
import os
import re
import time

import salt.utils.files
from salt.exceptions import CommandExecutionError
from saltern import slurm_answers, slurm_daemons
from saltern.problem import listing

__virtualname__ = "daemon"

_ANSWER_S = 30
_START_S = 660  # longer than the units' own bound, so that systemd's word comes first
_LOG_BYTES = 200_000
_PROPERTIES = (
    "ActiveState,SubState,MainPID,ConditionResult,KillMode,Delegate,"
    "NeedDaemonReload,Result,UnitFileState"
)


def __virtual__():
    return __virtualname__


def status(name):
    """How a daemon runs.

    name: str, a unit such as ``slurmd``
    Returns a dict: ``active`` bool, ``pid`` int, ``executable`` str or None,
    ``started`` float (epoch), ``properties`` dict (systemd's).

    CLI Example:

    .. code-block:: bash

        salt 'node01' daemon.status slurmd
    """
    shown = _run(["systemctl", "show", name, f"--property={_PROPERTIES}"])
    properties = slurm_answers.properties(shown)
    pid = int(properties.get("MainPID", 0))
    return {
        "active": properties.get("ActiveState") == "active" and pid > 0,
        "pid": pid,
        "executable": _executable(pid),
        "started": _started(pid),
        "properties": properties,
    }


def restart_reasons(name, files=()):
    """Why a daemon must be started: down, another binary than the active one, older than a file.

    name: str, a unit
    files: list of str, paths that it reads only when it starts
    Returns a list of str.

    CLI Example:

    .. code-block:: bash

        salt 'node01' daemon.restart_reasons slurmd
    """
    stamps = {path: os.stat(path).st_mtime for path in files if os.path.exists(path)}
    # chronyd's first step of a fast clock leaves files of the future, which say nothing.
    changed = {path: stamp for path, stamp in stamps.items() if stamp <= time.time()}
    path = slurm_daemons.PATHS.get(name)
    binary = os.path.realpath(path) if path else None
    return slurm_daemons.restart_reasons(status(name), binary, changed)


def start(name, port=None):
    """Start a daemon, or start it again.

    name: str, a unit
    port: int, its TCP port, checked for another owner first
    Raises CommandExecutionError with the daemon's own words when it does not come up, or when a
    restart of slurmd would kill jobs.

    CLI Example:

    .. code-block:: bash

        salt 'node01' daemon.start slurmd 6818
    """
    _run(["systemctl", "daemon-reload"])
    before = status(name)
    if name == "slurmd" and before["active"]:
        unsafe = slurm_daemons.spares_jobs(before["properties"])
        if unsafe:
            title = "slurmd was not restarted, because that would kill its jobs:"
            raise CommandExecutionError(listing(title, unsafe))
    if port and not before["active"]:
        _require_free(port, name)
    mark = time.time()
    with contextlib.suppress(CommandExecutionError):
        _run(["systemctl", "restart", name], _START_S)
    after = status(name)
    if not after["active"]:
        raise CommandExecutionError(_why_down(name, after["properties"], mark))
    if name == "slurmctld":
        __salt__["slurm_controller.confirm"](mark)


def log_since(name, moment):
    """What a Slurm daemon wrote into its own log after a moment.

    name: str, for example ``slurmctld``
    moment: float, seconds since the epoch
    Returns str, empty when there is no log.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' daemon.log_since slurmctld 0
    """
    path = os.path.join(__salt__["saltern.view"]("slurm:log_dir"), f"{name}.log")
    try:
        with salt.utils.files.fopen(path, "rb") as file:
            file.seek(max(0, os.stat(path).st_size - _LOG_BYTES))
            return slurm_answers.since(file.read().decode(errors="replace"), moment)
    except OSError:
        return ""


def _why_down(name, properties, since):
    if properties.get("ConditionResult") == "no":
        return (
            f"{name} did not start: a condition of its unit failed (systemctl cat {name}); "
            "Saltern's own units have none."
        )
    window = ["--output=cat", "--no-pager", "--lines=200", f"--since=@{int(since)}"]
    journal = _try(["journalctl", f"--unit={name}", *window])
    own = log_since(name, since) if name in slurm_daemons.PATHS else ""
    said = slurm_answers.reasons(journal) or slurm_answers.reasons(own)
    words = "; ".join(said) or journal.strip()[-300:] or "it said nothing"
    result = properties.get("Result", "unknown")
    return f"{name} did not start ({result}): {words}. More: journalctl -u {name}."


def _require_free(port, name):
    options = ["--listening", "--tcp", "--numeric", "--no-header", "--processes"]
    listening = _try(["ss", *options, f"sport = :{port}"])
    if not listening.strip():
        return
    owner = re.search(r'\(\("([^"]+)",pid=(\d+)', listening)
    who = f"{owner[1]} (pid {owner[2]})" if owner else "another program"
    advice = f", or set slurm:ports:{name} in the plan" if name in slurm_daemons.PATHS else ""
    raise CommandExecutionError(
        f"Port {port}: found {who} listening there; expected it free for {name} -> stop that "
        f"program{advice}."
    )


def _executable(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe") if pid else None
    except OSError:
        return None


def _started(pid):
    """When a process started; the kernel counts from boot, so a clock that was set does no harm."""
    try:
        with salt.utils.files.fopen(f"/proc/{pid}/stat") as file:
            ticks = int(file.read().rsplit(")", 1)[1].split()[19])
    except OSError:
        return 0.0
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - age


def _run(command, timeout=_ANSWER_S):
    result = __salt__["cmd.run_all"](
        command,
        python_shell=False,
        timeout=timeout,
        ignore_retcode=True,
        output_loglevel="quiet",
    )
    if result["retcode"]:
        raise CommandExecutionError(f"{command[0]}: {result['stderr'] or result['stdout']}")
    return result["stdout"]


def _try(command):
    try:
        return _run(command)
    except CommandExecutionError:
        return ""
