"""LBNL NHC on a node, from the plan's archive."""

from salt.exceptions import CommandExecutionError

__virtualname__ = "nhc_lbnl"


def __virtual__():
    return __virtualname__


def installed(name):
    """The plan's version is installed.

    name: str, for people
    """
    ret = {"name": name, "result": True, "changes": {}, "comment": f"{name} is installed."}
    try:
        change = __salt__["nhc_lbnl.pending"]()
        if not change:
            return ret
        if __opts__["test"]:
            comment = f"{name} would be installed."
            return {**ret, "result": None, "changes": {"version": change}, "comment": comment}
        __salt__["nhc_lbnl.install"]()
        left = __salt__["nhc_lbnl.pending"]()
    except CommandExecutionError as error:
        return {**ret, "result": False, "comment": str(error)}
    if left:
        return {**ret, "result": False, "comment": f"After the installation: {left}."}
    return {**ret, "changes": {"version": change}, "comment": f"{name} was installed."}
