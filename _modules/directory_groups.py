"""The directory's groups as Slurm's accounts: read, judged, kept, and reconciled."""

import json
import os
import tempfile
import time

import salt.utils.files
from salt.exceptions import CommandExecutionError
from saltern import accounts_drift, directory_accounts
from saltern.directory import CA_FILE, PASSWORD_FILE
from saltern.problem import listing

__virtualname__ = "directory_groups"

_KEPT = "/var/lib/saltern/directory.json"
_TIMEOUT_S = 120
_PAUSE_S = 2


def __virtual__():
    return __virtualname__


def read():
    """The users and groups that the directory has now.

    Returns a dict: ``people`` list of str, ``groups`` dict of str: list of str.
    Raises CommandExecutionError when it does not answer, or only in part.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' directory_groups.read
    """
    source = __salt__["saltern.view"]("directory")
    if source["kind"] == "none":
        raise CommandExecutionError(
            "The plan has no directory: give a host the role directory, or directory:uris."
        )
    layout = source["layout"]
    people = _search(source, source["user_base"], layout["user_class"], [layout["user_name"]])
    wanted = [layout["group_name"], layout["member"]]
    groups = _search(source, source["group_base"], layout["group_class"], wanted)
    names, members = directory_accounts.read(people, groups, layout)
    return {"people": names, "groups": members}


def kept():
    """The directory's groups as the last accepted look found them.

    Returns a dict, empty before the first: ``groups``, ``taken``, ``counts``.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' directory_groups.kept
    """
    if not os.path.exists(_KEPT):
        return {}
    with salt.utils.files.fopen(_KEPT, encoding="utf-8") as file:
        return json.load(file)


def known():
    """Whether the groups that the plan names now were looked at once.

    Returns bool.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' directory_groups.known
    """
    return kept().get("rules") == directory_accounts.looks_for(_rules())


def look(accept_fewer=False, patience=0):
    """What the directory says now, if it can be believed; nothing is kept.

    accept_fewer: bool, a person says that so few people are right
    patience: int, seconds to wait for an answer
    Returns a snapshot, as ``kept``. Raises CommandExecutionError.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' directory_groups.look
    """
    found = _within(patience)
    snapshot, problems = directory_accounts.taken(
        _rules(), found["groups"], kept(), time.time(), accept_fewer
    )
    if problems:
        title = "The directory was not believed, and nothing was changed:"
        raise CommandExecutionError(listing(title, problems))
    return snapshot


def take(accept_fewer=False, patience=0):
    """Look at the directory, and keep what it says if it can be believed.

    accept_fewer: bool; patience: int, as for ``look``
    Returns the snapshot, as ``kept``. Raises CommandExecutionError; then the last one stays.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' directory_groups.take
    """
    snapshot = look(accept_fewer, patience)
    _keep(snapshot)
    return snapshot


def sync(accept_fewer=False, test=False):
    """Make Slurm's accounting what the plan and the directory say now.

    accept_fewer: bool, as for ``look``
    test: bool, look at the directory and only say what would be called
    Returns a dict: ``groups`` list of {group, account, people}; ``strange`` names that Slurm cannot
    hold; ``unknown_here`` new users whom this controller does not know; and what ``sacctmgr.apply``
    (or ``sacctmgr.plan``) returns.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' directory_groups.sync test=True
    """
    rules, before = _rules(), kept()
    if test:
        snapshot = look(accept_fewer)
        report = __salt__["sacctmgr.plan"](groups=snapshot)
        unknown = []
    else:
        snapshot = take(accept_fewer)
        report = __salt__["sacctmgr.apply"]()
        # Only the new ones: SSSD takes 5 ms for each that it has not cached.
        new = _users(rules, snapshot) - (_users(rules, before) if before else set())
        unknown = __salt__["sssd.strangers"](sorted(new))
    rows = [
        {"group": group, "account": account, "people": len(snapshot["groups"][group])}
        for group, account, _, _ in directory_accounts.chosen(rules, snapshot["groups"])
    ]
    strange = directory_accounts.strange(snapshot)
    return {"groups": rows, "strange": strange, "unknown_here": unknown, **report}


def _users(rules, snapshot):
    return set(directory_accounts.tree(rules, snapshot).users)


def drift():
    """Where directory, plan and Slurm differ.

    Returns a dict: ``people`` list of {user, finding, means}; ``calls`` list of str, that would
    make Slurm equal; ``unknown`` what Slurm has beside the plan.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' directory_groups.drift
    """
    source = __salt__["saltern.view"]("directory")
    found = read() if source["kind"] != "none" else {"people": None, "groups": {}}
    present, wanted = __salt__["sacctmgr.dump"](), __salt__["sacctmgr.wanted"]()
    calls = __salt__["sacctmgr.plan"]()
    return {
        "people": accounts_drift.rows(
            found["people"],
            _may_log_in(source, found),
            wanted,
            present,
            __salt__["sssd.strangers"](accounts_drift.users(present)),
        ),
        "calls": calls["commands"],
        "unknown": calls["unknown"],
    }


def _may_log_in(source, found):
    if source["kind"] == "none":
        return []
    groups = source["login_groups"]
    if not groups:
        return found["people"]
    return sorted({user for name in groups for user in found["groups"].get(name, [])})


def _rules():
    return json.loads(__salt__["saltern.view"]("accounts:wanted"))["directory"]


def _within(patience):
    deadline = time.monotonic() + patience
    while True:
        try:
            return read()
        except CommandExecutionError:
            if time.monotonic() >= deadline:
                raise
        time.sleep(_PAUSE_S)


def _search(source, base, kind, attributes):
    command = ["ldapsearch", "-LLL", "-x", "-o", "ldif-wrap=no", "-o", "nettimeout=5"]
    command += ["-E", "pr=1000/noprompt", "-H", " ".join(source["uris"]), "-b", base]
    if source["start_tls"]:
        command.append("-ZZ")
    if source["bind_dn"]:
        command += ["-D", source["bind_dn"], "-y", PASSWORD_FILE]
    ours = __salt__["saltern.view"]("certificates:ca")
    result = __salt__["cmd.run_all"](
        [*command, f"(objectClass={kind})", *attributes],
        env={"LDAPTLS_CACERT": CA_FILE} if ours else None,
        python_shell=False,
        timeout=_TIMEOUT_S,
        ignore_retcode=True,
        output_loglevel="quiet",
    )
    if result["retcode"]:
        said = " ".join((result["stderr"] or result["stdout"][-300:]).split())
        raise CommandExecutionError(
            f"The directory ({', '.join(source['uris'])}): found {said or result['retcode']}; "
            f"expected the users and groups under {base} -> is one of these servers up, and may "
            f"{source['bind_dn'] or 'anyone'} read there?"
        )
    return result["stdout"]


def _keep(snapshot):
    folder = os.path.dirname(_KEPT)
    os.makedirs(folder, mode=0o755, exist_ok=True)
    descriptor, aside = tempfile.mkstemp(dir=folder, prefix=".directory.")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(snapshot, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(aside, _KEPT)
