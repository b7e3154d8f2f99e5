"""From what Slurm has to what is wanted, by the fewest calls: users and their associations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from saltern import sacctmgr_fields as fields
from saltern.sacctmgr_model import Key, Policy, Settings, Tree, User
from saltern.sacctmgr_qos_lists import Lists, differences, user_waves
from saltern.sacctmgr_steps import Stage, Step, chunks, grouped

Words = tuple[str, ...]

# adminlevel as sacctmgr takes it, by what it prints in lower case.
LEVELS = {"none": "None", "operator": "Operator", "administrator": "Admin"}


def users(
    cluster: str, wanted: Tree, present: Tree, policy: Policy, lists: Lists
) -> Iterator[Step]:
    """New users and associations, then changes of those that are there."""
    rows = {
        key: settings
        for key, settings in wanted.associations.items()
        if policy.touches_user(key[1]) and policy.touches_account(key[0])
    }
    fresh = _New(cluster, wanted, present)
    yield from fresh.steps({key: it for key, it in rows.items() if key not in present.associations})
    yield from _changes(cluster, rows, present, lists)
    yield from _people(cluster, wanted, present, policy, fresh.settled)


@dataclass(frozen=True)
class _Block:
    """Associations of one user that one call makes."""

    accounts: Words
    partitions: Words
    words: Words
    first: Words = ()  # default account and admin level, of the first block of a new user


def _blocks(missing: list[tuple[str, str, Words]]) -> Iterator[_Block]:
    """(account, partition, words) as few blocks: equal words of accounts, then of partitions."""
    by_words: dict[tuple[str, Words], list[str]] = {}
    for account, partition, words in missing:
        by_words.setdefault((partition, words), []).append(account)
    by_accounts: dict[tuple[Words, Words, bool], list[str]] = {}
    for (partition, words), accounts in by_words.items():
        key = (tuple(accounts), words, bool(partition))
        by_accounts.setdefault(key, []).append(partition)
    for (listed, words, limited), partitions in by_accounts.items():
        yield _Block(listed, tuple(partitions) if limited else (), words)


class _New:
    """Associations to add; users with the same ones share the calls."""

    def __init__(self, cluster: str, wanted: Tree, present: Tree) -> None:
        self._cluster = cluster
        self._wanted = wanted
        self._users = present.users
        self.settled: dict[str, str] = {}  # default accounts that the additions set

    def steps(self, rows: Mapping[Key, Settings]) -> Iterator[Step]:
        """The calls; those with default accounts first, since they make the users."""
        words: dict[int, Words] = {}  # equal settings are often the same object
        mine: dict[str, list[tuple[str, str, Words]]] = {}
        for (account, user, partition), settings in rows.items():
            if id(settings) not in words:
                words[id(settings)] = tuple(differences(fields.ASSOCIATION, settings, {}).values())
            mine.setdefault(user, []).append((account, partition, words[id(settings)]))
        groups: dict[_Block, list[str]] = {}
        for user, missing in mine.items():
            for block in self._blocks(user, missing):
                groups.setdefault(block, []).append(user)
        for block, names in sorted(groups.items(), key=lambda item: not item[0].first):
            for listed in chunks(names):
                yield Step(Stage.NEW_USERS, self._call(listed, block))

    def _blocks(self, user: str, missing: list[tuple[str, str, Words]]) -> list[_Block]:
        old = self._users.get(user)
        has = old.default_account if old else ""
        default = self._wanted.users.get(user, User()).default_account or has or missing[0][0]
        first = self._first(user, old, default) if default != has or old is None else ()
        blocks = []
        for block in sorted(_blocks(missing), key=lambda block: default not in block.accounts):
            makes = default in block.accounts and bool(first)
            blocks.append(replace(block, first=first) if makes else block)
            if makes:
                self.settled[user] = default
                first = ()
        return blocks

    def _first(self, user: str, old: User | None, default: str) -> Words:
        level = self._wanted.users.get(user, User()).admin_level
        admin = (
            (f"adminlevel={LEVELS[level]}",) if old is None and level not in (None, "none") else ()
        )
        return (f"defaultaccount={default}", *admin)

    def _call(self, names: str, block: _Block) -> Words:
        limits = (f"partition={','.join(block.partitions)}",) if block.partitions else ()
        accounts = f"account={','.join(block.accounts)}"
        where = (f"name={names}", accounts, f"cluster={self._cluster}")
        return ("add", "user", *where, *limits, *block.first, *block.words)


def _changes(
    cluster: str, rows: Mapping[Key, Settings], present: Tree, lists: Lists
) -> Iterator[Step]:
    limited = {(account, user) for account, user, partition in present.associations if partition}
    limited |= {(account, user) for account, user, partition in rows if partition}
    waves: dict[Stage, list[tuple[Words, tuple[str, str]]]] = {
        Stage.USERS: [],
        Stage.DEFAULTS: [],
        Stage.QOS_LISTS: [],
    }
    for key, settings in rows.items():
        old = present.associations.get(key)
        if old is None or old is settings:
            continue
        wave = user_waves(key, settings, old, lists)
        account, user, partition = key
        # Without a partition a call changes the rows of all partitions; an empty one is "none".
        chosen = (f"partition={partition}",) if (account, user) in limited else ()
        for stage, words in zip(waves, (wave.first, wave.defaults, wave.last)):  # noqa: B905 - Python 3.9
            if words:
                waves[stage].append(((*chosen, "set", *words), (account, user)))
    everyone = rows_of([*present.associations, *rows])
    for stage, changed in waves.items():
        for words, names, accounts in merged(changed, everyone):
            where = (f"account={','.join(accounts)}", f"cluster={cluster}")
            for listed in chunks(names):
                argv = ("modify", "user", "where", f"name={listed}", *where, *words)
                yield Step(stage, argv)


Rows = Mapping[str, "set[tuple[str, str]]"]  # user: (account, partition) of each association


def rows_of(keys: Iterable[Key]) -> Rows:
    """Everyone's associations."""
    found: dict[str, set[tuple[str, str]]] = {}
    for account, user, partition in keys:
        found.setdefault(user, set()).add((account, partition))
    return found


