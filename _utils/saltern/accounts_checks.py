"""What the plan's accounts must be beyond the schema: names that exist, once, and fit together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from saltern import nodeset, sacctmgr_values, sacctmgr_wanted
from saltern.problem import Problem
from saltern.sacctmgr_data import name_of
from saltern.sacctmgr_model import ROOT, Tree, ancestors
from saltern.sacctmgr_wanted import flat, lower

if TYPE_CHECKING:
    from saltern.plan import Host

Found = Iterator[Problem]
Section = Mapping[str, Any]

# What Slurm makes by itself.
_OWN_QOS = frozenset({"normal"})


def check(
    data: Mapping[str, Any], hosts: Mapping[str, Host], partitions: Mapping[str, Any]
) -> Found:
    """Everything that is wrong with the section `accounts`."""
    section = data["accounts"]
    found = [*_names(section), *_parents(section), *_root(section)]
    yield from found
    if found:
        return  # what follows would stumble over them
    try:
        tree = sacctmgr_wanted.tree(section)
    except sacctmgr_values.Unreadable as error:
        where, _, what = str(error).partition(": ")
        yield Problem(where, what, "a value of Slurm")
        return
    yield from _members(section, tree)
    yield from _qos(tree, section)
    yield from _partitions(tree, partitions)
    yield from _removals(section, tree)
    yield from _untouchables(section, tree)
    yield from _reservations(section, tree, partitions, hosts)


def _names(section: Section) -> Found:
    """Slurm keeps names in lower case: two that differ in case only are one to it."""
    seen: dict[str, str] = {}
    for name, _, _, where in flat(section["tree"]):
        spelt = where.rpartition(":")[2]
        other = seen.setdefault(name, where)
        if other != where:
            yield Problem(where, f"{spelt}, as {other}", "each account once, whatever its case")
    for kind in ("users", "qos", "resources"):
        once: dict[str, str] = {}
        for spelt in section[kind]:
            other = once.setdefault(lower(spelt), spelt)
            if other != spelt:
                where, found = f"accounts:{kind}:{spelt}", f"{other} and {spelt}"
                yield Problem(where, found, "names that differ by more than case")


def _parents(section: Section) -> Found:
    accounts = {name: (parent, where) for name, parent, _, where in flat(section["tree"])}
    for name, (parent, where) in accounts.items():
        if parent not in accounts and parent != ROOT:
            yield Problem(f"{where}:parent", parent, "an account of accounts:tree")
            continue
        seen, at = {name}, parent
        while at in accounts:
            if at in seen:
                yield Problem(f"{where}:parent", f"{parent}, which lies under it", "no circle")
                break
            seen.add(at)
            at = accounts[at][0]
    for _, _, entry, where in flat(section["tree"]):
        if "parent" in entry and ":accounts:" in where.removeprefix("accounts:tree:"):
            yield Problem(f"{where}:parent", entry["parent"], "none, since it stands under one")


def _root(section: Section) -> Found:
    for name, _, _, where in flat(section["tree"]):
        if name == ROOT:
            yield Problem(where, name, "another name", "Slurm's root is never changed")
    for name in section["users"]:
        if lower(name) == ROOT:
            yield Problem(f"accounts:users:{name}", name, "nobody", "root is never changed")


def _members(section: Section, tree: Tree) -> Found:
    """With groups of a directory, more accounts and memberships come than the plan can tell."""
    rules = section["directory"]["groups"].values()
    known = tree.accounts.keys() | {lower(rule["account"]) for rule in rules}
    open_ended = any("*" in rule["account"] for rule in rules)
    mine: dict[str, set[str]] = {}
    for key in tree.associations:
        mine.setdefault(key[1], set()).add(key[0])
        if key[0] not in known and not open_ended:
            yield Problem(f"accounts:users:{key[1]}:accounts", key[0], "accounts of accounts:tree")
    if rules:
        return
    for name in section["users"]:
        user = tree.users[lower(name)]
        where = f"accounts:users:{name}"
        accounts = mine.get(lower(name), set())
        if user.default_account is not None and user.default_account not in accounts:
            expected = (
                f"one of {', '.join(sorted(accounts)) or 'its accounts, of which it has none'}"
            )
            yield Problem(f"{where}:default_account", user.default_account, expected)
        if not accounts and not user.wckeys:
            yield Problem(where, "no account", "one at least", "Slurm knows users by accounts")
    for name, entry in tree.accounts.items():
        for who in sorted((entry.coordinators or frozenset()) - tree.users.keys()):
            yield Problem(f"accounts:tree:{name}:coordinators", who, "a user with an account")


def _qos(tree: Tree, section: Section) -> Found:
    known = {*tree.qos, *_OWN_QOS, *(lower(it) for it in section["untouchable"]["qos"])}
    rows = [(f"account {name}", it.settings, it.parent) for name, it in tree.accounts.items()]
    rows += [
        ("association " + "/".join(part for part in key if part), settings, key[0])
        for key, settings in tree.associations.items()
        if settings
    ]
    for what, settings, above in rows:
        for key in ("qos", "default_qos"):
            yield from _known(f"accounts ({what}):{key}", settings.get(key, ""), known)
        own = settings["qos"] if "qos" in settings else _inherited(tree, above or ROOT)
        default = settings.get("default_qos")
        if own and default and default not in own.split(","):
            yield Problem(
                f"accounts ({what}):default_qos", default, f"one of its QOS ({own})",
                "Slurm refuses a default that may not be used",
            )  # fmt: skip
    for name, settings in tree.qos.items():
        yield from _known(f"accounts:qos:{name}:preempt", settings.get("preempt", ""), known)


def _known(where: str, names: str, known: Iterable[str]) -> Found:
    for name in names.split(",") if names else ():
        if name not in known:
            yield Problem(where, name, f"a key of accounts:qos ({', '.join(sorted(known))})")


def _inherited(tree: Tree, account: str) -> str:
    """The list that stands above, empty if the plan does not say."""
    for name in (account, *ancestors(tree.accounts, account)):
        found = tree.accounts[name].settings.get("qos", "") if name in tree.accounts else ""
        if found:
            return found
    return ""


def _partitions(tree: Tree, partitions: Mapping[str, Any]) -> Found:
    known = {name.lower() for name in partitions}
    for account, user, partition in tree.associations:
        if partition and partition not in known:
            where = f"accounts:users:{user}:accounts:{account}:partitions"
            yield Problem(
                where, partition, f"a key of partitions ({', '.join(sorted(partitions))})"
            )


def _removals(section: Section, tree: Tree) -> Found:
    absent = sacctmgr_wanted.policy(section).absent
    if section["purge"] != "listed" and any(section["absent"].values()):
        found = f"{section['purge']}, with names in accounts:absent"
        yield Problem("accounts:purge", found, "listed", "then these go, and nothing else")
    both = {
        "accounts": absent.accounts & tree.accounts.keys(),
        "users": absent.users & tree.users.keys(),
        "qos": absent.qos & tree.qos.keys(),
        "associations": {name_of(key) for key in absent.associations & tree.associations.keys()},
    }
    for kind, names in both.items():
        for name in sorted(names):
            where = f"accounts:absent:{kind}"
            yield Problem(where, f"{name}, which the plan also has", "one of both")


def _untouchables(section: Section, tree: Tree) -> Found:
    policy = sacctmgr_wanted.policy(section)
    for kind, kept, there in (
        ("accounts", policy.accounts, tree.accounts),
        ("users", policy.users, tree.users),
        ("qos", policy.qos, tree.qos),
    ):
        for name in sorted(kept & there.keys()):
            yield Problem(
                f"accounts:untouchable:{kind}", f"{name}, which the plan also has", "one of both"
            )


def _nodes(where: str, expression: str, hosts: Mapping[str, Host]) -> Found:
    try:
        unknown = [name for name in nodeset.expand(expression) if name not in hosts]
    except nodeset.NodeSetError as error:
        yield Problem(where, f"{expression!r}: {error}", "a node set such as node[001-128]")
        return
    if unknown:
        yield Problem(where, f"{nodeset.fold(unknown)}, not in the plan", "hosts of the plan")


def _reservations(
    section: Section, tree: Tree, partitions: Mapping[str, Any], hosts: Mapping[str, Host]
) -> Found:
    for name, entry in section["reservations"].items():
        where = f"accounts:reservations:{name}"
        if not entry.get("users") and not entry.get("accounts"):
            yield Problem(where, "neither users nor accounts", "whom it is for")
        if ("nodes" in entry) == ("node_count" in entry):
            yield Problem(where, "nodes and node_count", "exactly one of them")
        if "nodes" in entry:
            yield from _nodes(f"{where}:nodes", entry["nodes"], hosts)
        if entry.get("partition") is not None and entry["partition"] not in partitions:
            yield Problem(f"{where}:partition", entry["partition"], "a key of partitions")
        for account in entry.get("accounts", ()):
            if lower(account) not in tree.accounts and lower(account) != ROOT:
                yield Problem(f"{where}:accounts", account, "an account of accounts:tree")
