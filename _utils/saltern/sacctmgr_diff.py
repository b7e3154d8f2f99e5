"""From what Slurm has to what is wanted, by the fewest calls: additions and changes.

Objects with equal settings share a call. Nothing here removes; see sacctmgr_removals.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from saltern import sacctmgr_fields as fields
from saltern.sacctmgr_model import ROOT, Account, Policy, Tree, depth
from saltern.sacctmgr_qos_lists import Lists, account_waves, differences
from saltern.sacctmgr_steps import Stage, Step, chunks, grouped

Words = tuple[str, ...]


def qos(wanted: Tree, present: Tree, policy: Policy) -> Iterator[Step]:
    """QOS to add and to change."""
    fresh = [name for name in wanted.qos if name not in present.qos and policy.touches_qos(name)]
    new: dict[Words, list[str]] = {}
    later: list[tuple[Words, str]] = []
    for name in fresh:
        words = differences(fields.QOS, wanted.qos[name], {})
        preempt = set(wanted.qos[name].get("preempt", "").split(",")) & set(fresh)
        if preempt:
            later.append(((words.pop("preempt"),), name))
        new.setdefault(tuple(words.values()), []).append(name)
    for settings, names in new.items():
        yield from _calls(Stage.QOS, ("add", "qos"), names, settings)
    changed = [
        (tuple(differences(fields.QOS, settings, present.qos[name]).values()), name)
        for name, settings in wanted.qos.items()
        if name in present.qos and policy.touches_qos(name)
    ]
    for pairs, stage in ((changed, Stage.QOS_PREEMPT), (later, Stage.QOS_PREEMPT)):
        for settings, names in grouped(pairs).items():
            yield from _calls(stage, ("modify", "qos", "where"), names, ("set", *settings))


def resources(cluster: str, wanted: Tree, present: Tree) -> Iterator[Step]:
    """Licences to add and to change; each has a server, so each is a call of its own."""
    for (name, server), new in wanted.resources.items():
        old = present.resources.get((name, server))
        where = (f"name={name}", f"server={server}")
        pairs = {
            "Count": (new.count, old.count if old else None),
            "Description": (new.description, old.description if old else None),
            "ServerType": (new.server_type, old.server_type if old else None),
        }
        words = tuple(
            f"{key}={value}" for key, (value, was) in pairs.items() if value not in (None, was)
        )
        share = (
            () if new.allowed in (None, "") else (f"cluster={cluster}", f"allowed={new.allowed}")
        )
        if old is None:
            yield Step(Stage.RESOURCES, ("add", "resource", *where, "type=License", *words, *share))
            continue
        if words:
            yield Step(Stage.RESOURCES, ("modify", "resource", "where", *where, "set", *words))
        if new.allowed is None or new.allowed == old.allowed:
            continue
        if not old.allowed:
            yield Step(Stage.RESOURCES, ("add", "resource", *where, *share))
        elif new.allowed:
            limited = (*where, f"cluster={cluster}")
            change = ("modify", "resource", "where", *limited, "set", f"allowed={new.allowed}")
            yield Step(Stage.RESOURCES, change)


def accounts(
    cluster: str, wanted: Tree, present: Tree, policy: Policy, lists: Lists
) -> Iterator[Step]:
    """Accounts: settings, new ones from the top down, moves."""
    known = {
        name: account
        for name, account in wanted.accounts.items()
        if name in present.accounts and policy.touches_account(name)
    }
    yield from _account_changes(cluster, known, present, lists)
    yield from _new_accounts(cluster, wanted, present, policy)
    yield from _moves(cluster, wanted, present, policy)


def _account_changes(
    cluster: str, known: Mapping[str, Account], present: Tree, lists: Lists
) -> Iterator[Step]:
    waves: dict[Stage, list[tuple[Words, str]]] = {
        Stage.ACCOUNTS: [],
        Stage.DEFAULTS: [],
        Stage.ACCOUNT_QOS_LISTS: [],
    }
    for name, account in sorted(known.items(), key=lambda item: depth(present.accounts, item[0])):
        old = present.accounts[name]
        wave = account_waves(name, account, old, lists)
        texts = tuple(_texts(account, old))
        waves[Stage.ACCOUNTS].append(((*texts, *wave.first), name))
        waves[Stage.DEFAULTS].append((wave.defaults, name))
        waves[Stage.ACCOUNT_QOS_LISTS].insert(0, (wave.last, name))
    where = (f"cluster={cluster}", "set")
    for stage, pairs in waves.items():
        for words, names in grouped(pairs).items():
            yield from _calls(stage, ("modify", "account", "where"), names, (*where, *words))


def _texts(wanted: Account, present: Account) -> Iterator[str]:
    if wanted.description not in (None, present.description):
        yield f"Description={wanted.description}"
    if wanted.organization not in (None, present.organization):
        yield f"Organization={wanted.organization}"


def _new_accounts(cluster: str, wanted: Tree, present: Tree, policy: Policy) -> Iterator[Step]:
    whole = {**present.accounts, **wanted.accounts}
    groups: dict[tuple[int, Words], list[str]] = {}
    for name, account in wanted.accounts.items():
        if name in present.accounts or not policy.touches_account(name):
            continue
        parent = account.parent or ROOT
        words = (
            *([f"parent={parent}"] if parent != ROOT else []),
            *_texts(account, Account()),
            *differences(fields.ASSOCIATION, account.settings, {}).values(),
        )
        groups.setdefault((depth(whole, name), words), []).append(name)
    for (_, words), names in sorted(groups.items(), key=lambda item: item[0][0]):
        settings = (f"cluster={cluster}", *words)
        yield from _calls(Stage.NEW_ACCOUNTS, ("add", "account"), names, settings)


def _moves(cluster: str, wanted: Tree, present: Tree, policy: Policy) -> Iterator[Step]:
    """Moves in an order in which no account comes to lie under itself; a circle is opened by a
    step to the root."""
    now = {name: account.parent or ROOT for name, account in present.accounts.items()}
    todo: dict[str, str] = {}
    for name, account in wanted.accounts.items():
        now.setdefault(name, account.parent or ROOT)
        target = account.parent if account.parent is not None else now[name]
        if target != now[name] and policy.touches_account(name):
            todo[name] = target
    while todo:
        free = [name for name, target in todo.items() if name not in (target, *_above(now, target))]
        target = todo[free[0]] if free else ROOT
        names = [name for name in free if todo[name] == target] or [next(iter(todo))]
        for name in names:
            now[name] = target
            if todo[name] == target:
                del todo[name]
        words = (f"cluster={cluster}", "set", f"parent={target}")
        yield from _calls(Stage.MOVES, ("modify", "account", "where"), names, words)


def _above(parents: Mapping[str, str], name: str) -> Iterator[str]:
    for _ in range(len(parents)):
        if name not in parents or name == ROOT:
            return
        name = parents[name]
        yield name


def coordinators(wanted: Tree, present: Tree, policy: Policy) -> Iterator[Step]:
    """Coordinators of accounts; a given list is the whole list."""
    new: list[tuple[Words, str]] = []
    gone: list[tuple[Words, str]] = []
    for name, account in wanted.accounts.items():
        if account.coordinators is None or not policy.touches_account(name):
            continue
        above = {who for up in _up(wanted, present, name) for who in up}
        have = present.accounts.get(name, Account()).coordinators or frozenset()
        mine = {who for who in account.coordinators - above if policy.touches_user(who)}
        lost = {who for who in have - account.coordinators if policy.touches_user(who)}
        new.append((tuple(sorted(mine - have)), name))
        gone.append((tuple(sorted(lost)), name))
    for verb, pairs in (("delete", gone), ("add", new)):
        for who, names in grouped(pairs).items():
            for listed in chunks(names):
                words = (verb, "coordinator", f"account={listed}", f"names={','.join(who)}")
                yield Step(Stage.COORDINATORS, words)


def _up(wanted: Tree, present: Tree, name: str) -> Iterator[frozenset[str]]:
    """The coordinators of each account above one, after the change: they count below too."""
    seen = {name}
    while True:
        new, old = wanted.accounts.get(name, Account()), present.accounts.get(name, Account())
        name = (new.parent if new.parent is not None else old.parent) or ROOT
        if name in seen or name == ROOT:
            return
        seen.add(name)
        new, old = wanted.accounts.get(name, Account()), present.accounts.get(name, Account())
        mine = new.coordinators if new.coordinators is not None else old.coordinators
        yield mine or frozenset()


def _calls(stage: Stage, verb: Words, names: Iterable[str], words: Iterable[str]) -> Iterator[Step]:
    rest = tuple(words)
    for listed in chunks(names):
        yield Step(stage, (*verb, f"name={listed}", *rest))
