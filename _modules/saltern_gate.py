"""The gates' eyes: what this host is like, handed to ``_utils/saltern/gates*.py``, which decide."""

import glob
import os
import pwd
import re
import shutil
import socket
import time

import salt.utils.files
from salt.exceptions import CommandExecutionError
from saltern import (
    gates,
    gates_environment,
    gates_foundation,
    gates_identity,
    gates_munge,
    gates_scheduler,
    hostfacts,
    kernel,
    sntp,
)
from saltern import platform as platforms

__virtualname__ = "saltern_gate"

_PAUSE_S = 1
_ANSWER_S = 1
_AGREE_S = 30  # until directory servers have copied a change
_MUNGE_TTL_S = 3600  # munged's default maximum (munged(8), --ttl)
_MINE = "munge_credential"


def __virtual__():
    return __virtualname__


def p0_plan(wait=False):
    """Why this host is not the one that the plan declares: its name, system and hardware.

    wait: bool, unused here; gates share their signature
    Returns a list of str, empty when the gate is open.

    CLI Example:

    .. code-block:: bash

        salt '*' saltern_gate.p0_plan
    """
    facts = {
        "hostname": socket.gethostname().split(".")[0],
        "os": __grains__["os"],
        "release": platforms.release_of(__grains__),
        **hostfacts.topology(_cpus()),
        "memory_mb": hostfacts.memory_mb(_read("/proc/meminfo")),
        "tmp_disk_mb": shutil.disk_usage("/tmp").total // 2**20,  # noqa: S108 (only measured)
        "gpus": _gpus(),
        "nic_speed_mbit": _nic_speed(),
    }
    return [str(problem) for problem in gates.plan(facts, __salt__["saltern.view"]())]


def p1_foundation(wait=False):
    """Why this host's foundation does not hold: names, accounts, clock, limits, kernel, munge.

    wait: bool, give the clock and the peers the time that the plan's ``waits`` allow
    Returns a list of str, empty when the gate is open.

    CLI Example:

    .. code-block:: bash

        salt '*' saltern_gate.p1_foundation
    """
    view = __salt__["saltern.view"]()
    declared = view["foundation"]
    facts = {
        "addresses": {name: _address(name) for name in gates_foundation.names(view)},
        "accounts": {
            name: _ids(name) for name in [*declared["system_accounts"], *declared["users"]]
        },
        "limits": {"service": _service_limits(), "login": _login_limits()},
        "sysctl": {
            name: __salt__["saltern.kernel_parameter"](name)
            for name in [*kernel.wanted(declared["sysctl"]), *kernel.AT_LEAST]
        },
        "clock": _clock(view, wait),
    }
    if "slurm" in view:  # only hosts that speak to Slurm run munge
        facts["munge"] = _munge(view, wait)
    return [str(problem) for problem in gates_foundation.foundation(facts, view)]


def p4_scheduler(wait=False):
    """Why Slurm does not work on this host: features, daemons, registration.

    wait: bool, give a node that just started the time to register
    Returns a list of str, empty when the gate is open.

    CLI Example:

    .. code-block:: bash

        salt '*' saltern_gate.p4_scheduler
    """
    view = __salt__["saltern.view"]()
    deadline = time.monotonic() + (view["waits"]["node_s"] if wait else 0)
    while True:
        problems = gates_scheduler.scheduler(__salt__["slurm_cluster.facts"](), view)
        if not problems or time.monotonic() >= deadline:
            return [str(problem) for problem in problems]
        time.sleep(_PAUSE_S)


def p5_environment(wait=False):
    """Why this host's environment does not hold: each health check that fails, with its finding.

    wait: bool, give the controllers the time to call the checks
    Returns a list of str, empty when the gate is open.

    CLI Example:

    .. code-block:: bash

        salt '*' saltern_gate.p5_environment
    """
    view = __salt__["saltern.view"]()
    facts = __salt__["nhc.facts"](view["waits"]["node_s"] if wait else 0)
    found = gates_environment.environment(facts, view)
    return [str(problem) for problem in found]


def p7_identity(wait=False):
    """Why the directory does not work here, or Slurm's accounting is not as the plan says.

    wait: bool, give the directory's servers the time to agree, and its users to resolve
    Returns a list of str, empty when the gate is open.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' saltern_gate.p7_identity
    """
    view = __salt__["saltern.view"]()
    source = view.get("directory", {"kind": "none"})
    deadline = time.monotonic() + (_directory_patience(view) if wait else 0)
    while True:
        facts = {}
        if source["kind"] != "none" and "slurm" in view:
            facts["client"] = __salt__["sssd.facts"]()
        if "writes" in source:
            facts["server"] = __salt__["directory.facts"]()
        problems = gates_identity.identity(facts, view)
        if not problems or time.monotonic() >= deadline:
            break
        time.sleep(_PAUSE_S)
    problems += gates_identity.identity(__salt__["sacctmgr.facts"](), view)
    return [str(problem) for problem in problems]


