"""Accounts with the plan's ids. An account that exists with other ids is refused, never changed."""

from salt.exceptions import CommandExecutionError

__virtualname__ = "system_account"


def __virtual__():
    return __virtualname__


def present(name, uid, gid, home, shell, createhome):
    """A user and its group of the same name, with fixed ids.

    name: str
    uid, gid: int
    home, shell: str, paths
    createhome: bool
    """
    ret = {"name": name, "result": True, "changes": {}, "comment": ""}
    try:
        conflicts = __salt__["system_account.conflicts"](name, uid, gid)
    except CommandExecutionError as error:
        return {**ret, "result": False, "comment": str(error)}
    if conflicts:
        return {**ret, "result": False, "comment": "\n".join(conflicts)}
    group = __states__["group.present"](name=name, gid=gid)
    if group["result"] is False:
        return {**group, "name": name}
    if __opts__["test"] and group["result"] is None:
        # user.present looks its group up, which a dry run did not make.
        return {
            **group,
            "name": name,
            "comment": f"{name} would be made with uid {uid} and gid {gid}.",
        }
    user = __states__["user.present"](
        name=name, uid=uid, gid=gid, home=home, shell=shell, createhome=createhome, usergroup=False
    )
    return {**user, "changes": {**group["changes"], **user["changes"]}}
