"""What phases have in common: gates, waits, and the hosts file."""

from salt.exceptions import CommandExecutionError

__virtualname__ = "saltern"


def __virtual__():
    return __virtualname__


def gate(name, phase):
    """The check that ends a phase: looks at the host, fails with every reason, changes nothing.

    name: str, for people
    phase: str, for example ``p1_foundation``

    A dry run looks too, but does not fail for what a real run may still make.
    """
    ret = {"name": name, "result": True, "changes": {}, "comment": f"The gate of {phase} is open."}
    try:
        reasons = __salt__[f"saltern_gate.{phase}"](wait=not __opts__["test"])
    except CommandExecutionError as error:
        reasons = [str(error)]
    if not __opts__["test"]:
        __salt__["saltern.note_gate"](phase, not reasons)
        # One event a phase: a site's reactor, and whoever watches a run, learn of it at once.
        __salt__["event.send"]("saltern/phase", {"phase": phase, "open": not reasons})
    if not reasons:
        return ret
    listed = "\n".join(f"- {reason}" for reason in reasons)
    comment = f"The gate of {phase} is closed:\n{listed}"
    return {**ret, "result": None if __opts__["test"] else False, "comment": comment}


def waited(name, host, port, timeout, what):
    """Wait until a peer listens, with a bound; changes nothing.

    name: str, for people
    host: str, name or address
    port: int, TCP
    timeout: int, seconds
    what: str, what is waited for, for example ``slurmdbd``
    """
    ret = {
        "name": name,
        "result": True,
        "changes": {},
        "comment": f"{what} on {host}:{port} answers.",
    }
    patience = 0 if __opts__["test"] else timeout
    try:
        __salt__["saltern.await_port"](host, port, patience, what)
    except CommandExecutionError as error:
        return {**ret, "result": None if __opts__["test"] else False, "comment": str(error)}
    return ret


def hosts_file(name):
    """A marked block at the head of a hosts file knows every host of the plan; the rest stays.

    name: str, path
    """
    try:
        block = __salt__["saltern.hosts_block"]()
    except CommandExecutionError as error:
        return {"name": name, "result": False, "changes": {}, "comment": str(error)}
    return __states__["file.blockreplace"](
        name=name,
        marker_start="# >>> Saltern: hosts of the plan",
        marker_end="# <<< Saltern",
        content=block,
        prepend_if_not_found=True,
        backup=False,
    )
