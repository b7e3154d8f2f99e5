"""What Slurm says of itself on this host: accounting, controllers, nodes, and the gate's facts."""

import os
import tempfile
import time

from salt.exceptions import CommandExecutionError
from saltern import slurm_answers, slurm_daemons

__virtualname__ = "slurm_cluster"

_CONF = "/etc/slurm"
_FETCHED = "/run/slurm/conf"  # where a configless slurmd or sackd keeps the controllers' files
_CLIENT = "/var/lib/saltern/slurmdbd_client"
_ANSWER_S = 30
_PAUSE_S = 0.5


def __virtual__():
    return __virtualname__


def daemons():
    """The Slurm daemons that this host runs.

    Returns a list of str, empty on a host without Slurm.

    CLI Example:

    .. code-block:: bash

        salt '*' slurm_cluster.daemons
    """
    return slurm_daemons.of(__salt__["saltern.view"]("roles"))


def servers():
    """Every controller with its port, as slurmd and sackd take them (--conf-server).

    Returns str.

    CLI Example:

    .. code-block:: bash

        salt 'node01' slurm_cluster.servers
    """
    view = __salt__["saltern.view"]()
    port = view["slurm"]["ports"]["slurmctld"]
    return ",".join(f"{peer['name']}:{port}" for peer in view["peers"]["controller"])


def client_env():
    """The environment with which Slurm's programs find their configuration on this host.

    Returns a dict of str: empty where slurmd, sackd or a controller's own files provide it, the
    controllers' addresses before that.

    CLI Example:

    .. code-block:: bash

        salt 'node01' slurm_cluster.client_env
    """
    for folder in (_CONF, _FETCHED):
        if os.path.exists(os.path.join(folder, "slurm.conf")):
            return {}
    return {"SLURM_CONF_SERVER": servers()}


def program(command, timeout=_ANSWER_S):
    """Run one of Slurm's client programs; a time-out counts as a failure, with the words of one.

    command: list of str, the program's name first; timeout: int, seconds
    Returns a dict: ``retcode`` int, ``stdout`` and ``stderr`` str.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_cluster.program '["sinfo", "--summarize"]'
    """
    name, *arguments = command
    return _all([_program(name), *arguments], timeout, client_env())


def await_slurmdbd(timeout):
    """Wait until a slurmdbd answers a client here, the first one or the one in reserve.

    timeout: float, seconds, 0 asks once
    Raises CommandExecutionError with the client's and the daemon's words.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_cluster.await_slurmdbd 60
    """
    start = time.monotonic()
    while True:
        try:
            _accounting_clusters(_dbd_client())
            return
        except CommandExecutionError as error:
            if time.monotonic() - start >= timeout:
                raise CommandExecutionError(_unanswered(timeout, error)) from None
        time.sleep(_PAUSE_S)


def _unanswered(timeout, error):
    view = __salt__["saltern.view"]()
    names = " or ".join(peer["name"] for peer in view["peers"]["database"])
    text = f"slurmdbd on {names} did not answer within {timeout:.0f} s: {error}"
    if "database" not in view["roles"]:
        return text
    log = __salt__["daemon.log_since"]("slurmdbd", time.time() - _ANSWER_S)
    said = "; ".join(slurm_answers.reasons(log))
    return f"{text} Its log here: {said}" if said else text


def clusters():
    """The clusters that accounting knows.

    Returns a list of str. Raises CommandExecutionError when slurmdbd does not answer: no answer is
    not "none".

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_cluster.clusters
    """
    return _accounting_clusters(None)


def add_cluster(name):
    """Make a cluster known to accounting.

    name: str
    Raises CommandExecutionError when it is not there afterwards.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_cluster.add_cluster lab
    """
    result = _all([_program("sacctmgr"), "--immediate", "add", "cluster", name])
    if name not in clusters():
        raise CommandExecutionError(
            f"sacctmgr did not add the cluster {name}: {result['stderr'] or result['stdout']}"
        )


def _accounting_clusters(conf):
    env = {"SLURM_CONF": conf} if conf else None
    result = _all(
        [_program("sacctmgr"), "--noheader", "--parsable2", "show", "cluster", "format=cluster"],
        env=env,
    )
    if result["retcode"] or "error:" in result["stderr"]:
        raise CommandExecutionError(slurm_answers.words(result["stderr"] or result["stdout"]))
    return result["stdout"].split()


def _dbd_client():
    """A configuration that is just enough for sacctmgr on a host without slurm.conf."""
    view = __salt__["saltern.view"]()
    if "controller" in view["roles"] and os.path.exists(f"{_CONF}/slurm.conf"):
        return None
    folder = _CLIENT
    os.makedirs(folder, mode=0o700, exist_ok=True)
    controllers = [peer["name"] for peer in view["peers"]["controller"]]
    path = os.path.join(folder, "slurm.conf")
    _write(path, slurm_daemons.client_conf(view, controllers))
    return path


