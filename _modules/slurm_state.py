"""StateSaveLocation under several controllers: each leaves a mark there that the others read.

Slurm itself does not notice two controllers with a state each until the second takes over without
the jobs of the first. The folder is slurm's, so all that is done in it is done as slurm.
"""

import os
import secrets
import time

from salt.exceptions import CommandExecutionError
from saltern import gates_shared_state

__virtualname__ = "slurm_state"

MINE = "saltern_state_mark"
_AS_SLURM = ["setpriv", "--reuid=slurm", "--regid=slurm", "--clear-groups"]
_WRITE = 'umask 077; printf "%s" "$1" > "$2.new" && mv -f "$2.new" "$2"'
_ANSWER_S = 10  # of a file system; one that hangs does not hang the gate
_RENEW_S = 3600  # an old copy of the other's folder is found out by then
_PAUSE_S = 0.5


def __virtual__():
    return __virtualname__


def mark(text):
    """This host's mark, for the Salt mine.

    text: str
    Returns a dict: ``text`` str, ``made`` float, this host's clock in seconds since 1970.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_state.mark 5d0c
    """
    return {"text": text, "made": time.time()}


def facts():
    """What the controllers left in StateSaveLocation, for the gate.

    Returns plain data (``_utils/saltern/gates_shared_state.py``), None with one controller.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt0*' slurm_state.facts
    """
    view = __salt__["saltern.view"]()
    own, path = view["host"]["name"], view["slurm"]["state_dir"]
    names = [peer["name"] for peer in view["peers"]["controller"]]
    if len(names) == 1:
        return None
    found = {"path": path, "real": os.path.realpath(path), "error": "", "others": {}}
    found["awaited"] = names[: min(1, names.index(own))]
    try:
        _leave(own, path)
    except CommandExecutionError as error:
        return {**found, "error": str(error)}
    found["others"] = {name: _other(name, path) for name in names if name != own}
    return found


def problems(timeout):
    """Wait until every controller that has to be there has the same state as this host.

    timeout: float, seconds, 0 asks once
    Returns a list of str, empty when slurmctld may start here.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt02' slurm_state.problems 0
    """
    deadline = time.monotonic() + timeout
    while True:
        found = facts()
        why = gates_shared_state.shared_state(found) if found else []
        if not why or time.monotonic() >= deadline:
            return [str(problem) for problem in why]
        time.sleep(_PAUSE_S)


def room():
    """How much room StateSaveLocation has, and how much slurmctld needs to write it anew.

    Returns a dict: ``path`` str; ``free`` and ``needed`` int, bytes; ``inodes`` int, free ones, or
    None where the file system does not count them; ``error`` str, why it is not known, or empty.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt0*' slurm_state.room
    """
    path = __salt__["saltern.view"]()["slurm"]["state_dir"]
    found = {"path": path, "free": 0, "needed": 0, "inodes": None, "error": ""}
    try:
        shown = _run(["df", "--block-size=1", "--output=avail,iavail,itotal", path])
        sizes = _run(["find", path, "-maxdepth", "1", "-type", "f", "-printf", "%s\n"])
    except CommandExecutionError as error:
        return {**found, "error": str(error)}
    free, inodes, total = shown.splitlines()[-1].split()
    found["inodes"] = int(inodes) if total.isdigit() and int(total) else None
    return {**found, "free": int(free), "needed": sum(map(int, sizes.split()))}


def _leave(own, path):
    """Leave a mark, and tell the others; a young one that stands as it was told is kept."""
    told = _told(own)
    age = time.time() - told["made"] if told else -1
    if 0 <= age < _RENEW_S and _read(own, path) == told["text"]:
        return
    text = secrets.token_hex(16)
    _run(["sh", "-c", _WRITE, "sh", text, _file(own, path)])
    __salt__["mine.send"](MINE, text, mine_function="slurm_state.mark")


def _other(name, path):
    told = _told(name)
    if not told:
        return {"shown": None, "read": None, "error": ""}
    try:
        return {"shown": told["text"], "read": _read(name, path), "error": ""}
    except CommandExecutionError as error:
        return {"shown": told["text"], "read": None, "error": str(error)}


def _told(name):
    return __salt__["mine.get"](name, MINE).get(name)


def _read(name, path):
    """The mark of a controller; empty when there is none."""
    return _run(["sh", "-c", 'test ! -e "$1" || cat "$1"', "sh", _file(name, path)])


def _file(name, path):
    return os.path.join(path, f"saltern.{name}")


def _run(command):
    try:
        result = __salt__["cmd.run_all"](
            [*_AS_SLURM, *command],
            cwd="/",  # slurm cannot enter the folder of whoever called, and find wants to return
            python_shell=False,
            timeout=_ANSWER_S,
            ignore_retcode=True,
            output_loglevel="quiet",
        )
    except CommandExecutionError:
        raise CommandExecutionError(f"no answer of the file system within {_ANSWER_S} s") from None
    if result["retcode"]:
        raise CommandExecutionError(result["stderr"] or result["stdout"] or "no word")
    return result["stdout"]
