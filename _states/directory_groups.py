"""The directory's groups, known once before accounts are made of them."""

from salt.exceptions import CommandExecutionError

__virtualname__ = "directory_groups"


def __virtual__():
    return __virtualname__


def known(name, timeout):
    """The directory was looked at for the plan's groups; later looks at the same groups are
    `salt-run saltern.sync_accounts`.

    name: str, for people
    timeout: int, seconds to wait for its answer
    """
    ret = {"name": name, "result": True, "changes": {}, "comment": "The groups are known."}
    if __salt__["directory_groups.known"]():
        return ret
    changes = {"groups": {"old": "unknown", "new": "read from the directory"}}
    if __opts__["test"]:
        return {**ret, "result": None, "changes": changes, "comment": "They would be read."}
    try:
        found = __salt__["directory_groups.take"](patience=timeout)
    except CommandExecutionError as error:
        return {**ret, "result": False, "comment": str(error)}
    return {**ret, "changes": changes, "comment": f"{len(found['groups'])} groups are known."}
