"""Backups of what this host keeps for Slurm: slurmdbd's database, or StateSaveLocation.

StateSaveLocation is slurm's, so all that is done in it is done as slurm; backups are root's.
"""

import collections
import contextlib
import os
import subprocess
import tarfile
import tempfile
import time

from salt.exceptions import CommandExecutionError
from saltern import backup
from saltern.backup_store import BackupError, Store
from saltern.slurm_conf_defaults import DATABASE

__virtualname__ = "slurm_backup"

_AS_SLURM = ["setpriv", "--reuid=slurm", "--regid=slurm", "--clear-groups"]
_CWD = "/"  # slurm cannot enter the folder of whoever called
_PIECE = 1 << 20
_SWAP_S = 600
_PAUSE_S = 0.5
_TRIES = 3  # slurmctld takes a file away for an instant when it writes a new one
_TAR_CHANGED = 1  # tar's status when a file changed or went while it was read (tar(1))


def __virtual__():
    return __virtualname__


def make(part, name, slurm="", before_restore=False):
    """Make one part of a backup on this host, and remove the oldest ones beyond backup:keep.

    part: str, ``database`` or ``state``; name: str, of the backup (its time, UTC)
    slurm: str, the version of Slurm that wrote it
    before_restore: bool, whatever is left, and none is removed: the oldest may be the one that is
        restored. Else a state without slurmctld's file of all jobs is refused, so that an empty
        folder never takes the place of a good backup
    Returns a dict, as ``entries``. Raises CommandExecutionError; then nothing of it is kept.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_backup.make database 20261203T021500Z
    """
    about, write = _MAKERS[_known(part)](before_restore)
    view = __salt__["saltern.view"]()
    about = {
        **about,
        "at": time.time(),
        "host": view["host"]["name"],
        "cluster": view["cluster"]["name"],
        "slurm": slurm,
    }
    store = _store()
    try:
        row = store.keep(name, part, about, write, backup.FILES[part])
        if not before_restore:
            store.prune(part, view["backup"]["keep"])
    except BackupError as error:
        raise CommandExecutionError(str(error)) from None
    return row


def entries():
    """The backups on this host.

    Returns a dict: ``rows``, a list of dicts with ``backup``, ``part``, ``at`` (epoch, seconds),
    ``host``, ``cluster``, ``slurm``, ``of``, ``file``, ``bytes`` (compressed), ``sha256`` (of what
    is in the file); ``beside`` bool, whether they share a file system with what they save.
    Raises CommandExecutionError when the folder cannot be trusted.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_backup.entries
    """
    store = _store()
    try:
        rows = store.rows()
    except (BackupError, OSError) as error:
        raise CommandExecutionError(str(error)) from None
    saved = [path for path in _saved() if os.path.isdir(path)]
    device = os.stat(store.folder).st_dev if rows else None
    return {"rows": rows, "beside": any(os.stat(path).st_dev == device for path in saved)}


def examine_state(name):
    """Read a backup of StateSaveLocation through.

    name: str, of the backup
    Returns a dict, as ``entries``. Raises CommandExecutionError when it is not whole.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_backup.examine_state 20261203T021500Z
    """
    try:
        return _store().check(name, "state")
    except BackupError as error:
        raise CommandExecutionError(str(error)) from None


