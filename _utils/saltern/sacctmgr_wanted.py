"""What the plan's section `accounts` means, as a wanted tree and its policy.

The section comes checked (accounts_checks) and travels as JSON text to the one host that
reconciles; a directory's groups can be merged in with sacctmgr_model.merged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from saltern import sacctmgr_fields as fields
from saltern import sacctmgr_values as values
from saltern.sacctmgr_model import (
    ROOT,
    Absent,
    Account,
    Key,
    Policy,
    Resource,
    Settings,
    Tree,
    User,
)

Section = Mapping[str, Any]

# Keys of an account or association that are settings beside its `limits`.
_DIRECT = ("fairshare", "priority", "qos", "default_qos", "comment")


def tree(section: Section) -> Tree:
    """The wanted tree. Raises sacctmgr_values.Unreadable naming the key path."""
    accounts: dict[str, Account] = {}
    associations: dict[Key, Settings] = {}
    alone = section.get("keeps_parents", False)  # one object, whose place is left as it is
    for name, parent, entry, where in flat(section.get("tree", {})):
        place = parent if "parent" in entry or not alone else None
        accounts[name] = account(place, entry, where)
        for user in entry.get("users", ()):
            associations[name, lower(user), ""] = {}
    users: dict[str, User] = {}
    for name, entry in section.get("users", {}).items():
        mine = dict(_memberships(lower(name), entry.get("accounts", {}), f"accounts:users:{name}"))
        associations.update(mine)
        users[lower(name)] = _user(entry)
    for _, user, _ in associations:
        users.setdefault(user, User())
    qos = {
        lower(name): _settings(fields.QOS, _qos(entry), f"accounts:qos:{name}")
        for name, entry in section.get("qos", {}).items()
    }
    return Tree(accounts, users, associations, qos, dict(_resources(section)))


def policy(section: Section) -> Policy:
    """What may be removed and touched."""
    absent = section.get("absent", {})
    kept = section.get("untouchable", {})
    return Policy(
        section.get("purge", "none"),
        section.get("jobs", "refuse"),
        Absent(
            _lower(absent.get("accounts", ())),
            _lower(absent.get("users", ())),
            frozenset(association(text) for text in absent.get("associations", ())),
            _lower(absent.get("qos", ())),
            frozenset(server_of(name) for name in absent.get("resources", ())),
        ),
        _lower(kept.get("accounts", ())),
        _lower(kept.get("users", ())),
        _lower(kept.get("qos", ())),
    )


def flat(
    entries: Mapping[str, Any], parent: str = ROOT, where: str = "accounts:tree"
) -> Iterator[tuple[str, str, Mapping[str, Any], str]]:
    """(name, parent, entry, key path) of each account of a nested tree, parents first."""
    for name, found in entries.items():
        entry, path = found or {}, f"{where}:{name}"
        yield lower(name), lower(entry.get("parent", parent)), entry, path
        yield from flat(entry.get("accounts", {}), name, f"{path}:accounts")


def lower(name: str) -> str:
    """A name as Slurm keeps it."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)


def association(text: str) -> Key:
    """``account/user[/partition]``; the user may be ``*``."""
    name, user, partition = [*text.split("/", 2), "", ""][:3]
    return lower(name), lower(user), lower(partition)


def server_of(name: str) -> tuple[str, str]:
    """``name[@server]``; slurmdb is what Slurm takes for none."""
    resource, _, server = name.partition("@")
    return resource, server or "slurmdb"


def _lower(names: Any) -> frozenset[str]:
    return frozenset(lower(name) for name in names)


def account(parent: str | None, entry: Section, where: str) -> Account:
    """An account of its entry in the plan. Raises Unreadable naming the key path."""
    coordinators = entry.get("coordinators")
    return Account(
        parent,
        values.text(entry["description"] or "") if "description" in entry else None,
        values.text(entry["organization"] or "") if "organization" in entry else None,
        None if coordinators is None else _lower(coordinators),
        _settings(fields.ASSOCIATION, _own(entry), where),
    )


def _own(entry: Section) -> Section:
    direct = {key: entry[key] for key in _DIRECT if key in entry}
    return {**direct, **entry.get("limits", {})}


def _qos(entry: Section | None) -> Section:
    given = dict(entry or {})
    return {**given.pop("limits", {}), **given}


def _settings(table: Mapping[str, fields.Field], given: Section, where: str) -> Settings:
    found = {}
    for key, value in given.items():
        try:
            found[key] = table[key].given(value)
        except values.Unreadable as error:
            raise values.Unreadable(f"{where}:{key}: {error}") from None
    # In the table's order, so that equal settings make equal calls.
    return {key: found[key] for key in table if key in found}


def _memberships(user: str, accounts: Any, where: str) -> Iterator[tuple[Key, Settings]]:
    """Accounts of a user: a list of names, or a map of names to settings."""
    entries = accounts if isinstance(accounts, Mapping) else {name: {} for name in accounts}
    for name, found in entries.items():
        entry = found or {}
        mine, path = lower(name), f"{where}:accounts:{name}"
        if not entry.get("only_partitions", False):
            yield (mine, user, ""), _settings(fields.ASSOCIATION, _own(entry), path)
        for partition, below in entry.get("partitions", {}).items():
            own = _settings(fields.ASSOCIATION, _own(below or {}), f"{path}:partitions:{partition}")
            yield (mine, user, lower(partition)), own


def _user(entry: Section) -> User:
    default = entry.get("default_account")
    accounts = list(entry.get("accounts", ()))
    if default is None and len(accounts) == 1 and "default_account" not in entry:
        default = accounts[0]
    keys = entry.get("wckeys")
    wckey = entry.get("default_wckey")
    if wckey is not None:
        keys = [*(keys or ()), wckey]
    return User(
        None if default is None else lower(default),
        entry.get("admin_level"),
        None if wckey is None else lower(wckey),
        None if keys is None else _lower(keys),
    )


def _resources(section: Section) -> Iterator[tuple[tuple[str, str], Resource]]:
    for name, entry in section.get("resources", {}).items():
        texts = {
            key: str(entry[key]) if entry[key] is not None else ""
            for key in ("count", "allowed")
            if key in entry
        }
        description = entry.get("description")
        yield (
            server_of(name),
            Resource(
                texts.get("count"),
                None if description is None else values.text(description),
                entry.get("server_type"),
                texts.get("allowed"),
            ),
        )
