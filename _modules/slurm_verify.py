"""Proof by jobs: short jobs of root's own on every node in service, read back from accounting."""

import re
import time

from salt.exceptions import CommandExecutionError
from saltern import node_states, slurm_daemons, verify

__virtualname__ = "slurm_verify"

_ANSWER_S = 60
_PAUSE_S = 1
_NAMES = 1000  # of a command: Linux takes 128 KiB in one word (execve(2))
_NAME = "saltern-verify"
_HELD = ("slurmctld", "slurmdbd")
_NOT_LOADED = 5  # systemctl's status for a timer that has done its work
_STOP_S = 120  # slurmctld writes its whole state before it ends


def __virtual__():
    return __virtualname__


def jobs(within=120):
    """Run a short job on every node in service, and one over two nodes with PMIx.

    within: int, seconds until jobs that still wait are taken back. Only these jobs are ended,
        nobody else's.
    Returns a list of dicts: ``check``, ``result`` (ok, failed, left out), ``found``.
    Raises CommandExecutionError when slurmctld does not answer.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_verify.jobs
    """
    homes = _partitions()
    rows, begun, able = [], {}, {}
    for name, node in __salt__["slurm_nodes.states"]().items():
        partition = homes.get(name)
        state = node_states.State(node["base"], tuple(node["flags"]))
        row = verify.idle_reason(name, state, node["reason"], partition)
        if row:
            rows.append(row)
            continue
        able.setdefault(partition, []).append(name)
        _begin(begun, rows, f"job on {name}", partition, [name], "hostname")
    pair = next((names[:2] for names in able.values() if len(names) > 1), [])
    if pair:
        step = f"{slurm_daemons.TREE}/bin/srun --mpi=pmix hostname"
        _begin(begun, rows, f"job over {' and '.join(pair)}", homes[pair[0]], pair, step)
    return [*rows, *_awaited(begun, within)]


def reign():
    """How this host's slurmctld stands among the controllers.

    Returns a dict: ``active`` bool; ``in_charge`` bool, it answers and waits for no other;
    ``timeout_s`` int, seconds after which another takes over (SlurmctldTimeout).

    CLI Example:

    .. code-block:: bash

        salt 'mgmt0*' slurm_verify.reign
    """
    active = __salt__["daemon.status"]("slurmctld")["active"]
    config = _run(["scontrol", "show", "config"])["stdout"] if active else ""
    timeout = re.search(r"^SlurmctldTimeout\s*= (\d+)", config, re.MULTILINE)
    standby = active and __salt__["slurm_controller.standby"]()
    return {
        "active": active,
        "in_charge": bool(timeout) and not standby,
        "timeout_s": int(timeout[1]) if timeout else 0,
    }


