"""Slurm's daemons on this host, and what the running cluster says of itself."""

import contextlib
import os
import re
import tempfile
import time

import salt.utils.files
from salt.exceptions import CommandExecutionError
from saltern import slurm_answers, slurm_conf_changes, slurm_daemons
from saltern.problem import listing

__virtualname__ = "slurm_cluster"

_CONF = "/etc/slurm"
_FILES = ("cgroup.conf", "gres.conf", "slurm.conf")
_APPLIED = "/var/lib/saltern/slurm_conf"  # what the running controller last took
_ANSWER_S = 30
_START_S = 660  # longer than the units' own bound, so that systemd's word comes first
_APPLY_S = 120
_PAUSE_S = 0.5
_LOG_BYTES = 200_000


def __virtual__():
    return __virtualname__


# --- daemons -------------------------------------------------------------------------------------------------


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


def daemon(name):
    """How a daemon runs.

    name: str, a unit such as ``slurmd``
    Returns a dict: ``active`` bool, ``pid`` int, ``executable`` str or None, ``started`` float (epoch),
    ``properties`` dict (systemd's).

    CLI Example:

    .. code-block:: bash

        salt 'node01' slurm_cluster.daemon slurmd
    """
    wanted = "ActiveState,SubState,MainPID,ConditionResult,KillMode,Delegate,NeedDaemonReload,Result,UnitFileState"
    properties = slurm_answers.properties(_run(["systemctl", "show", name, f"--property={wanted}"]))
    pid = int(properties.get("MainPID", 0))
    return {
        "active": properties.get("ActiveState") == "active" and pid > 0,
        "pid": pid,
        "executable": _executable(pid),
        "started": _started(pid),
        "properties": properties,
    }


def restart_reasons(name, files=()):
    """Why a daemon must be started (again): not running, another binary than the active one, older than a file.

    name: str, a unit
    files: list of str, paths that it reads only when it starts
    Returns a list of str.

    CLI Example:

    .. code-block:: bash

        salt 'node01' slurm_cluster.restart_reasons slurmd
    """
    changed = {path: os.stat(path).st_mtime for path in files if os.path.exists(path)}
    binary = os.path.realpath(slurm_daemons.PATHS[name]) if name in slurm_daemons.PATHS else None
    return slurm_daemons.restart_reasons(daemon(name), binary, changed)


def start(name, port=None):
    """Start a daemon, or start it again.

    name: str, a unit
    port: int, its TCP port, checked for another owner first
    Raises CommandExecutionError with the daemon's own words when it does not come up, or when a restart of slurmd
    would kill jobs.

    CLI Example:

    .. code-block:: bash

        salt 'node01' slurm_cluster.start slurmd 6818
    """
    _run(["systemctl", "daemon-reload"])
    before = daemon(name)
    if name == "slurmd" and before["active"]:
        unsafe = slurm_daemons.spares_jobs(before["properties"])
        if unsafe:
            raise CommandExecutionError(
                listing("slurmd was not restarted, because that would kill its jobs:", unsafe)
            )
    if port and not before["active"]:
        _require_free(port, name)
    mark = time.time()
    with contextlib.suppress(CommandExecutionError):
        _run(["systemctl", "restart", name], _START_S)
    after = daemon(name)
    if not after["active"]:
        raise CommandExecutionError(_why_down(name, after["properties"], mark))


def _why_down(name, properties, since):
    if properties.get("ConditionResult") == "no":
        return f"{name} did not start: a condition of its unit failed (systemctl cat {name}); Saltern's own has none."
    journal = _try(
        [
            "journalctl",
            f"--unit={name}",
            f"--since=@{int(since)}",
            "--output=cat",
            "--no-pager",
            "--lines=200",
        ]
    )
    said = slurm_answers.reasons(journal) or slurm_answers.reasons(_log_since(name, since))
    words = "; ".join(said) or journal.strip()[-300:] or "it said nothing"
    return f"{name} did not start ({properties.get('Result', 'unknown')}): {words}. More: journalctl -u {name}."


def _require_free(port, name):
    listening = _try(
        [
            "ss",
            "--listening",
            "--tcp",
            "--numeric",
            "--no-header",
            "--processes",
            f"sport = :{port}",
        ]
    )
    if listening.strip():
        owner = re.search(r'\(\("([^"]+)",pid=(\d+)', listening)
        who = f"{owner[1]} (pid {owner[2]})" if owner else "another program"
        raise CommandExecutionError(
            f"Port {port}: found {who} listening there; expected it free for {name} -> stop that program, or give "
            f"{name} another port in slurm:ports:{name} of the plan."
        )