def _directory_patience(view):
    """Seconds to wait for the directory: all of the plan's while a cluster comes up; later little,
    because then a server that is silent is down."""
    source = view.get("directory", {"kind": "none"})
    if source["kind"] == "none":
        return 0
    daemon = "slapd" if "writes" in source else "sssd"
    age = time.time() - __salt__["daemon.status"](daemon)["started"]
    return max(_AGREE_S, view["waits"]["directory_s"] - age)


def credential():
    """A munge credential that says nothing and that only root can read, for the Salt mine.

    It is made as user munge, so it gives its holder no power.
    Returns a dict: ``credential`` str, ``made`` float, this host's clock in seconds since 1970.

    CLI Example:

    .. code-block:: bash

        salt 'node01' saltern_gate.credential
    """
    command = ["setpriv", "--reuid=munge", "--regid=munge", "--clear-groups", "munge", "--no-input"]
    text = _run([*command, "--restrict-uid=0", f"--ttl={_MUNGE_TTL_S}"])
    return {"credential": text.strip(), "made": time.time()}


def _munge(view, wait):
    wanted = {
        gates_munge.KEY: gates_munge.KEY_MODE,
        **gates_munge.RUN,
        **__salt__["saltern.platform"]()["munge"]["directories"],
    }
    parents = sorted({parent for path in wanted for parent in _parents(path)} - set(wanted))
    facts = {
        "uid": view["foundation"]["system_accounts"]["munge"]["uid"],
        "wanted": wanted,
        "paths": {path: _state(path) for path in [*wanted, *gates_munge.MADE]},
        "parents": {path: _state(path) for path in parents},
        "local": {"status": _unmunge(_local_credential())},
        "peers": {},
        "waited_s": 0.0,
    }
    if facts["local"]["status"] == "Success":
        if wait and _shared_age() > _MUNGE_TTL_S / 2:
            __salt__["mine.send"](_MINE, mine_function="saltern_gate.credential")
        facts.update(_ask_peers(view, wait))
    return facts


def _shared_age():
    """The age of this host's credential in the mine, in seconds.

    Infinite when there is none, or one that a wrong clock made.
    """
    shared = __salt__["mine.get"](__opts__["id"], _MINE).get(__opts__["id"])
    age = time.time() - shared["made"] if shared else -1
    return age if age >= 0 else float("inf")


def _ask_peers(view, wait):
    """Read credentials of the peers until one can be read, or the bound is reached."""
    start = time.monotonic()
    patience = view["waits"]["peer_munge_s"] if wait else 0
    while True:
        peers = {
            name: {"status": _peer_status(name)} for name in view["foundation"]["munge"]["peers"]
        }
        waited = time.monotonic() - start
        settled = not peers or any(
            peer["status"] in gates_munge.SAME_KEY for peer in peers.values()
        )
        if settled or waited >= patience:
            return {"peers": peers, "waited_s": waited}
        time.sleep(_PAUSE_S)


def _peer_status(name):
    shared = __salt__["mine.get"](name, _MINE).get(name)
    return _unmunge(shared["credential"]) if shared else "no credential in the Salt mine yet"


def _local_credential():
    try:
        return credential()["credential"]
    except CommandExecutionError as error:
        return hostfacts.unmunge_status(str(error).removeprefix("setpriv: "))


def _unmunge(text):
    if not text.startswith("MUNGE:"):
        return text
    result = __salt__["cmd.run_all"](
        ["unmunge"],
        stdin=text,
        python_shell=False,
        timeout=10,
        ignore_retcode=True,
        output_loglevel="quiet",
    )
    return hostfacts.unmunge_status(result["stdout"] or result["stderr"])


def _clock(view, wait):
    """chronyd's word, once it is in step or the bound is reached.

    Not by ``chronyc waitsync``: that never accepts a time host's local clock.
    """
    deadline = time.monotonic() + (view["waits"]["clock_s"] if wait else 0)
    while True:
        clock = _chrony()
        if clock["synchronised"] or time.monotonic() >= deadline:
            # chronyd asks once in minutes, so the plan's time hosts are asked now as well.
            clock["offsets_s"].update(_asked_now(view))
            return clock
        time.sleep(_PAUSE_S)


