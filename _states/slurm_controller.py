"""The configuration that the running slurmctld has."""

from salt.exceptions import CommandExecutionError

__virtualname__ = "slurm_controller"


def __virtual__():
    return __virtualname__


def applied(name, raised=False):
    """The running slurmctld has the files of /etc/slurm; no job ends for it.

    name: str, for people
    raised: bool, as for ``slurm_conf.managed``; only a dry run asks

    A slurmctld that does not run reads them when it starts: nothing to do here.
    """
    ret = {"name": name, "result": True, "changes": {}, "comment": "slurmctld has its files."}
    try:
        found = __salt__["slurm_controller.pending"](planned=__opts__["test"], raised=raised)
        if found["state"] == "unrecorded" and not __opts__["test"]:
            __salt__["slurm_controller.record"]()
        if found["state"] == "same" and not __opts__["test"]:
            _finish_reshape(ret)
    except CommandExecutionError as error:
        return {**ret, "result": False, "comment": str(error)}
    if found["state"] == "stopped":
        return {**ret, "comment": "slurmctld does not run; it reads its files when it starts."}
    if found["state"] != "differs":
        return ret
    return _apply(ret, found["action"], found["changes"])


def _finish_reshape(ret):
    """Give back what a run held that was cut."""
    names = __salt__["node_reshape.held"]() and __salt__["node_reshape.release"](0)
    if names:
        ret["changes"] = {"given back": ", ".join(names)}


def _apply(ret, action, changed):
    changes = {"running configuration": "\n".join(changed) or "unknown before"}
    if __opts__["test"]:
        words = "would note a change without meaning"
        if action != "NOTHING":
            words = f"slurmctld would {action.lower()}"
        return {**ret, "result": None, "changes": changes, "comment": f"{words}."}
    try:
        __salt__["slurm_controller.apply"](action)
    except CommandExecutionError as error:
        return {**ret, "result": False, "comment": str(error)}
    if action == "NOTHING":
        return ret
    return {**ret, "changes": changes, "comment": f"slurmctld took it by {action.lower()}."}


def enforced(name, timeout):
    """Wait until the running controllers enforce what the plan wants; changes nothing.

    name: str, for people
    timeout: int, seconds
    """
    ret = {"name": name, "result": True, "changes": {}, "comment": "The accounts are in place."}
    try:
        __salt__["slurm_controller.await_enforced"](0 if __opts__["test"] else timeout)
    except CommandExecutionError as error:
        return {**ret, "result": None if __opts__["test"] else False, "comment": str(error)}
    return ret