def _executable(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe") if pid else None
    except OSError:
        return None


def _started(pid):
    """When a process started, by the kernel's clock since boot; the epoch value follows a clock that was set."""
    try:
        with salt.utils.files.fopen(f"/proc/{pid}/stat") as file:
            ticks = int(file.read().rsplit(")", 1)[1].split()[19])
    except OSError:
        return 0.0
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - age


# --- slurmdbd and accounting -----------------------------------------------------------------------------------


def await_slurmdbd(timeout):
    """Wait until slurmdbd of this host answers a client.

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
                said = "; ".join(
                    slurm_answers.reasons(_log_since("slurmdbd", time.time() - _ANSWER_S))
                )
                raise CommandExecutionError(
                    f"slurmdbd on this host did not answer within {timeout:.0f} s: {error}"
                    + (f" Its log: {said}" if said else "")
                ) from None
        time.sleep(_PAUSE_S)


def clusters():
    """The clusters that accounting knows.

    Returns a list of str. Raises CommandExecutionError when slurmdbd does not answer: no answer is not "none".

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
        raise CommandExecutionError(_words(result["stderr"] or result["stdout"]))
    return result["stdout"].split()


def _dbd_client():
    """A configuration that is just enough for sacctmgr on a host without slurm.conf."""
    view = __salt__["saltern.view"]()
    if "controller" in view["roles"] and os.path.exists(f"{_CONF}/slurm.conf"):
        return None
    folder = f"{_APPLIED}.client"
    os.makedirs(folder, mode=0o700, exist_ok=True)
    lines = {
        "ClusterName": view["cluster"]["name"],
        "SlurmctldHost": view["peers"]["controller"][0]["name"],
        "SlurmUser": "slurm",
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "AccountingStorageHost": view["host"]["name"],
        "AccountingStoragePort": view["slurm"]["ports"]["slurmdbd"],
    }
    path = os.path.join(folder, "slurm.conf")
    _write(path, "".join(f"{key}={value}\n" for key, value in lines.items()))
    return path


# --- the controller's configuration ----------------------------------------------------------------------------


def pending():
    """What the running slurmctld has not taken of the files in /etc/slurm.

    Returns a dict: ``state`` one of ``stopped``, ``same``, ``unrecorded`` (it read them when it started), ``differs``;
    ``changes`` list of str; ``action`` one of NOTHING, RECONFIGURE, RESTART; ``refused`` list of str.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_cluster.pending
    """
    status = daemon("slurmctld")
    now, before = _read_files(_CONF), _read_files(_APPLIED)
    found = {
        "state": "differs",
        "changes": slurm_conf_changes.changed(before, now),
        "action": slurm_conf_changes.action(before, now).name,
        "refused": [str(problem) for problem in slurm_conf_changes.refused(before, now)],
    }
    if not status["active"]:
        return {**found, "state": "stopped"}
    matches = _matches()
    if before == now and matches:
        return {**found, "state": "same"}
    if matches and _read_them_all(status):
        return {**found, "state": "unrecorded"}
    if before == now:
        # Recorded, but the daemon runs something else: a person's reconfigure of other files, or a cut.
        return {
            **found,
            "action": "RECONFIGURE",
            "changes": ["the running configuration differs from the files"],
        }
    return found


def record():
    """Note that the running slurmctld has the files of /etc/slurm.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_cluster.record
    """
    os.makedirs(_APPLIED, mode=0o700, exist_ok=True)
    _write_files(_APPLIED, _read_files(_CONF))


def apply(action):
    """Make the running slurmctld take the files of /etc/slurm, by the least that does it. No running job ends.

    action: str, NOTHING, RECONFIGURE or RESTART
    The exit status of scontrol is not believed: the running configuration is read back. When it is not the new one,
    the former files are put back and CommandExecutionError is raised with slurmctld's own words.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_cluster.apply RECONFIGURE
    """
    if action == "NOTHING":
        record()
        return
    mark = time.time()
    said = _take(action)
    if _taken():
        record()
        return
    words = (
        "; ".join(slurm_answers.reasons(_log_since("slurmctld", mark)))
        or _words(said)
        or "it said nothing"
    )
    raise CommandExecutionError(
        f"slurmctld refused the new configuration: {words}. {_roll_back(action)}"
    )


def _take(action):
    if action == "RESTART":
        try:
            start("slurmctld")
        except CommandExecutionError as error:
            return str(error)
        return ""
    result = _all([_program("scontrol"), "reconfigure"], _APPLY_S)
    return result["stderr"] or result["stdout"]


def _taken():
    """Wait until the daemon that runs started after the files changed and calls them its own."""
    deadline = time.monotonic() + _ANSWER_S
    while time.monotonic() < deadline:
        status = daemon("slurmctld")
        if status["active"] and _read_them_all(status) and _matches():
            return True
        time.sleep(_PAUSE_S)
    return False


def _roll_back(action):
    former = _read_files(_APPLIED)
    if not former:
        return "There is no former configuration to go back to."
    _write_files(_CONF, former)
    if action == "RESTART" or not daemon("slurmctld")["active"]:
        start("slurmctld")
    return "The former files are back, and slurmctld runs with them."


def _matches():
    """Whether slurmctld's hash of its configuration is that of the file here; None when it does not answer."""
    result = _all([_program("scontrol"), "show", "config"])
    if result["retcode"]:
        return None
    return slurm_answers.config(result["stdout"]).get("HASH_VAL", "Match") == "Match"


def _read_them_all(status):
    paths = [os.path.join(_CONF, name) for name in _FILES]
    return all(
        os.stat(path).st_mtime <= status["started"] for path in paths if os.path.exists(path)
    )


# --- nodes -------------------------------------------------------------------------------------------------------


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
    start_at = time.monotonic()
    while True:
        said = {}
        for controller in view["peers"]["controller"]:
            result = _show_node(name, {"SLURM_CONF_SERVER": f"{controller['name']}:{port}"})
            if result.get("node"):
                return
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


def _show_node(name, env=None):
    result = _all([_program("scontrol"), "show", "node", name, "--json"], env=env)
    try:
        node = slurm_answers.node(result["stdout"])
    except (slurm_answers.Unreadable, KeyError):
        return {"node": {}, "error": _words(result["stderr"] or result["stdout"])}
    return {"node": node, "error": "" if node else _words(result["stderr"])}


# --- the gate's facts ----------------------------------------------------------------------------------------------


def facts():
    """What Slurm is like on this host, for the gate (``_utils/saltern/gates_scheduler.py``).

    Returns plain data.

    CLI Example:

    .. code-block:: bash

        salt '*' slurm_cluster.facts
    """
    view = __salt__["saltern.view"]()
    mine = slurm_daemons.of(view["roles"])
    if not mine:
        return {"daemons": {}}
    found = {"tree": _tree(), "daemons": {name: _daemon_facts(name) for name in mine}}
    if "slurmdbd" in mine:
        found["slurmdbd"] = _error_of(await_slurmdbd, 0)
    if "slurmctld" in mine:
        found["clusters"] = _error_or(clusters)
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
    return {**daemon(name), "binary": os.path.realpath(slurm_daemons.PATHS[name])}


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


# --- files and programs ----------------------------------------------------------------------------------------------


def _program(name):
    return f"{slurm_daemons.TREE}/bin/{name}"


def _read_files(folder):
    found = {}
    for name in _FILES:
        path = os.path.join(folder, name)
        if os.path.exists(path):
            with salt.utils.files.fopen(path, encoding="utf-8") as file:
                found[name] = file.read()
    return found


def _write_files(folder, files):
    for name in _FILES:
        path = os.path.join(folder, name)
        if name in files:
            _write(path, files[name])
        elif os.path.exists(path):
            os.unlink(path)


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


def _log_since(name, since):
    """The end of a daemon's own log, if it was written to since then."""
    path = os.path.join(__salt__["saltern.view"]("slurm:log_dir"), f"{name}.log")
    try:
        if os.stat(path).st_mtime < since:
            return ""
        with salt.utils.files.fopen(path, "rb") as file:
            file.seek(max(0, os.stat(path).st_size - _LOG_BYTES))
            return slurm_answers.since(file.read().decode(errors="replace"), since)
    except OSError:
        return ""


def _words(text):
    return " ".join(re.sub(r"^\w+: ", "", line).strip() for line in text.splitlines()).strip()[:500]


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
