"""The one reader of pillar: a host's view of the plan, its platform's names, and files that hold
secrets."""

import json
import os
import re
import socket
import stat
import tempfile
import time

import salt.utils.files
from salt.exceptions import CommandExecutionError
from saltern import hostsfile, kernel, roles, ssha, stamp
from saltern import platform as platforms

__virtualname__ = "saltern"

# The gates that were open at their last look, each with the digest of the view of that time.
_GATES = "/var/lib/saltern/gates.json"
_CONNECT_S = 5
_PAUSE_S = 0.5
_PLACEHOLDER = re.compile(r"<secret:([a-z_]+)>")


def __virtual__():
    return __virtualname__


def _whole():
    view = __pillar__.get("saltern")
    if not view or view.get("format") != 1:
        raise CommandExecutionError(
            "This host has no view of the plan in its pillar. On the master, check that "
            "etc/master.d/saltern.conf is "
            "included, that the plan is sound (`salt-run saltern.plan`) and that it names this "
            "host "
            f"({__opts__['id']}); then `salt {__opts__['id']} saltutil.refresh_pillar`."
        )
    return view


def view(path=""):
    """This host's view of the plan, or a part of it. Never a secret.

    path: str, keys joined by colons, for example ``foundation:munge``; empty for all
    Returns plain data. Raises CommandExecutionError for a path that is not there.

    CLI Example:

    .. code-block:: bash

        salt 'node01' saltern.view foundation:munge
    """
    value = {key: part for key, part in _whole().items() if key != "secrets"}
    for key in path.split(":") if path else []:
        if not isinstance(value, dict) or key not in value:
            raise CommandExecutionError(
                f"The view of {__opts__['id']} has no {path!r}: the plan gives it to other roles "
                "than "
                f"{', '.join(_whole()['roles'])}, or the key is misspelt."
            )
        value = value[key]
    return _plain(value)


