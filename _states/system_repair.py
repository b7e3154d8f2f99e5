"""What a cut run left half done is finished, compared with reality and not with this run."""

from salt.exceptions import CommandExecutionError

__virtualname__ = "system_repair"


def __virtual__():
    return __virtualname__


def packages_finished(name):
    """No package is half installed, as a power cut leaves it: the next would be refused.

    name: str, for people
    """
    return _finished(
        name,
        lambda: {"packages": found} if (found := _call("unfinished_packages")) else {},
        "finish_packages",
    )


def limits_read(name, limits):
    """systemd has the default limits that its files say.

    name: str, for people
    limits: dict of str: int or "unlimited", for example ``{"nofile": 131072}``
    """
    return _finished(name, lambda: _call("stale_limits", limits), "reload_limits")


def _finished(name, look, finish):
    ret = {"name": name, "result": True, "changes": {}, "comment": "Nothing was left half done."}
    try:
        found = look()
        if not found:
            return ret
        if __opts__["test"]:
            return {**ret, "result": None, "changes": found, "comment": "It would be finished."}
        _call(finish)
        left = look()
    except CommandExecutionError as error:
        return {**ret, "result": False, "comment": str(error)}
    if left:
        return {**ret, "result": False, "comment": f"Still not finished: {left}"}
    return {**ret, "changes": found, "comment": "It was finished."}


def _call(function, *given):
    return __salt__[f"system_repair.{function}"](*given)
