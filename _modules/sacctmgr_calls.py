"""Calls of sacctmgr and squeue: what they print, as plain data; nothing is judged here."""

import concurrent.futures
import contextvars
import os

from salt.exceptions import CommandExecutionError
from saltern import sacctmgr_reader, slurm_daemons

__virtualname__ = "sacctmgr_calls"

_READ_S = 120
_AT_ONCE = 4  # slurmdbd answers each connection in a thread of its own
# FACTS: 1,000 users in one call take 1.5 s; a database under other load takes its time.
_CHANGE_S = 600


def __virtual__():
    return __virtualname__


def read(cluster):
    """All that sacctmgr shows of a cluster, as it prints it: one call for each kind.

    cluster: str
    Returns a dict of str, see ``_utils/saltern/sacctmgr_reader.py``. Raises CommandExecutionError
    when slurmdbd does not answer.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' sacctmgr_calls.read lab
    """
    asked = sacctmgr_reader.commands(cluster)
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        # Salt's dunders are context variables, which a thread has only by a copy.
        running = {
            kind: pool.submit(contextvars.copy_context().run, _ask, words)
            for kind, words in asked.items()
        }
        said = {kind: call.result() for kind, call in running.items()}
    unclear = sacctmgr_reader.is_ambiguous(said["accounts"])
    said["organizations"] = _ask(sacctmgr_reader.ORGANIZATIONS) if unclear else ""
    said["default_wckeys"] = _ask(sacctmgr_reader.DEFAULT_WCKEYS) if said["wckeys"] else ""
    return said


def change(argv):
    """One call that changes something.

    argv: list of str, arguments after ``sacctmgr --immediate``
    Returns a dict: ``retcode`` int and ``words`` str, which do not tell what happened; read again.
    ``timed_out`` bool.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' sacctmgr_calls.change '["add", "account", "name=chem", "cluster=lab"]'
    """
    said = _run(["sacctmgr", "--immediate", *argv], _CHANGE_S)
    words = " ".join(f"{said['stderr']} {said['stdout']}".split())[:1000]
    return {"retcode": said["retcode"], "words": words, "timed_out": said["timed_out"]}


def jobs():
    """The jobs that wait or run.

    Returns a list of dicts: ``id``, ``account``, ``user``. Raises CommandExecutionError when
    slurmctld does not answer.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' sacctmgr_calls.jobs
    """
    said = _run(["squeue", "--noheader", "--all", "--format=%i|%a|%u"], _READ_S)
    if said["retcode"]:
        raise CommandExecutionError(
            "slurmctld does not say which jobs there are, so nothing is removed: "
            f"{said['stderr'] or said['stdout']}"
        )
    rows = (line.split("|") for line in said["stdout"].splitlines())
    return [{"id": number, "account": account, "user": user} for number, account, user in rows]


def _ask(words):
    said = _run(["sacctmgr", "--noheader", "--parsable2", *words], _READ_S)
    if said["retcode"] or "error:" in said["stderr"]:
        raise CommandExecutionError(
            f"slurmdbd does not answer `sacctmgr {' '.join(words[:2])}`: "
            f"{' '.join((said['stderr'] or said['stdout']).split())[:500] or 'no words'}. "
            "Is slurmdbd running on the database host, and can this host reach it?"
        )
    return said["stdout"]


def _run(command, timeout):
    program = f"{slurm_daemons.TREE}/bin/{command[0]}"
    try:
        result = __salt__["cmd.run_all"](
            [program, *command[1:]],
            python_shell=False,
            timeout=timeout,
            ignore_retcode=True,
            output_loglevel="quiet",
            rstrip=False,
        )
    except CommandExecutionError as error:
        late = os.path.exists(program)
        return {"retcode": 124, "stdout": "", "stderr": str(error), "timed_out": late}
    return {**result, "timed_out": False}
