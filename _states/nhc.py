"""Nodes in and out of service, with an owner for each drain; and the checks' configuration."""

from salt.exceptions import CommandExecutionError

__virtualname__ = "nhc"


def __virtual__():
    return __virtualname__


def drained(name, cause, finding, nodes=None):
    """Nodes take no new jobs, for a cause of ours; a drain of another is left as it is.

    name: str, the node, or words for people when nodes are given
    cause: str, one word
    finding: str, for people
    nodes: list of str
    """
    wanted = nodes or [name]
    return _asked(name, "nhc.drain", "drained", nodes=wanted, cause=cause, finding=finding)


def resumed(name, cause, nodes=None):
    """A cause of ours is over; a node with no other takes jobs again.

    name: str, the node, or words for people when nodes are given
    cause: str, the word that drained
    nodes: list of str
    """
    return _asked(name, "nhc.resume", "resumed", nodes=nodes or [name], cause=cause)


def _asked(name, function, done, **arguments):
    ret = {"name": name, "result": True, "changes": {}, "comment": ""}
    test = __opts__["test"]
    try:
        found = __salt__[function](test=test, **arguments)
    except CommandExecutionError as error:
        return {**ret, "result": False, "comment": str(error)}
    left = [f"{node}: left alone, {one['left']}" for node, one in found.items() if one["left"]]
    verb = f"would be {done}" if test else done
    for node, one in found.items():
        if one["changed"]:
            now = f"{one['state']}, {one['reason'] or 'no reason'}"
            ret["changes"][node] = verb if test else now
    if ret["changes"]:
        ret["result"] = None if test else True
        left = [f"{', '.join(ret['changes'])}: {verb}", *left]
    return {**ret, "comment": "\n".join(left) or f"Nothing to do: {done} already."}


def configured(name):
    """The checks of this node's type and the plan's own lines, and what the drain logic goes by.

    name: str, path of the checks, /etc/nhc/nhc.conf
    """
    ret = {"name": name, "result": True, "changes": {}, "comment": f"{name} is as the plan says."}
    try:
        wanted = __salt__["nhc.files"](name)
    except CommandExecutionError as error:
        return {**ret, "result": False, "comment": str(error)}
    for path, text in wanted.items():
        one = __states__["file.managed"](
            name=path, contents=text, user="root", group="root", mode="0644", makedirs=True
        )
        if one["result"] is False:
            return {**ret, "result": False, "comment": one["comment"]}
        if one["changes"]:
            ret["changes"][path] = one["changes"]
    if not ret["changes"]:
        return ret
    names = ", ".join(ret["changes"])
    if __opts__["test"]:
        return {**ret, "result": None, "comment": f"{names} would be written."}
    return {**ret, "comment": f"{names} written."}
