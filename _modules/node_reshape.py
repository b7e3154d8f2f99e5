"""Other hardware of a node in slurm.conf: no job starts there while the controllers and the node's
slurmd take it.

Slurm's documents stop slurmd first. Since 23.11 a reconfigure starts a new slurmd with the new
definition, so nothing has to be stopped; what is left to prevent is a job that starts in between,
which slurmctld would requeue (docs/design/0008-node-definitions.md).
"""

import json
import os
import tempfile
import time

import salt.utils.files
from salt.exceptions import CommandExecutionError

__virtualname__ = "node_reshape"

CAUSE = "definition"
_FINDING = "its definition in slurm.conf changes"
_NOTE = "/var/lib/saltern/node_reshape.json"  # names of the nodes that are held, for a run cut here
_TAKEN_S = 30
_PAUSE_S = 0.5


def __virtual__():
    return __virtualname__


def jobs(changes):
    """Jobs that would lose their node's sockets, cores, threads or GPUs.

    changes: dict, {node: what differs}
    Returns a list of str: id, user and state. Raises CommandExecutionError when slurmctld does not
    answer.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' node_reshape.jobs '{node01: cpus 2 -> 4}'
    """
    return __salt__["slurm_nodes.jobs_on"](list(changes)) if changes else []


def hold(changes):
    """Drain the nodes, with our mark, so that no job starts there any more.

    changes: dict, {node: what differs}
    Raises CommandExecutionError when a job started meanwhile; the nodes are given back then.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' node_reshape.hold '{node01: cpus 2 -> 4}'
    """
    if not changes:
        return
    _write(list(changes))
    __salt__["nhc.drain"](list(changes), CAUSE, _FINDING)
    there = jobs(changes)
    if there:
        release(0)
        raise CommandExecutionError(
            f"{', '.join(changes)}: jobs started there meanwhile ({'; '.join(there)})"
        )


def release(since):
    """Give the held nodes back, once their slurmd started again. Others' drains stay.

    since: float, when the controllers were told (seconds since the epoch)
    A node whose slurmd does not answer is given back as well: Slurm itself keeps it out of service.
    Returns a list of str, the nodes that were held. Raises CommandExecutionError when slurmctld
    does not answer.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' node_reshape.release 0
    """
    names = held()
    if not names:
        return []
    deadline = time.monotonic() + _TAKEN_S
    while _waits(names, since) and time.monotonic() < deadline:
        time.sleep(_PAUSE_S)
    __salt__["nhc.resume"](names, CAUSE)
    os.unlink(_NOTE)
    return names


def held():
    """The nodes that a change of theirs holds, also after a run that was cut.

    Returns a list of str.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' node_reshape.held
    """
    try:
        with salt.utils.files.fopen(_NOTE, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return []


def _waits(names, since):
    """Whether a node that answers still has its former slurmd."""
    return any(
        node["slurmd_started"] < int(since)
        for node in __salt__["slurm_nodes.states"](names).values()
        if node["base"] not in ("DOWN", "UNKNOWN") and "NOT_RESPONDING" not in node["flags"]
    )


def _write(names):
    """Added to what a cut run holds; the file whole or not at all."""
    names = [*dict.fromkeys([*held(), *names])]
    descriptor, aside = tempfile.mkstemp(dir=os.path.dirname(_NOTE), prefix=".node_reshape.")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(names, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(aside, _NOTE)