def _chrony():
    clock = {"error": "", "synchronised": False, "offsets_s": {}, "rivals": _rivals()}
    try:
        tracking = hostfacts.tracking(_run(["chronyc", "-c", "tracking"]))
        offsets = hostfacts.source_offsets(_run(["chronyc", "-c", "-N", "sources"]))
    except (CommandExecutionError, ValueError, IndexError, StopIteration) as error:
        return {**clock, "error": str(error)}
    # While chronyd slews a wrong clock, its sources look well; only what is left to slew tells.
    offsets["the time that chronyd knows"] = tracking["ahead_s"]
    return {**clock, "synchronised": tracking["synchronised"], "offsets_s": offsets}


def _asked_now(view):
    """How far this host's clock is ahead of each other time host that answers at once."""
    found = {}
    for peer in view["peers"]["time"]:
        if peer["name"] == view["host"]["name"]:
            continue
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
                asking.settimeout(_ANSWER_S)
                asking.connect((peer["address"] or peer["name"], sntp.PORT))
                sent = time.time()
                asking.send(sntp.question())
                ahead = sntp.ahead(asking.recv(sntp.PACKET), sent, time.time())
        except OSError:
            continue  # whether a source answers at all is chronyd's word
        if ahead is not None:
            found[f"{peer['name']}, asked now"] = ahead
    return found


def _rivals():
    """The other time daemons that run here."""
    units = __salt__["saltern.platform"]()["chrony"]["rivals"]
    states = __salt__["cmd.run_stdout"](
        ["systemctl", "is-active", *units],
        python_shell=False,
        timeout=20,
        ignore_retcode=True,
        output_loglevel="quiet",
    )
    return [unit for unit, state in zip(units, states.split(), strict=False) if state == "active"]


# What a new process really gets. Both start from systemd, as a daemon and as sshd do, not from this
# minion's own limits.
_STARTED = ["systemd-run", "--quiet", "--pipe", "--wait", "--collect"]
_PRINTED = ["cat", "/proc/self/limits"]


def _service_limits():
    return hostfacts.limits(_try([*_STARTED, *_PRINTED]))


def _login_limits():
    return hostfacts.limits(
        _try([*_STARTED, "--property=PAMName=su", "--property=User=nobody", *_PRINTED])
    )


def _ids(name):
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return {"uid": entry.pw_uid, "gid": entry.pw_gid}


def _address(name):
    try:
        return socket.getaddrinfo(name, None, socket.AF_INET)[0][4][0]
    except OSError:
        return None


def _state(path):
    try:
        state = os.stat(path)
    except OSError:
        return None
    return {"uid": state.st_uid, "mode": state.st_mode & 0o7777, "size": state.st_size}


def _parents(path):
    while path != "/":
        path = os.path.dirname(path)
        yield path


def _cpus():
    for folder in glob.glob("/sys/devices/system/cpu/cpu[0-9]*/topology"):
        yield _first(f"{folder}/physical_package_id"), _first(f"{folder}/thread_siblings_list")


def _gpus():
    """PCI knows GPUs before phase 2 brings a driver; a container has only device nodes."""
    found = glob.glob("/sys/bus/pci/devices/*")
    fitted = hostfacts.pci_gpus(
        (_first(f"{path}/vendor"), _first(f"{path}/class")) for path in found
    )
    nodes = [path for path in glob.glob("/dev/nvidia*") if re.fullmatch(r"/dev/nvidia[0-9]+", path)]
    return max(fitted, len(nodes))


def _nic_speed():
    """The fastest real NIC or InfiniBand port, in Mbit/s; bridges say what they like."""
    real = [os.path.dirname(path) for path in glob.glob("/sys/class/net/*/device")]
    speeds = [int(_first(f"{path}/speed") or 0) for path in real]  # unreadable without a link
    rates = [
        hostfacts.infiniband_mbit(_first(path))
        for path in glob.glob("/sys/class/infiniband/*/ports/*/rate")
    ]
    return max([*speeds, *rates], default=0)


def _first(path):
    """A file's text, empty if it cannot be read."""
    try:
        return _read(path).strip()
    except OSError:
        return ""


def _read(path):
    with salt.utils.files.fopen(path) as file:
        return file.read()


def _run(command, timeout=20):
    result = __salt__["cmd.run_all"](
        command, python_shell=False, timeout=timeout, ignore_retcode=True, output_loglevel="quiet"
    )
    if result["retcode"]:
        raise CommandExecutionError(f"{command[0]}: {result['stderr'] or result['stdout']}")
    return result["stdout"]


def _try(command, timeout=20):
    try:
        return _run(command, timeout)
    except CommandExecutionError:
        return ""
