"""Slurm's accounting as data: one type for what a plan wants and for what Slurm has.

In a wanted tree None, or a key that is missing, is "not given": it is left as it is. In both, an
empty text is "cleared". Names are in Slurm's form, lower case.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

ROOT = "root"

Settings = Mapping[str, str]  # key of sacctmgr_fields: canonical value
Key = tuple[str, str, str]  # account, user, partition (empty: all partitions)


@dataclass(frozen=True)
class Account:
    """An account and its own association."""

    parent: str | None = None
    description: str | None = None
    organization: str | None = None
    coordinators: frozenset[str] | None = None  # those of this account, not those it inherits
    settings: Settings = field(default_factory=dict)


@dataclass(frozen=True)
class User:
    """What a user has beside associations."""

    default_account: str | None = None
    admin_level: str | None = None  # none, operator or administrator
    default_wckey: str | None = None
    wckeys: frozenset[str] | None = None


@dataclass(frozen=True)
class Resource:
    """A licence that slurmdbd counts; allowed is the share of this cluster, in percent."""

    count: str | None = None
    description: str | None = None
    server_type: str | None = None
    allowed: str | None = None  # empty: this cluster has none of it


@dataclass(frozen=True)
class Tree:
    """Everything of one cluster."""

    accounts: Mapping[str, Account] = field(default_factory=dict)
    users: Mapping[str, User] = field(default_factory=dict)
    associations: Mapping[Key, Settings] = field(default_factory=dict)
    qos: Mapping[str, Settings] = field(default_factory=dict)
    resources: Mapping[tuple[str, str], Resource] = field(default_factory=dict)  # name, server


@dataclass(frozen=True)
class Absent:
    """What a plan names for removal; an association as (account, user or ``*``, partition)."""

    accounts: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()
    associations: frozenset[Key] = frozenset()
    qos: frozenset[str] = frozenset()
    resources: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True)
class Policy:
    """What may be removed, what is never touched, and what running jobs mean."""

    purge: str = "none"  # none, listed, all
    jobs: str = "refuse"  # refuse, drain
    absent: Absent = field(default_factory=Absent)
    accounts: frozenset[str] = frozenset()  # untouchable
    users: frozenset[str] = frozenset()
    qos: frozenset[str] = frozenset()

    def touches_account(self, name: str) -> bool:
        """Whether an account may be changed."""
        return name != ROOT and name not in self.accounts

    def touches_user(self, name: str) -> bool:
        """Whether a user may be changed."""
        return name != ROOT and name not in self.users

    def touches_qos(self, name: str) -> bool:
        """Whether a QOS may be changed."""
        return name not in self.qos


def ancestors(accounts: Mapping[str, Account], name: str) -> Iterator[str]:
    """The accounts above one, nearest first; ends at the root, and in a circle."""
    seen = {name}
    while name in accounts:
        name = accounts[name].parent or ROOT
        if name in seen:
            return
        seen.add(name)
        yield name


def depth(accounts: Mapping[str, Account], name: str) -> int:
    """How many accounts are above one."""
    return sum(1 for _ in ancestors(accounts, name))


def merged(first: Tree, second: Tree) -> Tree:
    """Two sources of one tree, for example a plan and a directory's groups; the first one's word
    counts where both speak."""
    accounts = {**second.accounts}
    for name, account in first.accounts.items():
        accounts[name] = _over(account, second.accounts[name]) if name in accounts else account
    users = {**second.users}
    for name, user in first.users.items():
        users[name] = _person(user, users.get(name, User()))
    associations = {**second.associations}
    for key, settings in first.associations.items():
        associations[key] = {**associations.get(key, {}), **settings}
    qos = {**second.qos}
    for name, settings in first.qos.items():
        qos[name] = {**qos.get(name, {}), **settings}
    return Tree(accounts, users, associations, qos, {**second.resources, **first.resources})


def _person(first: User, second: User) -> User:
    return User(
        _given(first.default_account, second.default_account),
        _given(first.admin_level, second.admin_level),
        _given(first.default_wckey, second.default_wckey),
        first.wckeys if first.wckeys is not None else second.wckeys,
    )


def _given(first: str | None, second: str | None) -> str | None:
    return first if first is not None else second


def _over(first: Account, second: Account) -> Account:
    coordinators = first.coordinators
    if second.coordinators is not None:
        coordinators = (coordinators or frozenset()) | second.coordinators
    return replace(
        first,
        parent=_given(first.parent, second.parent),
        description=_given(first.description, second.description),
        organization=_given(first.organization, second.organization),
        coordinators=coordinators,
        settings={**second.settings, **first.settings},
    )
