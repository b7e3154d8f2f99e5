"""Slurm's accounting: the plan's whole tree, or single objects of it.

What is not given is left alone; null clears. A dry run shows the exact commands.
"""

from salt.exceptions import CommandExecutionError

__virtualname__ = "sacctmgr"

_SHOWN = 20


def __virtual__():
    return __virtualname__


def managed(name):
    """Slurm's accounting is what the plan's section `accounts` says.

    name: str, for people
    """
    return _reconciled(name, None, None)


def cluster_present(name):
    """Accounting knows a cluster.

    name: str
    """
    return __states__["slurm_cluster.registered"](name=name)


def account_present(name, **settings):
    """An account with these settings, in the words of `accounts:tree` of the plan.

    name: str
    settings: for example ``parent``, ``fairshare``, ``limits``
    """
    return _present(name, "account", name, settings)


def account_absent(name):
    """No such account; it stays while anything is below it.

    name: str
    """
    return _absent(name, "account", name)


def user_present(name, **settings):
    """A user with these settings, in the words of `accounts:users` of the plan.

    name: str
    settings: for example ``accounts``, ``default_account``, ``admin_level``
    """
    return _present(name, "user", name, settings)


def user_absent(name):
    """No such user, with all associations; one with active jobs stays.

    name: str
    """
    return _absent(name, "user", name)


def association_present(name, account, user, partition=None, **settings):
    """A user's association with an account.

    name: str, for people
    account: str; user: str; partition: str
    settings: for example ``fairshare``, ``qos``, ``limits``
    """
    return _present(name, "association", _key(account, user, partition), settings)


def association_absent(name, account, user, partition=None):
    """No such association; one with active jobs stays.

    name: str, for people
    account: str; user: str; partition: str
    """
    return _absent(name, "association", _key(account, user, partition))


def qos_present(name, **settings):
    """A QOS with these settings, in the words of `accounts:qos` of the plan.

    name: str
    settings: for example ``priority``, ``flags``, ``limits``
    """
    return _present(name, "qos", name, settings)


def qos_absent(name):
    """No such QOS; it stays while it is somebody's default.

    name: str
    """
    return _absent(name, "qos", name)


def reservation_present(name, **settings):
    """A reservation, in the words of `accounts:reservations` of the plan.

    name: str
    settings: as for ``slurm_reservation.present``
    """
    own = {key: value for key, value in settings.items() if not key.startswith("__")}
    return __states__["slurm_reservation.present"](name=name, **own)


def reservation_absent(name):
    """No such reservation.

    name: str
    """
    return __states__["slurm_reservation.absent"](name=name)


def _key(account, user, partition):
    return "/".join(part for part in (account, user, partition) if part)


def _present(name, kind, what, settings):
    own = {key: value for key, value in settings.items() if not key.startswith("__")}
    try:
        section = __salt__["sacctmgr.section"](kind, what, own)
    except CommandExecutionError as error:
        return {"name": name, "result": False, "changes": {}, "comment": str(error)}
    return _reconciled(name, section, None)


def _absent(name, kind, what):
    section = __salt__["sacctmgr.section"](kind, what, None)
    return _reconciled(name, section, f"{kind} {what}")


def _reconciled(name, section, absent):
    """absent: str, what must not be left, for people."""
    ret = {"name": name, "result": True, "changes": {}, "comment": "Slurm's accounting is so."}
    try:
        if __opts__["test"]:
            return _predicted(ret, __salt__["sacctmgr.plan"](section), section, absent)
        report = __salt__["sacctmgr.apply"](section)
    except CommandExecutionError as error:
        return {**ret, "result": None if __opts__["test"] else False, "comment": str(error)}
    lines = [ret["comment"]]
    if report["done"]:
        ret["changes"] = {"commands": "\n".join(report["done"])}
        lines = [f"{len(report['done'])} calls of sacctmgr."]
    troubles = [f"Failed: {one['command']}: {one['said']}" for one in report["failed"]]
    if report["interrupted"]:
        troubles.append(f"Interrupted: {report['interrupted']}")
    if report["left"]:
        troubles.append(f"Not reached: {len(report['left'])} calls; the next run goes on.")
    return {
        **ret,
        "result": not troubles and not (absent and report["kept"]),
        "comment": "\n".join([*(troubles or lines), *_remarks(report, section)]),
    }


def _predicted(ret, found, section, absent):
    remarks = _remarks(found, section)
    if not found["commands"]:
        held = bool(absent and found["kept"])
        comment = "\n".join([ret["comment"], *remarks])
        return {**ret, "result": None if held else True, "comment": comment}
    return {
        **ret,
        "result": None,
        "changes": {"commands": "\n".join(found["commands"])},
        "comment": "\n".join(
            [f"{len(found['commands'])} calls of sacctmgr would be made.", *remarks]
        ),
    }


def _remarks(found, section):
    """What stays, what the plan does not know, what is not done for an untouchable."""
    titles = {"kept": "Stays for now", "refused": "Untouchable, not done"}
    if section is None:  # a single object says nothing about the others
        titles["unknown"] = "Not in the plan"
    for key, title in titles.items():
        for line in found[key][:_SHOWN]:
            yield f"{title}: {line}"
        if len(found[key]) > _SHOWN:
            yield f"{title}: {len(found[key]) - _SHOWN} more (sacctmgr.plan shows all)"
