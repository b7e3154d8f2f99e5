"""Slurm's configuration files on a controller: checked as a whole, then put in place one by one."""

from salt.exceptions import CommandExecutionError

__virtualname__ = "slurm_conf"


def __virtual__():
    return __virtualname__


def managed(name, raised=False):
    """slurm.conf, cgroup.conf and gres.conf as the plan wants; all refused if Slurm refuses one.

    name: str, the folder, /etc/slurm
    raised: bool, the accounts are in place, so all that the plan enforces may be enforced
    """
    ret = {"name": name, "result": True, "changes": {}, "comment": f"{name} is as the plan says."}
    try:
        __salt__["slurm_conf.require_sound"](raised)
        wanted = __salt__["slurm_conf.files"](raised)
    except CommandExecutionError as error:
        return {**ret, "result": False, "comment": str(error)}
    for file, text in wanted.items():
        one = __states__["file.managed"](
            name=f"{name}/{file}", contents=text, user="root", group="root", mode="0644"
        )
        if one["result"] is False:
            return {**ret, "result": False, "comment": one["comment"]}
        if one["changes"]:
            ret["changes"][file] = one["changes"]
    if not ret["changes"]:
        return ret
    names = ", ".join(ret["changes"])
    if __opts__["test"]:
        return {**ret, "result": None, "comment": f"{names} would be written."}
    return {**ret, "comment": f"{names} written."}
