"""What sacctmgr prints, read into a tree.

Only with an explicit format and WOPLimits: without, an association shows what it inherits as its
own. Free text comes last in a row, since sacctmgr does not escape its separator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from saltern import sacctmgr_fields as fields
from saltern.sacctmgr_model import ROOT, Account, Key, Resource, Settings, Tree, User

Table = Mapping[str, fields.Field]

_ASSOCIATION = ("Account", "User", "Partition", "ParentName")


class Unreadable(ValueError):
    """sacctmgr printed something else than rows of the format that was asked for."""


def commands(cluster: str) -> dict[str, list[str]]:
    """The calls that read everything of a cluster, by kind; arguments after ``sacctmgr -nP``."""
    where = ["where", f"cluster={cluster}"]
    return {
        "associations": ["show", "assoc", "WOPLimits", *where, _format(_ASSOCIATION, ASSOCIATION)],
        "accounts": ["show", "account", "withcoord", "format=Account,Coordinators,Descr,Org"],
        # Not DefaultAccount of `show user`: of 10,000 users that takes more than all the rest.
        "users": ["show", "user", "format=User,AdminLevel"],
        "defaults": ["show", "assoc", "OnlyDefaults", "WOPLimits", *where, "format=User,Account"],
        "qos": ["show", "qos", _format(("Name",), QOS)],
        "wckeys": ["show", "wckey", *where, "format=WCKey,User"],
        "resources": [
            "show", "resource", "withclusters",
            "format=Name,Server,Count,ServerType,Cluster,Allowed,Descr",
        ],
    }  # fmt: skip


# Asked only when a row of accounts has more separators than columns, or there are wckeys at all.
ORGANIZATIONS = ["show", "account", "format=Account,Org"]
DEFAULT_WCKEYS = ["show", "user", "format=User,DefaultWCKey"]

ASSOCIATION = fields.ASSOCIATION
QOS = fields.QOS


def _format(first: Iterable[str], table: Table) -> str:
    return "format=" + ",".join([*first, *(field.column for field in table.values())])


def tree(cluster: str, said: Mapping[str, str]) -> Tree:
    """The tree that these texts describe.

    said: the text of each of ``commands``, and as ``organizations`` and ``default_wckeys`` that of
        the two others
    Raises Unreadable.
    """
    rows, own = _associations(said["associations"])
    if ROOT not in own:
        raise Unreadable(
            f"sacctmgr knows no account {ROOT} of the cluster {cluster}: no answer, or a cluster "
            "that was not added; that is never an empty tree"
        )
    return Tree(
        _accounts(said["accounts"], own, said.get("organizations", "")),
        _users(said),
        rows,
        dict(_qos(said["qos"])),
        _resources(cluster, said["resources"]),
    )


def is_ambiguous(text: str) -> bool:
    """Whether a row of accounts holds separators in its free text."""
    return any(line.count("|") > 3 for line in text.splitlines())


def _rows(text: str, width: int, kind: str) -> Iterator[list[str]]:
    """Rows of some columns; what is more of separators belongs to the last."""
    for line in text.splitlines():
        if not line:
            continue
        cells = line.split("|", width - 1)
        if len(cells) != width:
            raise Unreadable(f"{kind}: found {line[:200]!r}; expected {width} columns")
        yield cells


def _associations(text: str) -> tuple[dict[Key, Settings], dict[str, tuple[str, Settings]]]:
    """Associations of users, and (parent, settings) of each account."""
    table = list(ASSOCIATION.items())
    users: dict[Key, Settings] = {}
    own: dict[str, tuple[str, Settings]] = {}
    known: dict[tuple[str, ...], Settings] = {}  # most rows are alike
    for cells in _rows(text, len(_ASSOCIATION) + len(table), "associations"):
        account, user, partition, parent = cells[:4]
        shown = tuple(cells[4:])
        if shown not in known:
            known[shown] = _settings(table, shown)
        if user:
            users[account, user, partition] = known[shown]
        else:
            own[account] = (parent, known[shown])
    return users, own


def _settings(table: Iterable[tuple[str, fields.Field]], shown: Sequence[str]) -> Settings:
    pairs = zip(table, shown)  # noqa: B905 - Python 3.9; equal, see _rows
    read = ((key, field.read(cell)) for (key, field), cell in pairs)
    return {key: value for key, value in read if value}


def _accounts(
    text: str, own: Mapping[str, tuple[str, Settings]], organizations: str
) -> dict[str, Account]:
    known = dict(cells for cells in _rows(organizations, 2, "organizations"))
    inherited: dict[str, frozenset[str]] = {}
    words: dict[str, tuple[str, str]] = {}
    for name, coordinators, rest in _rows(text, 3, "accounts"):
        inherited[name] = frozenset(word for word in coordinators.split(",") if word)
        organization = known.get(name, rest.rpartition("|")[2])
        words[name] = rest[: len(rest) - len(organization) - 1], organization
    found = {}
    for name, (parent, settings) in own.items():
        description, organization = words.get(name, ("", ""))
        # sacctmgr lists those of the accounts above as well.
        mine = inherited.get(name, frozenset()) - inherited.get(parent, frozenset())
        found[name] = Account(parent, description, organization, mine, settings)
    return found


def _users(said: Mapping[str, str]) -> dict[str, User]:
    # A star marks what a user got without asking (sacctmgr(1), wckeys).
    pairs = sorted((user, key.lstrip("*")) for key, user in _rows(said["wckeys"], 2, "wckeys"))
    keys = {
        user: frozenset(key for _, key in group if key)
        for user, group in groupby(pairs, lambda pair: pair[0])
    }
    accounts = dict(_rows(said["defaults"], 2, "defaults"))
    wckeys = dict(_rows(said.get("default_wckeys", ""), 2, "default wckeys"))
    none: frozenset[str] = frozenset()
    return {
        name: User(
            accounts.get(name, ""),
            level.lower(),
            wckeys.get(name, "").lstrip("*"),
            keys.get(name, none),
        )
        for name, level in _rows(said["users"], 2, "users")
    }


def _qos(text: str) -> Iterator[tuple[str, Settings]]:
    table = list(QOS.items())
    for name, *shown in _rows(text, 1 + len(table), "qos"):
        yield name, _settings(table, shown)


def _resources(cluster: str, text: str) -> dict[tuple[str, str], Resource]:
    """One row for each cluster of a resource."""
    found: dict[tuple[str, str], Resource] = {}
    for name, server, count, kind, where, allowed, description in _rows(text, 7, "resources"):
        share = allowed if where == cluster else ""
        if (name, server) not in found or share:
            found[name, server] = Resource(count, description, kind, share)
    return found