def restore_state(name, saved_as, slurm=""):
    """Put StateSaveLocation back; what is there now is backed up first. slurmctld must be stopped.

    name: str, of the backup; saved_as: str, the name of the backup that is made first
    slurm: str, the version of Slurm here
    Returns str, the backup of what was there, empty if nothing was.
    Raises CommandExecutionError while slurmctld runs here; or with the words of what failed: the
    state is as it was unless they say otherwise.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_backup.restore_state 20261203T021500Z 20261203T081500Z
    """
    if __salt__["daemon.status"]("slurmctld")["active"]:
        raise CommandExecutionError("slurmctld runs on this host; nothing was restored.")
    path = __salt__["saltern.view"]("slurm:state_dir")
    examine_state(name)
    there = _run([*_AS_SLURM, "find", path, "-mindepth", "1", "-maxdepth", "1", *_state_files()])
    if there:
        make("state", saved_as, slurm, before_restore=True)
    aside = f"{path}/{backup.STATE_ASIDE}"
    _run([*_AS_SLURM, "rm", "-rf", aside])
    _run([*_AS_SLURM, "mkdir", "--mode=0700", aside])
    extract = ["tar", "--extract", "--preserve-permissions", "--file=-", f"--directory={aside}"]
    _feed([*_AS_SLURM, *extract], name, "state")
    _run([*_AS_SLURM, "find", path, "-mindepth", "1", "-maxdepth", "1", *_state_files(),
          "-exec", "rm", "-rf", "{}", "+"])  # fmt: skip
    _run([*_AS_SLURM, "find", aside, "-mindepth", "1", "-maxdepth", "1",
          "-exec", "mv", f"--target-directory={path}", "{}", "+"])  # fmt: skip
    _run([*_AS_SLURM, "rmdir", aside])
    return saved_as if there else ""


def load(name):
    """Load a backup of the database beside the one in use, which goes on; and compare.

    name: str, of the backup
    Returns a dict: ``row`` as of ``entries``; ``tables`` int; ``jobs`` int and ``last`` int (epoch,
    seconds) of the backup; ``present`` int, jobs in use now; ``newer`` int, those of them that were
    submitted after the backup.
    Raises CommandExecutionError when it is not whole, or MariaDB refuses it.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_backup.load 20261203T021500Z
    """
    cluster = __salt__["saltern.view"]("cluster:name")
    _sql(backup.MAKE_LOADED)
    try:
        row = _feed(__salt__["slurm_database.command"](backup.LOADED), name, "database")
        jobs, last = _jobs(backup.LOADED, cluster)
        present, _ = _jobs(DATABASE, cluster)
        newer, _ = _jobs(DATABASE, cluster, row["at"])
    except CommandExecutionError:
        _sql(backup.DROP_LOADED)
        raise
    tables = len(_tables(backup.LOADED))
    return {"row": row, "tables": tables, "jobs": jobs, "last": last, "present": present,
            "newer": newer}  # fmt: skip


def unload():
    """Drop what ``load`` made.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_backup.unload
    """
    _sql(backup.DROP_LOADED)


def swap(saved_as, slurm=""):
    """Put what ``load`` loaded in the place of the database; that one is backed up first.

    saved_as: str, the name of the backup that is made first; slurm: str, the version of Slurm here
    Nobody may write in it meanwhile: slurmdbd is stopped wherever it runs.
    Returns str, the backup of what was there, empty if nothing was.
    Raises CommandExecutionError with MariaDB's words; then the database is as it was.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_backup.swap 20261203T081500Z
    """
    present, loaded = _tables(DATABASE), _tables(backup.LOADED)
    if not loaded:
        raise CommandExecutionError(
            f"{backup.LOADED} has no tables; expected those that slurm_backup.load puts there."
        )
    try:
        if present:
            make("database", saved_as, slurm, before_restore=True)
        _sql(backup.swap(present, loaded))
    except CommandExecutionError:
        _sql(backup.DROP_LOADED)
        raise
    return saved_as if present else ""


# --- what is saved --------------------------------------------------------------------------------


def _known(part):
    if part not in _MAKERS:
        raise CommandExecutionError(
            f"Found the part {part!r}; expected one of {', '.join(_MAKERS)} on this host."
        )
    return part


def _database(_before_restore):
    cluster = __salt__["saltern.view"]("cluster:name")
    dump = __salt__["saltern.platform"]()["mariadb"]["dump"]
    # One moment of all tables, without a lock that slurmdbd would feel.
    options = ["--single-transaction", "--quick", "--skip-lock-tables", "--skip-dump-date"]
    command = [dump, "--user=root", *options, DATABASE]

    def write(take):
        end = collections.deque(maxlen=2)

        def note(piece):
            end.append(piece)
            take(piece)

        _pour(command, note)
        if backup.DUMP_ENDS not in b"".join(end)[-200:]:
            raise CommandExecutionError(f"{dump} ended without its last line; nothing was kept.")

    jobs, _ = _jobs(DATABASE, cluster)
    return {"of": f"{jobs} jobs of {cluster}"}, write


