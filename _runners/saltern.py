"""The door for people on the master."""

import contextlib
import logging
import sys

import saltern_accounts
import saltern_admission
import saltern_backup
import saltern_deploy
import saltern_lifecycle
import saltern_maintain
import saltern_master
import saltern_master_health
import saltern_restore
import saltern_verify
from saltern import join_tables, overview
from saltern.problem import PlanError
from saltern_lifecycle import Refused

__virtualname__ = "saltern"

log = logging.getLogger(__name__)


def __virtual__():
    return __virtualname__


def plan():
    """Check the whole plan, and show its hosts, roles and phases.

    Exits non-zero when the plan has problems.

    CLI Example:

    .. code-block:: bash

        salt-run saltern.plan
        salt-run saltern.plan --out=json
    """
    return _tell(lambda: overview.tables(_resolved(), saltern_master.top(__opts__)))


def health(whole=False):
    """Every node that is not well: its state, its reason, whose the drain is, since when.

    whole: bool, the nodes that are well too
    Exits non-zero when no controller answers.

    CLI Example:

    .. code-block:: bash

        salt-run saltern.health
        salt-run saltern.health whole=True --out=json
    """
    return _tell(lambda: saltern_master_health.overview(__opts__, _resolved(), whole))


def deploy(only="", test=False, **more):
    """Bring every host to what the plan says, phase by phase: a phase begins when the gates of the
    one before are open on all hosts. A dry run comes first; it decides where to begin.

    only: str, this phase alone, for example ``p4_scheduler`` or ``p4``
    from: str, this phase and those after it
    test: bool, the dry run alone
    Exits non-zero at a closed gate, with its reasons, and when a host does not answer. Called again
    it goes on.

    CLI Example:

    .. code-block:: bash

        salt-run saltern.deploy
        salt-run saltern.deploy from=p4 --out=json
        salt-run saltern.deploy test=True
    """
    first = more.pop("from", "")
    unknown = [name for name in more if not name.startswith("__")]
    if unknown:
        words = f"Found the argument {unknown[0]!r}; expected from=, only= or test=."
        return _tell(lambda: {"problem": words, "retcode": 1})
    return _tell(
        lambda: saltern_deploy.run(__opts__, _resolved(), str(first), str(only), bool(test))
    )


def status(last=10):
    """Show what was deployed when, by whom and from which tree; and which gates were open with the
    plan and tree of now when a host last came to them. ``saltern.verify`` looks at the hosts anew.

    last: int, deployments
    Exits non-zero when a host is not as plan and tree say.

    CLI Example:

    .. code-block:: bash

        salt-run saltern.status
        salt-run saltern.status last=50 --out=json
    """
    return _tell(lambda: saltern_deploy.status(__opts__, _resolved(), int(last)))


def maintain(target, do, command="", most="10%", wait_s=86400, failures=0, test=False):
    """Maintain nodes in batches: drain, wait for their jobs, do it, look at the gates, give back.

    No job is ended. What a person or Slurm drained is left alone. A node that failed stays drained.

    target: str, a partition, or a node set such as ``node[01-40]``
    do: str, ``highstate`` or ``command``
    command: str, a shell command of root's, for do=command; Salt's job cache keeps it
    most: str, how many nodes of a partition may be away together, whatever the reason: ``2``,
        ``10%`` (rounded down, but one at least)
    wait_s: int, how long the jobs of a batch are awaited; nodes that still run some go back
    failures: int, nodes that may fail before it stops
    test: bool, only list the batches
    Exits non-zero when a node was not done. The same command again goes on with the others.

    CLI Example:

    .. code-block:: bash

        salt-run saltern.maintain 'node[01-40]' do=highstate test=True
        salt-run saltern.maintain batch do=command command='apt-get -y upgrade' most=2
    """
    asked = {"target": str(target), "do": str(do), "command": str(command), "most": str(most)}
    return _tell(
        lambda: saltern_maintain.run(
            __opts__, _resolved(), asked, int(wait_s), int(failures), bool(test)
        )
    )


