"""Slurm's daemons and the configuration that they run, compared with reality and not with what this run wrote:
so a run that was cut between a file and its daemon is finished by the next."""

from salt.exceptions import CommandExecutionError

__virtualname__ = "slurm_cluster"


def __virtual__():
    return __virtualname__


def daemon(name, files, port=None):
    """A daemon is enabled, runs the active artefact's binary, and started after its files changed.

    name: str, a unit, for example ``slurmd``
    files: list of str, paths that it reads only when it starts
    port: int, its TCP port
    """
    ret = {"name": name, "result": True, "changes": {}, "comment": f"{name} runs as it should."}
    enabled = __salt__["service.available"](name) and __salt__["service.enabled"](name)
    try:
        reasons = __salt__["slurm_cluster.restart_reasons"](name, files)
    except CommandExecutionError as error:
        return {**ret, "result": False, "comment": str(error)}
    if enabled and not reasons:
        return ret
    changes = {} if enabled else {"enabled": {"old": False, "new": True}}
    if reasons:
        changes["started"] = "; ".join(reasons)
    if __opts__["test"]:
        return {**ret, "result": None, "changes": changes, "comment": f"{name} would be started."}
    try:
        if reasons:
            __salt__["slurm_cluster.start"](name, port)
    except CommandExecutionError as error:
        return {**ret, "result": False, "comment": str(error)}
    if not enabled and not __salt__["service.enable"](name):
        return {
            **ret,
            "result": False,
            "changes": changes,
            "comment": f"{name} runs, but systemd did not enable it.",
        }
    return {
        **ret,
        "changes": changes,
        "comment": f"{name} runs now: it {changes.get('started', 'was enabled')}.",
    }


def slurmdbd_answers(name, timeout):
    """Wait until slurmdbd of this host answers; changes nothing.

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


def applied(name):
    """The running slurmctld has the files of /etc/slurm; no job ends for it.

    name: str, for people
    """
    ret = {
        "name": name,
        "result": True,
        "changes": {},
        "comment": "slurmctld runs the configuration of its files.",
    }
    try:
        found = __salt__["slurm_cluster.pending"]()
    except CommandExecutionError as error:
        return {**ret, "result": False, "comment": str(error)}
    if found["state"] == "same":
        return ret
    if found["state"] == "stopped":
        result = None if __opts__["test"] else False
        return {**ret, "result": result, "comment": "slurmctld does not run yet."}
    if found["refused"] and found["state"] == "differs":
        return {**ret, "result": False, "comment": "\n".join(found["refused"])}
    if found["state"] == "unrecorded" and __opts__["test"]:
        return ret
    if found["state"] == "unrecorded":
        __salt__["slurm_cluster.record"]()
        return ret
    action = found["action"].lower()
    changes = {"running configuration": "\n".join(found["changes"]) or "unknown before"}
    if __opts__["test"]:
        words = (
            "would do nothing but note it" if action == "nothing" else f"would {action} slurmctld"
        )
        return {**ret, "result": None, "changes": changes, "comment": f"Saltern {words}."}
    try:
        __salt__["slurm_cluster.apply"](found["action"])
    except CommandExecutionError as error:
        return {**ret, "result": False, "comment": str(error)}
    if action == "nothing":
        return ret
    return {**ret, "changes": changes, "comment": f"slurmctld took the change by {action}."}
