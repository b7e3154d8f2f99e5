"""Slurm's accounting: what is there, what the plan wants, and the fewest calls between the two."""

import contextlib
import fcntl
import json
import os
import time

import salt.utils.files
from salt.exceptions import CommandExecutionError
from saltern import (
    directory_accounts,
    sacctmgr_data,
    sacctmgr_plan,
    sacctmgr_reader,
    sacctmgr_run,
    sacctmgr_values,
    sacctmgr_wanted,
)
from saltern.sacctmgr_model import Tree, merged

__virtualname__ = "sacctmgr"
__func_alias__ = {"list_": "list"}

_LOCK = "/run/lock/saltern-accounts.lock"
_LOCK_S = 60
_PAUSE_S = 0.5


def __virtual__():
    return __virtualname__


def list_(kind):
    """The names of one kind of object.

    kind: str, accounts, users, associations, qos or resources
    Returns a list of str.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' sacctmgr.list accounts
    """
    return sorted(_kind(dump(), kind))


def show(kind, name):
    """One object with all that it has of its own; what it inherits does not show.

    kind: str, as for ``list``
    name: str, of an association ``account/user[/partition]``
    Returns a dict, empty if there is no such object.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' sacctmgr.show qos normal
    """
    return _kind(dump(), kind).get(name, {})


def dump():
    """Everything that Slurm's accounting has of this cluster.

    Returns plain data. Raises CommandExecutionError when slurmdbd does not answer: no answer is not
    an empty tree.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' sacctmgr.dump
    """
    return sacctmgr_data.of(_present())


def wanted():
    """Everything that the plan wants, in the form of ``dump``.

    Returns plain data; a key that is missing is not given, and left alone.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' sacctmgr.wanted
    """
    return sacctmgr_data.of(_wanted())


def diff():
    """What differs between the plan and Slurm.

    Returns a dict, object: {"old": …, "new": …}; what the plan does not give is not compared.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' sacctmgr.diff
    """
    return sacctmgr_data.differences(_present(), _wanted())


def plan(section=None, groups=None):
    """The exact calls that would make Slurm what the plan wants. Nothing is changed.

    section: dict, a section `accounts` in the plan's words instead of the plan's own
    groups: dict, a look at the directory (``directory_groups.look``) instead of the last kept one
    Returns a dict: ``commands`` list of str, ``kept`` what stays although it shall go and why,
    ``unknown`` what the plan does not know, ``refused`` what is wanted of untouchables.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' sacctmgr.plan
    """
    present = _present()
    found = _maker(section, groups)(present)
    return {
        "commands": [step.text for step in found.steps],
        "kept": [str(kept) for kept in found.kept],
        "unknown": list(found.unknown),
        "refused": list(found.refused),
    }


def apply(section=None):
    """Make Slurm what the plan wants; one at a time.

    section: dict, as for ``plan``
    Returns a dict: ``done`` and ``left`` lists of commands, ``failed`` list of {command, said},
    ``interrupted`` str, and as for ``plan`` ``kept``, ``unknown``, ``refused``.
    Raises CommandExecutionError when another one runs, or slurmdbd does not answer.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' sacctmgr.apply
    """
    with _lock():
        try:
            report = sacctmgr_run.reconcile(_readable, _maker(section), _call)
        except sacctmgr_run.Unreadable as error:
            raise CommandExecutionError(str(error)) from None
    return dict(report.as_data())


def facts():
    """What this host says of accounting, for the gate (``_utils/saltern/gates_identity.py``).

    Returns plain data, empty on a host that has no part in it.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' sacctmgr.facts
    """
    view = __salt__["saltern.view"]()
    found = {}
    if "accounts" in view:
        found["enforced"] = _answer(__salt__["slurm_controller.enforced"])
        if view["accounts"]["reconciles"]:
            found["accounts"] = _answer(plan)
    return found


def _answer(function):
    try:
        return {"error": "", "value": function()}
    except CommandExecutionError as error:
        return {"error": str(error), "value": None}


def section(kind, name, settings=None):
    """A section `accounts` of the plan that says one thing, for ``plan`` and ``apply``.

    kind: str, account, user, association, qos or resource
    name: str, of an association ``account/user[/partition]``
    settings: dict, in the plan's words; None names the object for removal
    Returns a dict.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' sacctmgr.section account chem '{"fairshare": 100}'
    """
    if kind not in sacctmgr_data.PLURALS:
        raise CommandExecutionError(
            f"sacctmgr: found the kind {kind!r}; expected one of {', '.join(sacctmgr_data.PLURALS)}"
        )
    if settings is None:
        return sacctmgr_data.removal(kind, name)
    return sacctmgr_data.section(kind, name, settings)


