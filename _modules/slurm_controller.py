"""The running slurmctld: what it has not taken of its files, and the least that makes it."""

import os
import tempfile
import time

import salt.utils.files
from salt.exceptions import CommandExecutionError
from saltern import enforcement, slurm_answers, slurm_conf_changes, slurm_daemons
from saltern.problem import Problem

__virtualname__ = "slurm_controller"

_CONF = "/etc/slurm"
_FILES = ("cgroup.conf", "gres.conf", "slurm.conf")
_APPLIED = "/var/lib/saltern/slurm_conf"  # what the running controller last took
_CLIENT = "/var/lib/saltern/slurmctld_client"  # a configuration that knows this host only
_STANDBY = "in standby mode"  # of a client's error, ESLURM_IN_STANDBY_MODE
_ANSWER_S = 30
_APPLY_S = 120
_PAUSE_S = 0.5


def __virtual__():
    return __virtualname__


def refused():
    """Why the plan's files may not be installed while slurmctld runs: it would lose its jobs.

    Returns a list of ``saltern.problem.Problem``; empty when it may.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_controller.refused
    """
    if not __salt__["daemon.status"]("slurmctld")["active"]:
        return []
    before, after = _read(_APPLIED), __salt__["slurm_conf.files"]()
    return [
        *slurm_conf_changes.refused(before, after),
        *_removed_under_jobs(slurm_conf_changes.removed_nodes(before, after)),
        *_reshaped_under_jobs(slurm_conf_changes.reshaped_nodes(before, after)),
    ]


def _removed_under_jobs(nodes):
    """slurmctld ends the jobs of a node that its configuration no longer has."""
    jobs = __salt__["slurm_nodes.jobs_on"](nodes) if nodes else []
    if not jobs:
        return []
    return [
        Problem(
            "hosts",
            f"{', '.join(nodes)} taken out, with jobs there ({'; '.join(jobs)})",
            "no node taken out under its jobs",
            f"put it back, then `salt-run saltern.retire {nodes[0]}`, which waits for them",
        )
    ]


def _reshaped_under_jobs(changes):
    """slurmctld requeues the jobs of a node that has other sockets or cores than before."""
    jobs = __salt__["node_reshape.jobs"](changes)
    if not jobs:
        return []
    first = next(iter(changes))
    return [
        Problem(
            "node_types",
            f"{', '.join(changes)}: {changes[first]}, with jobs there ({'; '.join(jobs)})",
            "no other hardware of a node under its jobs",
            f"drain it (`scontrol update nodename={first} state=drain reason=…`), wait for its "
            "jobs, and run this again",
        )
    ]


def pending(planned=False, raised=False):
    """What the running slurmctld has not taken of its files.

    planned: bool, compare with the files that the plan wants and not with those in /etc/slurm
        (a dry run)
    raised: bool, of the plan's files, those of ``slurm_conf.files raised=True``
    Returns a dict: ``state`` str, one of ``stopped``, ``same``, ``unrecorded`` (it read them when
    it started), ``differs``; ``changes`` list of str; ``action`` one of NOTHING, RECONFIGURE,
    RESTART.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_controller.pending
    """
    status = __salt__["daemon.status"]("slurmctld")
    now = __salt__["slurm_conf.files"](raised) if planned else _read(_CONF)
    before = _read(_APPLIED)
    found = {
        "state": "differs",
        "changes": slurm_conf_changes.changed(before, now),
        "action": slurm_conf_changes.action(before, now).name,
    }
    if not status["active"]:
        return {**found, "state": "stopped"}
    waits = standby()
    if waits and found["action"] != "NOTHING":
        found["action"] = "RESTART"  # a reconfigure reaches the controller in charge only
    if planned and before and before != now:
        return found
    matches = waits or _matches()
    if before == now and matches:
        return {**found, "state": "same"}
    if matches and _has_read_all(status):
        return {**found, "state": "unrecorded"}
    if before == now:
        # Recorded, but the daemon runs something else: somebody's own reconfigure, or a cut.
        different = ["the running configuration differs from the files"]
        return {**found, "action": "RECONFIGURE", "changes": different}
    return found


def record():
    """Note that the running slurmctld has the files of /etc/slurm.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_controller.record
    """
    os.makedirs(_APPLIED, mode=0o700, exist_ok=True)
    _write(_APPLIED, _read(_CONF))


def confirm(since):
    """Wait until slurmctld runs with the files of /etc/slurm, and note them.

    since: float, when it was told to (seconds since the epoch)
    It says that it is ready before it has read everything, so only its answer counts.
    Raises CommandExecutionError with its own words.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_controller.confirm 0
    """
    deadline = time.monotonic() + _ANSWER_S
    while time.monotonic() < deadline:
        status = __salt__["daemon.status"]("slurmctld")
        if status["active"] and _has_read_all(status) and (standby() or _matches()):
            record()
            return
        if not status["active"] and status["properties"].get("Result") != "success":
            break
        time.sleep(_PAUSE_S)
    said = slurm_answers.reasons(__salt__["daemon.log_since"]("slurmctld", since))
    raise CommandExecutionError(
        "; ".join(said) or "slurmctld does not answer, and its log says nothing"
    )