def await_node_known(timeout):
    """Wait until a controller's running configuration holds this host as a node.

    timeout: float, seconds, 0 asks once
    Raises CommandExecutionError naming the controllers and what they said.

    CLI Example:

    .. code-block:: bash

        salt 'node01' slurm_cluster.await_node_known 60
    """
    view = __salt__["saltern.view"]()
    name, port = view["host"]["name"], view["slurm"]["ports"]["slurmctld"]
    if view["host"]["elastic"]:
        return _await_any_controller(view, timeout)
    start_at = time.monotonic()
    while True:
        said = {}
        for controller in view["peers"]["controller"]:
            result = _show_node(name, {"SLURM_CONF_SERVER": f"{controller['name']}:{port}"})
            if result.get("node"):
                return None
            said[controller["name"]] = (
                result["error"] or f"its running configuration has no node {name}"
            )
        if time.monotonic() - start_at >= timeout:
            listed = "; ".join(f"{who}: {what}" for who, what in said.items())
            raise CommandExecutionError(
                f"No controller knew the node {name} within {timeout:.0f} s ({listed}). "
                "Run the state p4_scheduler.slurmctld on the controllers first."
            )
        time.sleep(_PAUSE_S)


def _await_any_controller(view, timeout):
    """An elastic node stands in no file; a controller that listens will know it when it comes."""
    peer = view["peers"]["controller"][0]
    port = view["slurm"]["ports"]["slurmctld"]
    __salt__["saltern.await_port"](peer["address"] or peer["name"], port, timeout, "slurmctld")


def _show_node(name, env=None):
    result = _all([_program("scontrol"), "show", "node", name, "--json"], env=env)
    try:
        node = slurm_answers.node(result["stdout"])
    except (slurm_answers.Unreadable, KeyError):
        return {"node": {}, "error": slurm_answers.words(result["stderr"] or result["stdout"])}
    return {"node": node, "error": "" if node else slurm_answers.words(result["stderr"])}


def facts():
    """What Slurm is like on this host, for the gate (``_utils/saltern/gates_scheduler.py``).

    Returns plain data.

    CLI Example:

    .. code-block:: bash

        salt '*' slurm_cluster.facts
    """
    view = __salt__["saltern.view"]()
    mine = slurm_daemons.of(view["roles"])
    found = {"daemons": {name: _daemon_facts(name) for name in mine}}
    if __salt__["slurm_database.here"]():
        found["mariadb"] = _error_or(__salt__["slurm_database.missing"])
    if not mine:
        return found
    found["tree"] = _tree()
    if "slurmdbd" in mine:
        found["slurmdbd"] = _error_of(await_slurmdbd, 0)
    if "slurmctld" in mine:
        found["clusters"] = _error_or(clusters)
        found["shared_state"] = __salt__["slurm_state.facts"]()
        found["room"] = __salt__["slurm_state.room"]()
    if mine != ["slurmdbd"]:
        found["pings"] = _error_or(_pings)
    if "slurmd" in mine:
        found["node"] = {**_show_node(view["host"]["name"]), "memory_mb": _memory_mb()}
    return found


def _tree():
    root = os.path.realpath(slurm_daemons.TREE)
    if not os.path.isdir(root):
        return {"path": None, "files": []}
    files = [
        os.path.relpath(os.path.join(folder, name), root)
        for folder, _, names in os.walk(os.path.join(root, "lib"))
        for name in names
    ]
    return {"path": root, "files": sorted(files)}


def _daemon_facts(name):
    return {
        **__salt__["daemon.status"](name),
        "binary": os.path.realpath(slurm_daemons.PATHS[name]),
    }


def _pings():
    return slurm_answers.pings(_all([_program("scontrol"), "ping", "--json"])["stdout"])


def _memory_mb():
    hardware = slurm_answers.hardware(_try([slurm_daemons.PATHS["slurmd"], "-C"]))
    return int(hardware.get("RealMemory", 0))


def _error_of(function, *arguments):
    try:
        function(*arguments)
    except (CommandExecutionError, slurm_answers.Unreadable) as error:
        return {"error": str(error)}
    return {"error": ""}


def _error_or(function):
    try:
        return {"error": "", "value": function()}
    except (CommandExecutionError, slurm_answers.Unreadable, KeyError) as error:
        return {"error": str(error), "value": None}


def _program(name):
    return f"{slurm_daemons.TREE}/bin/{name}"


def _write(path, text):
    """Whole or not at all."""
    descriptor, aside = tempfile.mkstemp(
        dir=os.path.dirname(path), prefix=f".{os.path.basename(path)}."
    )
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        os.fchmod(file.fileno(), 0o644)
        file.flush()
        os.fsync(file.fileno())
    os.replace(aside, path)


def _all(command, timeout=_ANSWER_S, env=None):
    """Run a program of Slurm; a time-out counts as a failure, with the words of one."""
    try:
        return __salt__["cmd.run_all"](
            command,
            python_shell=False,
            timeout=timeout,
            env=env,
            ignore_retcode=True,
            output_loglevel="quiet",
        )
    except CommandExecutionError as error:
        return {"retcode": 127, "stdout": "", "stderr": str(error)}


def _run(command, timeout=_ANSWER_S):
    result = _all(command, timeout)
    if result["retcode"]:
        raise CommandExecutionError(f"{command[0]}: {result['stderr'] or result['stdout']}")
    return result["stdout"]


def _try(command):
    try:
        return _run(command)
    except CommandExecutionError:
        return ""
