"""Daemons that run what they should, compared with what runs and not with what this run wrote."""

from salt.exceptions import CommandExecutionError

__virtualname__ = "daemon"


def __virtual__():
    return __virtualname__


def current(name, files, port=None):
    """A daemon is enabled, runs the active tree's binary, and started after its files changed.

    name: str, a unit, for example ``slurmd``
    files: list of str, paths that it reads only when it starts
    port: int, its TCP port
    """
    ret = {"name": name, "result": True, "changes": {}, "comment": f"{name} runs as it should."}
    enabled = __salt__["service.available"](name) and __salt__["service.enabled"](name)
    try:
        reasons = __salt__["daemon.restart_reasons"](name, files)
    except CommandExecutionError as error:
        return {**ret, "result": False, "comment": str(error)}
    if enabled and not reasons:
        return ret
    changes = {} if enabled else {"enabled": {"old": False, "new": True}}
    if reasons:
        changes["started"] = "; ".join(reasons)
    why = changes.get("started", "is not enabled")
    if __opts__["test"]:
        comment = f"{name} would be started: it {why}."
        return {**ret, "result": None, "changes": changes, "comment": comment}
    try:
        if reasons:
            __salt__["daemon.start"](name, port)
    except CommandExecutionError as error:
        return {**ret, "result": False, "comment": str(error)}
    if not enabled and not __salt__["service.enable"](name):
        comment = f"{name} runs, but systemd did not enable it."
        return {**ret, "result": False, "changes": changes, "comment": comment}
    return {**ret, "changes": changes, "comment": f"{name} runs now: it {why}."}