def apply(action):
    """Make the running slurmctld take the files of /etc/slurm, by the least that does it.

    action: str, NOTHING, RECONFIGURE or RESTART
    No running job ends. The exit status of scontrol is not believed: the running configuration is
    read back. When it is not the new one, the former files are put back and CommandExecutionError
    is raised with slurmctld's own words.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_controller.apply RECONFIGURE
    """
    if action == "NOTHING":
        record()
        return
    former = _read(_APPLIED)
    in_charge = not standby()
    changes = slurm_conf_changes.reshaped_nodes(former, _read(_CONF)) if in_charge else {}
    try:
        __salt__["node_reshape.hold"](changes)
    except CommandExecutionError as error:
        raise CommandExecutionError(f"{error}. {_roll_back(former)}") from None
    mark = time.time()
    try:
        _tell(action, in_charge)
        confirm(mark)
    except CommandExecutionError as error:
        end = _roll_back(former)
        __salt__["node_reshape.release"](0)
        raise CommandExecutionError(
            f"slurmctld refused the new configuration: {error}. {end}"
        ) from None
    __salt__["node_reshape.release"](mark)


def _tell(action, in_charge):
    """A reconfigure reaches the controller in charge only; one that waits is started again."""
    if action == "RESTART" or not in_charge:
        __salt__["daemon.start"]("slurmctld")
    if in_charge:
        # Also after a restart: it is what brings the files to the nodes.
        _scontrol(["reconfigure"], _APPLY_S)


def standby():
    """Whether this host's slurmctld waits for the one in charge to fail.

    Returns bool; False as well when it does not answer, and with one controller.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt0*' slurm_controller.standby
    """
    view = __salt__["saltern.view"]()
    if len(view["peers"]["controller"]) == 1:
        return False
    os.makedirs(_CLIENT, mode=0o700, exist_ok=True)
    text = slurm_daemons.client_conf(view, [view["host"]["name"]])
    _write(_CLIENT, {"slurm.conf": text})
    result = _scontrol(["show", "config"], _ANSWER_S, {"SLURM_CONF": f"{_CLIENT}/slurm.conf"})
    return _STANDBY in result["stderr"]


def enforced():
    """What the running controllers enforce of accounting.

    Returns a list of str, with all that Slurm adds by itself. Raises CommandExecutionError without
    an answer.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_controller.enforced
    """
    result = _scontrol(["show", "config"], _ANSWER_S)
    if result["retcode"]:
        raise CommandExecutionError(f"scontrol show config: {result['stderr'] or 'no answer'}")
    return enforcement.enforced(result["stdout"])


def await_enforced(timeout):
    """Wait until the running controllers enforce what the plan wants.

    timeout: float, seconds, 0 asks once
    Raises CommandExecutionError naming the host whose accounts are waited for.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt02' slurm_controller.await_enforced 60
    """
    accounts = __salt__["saltern.view"]("accounts")
    missing = enforcement.whole(accounts["enforce"])
    deadline = time.monotonic() + timeout
    while missing:
        missing = sorted(set(missing) - set(enforced()))
        if missing and time.monotonic() >= deadline:
            raise CommandExecutionError(
                f"slurmctld did not enforce {', '.join(missing)} within {timeout:.0f} s, so the "
                f"accounts are not known to be in place. Run the state p7_identity.accounts on "
                f"{accounts['reconciler']}."
            )
        if missing:
            time.sleep(_PAUSE_S)


def _roll_back(former):
    if not former:
        return "There is no former configuration to go back to."
    _write(_CONF, former)
    if not __salt__["daemon.status"]("slurmctld")["active"]:
        __salt__["daemon.start"]("slurmctld")
    return "The former files are back, and slurmctld runs with them."


def _matches():
    """Whether slurmctld's hash of its file is that of the file here; None without an answer."""
    result = _scontrol(["show", "config"], _ANSWER_S)
    if result["retcode"]:
        return None
    return slurm_answers.config(result["stdout"]).get("HASH_VAL", "Match") == "Match"


def _has_read_all(status):
    """Whether the process is younger than its files; stamps of the future say nothing."""
    paths = [os.path.join(_CONF, name) for name in _FILES]
    stamps = [os.stat(path).st_mtime for path in paths if os.path.exists(path)]
    return all(stamp <= status["started"] or stamp > time.time() for stamp in stamps)


def _scontrol(arguments, timeout, env=None):
    try:
        return __salt__["cmd.run_all"](
            [f"{slurm_daemons.TREE}/bin/scontrol", *arguments],
            python_shell=False,
            timeout=timeout,
            env=env,
            ignore_retcode=True,
            output_loglevel="quiet",
        )
    except CommandExecutionError as error:  # a time-out
        return {"retcode": 124, "stdout": "", "stderr": str(error)}


def _read(folder):
    found = {}
    for name in _FILES:
        path = os.path.join(folder, name)
        if os.path.exists(path):
            with salt.utils.files.fopen(path, encoding="utf-8") as file:
                found[name] = file.read()
    return found


def _write(folder, files):
    """Each file whole or not at all."""
    for name, text in files.items():
        descriptor, aside = tempfile.mkstemp(dir=folder, prefix=f".{name}.")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            os.fchmod(file.fileno(), 0o644)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, os.path.join(folder, name))