def _plain(value):
    """Salt 3008 wraps pillar in containers that print as asterisks; the view holds nothing to
    hide."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value


def platform():
    """Package names, paths and units of this host's operating system.

    Returns a dict, see ``_utils/saltern/platform.py``. On a system that Saltern does not know, that
    of the plan's
    system: so that phase 0 can render, and its gate says in one sentence what is known. No state
        runs before it.

    CLI Example:

    .. code-block:: bash

        salt '*' saltern.platform
    """
    here = __grains__["os"], platforms.release_of(__grains__)
    planned = view("os")
    system = here if platforms.is_supported(*here) else (planned["name"], planned["release"])
    try:
        return platforms.of(*system)
    except platforms.UnknownPlatform as error:
        raise CommandExecutionError(str(error)) from None


def phase_before(phase):
    """The phase that this host completes before another one.

    phase: str, for example ``p7_identity``
    Returns str.

    CLI Example:

    .. code-block:: bash

        salt 'node01' saltern.phase_before p7_identity
    """
    return roles.phase_before(phase, frozenset(view("roles")))


def hosts_block():
    """The lines of /etc/hosts for every host of the plan; empty when DNS provides the names.

    Returns str.

    CLI Example:

    .. code-block:: bash

        salt 'node01' saltern.hosts_block
    """
    block = hostsfile.text(view("hosts"), view("cluster:domain"))
    host = view("host")
    if not host["elastic"]:
        return block
    # The plan has no address of it: it is the one that reaches the controllers.
    return f"{block}\n{_own_address()} {host['fqdn']} {host['name']}"


def sysctl_parameters():
    """The kernel parameters that this host shall have; some only if its kernel has less.

    Returns a dict of str: str.

    CLI Example:

    .. code-block:: bash

        salt 'node01' saltern.sysctl_parameters
    """
    plan = view("foundation:sysctl")
    found = {name: kernel_parameter(name) for name in kernel.AT_LEAST}
    written = kernel.parameters(_read(platform()["sysctl"]["conf"]) or "")
    return {**kernel.wanted(plan), **kernel.raised(plan, found, written)}


def kernel_parameter(name):
    """A kernel parameter as the running kernel has it.

    name: str, for example ``fs.file-max``
    Returns str, or None if this kernel lacks it.

    CLI Example:

    .. code-block:: bash

        salt 'node01' saltern.kernel_parameter fs.file-max
    """
    text = _read("/proc/sys/" + name.replace(".", "/"))
    return None if text is None else text.strip()


def sysctl_text():
    """The file of kernel parameters, /etc/sysctl.d/60-saltern.conf.

    Returns str.

    CLI Example:

    .. code-block:: bash

        salt 'node01' saltern.sysctl_text
    """
    return kernel.text(sysctl_parameters())


def applied():
    """Which gates of this host were open at their last look, and for which view of the plan.

    Returns a dict: ``view`` str, the digest of the view now; ``gates`` dict of phase: digest.

    CLI Example:

    .. code-block:: bash

        salt 'node01' saltern.applied
    """
    return {"view": stamp.of(_plain(_whole())), "gates": json.loads(_read(_GATES) or "{}")}


def note_gate(phase, is_open):
    """Note what a gate said, for ``applied``.

    phase: str; is_open: bool

    CLI Example:

    .. code-block:: bash

        salt 'node01' saltern.note_gate p1_foundation False
    """
    now = applied()
    gates = {name: value for name, value in now["gates"].items() if name != phase}
    if is_open:
        gates[phase] = now["view"]
    if gates != now["gates"]:
        os.makedirs(os.path.dirname(_GATES), mode=0o755, exist_ok=True)
        _replace(_GATES, json.dumps(gates, sort_keys=True).encode(), 0, 0, 0o644)


def await_port(host, port, timeout, what):
    """Wait until a peer accepts connections.

    host: str; port: int; timeout: float, seconds, 0 tries once
    what: str, what listens there, for the message
    Returns the seconds waited, float. Raises CommandExecutionError naming the peer.

    CLI Example:

    .. code-block:: bash

        salt 'node01' saltern.await_port mgmt01 6817 60 slurmctld
    """
    start = time.monotonic()
    while True:
        try:
            with socket.create_connection((host, port), timeout=_CONNECT_S):
                return time.monotonic() - start
        except OSError as error:
            waited = time.monotonic() - start
            if waited >= timeout:
                raise CommandExecutionError(
                    f"{what} on {host}:{port} did not answer within {timeout:.0f} s "
                    f"({error.strerror or error}). "
                    f"Look at {host}: is {what} running there, and can this host reach the port?"
                ) from None
        time.sleep(_PAUSE_S)


def secret_file(name, text, user, group, mode, test=False):
    """Write a file whose text names secrets as ``<secret:munge_key>``.

    name: str, path; its folder must exist
    text: str, public; each placeholder is replaced on this host by the value
    user, group: str
    mode: str, for example "0400"
    test: bool, only say what would change

    The new content stands in a file of its own, with its owner and mode, before it takes the name.
    Returns a dict of what differed, never with content: ``{"content": "differs (hidden)", "mode":
    "0644 -> 0400"}``.
    Raises CommandExecutionError for an unknown secret, user, group or folder, and a full disk.

    CLI Example:

    .. code-block:: bash

        salt 'node01' saltern.secret_file /etc/munge/munge.key '<secret:munge_key>' munge munge 0400
    """
    wanted = _resolved(text).encode()
    try:
        uid, gid = __salt__["file.user_to_uid"](user), __salt__["file.group_to_gid"](group)
    except (KeyError, OSError) as error:
        raise CommandExecutionError(
            f"{name}: no user {user} or group {group} here: {error}"
        ) from None
    if uid == "" or gid == "":
        if test:  # a state before this one makes them
            return {"content": "missing", "owner": f"{user}:{group}, not here yet"}
        raise CommandExecutionError(f"{name}: no user {user} or group {group} on this host yet.")
    try:
        differs = _differences(name, wanted, uid, gid, int(str(mode), 8))
        if differs and not test:
            _replace(name, wanted, uid, gid, int(str(mode), 8))
    except OSError as error:
        raise CommandExecutionError(f"{name}: {error.strerror}.") from None
    return differs


def secret_stdin(cmd, text, timeout=60):
    """Run a program with a text that names secrets on its standard input. What it prints is thrown
    away.

    cmd: list of str, without secrets
    text: str, with placeholders as in ``secret_file``
    timeout: int, seconds
    Raises CommandExecutionError with its standard error, values masked.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' saltern.secret_stdin '["mariadb"]' 'SELECT 1;'
    """
    result = __salt__["cmd.run_all"](
        cmd,
        stdin=_resolved(text),
        python_shell=False,
        timeout=timeout,
        output_loglevel="quiet",
        ignore_retcode=True,
    )
    if result["retcode"]:
        raise CommandExecutionError(f"{cmd[0]}: {_masked(result['stderr'] or result['stdout'])}")


def secret_hash(name, found):
    """The hash of a secret for a directory: the one that is there if it fits, else a new one.

    name: str, of a secret of this host
    found: str, the hash that is there, or empty
    Returns str. Raises CommandExecutionError for a secret that this host does not have.

    CLI Example:

    .. code-block:: bash

        salt 'dir01' saltern.secret_hash directory_client_password ''
    """
    value = _resolved(f"<secret:{name}>")
    return found if ssha.fits(value, found) else ssha.made(value)


def masked(text):
    """A text with this host's secrets replaced by their names, ``<secret:munge_key>``.

    text: str
    Returns str.

    CLI Example:

    .. code-block:: bash

        salt 'dir01' saltern.masked 'credentials=…'
    """
    return _masked(text)


def _own_address():
    """The address from which this host reaches its first controller; nothing is sent."""
    peer = view("peers:controller")[0]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((peer["address"] or peer["name"], 9))
        return probe.getsockname()[0]


def _read(path):
    """A file's text, None if there is none."""
    try:
        with salt.utils.files.fopen(path) as file:
            return file.read()
    except FileNotFoundError:
        return None


