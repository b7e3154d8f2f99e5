"""The way of a node into service: held by a drain of ours from its declaration to its last gate."""

from salt.exceptions import CommandExecutionError
from saltern import node_states

__virtualname__ = "node_join"

CAUSE = "join"
_DECLARED = "declared, has not joined"
_JOINING = "its gates are not open yet"


def __virtual__():
    return __virtualname__


def newcomers():
    """The nodes that the controller knows, that never registered, and that nothing holds.

    Returns a list of str. Raises CommandExecutionError when slurmctld does not answer.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' node_join.newcomers
    """
    found = __salt__["slurm_nodes.states"]()
    return [
        name
        for name, node in found.items()
        if not node["registered"]
        and "DRAIN" not in node["flags"]
        and not node_states.hands_off(node_states.State(node["base"], tuple(node["flags"])))
    ]


def hold_newcomers(names):
    """Drain nodes that have not joined: from the minute of their declaration to their last gate.

    names: list of str
    Returns what ``nhc.drain`` returns.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' node_join.hold_newcomers '[node03]'
    """
    return __salt__["nhc.drain"](names, CAUSE, _DECLARED)


def tell_failure(name, finding):
    """Say in the reason of a held node why its join failed; a node in service stays there.

    name: str, the node
    finding: str
    Returns what ``nhc.drain`` returns, an empty dict for a node that is not held.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' node_join.tell_failure node03 'p1_foundation: the clock is off'
    """
    known = __salt__["nhc.status"]([name]).get(name)
    if not known or all(cause["name"] != CAUSE for cause in known["causes"]):
        return {}
    return __salt__["nhc.drain"]([name], CAUSE, finding)


def hold(test=False):
    """Drain this node before its slurmd starts: it comes into service by its last gate only.

    A node whose slurmd runs is in service, or held by others, and is left alone.
    test: bool, only say what would change
    Returns a dict as ``nhc.drain`` gives for one node.

    CLI Example:

    .. code-block:: bash

        salt 'node03' node_join.hold
    """
    name = __salt__["saltern.view"]("host:name")
    if __salt__["daemon.status"]("slurmd")["active"]:
        return {"changed": False, "state": "", "reason": "", "left": "its slurmd runs"}
    known = __salt__["nhc.status"]([name]).get(name)
    if known and any(cause["name"] == CAUSE for cause in known["causes"]):
        return {"changed": False, "state": known["state"], "reason": known["reason"], "left": ""}
    return __salt__["nhc.drain"]([name], CAUSE, _JOINING, test=test)[name]


def release(test=False):
    """Lift our hold of this node. What a person, a health check or Slurm drained stays.

    test: bool, only say what would change
    Returns a dict as ``nhc.resume`` gives for one node. Raises CommandExecutionError when no
    controller answers.

    CLI Example:

    .. code-block:: bash

        salt 'node03' node_join.release
    """
    name = __salt__["saltern.view"]("host:name")
    done = __salt__["nhc.resume"]([name], CAUSE, test=test)
    if name not in done:
        raise CommandExecutionError(f"nhc.resume said nothing about {name}.")
    return done[name]