def merged(
    changed: Iterable[tuple[Words, tuple[str, str]]], everyone: Rows
) -> Iterator[tuple[Words, list[str], list[str]]]:
    """(words, users, accounts) of each call.

    changed: (words, (account, user)); words with a partition limit a call to it
    everyone: all associations that there are. A call takes all users of all its accounts, so
        users share one with every other account only if it could hit nothing else of theirs.
    """
    groups: dict[Words, dict[str, set[str]]] = {}
    for words, (account, user) in changed:
        groups.setdefault(words, {}).setdefault(user, set()).add(account)
    for words, mine in groups.items():
        accounts = set().union(*mine.values())
        only = next((word.partition("=")[2] for word in words if word[:10] == "partition="), None)
        free = []
        apart: dict[str, list[str]] = {}
        for user, own in mine.items():
            hit = {
                account
                for account, partition in everyone[user]
                if account in accounts and only in (None, partition)
            }
            if hit == own:
                free.append(user)
            else:
                apart.setdefault(",".join(sorted(own)), []).append(user)
        if free:
            yield words, free, sorted({account for user in free for account in mine[user]})
        for listed, users_ in apart.items():
            yield words, users_, listed.split(",")


def _people(
    cluster: str, wanted: Tree, present: Tree, policy: Policy, settled: Mapping[str, str]
) -> Iterator[Step]:
    """Admin levels, default accounts, wckeys."""
    levels: list[tuple[Words, str]] = []
    keys: list[tuple[Words, str]] = []
    defaults: list[tuple[Words, str]] = []
    nobody = User("", "none", "", frozenset())
    for name, user in wanted.users.items():
        if not policy.touches_user(name):
            continue
        old = present.users.get(name, nobody)
        made = name in settled and name not in present.users  # with its level, in one call
        if user.admin_level not in (None, old.admin_level) and not made:
            levels.append(((f"adminlevel={LEVELS[user.admin_level or 'none']}",), name))
        wckey = user.default_wckey or ""
        missing = sorted((user.wckeys or frozenset()) - (old.wckeys or frozenset()))
        missing.sort(key=lambda key: key != wckey)  # the first one becomes the default
        keys.append(((f"wckeys={','.join(missing)}",) if missing else (), name))
        default = settled.get(name, old.default_account)
        change = []
        if user.default_account not in (None, "", default):
            change.append(f"defaultaccount={user.default_account}")
        if wckey not in ("", old.default_wckey or (missing or [""])[0]):
            change.append(f"defaultwckey={wckey}")
        defaults.append((tuple(change), name))
    for words, names in grouped(keys).items():
        for listed in chunks(names):
            yield Step(Stage.USERS, ("add", "user", f"name={listed}", f"cluster={cluster}", *words))
    for stage, pairs, where in (
        (Stage.USERS, levels, ()),
        (Stage.DEFAULTS, defaults, (f"cluster={cluster}",)),
    ):
        for words, names in grouped(pairs).items():
            for listed in chunks(names):
                yield Step(
                    stage, ("modify", "user", "where", f"name={listed}", *where, "set", *words)
                )