def _secrets():
    return _whole().get("secrets", {})


def _resolved(text):
    unknown = sorted(set(_PLACEHOLDER.findall(text)) - set(_secrets()))
    if unknown:
        raise CommandExecutionError(
            f"{__opts__['id']} has no secret {', '.join(unknown)}: its roles "
            f"({', '.join(_whole()['roles'])}) "
            "do not need it (the table is SECRETS in _utils/saltern/roles.py)."
        )
    return _PLACEHOLDER.sub(lambda match: _secrets()[match[1]], text)


def _masked(text):
    for name, value in _secrets().items():
        text = text.replace(value, f"<secret:{name}>")
    return text


def _differences(name, wanted, uid, gid, mode):
    try:
        with salt.utils.files.fopen(name, "rb") as file:
            state = os.fstat(file.fileno())
            content = file.read()
    except FileNotFoundError:
        return {"content": "missing"}
    differs = {} if content == wanted else {"content": "differs (hidden)"}
    if (state.st_uid, state.st_gid) != (uid, gid):
        differs["owner"] = f"{state.st_uid}:{state.st_gid} -> {uid}:{gid}"
    if stat.S_IMODE(state.st_mode) != mode:
        differs["mode"] = f"{stat.S_IMODE(state.st_mode):04o} -> {mode:04o}"
    return differs


def _replace(name, wanted, uid, gid, mode):
    folder = os.path.dirname(name)
    if not os.path.isdir(folder):
        raise CommandExecutionError(f"{name}: the folder {folder} does not exist.")
    descriptor, aside = tempfile.mkstemp(dir=folder, prefix=f".{os.path.basename(name)}.")
    try:
        os.fchown(descriptor, uid, gid)
        os.fchmod(descriptor, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(wanted)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, name)
    except BaseException:
        os.unlink(aside)
        raise
