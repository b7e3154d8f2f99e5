"""What the running cluster must say before the next step is taken."""

from salt.exceptions import CommandExecutionError

__virtualname__ = "slurm_cluster"


def __virtual__():
    return __virtualname__


def slurmdbd_answers(name, timeout):
    """Wait until a slurmdbd of the cluster answers; changes nothing.

    name: str, for people
    timeout: int, seconds
    """
    return _waited(name, "slurm_cluster.await_slurmdbd", timeout, "slurmdbd answers.")


def node_known(name, timeout):
    """Wait until a controller's running configuration holds this host; changes nothing.

    name: str, for people
    timeout: int, seconds
    """
    return _waited(
        name, "slurm_cluster.await_node_known", timeout, "The controller knows this node."
    )


def _waited(name, function, timeout, comment):
    ret = {"name": name, "result": True, "changes": {}, "comment": comment}
    try:
        __salt__[function](0 if __opts__["test"] else timeout)
    except CommandExecutionError as error:
        return {**ret, "result": None if __opts__["test"] else False, "comment": str(error)}
    return ret


def registered(name):
    """Accounting knows the cluster, before its controller first starts.

    name: str, the cluster's name
    """
    ret = {
        "name": name,
        "result": True,
        "changes": {},
        "comment": f"Accounting knows the cluster {name}.",
    }
    try:
        known = __salt__["slurm_cluster.clusters"]()
        if name in known:
            return ret
        if not __opts__["test"]:
            __salt__["slurm_cluster.add_cluster"](name)
    except CommandExecutionError as error:
        return {**ret, "result": None if __opts__["test"] else False, "comment": str(error)}
    changes = {"clusters": {"old": ", ".join(known), "new": ", ".join([*known, name])}}
    if __opts__["test"]:
        return {
            **ret,
            "result": None,
            "changes": changes,
            "comment": f"{name} would be added to accounting.",
        }
    return {**ret, "changes": changes, "comment": f"{name} was added to accounting."}
