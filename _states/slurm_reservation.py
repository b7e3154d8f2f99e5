"""Slurm's reservations: the plan's, or single ones."""

from salt.exceptions import CommandExecutionError

__virtualname__ = "slurm_reservation"


def __virtual__():
    return __virtualname__


def managed(name):
    """The reservations are what the plan says.

    name: str, for people
    """
    return _made(name, None, ())


def present(name, **settings):
    """A reservation with these settings, in the words of `accounts:reservations` of the plan.

    name: str
    settings: ``start``, ``duration``, ``users`` or ``accounts``, ``nodes`` or ``node_count``
    """
    own = {key: value for key, value in settings.items() if not key.startswith("__")}
    return _made(name, {name: own}, ())


def absent(name):
    """No such reservation.

    name: str
    """
    return _made(name, {}, (name,))


def _made(name, wanted, gone):
    ret = {"name": name, "result": True, "changes": {}, "comment": "The reservations are so."}
    done = []
    try:
        calls = __salt__["slurm_reservation.calls"](wanted, gone)
        if not calls:
            return ret
        texts = [" ".join(["scontrol", *call]) for call in calls]
        if __opts__["test"]:
            comment = f"{len(calls)} calls of scontrol would be made."
            changes = {"commands": "\n".join(texts)}
            return {**ret, "result": None, "changes": changes, "comment": comment}
        for call, text in zip(calls, texts, strict=True):
            __salt__["slurm_reservation.change"](call)
            done.append(text)
        left = __salt__["slurm_reservation.calls"](wanted, gone)
    except CommandExecutionError as error:
        ret["changes"] = {"commands": "\n".join(done)} if done else {}
        return {**ret, "result": None if __opts__["test"] else False, "comment": str(error)}
    ret["changes"] = {"commands": "\n".join(done)}
    if left:
        still = "; ".join(" ".join(["scontrol", *call]) for call in left)
        return {**ret, "result": False, "comment": f"Slurm took it, and still lacks: {still}"}
    return {**ret, "comment": f"{len(done)} calls of scontrol."}