def verify(failover=False, within=120):
    """Prove the cluster by its gates and by jobs: on every node in service, and over two of them.

    The jobs are root's, small, and wait for nobody: those that find no room are taken back.
    failover: bool, also stop the first slurmctld and slurmdbd for a while, with jobs running, and
        see the others take over
    within: int, seconds that the jobs have
    Exits non-zero when anything failed; what was left out is listed with its reason.

    CLI Example:

    .. code-block:: bash

        salt-run saltern.verify
        salt-run saltern.verify failover=True --out=json
    """
    return _tell(lambda: saltern_verify.run(__opts__, _resolved(), int(within), bool(failover)))


def sync_accounts(accept_fewer=False, test=False):
    """Make Slurm's accounts what the plan and the directory's groups say now.

    accept_fewer: bool, far fewer people than yesterday are right
    test: bool, look at the directory, and only print the exact calls
    Exits non-zero when the directory is not believed, or a call failed.

    CLI Example:

    .. code-block:: bash

        salt-run saltern.sync_accounts test=True
        salt-run saltern.sync_accounts
    """
    said = _tell(
        lambda: saltern_accounts.sync(__opts__, _resolved(), bool(accept_fewer), bool(test))
    )
    return _logged("sync_accounts", said)


def accounts():
    """Show where directory, plan and Slurm differ, person by person. Nothing is changed.

    CLI Example:

    .. code-block:: bash

        salt-run saltern.accounts
        salt-run saltern.accounts --out=json
    """
    return _tell(lambda: saltern_accounts.overview(__opts__, _resolved()))


def backup(due=False):
    """Back up slurmdbd's database, StateSaveLocation, and the master's secrets, register and keys.

    Each host keeps its own in the plan's backup:folder; the oldest beyond backup:keep go.
    due: bool, only what is older than backup:every_h, as the master's schedule asks every hour
    Exits non-zero when a part could not be made.

    CLI Example:

    .. code-block:: bash

        salt-run saltern.backup
    """
    return _logged(
        "backup", _tell(lambda: saltern_backup.run(__opts__, _resolved(), due=bool(due)))
    )


def backups():
    """Show every backup, on which host it is, and which parts have no young one.

    Exits non-zero when a part's newest is older than twice backup:every_h, or it has none.

    CLI Example:

    .. code-block:: bash

        salt-run saltern.backups
        salt-run saltern.backups --out=json
    """
    return _tell(lambda: saltern_backup.overview(__opts__, _resolved()))


def restore(part, backup, test=False, replace=False):
    """Put one part of a backup back. What would be lost by it is said first, and nothing is done.

    part: str, ``database``, ``state``, ``secrets``, ``register`` or ``keys``
    backup: str, its name in ``saltern.backups``
    test: bool, only prove that it can be read (the database: loaded), and say what would be lost
    replace: bool, what would be lost is accepted; it is backed up first all the same
    Exits non-zero when it was not restored.

    CLI Example:

    .. code-block:: bash

        salt-run saltern.restore database 20261203T021500Z test=True
        salt-run saltern.restore database 20261203T021500Z replace=True
    """
    return _tell(
        lambda: saltern_restore.run(__opts__, _resolved(), part, backup, bool(test), bool(replace))
    )


def joins(last=20, hosts=False):
    """Show the join queue, the keys that were not admitted, and what happened last.

    last: int, lines of history
    hosts: bool, every admitted host too: by which proof, by whom, when, with which key

    CLI Example:

    .. code-block:: bash

        salt-run saltern.joins
        salt-run saltern.joins hosts=True last=100 --out=json
    """
    return _tell(lambda: join_tables.tables(saltern_admission.book(__opts__), last, hosts))


def admit(minion_id, fingerprint="", accepted=False):
    """Admit a host by its key's fingerprint; or show the keys that it has shown.

    minion_id: str; with ``accepted``, a node set
    fingerprint: str, what ``salt-call --local key.finger`` prints on the host. A host that has not
        shown its key yet is admitted when it shows this one.
    accepted: bool, admit hosts whose keys a person accepted before Saltern kept a register

    CLI Example:

    .. code-block:: bash

        salt-run saltern.admit node03
        salt-run saltern.admit node03 fingerprint=0d:5c:...
        salt-run saltern.admit 'node[01-40]' accepted=True
    """
    if accepted:
        return _tell(lambda: saltern_lifecycle.admit_accepted(__opts__, _resolved(), minion_id))
    return _tell(lambda: saltern_lifecycle.admit(__opts__, _resolved(), minion_id, fingerprint))