def sleeper(seconds, begin_s=0):
    """Submit a job of root's that sleeps and ends by itself.

    seconds: int; begin_s: int, not before so many seconds from now
    Returns str, its id. Raises CommandExecutionError with Slurm's words.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_verify.sleeper 30
    """
    minutes = str(seconds // 60 + 2)
    options = [f"--job-name={_NAME}", "--nodes=1", "--ntasks=1", "--mem=10", f"--time={minutes}"]
    options += [f"--begin=now+{begin_s}", "--output=/dev/null", "--chdir=/"]
    said = _run(["sbatch", "--parsable", *options, "--wrap", f"sleep {seconds}"])
    if said["retcode"]:
        raise CommandExecutionError(" ".join((said["stderr"] or said["stdout"]).split()))
    return said["stdout"].strip().partition(";")[0]


def queue(ids):
    """What slurmctld has of jobs now.

    ids: list of str
    Returns a dict of str: {``state`` str, ``restarts`` int}; one that ended long ago is not there.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_verify.queue '[12]'
    """
    listed = ",".join(map(str, ids))
    words = ["--noheader", "--states=all", "--Format=JobID:|,State:|,RestartCnt:|"]
    said = _run(["squeue", *words, f"--jobs={listed}"])
    rows = (line.split("|") for line in said["stdout"].splitlines())
    return {
        row[0].strip(): {"state": row[1].strip(), "restarts": int(row[2])}
        for row in rows
        if len(row) > 2
    }


def accounted(ids):
    """What accounting has of jobs.

    ids: list of str
    Returns a dict of str: str, the state of each that has a row.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_verify.accounted '[12]'
    """
    return _states([str(number) for number in ids])


def take_back(ids):
    """Cancel jobs that this module submitted, and no others.

    ids: list of str

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_verify.take_back '[12]'
    """
    _run(["scancel", f"--name={_NAME}", *map(str, ids)])


def hold(daemon, seconds):
    """Stop a daemon of the control plane, and have systemd start it again if nobody does.

    daemon: str, slurmctld or slurmdbd; seconds: int, until systemd starts it
    Raises CommandExecutionError for another daemon, or when systemd does not take the timer; then
    nothing is stopped.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_verify.hold slurmctld 600
    """
    if daemon not in _HELD:
        raise CommandExecutionError(
            f"Found {daemon}; expected one of {', '.join(_HELD)}: no other is stopped for a test."
        )
    _systemd(["systemd-run", f"--on-active={seconds}", f"--unit={_NAME}-{daemon}",
              "systemctl", "start", daemon])  # fmt: skip
    _systemd(["systemctl", "stop", daemon])


def release(daemon):
    """Start a daemon that ``hold`` stopped.

    daemon: str
    Raises CommandExecutionError with systemd's words.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_verify.release slurmctld
    """
    _systemd(["systemctl", "start", daemon])
    _systemd(["systemctl", "stop", f"{_NAME}-{daemon}.timer"], also=_NOT_LOADED)


def slurmdbd_answers():
    """Whether a slurmdbd, the first or the one in reserve, answers a client here.

    Returns bool.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_verify.slurmdbd_answers
    """
    said = _run(["sacctmgr", "--noheader", "--parsable2", "show", "cluster", "format=Cluster"])
    return said["retcode"] == 0 and bool(said["stdout"].strip())


def _systemd(command, also=0):
    result = __salt__["cmd.run_all"](
        command, python_shell=False, timeout=_STOP_S, ignore_retcode=True, output_loglevel="quiet"
    )
    if result["retcode"] not in (0, also):
        raise CommandExecutionError(f"{' '.join(command[:2])}: {result['stderr']}")


def _begin(begun, rows, check, partition, nodes, command):
    options = [f"--job-name={_NAME}", f"--partition={partition}", f"--nodelist={','.join(nodes)}"]
    options += [f"--nodes={len(nodes)}", f"--ntasks={len(nodes)}", "--mem=10", "--time=1"]
    said = _run(
        ["sbatch", "--parsable", *options, "--output=/dev/null", "--chdir=/", "--wrap", command]
    )
    if said["retcode"]:
        words = " ".join((said["stderr"] or said["stdout"]).split())
        rows.append({"check": check, "result": verify.FAILED, "found": words})
    else:
        begun[said["stdout"].strip().partition(";")[0]] = check


def _awaited(begun, within):
    """The rows of jobs, when they ended or had their time."""
    deadline = time.monotonic() + within
    states = {}
    while begun and not verify.ended(states, begun) and time.monotonic() < deadline:
        time.sleep(_PAUSE_S)
        states = _states(begun)
    late = [job for job in begun if job not in states or verify.goes_on(states[job])]
    reasons = _reasons(late)
    for part in _parts(late):
        _run(["scancel", *part])
    return [
        verify.job(check, states.get(job), reasons.get(job, ""), within)
        for job, check in begun.items()
    ]


def _states(jobs):
    """What accounting has of jobs; nothing while slurmdbd does not answer."""
    found = {}
    for part in _parts(jobs):
        words = ["--noheader", "--allocations", "--parsable2", "--format=JobIDRaw,State"]
        said = _run(["sacct", *words, f"--jobs={','.join(part)}"])
        rows = (line.split("|") for line in said["stdout"].splitlines())
        found.update({row[0]: row[1] for row in rows if len(row) == 2})
    return found


def _reasons(jobs):
    found = {}
    for part in _parts(jobs):
        said = _run(["squeue", "--noheader", "--format=%i|%r", f"--jobs={','.join(part)}"])
        found.update(line.split("|", 1) for line in said["stdout"].splitlines() if "|" in line)
    return found


def _partitions():
    """A partition that is up for each node, the default one before others."""
    said = _run(["sinfo", "--noheader", "--Node", "--format=%N|%P|%a"])
    if said["retcode"]:
        words = " ".join((said["stderr"] or said["stdout"]).split())
        raise CommandExecutionError(f"slurmctld does not list its nodes: {words}")
    found = {}
    for line in said["stdout"].splitlines():
        node, partition, state = line.strip().split("|")
        if state == "up" and (node not in found or partition.endswith("*")):
            found[node] = partition.rstrip("*")
    return found


def _parts(jobs):
    names = list(jobs)
    return [names[start : start + _NAMES] for start in range(0, len(names), _NAMES)]


def _run(command):
    return __salt__["slurm_cluster.program"](command, _ANSWER_S)
