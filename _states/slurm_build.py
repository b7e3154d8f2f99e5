"""The artefact on the builder and on the hosts."""

from salt.exceptions import CommandExecutionError

__virtualname__ = "slurm_build"


def __virtual__():
    return __virtualname__


def built(name):
    """The builder's store has the artefact of the plan, and the mine says so.

    name: str, for people
    """
    ret = {"name": name, "result": True, "changes": {}, "comment": ""}
    try:
        wanted = __salt__["slurm_build.plan"]()
        changes = {wanted["name"]: wanted["why"]} if wanted["needed"] else {}
        if __opts__["test"]:
            told = f"{wanted['name']} would be built." if changes else f"{wanted['name']} is built."
            return {**ret, "result": None if changes else True, "changes": changes, "comment": told}
        if changes:
            __salt__["slurm_build.build"]()
        __salt__["slurm_build.publish"]()
    except CommandExecutionError as error:
        return {**ret, "result": False, "comment": str(error)}
    return {**ret, "changes": changes, "comment": f"{wanted['name']} is built."}


def deployed(name, timeout):
    """This host has the builder's artefact unpacked, and none beyond those that the plan keeps.

    name: str, for people
    timeout: int, seconds to wait for the builder
    """
    ret = {"name": name, "result": True, "changes": {}, "comment": ""}
    try:
        offer = __salt__["slurm_build.offered"](0 if __opts__["test"] else timeout)
    except CommandExecutionError as error:
        return {**ret, "result": None if __opts__["test"] else False, "comment": str(error)}
    try:
        changes = (
            {} if __salt__["slurm_build.deployed"](offer["name"]) else {"deployed": offer["name"]}
        )
        if changes and not __opts__["test"]:
            __salt__["slurm_build.deploy"](offer)
        surplus = [tree for tree in __salt__["slurm_build.surplus"]() if tree != offer["name"]]
        if surplus:
            changes["removed"] = surplus
        for tree in [] if __opts__["test"] else surplus:
            __salt__["slurm_build.remove"](tree)
    except CommandExecutionError as error:
        return {**ret, "result": False, "comment": str(error)}
    result = None if changes and __opts__["test"] else True
    return {
        **ret,
        "result": result,
        "changes": changes,
        "comment": f"{offer['name']} is what the builder offers.",
    }


def active(name):
    """/opt/slurm/current points at the builder's artefact.

    name: str, for people
    """
    ret = {"name": name, "result": True, "changes": {}, "comment": ""}
    try:
        wanted = __salt__["slurm_build.offered"]()["name"]
        now = __salt__["slurm_build.active"]()
        if now == wanted:
            return {**ret, "comment": f"{wanted} is active."}
        changes = {"active": {"old": now, "new": wanted}}
        if __opts__["test"]:
            return {
                **ret,
                "result": None,
                "changes": changes,
                "comment": f"{wanted} would become active.",
            }
        __salt__["slurm_build.activate"](wanted)
    except CommandExecutionError as error:
        return {**ret, "result": None if __opts__["test"] else False, "comment": str(error)}
    return {**ret, "changes": changes, "comment": f"{wanted} is active."}
