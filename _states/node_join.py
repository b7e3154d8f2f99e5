"""A declared node is held by a drain of ours until its last gate is open."""

from salt.exceptions import CommandExecutionError

__virtualname__ = "node_join"


def __virtual__():
    return __virtualname__


def newcomers_held(name):
    """On a controller: nodes that never registered are drained, with our reason.

    name: str, for people
    """
    ret = {"name": name, "result": True, "changes": {}, "comment": "Every declared node is held."}
    try:
        found = __salt__["node_join.newcomers"]()
        if not found:
            return ret
        changes = {node: {"old": "undrained", "new": "drained: join"} for node in found}
        listed = ", ".join(found)
        if __opts__["test"]:
            comment = f"{listed} would be drained until they have joined."
            return {**ret, "result": None, "changes": changes, "comment": comment}
        done = __salt__["node_join.hold_newcomers"](found)
    except CommandExecutionError as error:
        return {**ret, "result": None if __opts__["test"] else False, "comment": str(error)}
    changes = {node: changes[node] for node, result in done.items() if result["changed"]}
    return {**ret, "changes": changes, "comment": f"{listed}: drained until they have joined."}


def held(name):
    """On a node, before its slurmd first starts: it takes no job before its gates are open.

    name: str, for people
    """
    return _node(name, "node_join.hold", "The node is held, or in service already.")


def in_service(name):
    """On a node, after its last gate: our hold is lifted. Other drains stay.

    name: str, for people
    """
    return _node(name, "node_join.release", "Nothing of a join keeps the node out of service.")


def _node(name, function, comment):
    ret = {"name": name, "result": True, "changes": {}, "comment": comment}
    try:
        done = __salt__[function](test=__opts__["test"])
    except CommandExecutionError as error:
        return {**ret, "result": None if __opts__["test"] else False, "comment": str(error)}
    if not done["changed"]:
        left = f" Left alone: {done['left']}." if done["left"] else ""
        return {**ret, "comment": comment + left}
    changes = {"reason": {"new": done["reason"]}, "state": {"new": done["state"]}}
    return {**ret, "result": None if __opts__["test"] else True, "changes": changes}