def _state(before_restore):
    path = __salt__["saltern.view"]("slurm:state_dir")
    excluded = [f"--exclude=./{pattern}" for pattern in backup.STATE_EXCLUDED]
    command = [*_AS_SLURM, "tar", "--create", "--file=-", f"--directory={path}", *excluded,
               "--warning=no-file-changed", "--warning=no-file-removed", "."]  # fmt: skip

    def write(take):
        for _ in range(_TRIES):
            with tempfile.TemporaryFile() as packed:
                _pour(command, packed.write, also=_TAR_CHANGED)
                packed.seek(0)
                if before_restore or _holds_jobs(packed):
                    packed.seek(0)
                    while piece := packed.read(_PIECE):
                        take(piece)
                    return
            time.sleep(_PAUSE_S)
        raise CommandExecutionError(
            f"{path}: found no {backup.STATE_CORE}; expected slurmctld's state. It has saved none "
            "yet, which it does within minutes of its start; or what is mounted there is not it."
        )

    return {"of": path}, write


def _holds_jobs(packed):
    """Whether slurmctld's most important file is in a copy."""
    with tarfile.open(fileobj=packed) as tar:
        return any(member.name == f"./{backup.STATE_CORE}" for member in tar)


_MAKERS = {"database": _database, "state": _state}


def _saved():
    """The folders of which this host keeps backups."""
    found = ["/var/lib/mysql"] if __salt__["slurm_database.here"]() else []
    roles = __salt__["saltern.view"]("roles")
    return [
        *found,
        *([__salt__["saltern.view"]("slurm:state_dir")] if "controller" in roles else []),
    ]


def _state_files():
    """find's words for what is slurmctld's state and no mark of ours."""
    return [word for pattern in backup.STATE_EXCLUDED for word in ("!", "-name", pattern)]


def _store():
    return Store(__salt__["saltern.view"]("backup:folder"))


# --- programs -------------------------------------------------------------------------------------


def _sql(text):
    return __salt__["slurm_database.query"](text, _SWAP_S)


def _tables(schema):
    return _sql(backup.tables(schema)).split()


def _jobs(schema, cluster, since=0):
    """How many jobs of a database were submitted after a time, and when the last one was."""
    if f"{cluster}_job_table" not in _tables(schema):
        return 0, 0  # slurmdbd has not made them yet
    count, last = _sql(backup.count_jobs(schema, cluster, since)).split()
    return int(count), int(last)


def _feed(command, name, part):
    """Give a part of a backup to a program's standard input. Returns its row."""
    store = _store()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=said, stderr=said, cwd=_CWD
        )
        try:
            with contextlib.suppress(BrokenPipeError), process:  # it says itself why it stopped
                for piece in store.read(name, part):
                    process.stdin.write(piece)
        except BackupError as error:
            raise CommandExecutionError(str(error)) from None
        if process.returncode:
            raise CommandExecutionError(f"{command[0]}: {_words(said)}")
    return store.row(name, part)


def _pour(command, take, also=0):
    """Hand what a program prints to a function, piece by piece."""
    with tempfile.TemporaryFile() as said:
        with subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, cwd=_CWD
        ) as process:
            while piece := process.stdout.read(_PIECE):
                take(piece)
        if process.returncode not in (0, also):
            raise CommandExecutionError(f"{command[0]}: {_words(said)}")


def _words(said):
    said.seek(0)
    return " ".join(said.read().decode(errors="replace").split()) or "it failed without a word"


def _run(command):
    """What a short program prints."""
    parts = []
    _pour(command, parts.append)
    return b"".join(parts).decode(errors="replace")
