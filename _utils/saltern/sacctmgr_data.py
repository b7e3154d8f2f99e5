"""Trees as plain data, single objects as a section of the plan, and differences for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from saltern.sacctmgr_model import Account, Key, Resource, Tree, User

PLURALS = {
    "account": "accounts",
    "user": "users",
    "association": "associations",
    "qos": "qos",
    "resource": "resources",
}

Data = dict[str, dict[str, dict[str, Any]]]


def of(tree: Tree) -> Data:
    """A tree as plain data, by kind and name; what is not given is left out."""
    return {
        "accounts": {name: _account(account) for name, account in tree.accounts.items()},
        "users": {name: _user(user) for name, user in tree.users.items()},
        "associations": {name_of(key): dict(it) for key, it in tree.associations.items()},
        "qos": {name: dict(settings) for name, settings in tree.qos.items()},
        "resources": {f"{name}@{at}": _resource(it) for (name, at), it in tree.resources.items()},
    }


def name_of(key: Key) -> str:
    """account/user[/partition]"""
    return "/".join(part for part in key if part)


def _account(account: Account) -> dict[str, Any]:
    return _given(
        {
            "parent": account.parent,
            "description": account.description,
            "organization": account.organization,
            "coordinators": _listed(account.coordinators),
            **account.settings,
        }
    )


def _user(user: User) -> dict[str, Any]:
    return _given(
        {
            "default_account": user.default_account,
            "admin_level": user.admin_level,
            "default_wckey": user.default_wckey,
            "wckeys": _listed(user.wckeys),
        }
    )


def _resource(resource: Resource) -> dict[str, Any]:
    return _given(
        {
            "count": resource.count,
            "description": resource.description,
            "server_type": resource.server_type,
            "allowed": resource.allowed,
        }
    )


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _listed(names: frozenset[str] | None) -> list[str] | None:
    return None if names is None else sorted(names)


def differences(present: Tree, wanted: Tree) -> dict[str, dict[str, Any]]:
    """What differs in what the wanted tree gives, by object."""
    old, new = of(present), of(wanted)
    found = {}
    for kind, entries in new.items():
        for name, values in entries.items():
            was = old[kind].get(name)
            differing = {
                key: value for key, value in values.items() if (was or {}).get(key, "") != value
            }
            if was is None:
                found[f"{kind}:{name}"] = {"old": None, "new": values}
            elif differing:
                before = {key: was.get(key, "") for key in differing}
                found[f"{kind}:{name}"] = {"old": before, "new": differing}
    return found


def section(kind: str, name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """A plan's section of one object, for a reconcile that knows nothing else.

    Raises KeyError for an unknown kind.
    """
    if kind == "association":
        account, user, partition = [*name.split("/", 2), "", ""][:3]
        own: dict[str, Any] = dict(settings)
        if partition:
            own = {"only_partitions": True, "partitions": {partition: own}}
        return {"users": {user: {"accounts": {account: own}, "default_account": None}}}
    place = {"account": "tree", "user": "users", "qos": "qos", "resource": "resources"}[kind]
    return {place: {name: dict(settings)}, "keeps_parents": True}


def removal(kind: str, name: str) -> dict[str, Any]:
    """A plan's section that names one object for removal, and nothing else."""
    return {"purge": "listed", "absent": {PLURALS[kind]: [name]}}
