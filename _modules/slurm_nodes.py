"""Slurm's nodes: what the controller says of them, what runs there, and how a node names itself."""

import time

from salt.exceptions import CommandExecutionError
from saltern import slurm_answers, slurm_conf

__virtualname__ = "slurm_nodes"

_NAMES = 1000  # of a command: Linux takes 128 KiB in one word (execve(2))
# The states of a job that has a process on its node, or may (squeue(1), JOB STATE CODES).
_THERE = "RUNNING,SUSPENDED,STOPPED,COMPLETING,CONFIGURING,SIGNALING,STAGE_OUT"


def __virtual__():
    return __virtualname__


def states(names=None):
    """What the controller says of nodes.

    names: list of str; None for every node
    Returns a dict of the nodes that it knows: {name: ``slurm_answers.node``}. Raises
    CommandExecutionError when it does not answer: no answer is not "unknown".

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_nodes.states '[node01, node02]'
    """
    result = __salt__["slurm_cluster.program"](["scontrol", "show", "nodes", "--json"])
    try:
        every = slurm_answers.nodes(result["stdout"])
    except (slurm_answers.Unreadable, KeyError):
        said = slurm_answers.words(result["stderr"] or result["stdout"])
        raise CommandExecutionError(f"slurmctld did not list its nodes: {said}") from None
    return {name: node for name, node in every.items() if names is None or name in names}


def jobs_on(nodes):
    """The jobs that run on nodes, or end there.

    nodes: list of str, names; a str for one
    Returns a list of str: id, user and state. Raises CommandExecutionError when slurmctld does not
    answer: no answer is not "none".

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_nodes.jobs_on node03
    """
    return list(jobs([nodes] if isinstance(nodes, str) else nodes))


def jobs(nodes):
    """The same, with the nodes of each job.

    nodes: list of str, names
    Returns a dict of str: str, ``id user state``: all nodes of the job, as Slurm folds them. Raises
    CommandExecutionError as ``jobs_on``.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_nodes.jobs '[node03, node04]'
    """
    names = list(nodes)
    found = {}  # a job stands in each part that has a node of it
    for start in range(0, len(names), _NAMES):
        part = ",".join(names[start : start + _NAMES])
        words = ["--noheader", f"--nodelist={part}", f"--states={_THERE}", "--format=%A %u %T|%N"]
        result = __salt__["slurm_cluster.program"](["squeue", *words])
        if result["retcode"]:
            said = slurm_answers.words(result["stderr"] or result["stdout"])
            raise CommandExecutionError(f"squeue did not list the jobs of {part}: {said}")
        rows = [line.partition("|") for line in result["stdout"].splitlines() if line.strip()]
        found.update({job.strip(): where.strip() for job, _, where in rows})
    return found


def steps(since):
    """Job steps on this host that began after a time, as the host itself sees them.

    since: float, seconds since the epoch
    Returns a list of str, such as ``12.batch``. Raises CommandExecutionError when it cannot tell.

    CLI Example:

    .. code-block:: bash

        salt 'node01' slurm_nodes.steps 0
    """
    command = ["ps", "--no-headers", "-o", "etimes=,args=", "-C", "slurmstepd"]
    found = __salt__["cmd.run_all"](command, python_shell=False, ignore_retcode=True)
    if found["retcode"] not in (0, 1) or found["stderr"]:  # 1: there is none (ps(1))
        raise CommandExecutionError(f"ps did not list the job steps: {found['stderr']}")
    rows = [line.split() for line in found["stdout"].splitlines()]
    # slurmstepd calls itself "slurmstepd: [12.batch]"
    young = [row[2] for row in rows if len(row) > 2 and time.time() - int(row[0]) > since]
    return sorted(word.strip("[]") for word in young)


def delete(node):
    """Have slurmctld forget a dynamic node; it refuses one that runs jobs.

    node: str
    Raises CommandExecutionError with Slurm's words when the node is still there.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_nodes.delete cloud-7
    """
    result = __salt__["slurm_cluster.program"](["scontrol", "delete", f"nodename={node}"])
    if node in states([node]):
        said = slurm_answers.words(result["stderr"] or result["stdout"])
        raise CommandExecutionError(f"slurmctld did not delete {node}: {said}")


def slurmd_arguments():
    """How slurmd names itself on this host.

    Returns str: ``-N node01``, or what registers an elastic host as a dynamic node.

    CLI Example:

    .. code-block:: bash

        salt 'node01' slurm_nodes.slurmd_arguments
    """
    host = __salt__["saltern.view"]("host")
    named = f"-N {host['name']}"
    return f'{named} -Z --conf "{slurm_conf.dynamic(host)}"' if host["elastic"] else named