def add(kind, name, settings=None):
    """Add an object, or change it to these settings if it is there.

    kind: str, account, user, association or qos
    name: str, of an association ``account/user[/partition]``
    settings: dict, in the plan's words (docs/accounts.md); null clears
    Returns as ``apply``.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' sacctmgr.add account chem '{"fairshare": 100}'
    """
    return apply(section(kind, name, settings or {}))


def modify(kind, name, settings):
    """Change an object that is there.

    kind: str; name: str; settings: dict, as for ``add``
    Returns as ``apply``. Raises CommandExecutionError if it is not there.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' sacctmgr.modify qos normal '{"priority": 10}'
    """
    plural = sacctmgr_data.PLURALS.get(kind, kind)
    if name not in _kind(dump(), plural):
        raise CommandExecutionError(
            f"sacctmgr: found no {kind} {name}; expected one; sacctmgr.list {plural} shows them"
        )
    return add(kind, name, settings)


def remove(kind, name):
    """Remove an object, unless jobs or anything below it hold it.

    kind: str; name: str, as for ``add``
    Returns as ``apply``; ``kept`` says what holds it.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' sacctmgr.remove user alice
    """
    return apply(section(kind, name))


def _kind(data, kind):
    if kind not in data:
        raise CommandExecutionError(
            f"sacctmgr: found the kind {kind!r}; expected one of {', '.join(data)}"
        )
    return data[kind]


def _planned():
    accounts = __salt__["saltern.view"]("accounts")
    if not accounts["reconciles"]:
        raise CommandExecutionError(
            f"The accounts tree is with {accounts['reconciler']}, the one host that reconciles it; "
            "run this there."
        )
    return json.loads(accounts["wanted"])


def _wanted(own=None, groups=None):
    given = _planned() if own is None else own
    try:
        tree = sacctmgr_wanted.tree(given)
        if not _from_directory(given):
            return tree
        # The plan's word counts where both speak.
        return merged(tree, directory_accounts.tree(given["directory"], groups or _snapshot()))
    except sacctmgr_values.Unreadable as error:
        raise CommandExecutionError(f"The plan's accounts cannot be read: {error}") from None


def _from_directory(given):
    return bool(given.get("directory", {}).get("groups"))


def _snapshot():
    found = __salt__["directory_groups.kept"]()
    if not found:
        raise CommandExecutionError(
            "The directory's groups were never read: run the state p7_identity.accounts here, or "
            "salt-run saltern.sync_accounts."
        )
    return found


def _maker(own=None, groups=None):
    """A function from what is there to the plan; jobs are looked for only if something goes."""
    given = _planned() if own is None else own
    tree, by_plan = _wanted(given, groups), sacctmgr_wanted.policy(given)
    cluster = __salt__["saltern.view"]("cluster:name")
    jobs = __salt__["sacctmgr_calls.jobs"]

    def make(present):
        shared = __salt__["slurm_cluster.clusters"]() != [cluster]
        policy = by_plan
        if _from_directory(given):
            policy = directory_accounts.with_leavers(
                by_plan, given["directory"], groups or _snapshot(), tree, present
            )
        found = sacctmgr_plan.plan(cluster, tree, present, policy, None, shared)
        if not sacctmgr_plan.removes(found):
            return found
        return sacctmgr_plan.plan(cluster, tree, present, policy, _by_owner(jobs()), shared)

    return make


def _present() -> Tree:
    cluster = __salt__["saltern.view"]("cluster:name")
    said = __salt__["sacctmgr_calls.read"](cluster)
    try:
        return sacctmgr_reader.tree(cluster, said)
    except (sacctmgr_reader.Unreadable, sacctmgr_values.Unreadable) as error:
        raise CommandExecutionError(f"sacctmgr's answer cannot be read: {error}") from None


def _readable():
    try:
        return _present()
    except CommandExecutionError as error:
        raise sacctmgr_run.Unreadable(str(error)) from None


def _by_owner(jobs):
    found = {}
    for job in jobs:
        found.setdefault((job["account"], job["user"]), []).append(job["id"])
    return found


def _call(step):
    return sacctmgr_run.Said(**__salt__["sacctmgr_calls.change"](list(step.argv)))


@contextlib.contextmanager
def _lock():
    """One reconcile at a time on this host; a killed one leaves no lock behind."""
    with salt.utils.files.fopen(_LOCK, "a+", encoding="utf-8") as file:
        deadline = time.monotonic() + _LOCK_S
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    file.seek(0)
                    raise CommandExecutionError(
                        f"Another reconcile of the accounts runs ({file.read().strip()}) and did "
                        f"not end within {_LOCK_S} s; this one changed nothing. Run it again."
                    ) from None
                time.sleep(_PAUSE_S)
        file.seek(0)
        file.truncate()
        file.write(f"process {os.getpid()} since {time.strftime('%H:%M:%S')}")
        file.flush()
        yield