def invite(minion_id, format="cloud-init"):
    """Make a host's key pair, admit it, and print user-data that installs its minion.

    The private key stands in what is printed and nowhere else: not on the master, not in the job
    cache, not on the event bus.

    minion_id: str, a host of the plan
    format: str, ``cloud-init``, ``kickstart`` (a %post section), ``preseed`` (a late_command) or
        ``script``

    CLI Example:

    .. code-block:: bash

        salt-run saltern.invite node042 > user-data
    """
    return _print(lambda: saltern_lifecycle.invite(__opts__, _resolved(), minion_id, format))


def token(format="cloud-init", new=False):
    """Print user-data for images: every host that boots with it joins, if the plan gives it only
    the roles compute and gpu.

    format: str, as ``invite``
    new: bool, make a new token; images with the old one admit no more hosts

    CLI Example:

    .. code-block:: bash

        salt-run saltern.token format=script > join.sh
    """
    return _print(lambda: saltern_lifecycle.token(__opts__, _resolved(), format, new))


def join(minion_id):
    """Queue a host at once, for example after the cause of its failure is gone.

    CLI Example:

    .. code-block:: bash

        salt-run saltern.join node03
    """
    return _tell(lambda: saltern_lifecycle.join(__opts__, _resolved(), minion_id))


def replace(minion_id, fingerprint=""):
    """Take a reinstalled host's new key for the one that is registered.

    fingerprint: str, of the new key; without it both are shown and nothing is done

    CLI Example:

    .. code-block:: bash

        salt-run saltern.replace node03
        salt-run saltern.replace node03 fingerprint=0d:5c:...
    """
    return _tell(lambda: saltern_lifecycle.replace(__opts__, minion_id, fingerprint))


def retire(minion_id, wait_s=0):
    """Take a node out: drained, its jobs awaited, out of Slurm, key and register entry gone.

    wait_s: int, how long to wait for its running jobs; they are never ended. Called again it goes
        on.

    CLI Example:

    .. code-block:: bash

        salt-run saltern.retire node03 wait_s=86400
    """
    return _tell(lambda: saltern_lifecycle.retire(__opts__, _resolved(), minion_id, int(wait_s)))


def _resolved():
    settings = saltern_master.settings(__opts__)
    with _quiet():
        return saltern_master.resolved(__opts__, settings["schema_file"])


def _tell(work):
    """An answer that the outputter of _output/saltern.py shows, and salt-run's exit status."""
    try:
        return {"outputter": "saltern", "retcode": 0, **work()}
    except PlanError as error:
        said = {"problems": [str(problem) for problem in error.problems]}
    except Refused as error:
        said = error.parts
    __context__["retcode"] = 1
    return {"outputter": "saltern", "retcode": 1, **said}


def _logged(verb, said):
    """The schedule and the reactor show nothing to anybody; the master's log is what is left."""
    if said["retcode"] and not _is_in_terminal():
        words = {key: said[key] for key in ("problem", "problems", "failed") if said.get(key)}
        log.error("saltern.%s: %s", verb, words)
    return said


def _is_in_terminal():
    """Whether salt-run called, and not the reactor, the schedule or the API."""
    return str(__opts__.get("fun", "")).startswith("saltern.")


def _print(work):
    """Text that holds a secret goes to the terminal only: Salt keeps what a runner returns."""
    if not _is_in_terminal():
        refusal = (
            "user-data holds a secret, so only salt-run in a terminal or into a file prints it"
        )
        return _tell(lambda: {"problem": refusal, "retcode": 1})

    def write():
        sys.stdout.write(work())
        sys.stdout.flush()
        return {}

    return _tell(write)


@contextlib.contextmanager
def _quiet():
    """Salt logs what it cannot render with its own traceback; the error itself is in our answer."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
