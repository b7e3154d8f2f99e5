"""What goes: leaf first, in chunks, never more than the plan names, never under a job.

`delete account` takes everything below it along and names only the account; one that is the
default account of thousands stalls slurmdbd for minutes (FACTS). So associations go first, in
chunks of users, after their default accounts moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from saltern.sacctmgr_diff_users import merged, rows_of
from saltern.sacctmgr_model import ROOT, Key, Policy, Tree, User, depth
from saltern.sacctmgr_steps import Kept, Stage, Step, chunks, grouped

Jobs = Mapping[tuple[str, str], Sequence[str]]  # (account, user): job ids

Words = tuple[str, ...]


@dataclass
class Doomed:
    """What shall go now, and what stays although it shall go."""

    associations: set[Key] = field(default_factory=set)
    users: set[str] = field(default_factory=set)
    accounts: set[str] = field(default_factory=set)
    qos: set[str] = field(default_factory=set)
    resources: set[tuple[str, str]] = field(default_factory=set)
    kept: list[Kept] = field(default_factory=list)
    drains: list[Key] = field(default_factory=list)


def unknown(wanted: Tree, present: Tree, policy: Policy) -> Doomed:
    """What the plan does not know, of what may be touched at all."""
    accounts = {
        name
        for name in present.accounts
        if name not in wanted.accounts and policy.touches_account(name)
    }
    members = {user for _, user, _ in wanted.associations}
    users = {
        name
        for name in present.users
        if name not in wanted.users and name not in members and policy.touches_user(name)
    }
    return Doomed(
        {
            key
            for key in present.associations
            if key not in wanted.associations
            and policy.touches_account(key[0])
            and policy.touches_user(key[1])
        },
        users,
        accounts,
        # normal is what Slurm itself makes, for its root.
        {
            name
            for name in present.qos
            if name not in wanted.qos and policy.touches_qos(name) and name != "normal"
        },
        {key for key in present.resources if key not in wanted.resources},
    )


def listing(found: Doomed) -> list[str]:
    """Names of things, for people."""
    return [
        *(f"account {name}" for name in sorted(found.accounts)),
        *(f"user {name}" for name in sorted(found.users)),
        *(association_name(key) for key in sorted(found.associations)),
        *(f"QOS {name}" for name in sorted(found.qos)),
        *(f"resource {name}@{server}" for name, server in sorted(found.resources)),
    ]


def association_name(key: Key) -> str:
    """An association, for people."""
    return "association " + "/".join(part for part in key if part)


def doomed(wanted: Tree, present: Tree, policy: Policy, jobs: Jobs) -> Doomed:
    """What goes now by the policy, without what jobs, the plan or Slurm hold back."""
    found = _chosen(unknown(wanted, present, policy), wanted, present, policy)
    _hold_for_jobs(found, present, policy, jobs)
    _hold_partition_rows(found, wanted, present)
    _hold_users(found, present)
    _hold_accounts(found, wanted, present, policy)
    _hold_qos(found, wanted, present)
    return found


def _chosen(strange: Doomed, wanted: Tree, present: Tree, policy: Policy) -> Doomed:
    if policy.purge == "all":
        return strange
    if policy.purge == "none":
        return Doomed()
    absent = policy.absent
    named = {
        key
        for key in present.associations
        if key not in wanted.associations
        and (
            key in absent.associations
            or (key[0], "*", "") in absent.associations
            or ((key[0], key[1], "") in absent.associations)
            or key[1] in absent.users
        )
        and policy.touches_account(key[0])
        and policy.touches_user(key[1])
    }
    return Doomed(
        named,
        {name for name in absent.users if name in present.users and policy.touches_user(name)},
        {
            name
            for name in absent.accounts
            if name in present.accounts and policy.touches_account(name)
        },
        {name for name in absent.qos if name in present.qos and policy.touches_qos(name)},
        set(absent.resources & present.resources.keys()),
    )


def _hold_for_jobs(found: Doomed, present: Tree, policy: Policy, jobs: Jobs) -> None:
    for key in sorted(found.associations):
        active = jobs.get(key[:2])
        if not active:
            continue
        found.associations.discard(key)
        listed = ", ".join(list(active)[:5]) + (" …" if len(active) > 5 else "")
        why = f"jobs {listed}"
        if policy.jobs == "drain":
            why += "; no new ones are taken, and it goes when these have ended"
            if present.associations[key].get("max_submit_jobs") != "0":
                found.drains.append(key)
        else:
            why += "; cancel them, or let them end, and run again"
        found.kept.append(Kept(association_name(key), why))


def _hold_partition_rows(found: Doomed, wanted: Tree, present: Tree) -> None:
    """Slurm gives up no single row of a user's default account while another row of it stays."""
    staying: dict[tuple[str, str], int] = {}
    for account, user, partition in [*present.associations, *wanted.associations]:
        if (account, user, partition) not in found.associations:
            staying[account, user] = staying.get((account, user), 0) + 1
    for key in sorted(found.associations):
        if key[:2] not in staying:
            continue
        new = wanted.users.get(key[1], User()).default_account
        old = present.users.get(key[1], User()).default_account
        if key[0] == (new or old):
            found.associations.discard(key)
            why = f"of {key[1]}'s default account Slurm gives up all rows or none"
            found.kept.append(Kept(association_name(key), why))


def _hold_users(found: Doomed, present: Tree) -> None:
    for key in present.associations:
        if key[1] in found.users and key not in found.associations:
            found.users.discard(key[1])


def _hold_accounts(found: Doomed, wanted: Tree, present: Tree, policy: Policy) -> None:
    """An account stays while anything below it stays, or comes to be there."""
    reasons: dict[str, set[str]] = {}
    for account, user, partition in present.associations:
        if (account, user, partition) not in found.associations:
            reasons.setdefault(account, set()).add(f"{user}'s association")
    for key in wanted.associations:
        reasons.setdefault(key[0], set()).add(f"{key[1]}'s association in the plan")
    order = sorted(present.accounts, key=lambda name: -depth(present.accounts, name))
    for name in order:
        stays = name not in found.accounts
        if not stays and name in reasons:
            found.accounts.discard(name)
            below = sorted(reasons[name])
            listed = ", ".join(below[:5]) + (
                f" and {len(below) - 5} more" if len(below) > 5 else ""
            )
            why = f"below it stays what is not named for removal: {listed}"
            found.kept.append(Kept(f"account {name}", why))
            stays = True
        if stays:
            new = wanted.accounts.get(name)
            moved = new is not None and new.parent is not None and policy.touches_account(name)
            parent = new.parent if new is not None and moved else present.accounts[name].parent
            reasons.setdefault(parent or ROOT, set()).add(f"account {name}")


def _hold_qos(found: Doomed, wanted: Tree, present: Tree) -> None:
    """A QOS stays while it is somebody's default."""
    users: dict[str, str] = {}
    for key, settings in present.associations.items():
        if key not in found.associations:
            users[{**settings, **wanted.associations.get(key, {})}.get("default_qos", "")] = (
                association_name(key)
            )
    for name, account in present.accounts.items():
        if name not in found.accounts:
            new = wanted.accounts[name].settings if name in wanted.accounts else {}
            users[{**account.settings, **new}.get("default_qos", "")] = f"account {name}"
    for name in sorted(found.qos & users.keys()):
        found.qos.discard(name)
        found.kept.append(Kept(f"QOS {name}", f"it is the default QOS of {users[name]}"))


def steps(cluster: str, found: Doomed, wanted: Tree, present: Tree, shared: bool) -> Iterator[Step]:
    """The calls, in order: defaults move, associations, users, accounts from the leaves, QOS.

    shared: whether other clusters use the same database, so that only this one's part may go
    """
    where = (f"cluster={cluster}",) if shared else ()
    partial, whole = _by_user(found, wanted, present)
    yield from _drains(cluster, found)
    yield from _default_moves(cluster, partial, found, wanted, present)
    for only, names, accounts in partial:
        words = (f"account={','.join(accounts)}", f"cluster={cluster}", *only)
        for listed in chunks(sorted(names)):
            yield Step(Stage.GONE_USERS, ("delete", "user", "where", f"name={listed}", *words))
    for listed in chunks(sorted(whole)):
        yield Step(Stage.GONE_USERS, ("delete", "user", "where", f"name={listed}", *where))
    layers: dict[int, list[str]] = {}
    for name in found.accounts:
        layers.setdefault(depth(present.accounts, name), []).append(name)
    for _, names in sorted(layers.items(), reverse=True):
        for listed in chunks(sorted(names)):
            yield Step(
                Stage.GONE_ACCOUNTS, ("delete", "account", "where", f"name={listed}", *where)
            )
    if not shared:
        for listed in chunks(sorted(found.qos)):
            yield Step(Stage.GONE_QOS, ("delete", "qos", "where", f"name={listed}"))
    for name, server in sorted(found.resources):
        argv = ("delete", "resource", "where", f"name={name}", f"server={server}", *where)
        yield Step(Stage.GONE_RESOURCES, argv)


Partial = list[tuple[Words, list[str], list[str]]]  # words, users, accounts


def _by_user(found: Doomed, wanted: Tree, present: Tree) -> tuple[Partial, set[str]]:
    """Calls for users of whom some associations go; and the users of whom all go."""
    # What the plan adds is there by then, and no call may hit it.
    everyone = rows_of([*present.associations, *wanted.associations])
    whole = set(found.users)
    going = [key for key in sorted(found.associations) if key[1] not in whole]
    pairs: list[tuple[Words, tuple[str, str]]] = []
    for account, user, partition in going:
        mine = {part for at, part in everyone[user] if at == account}
        gone = {part for part in mine if (account, user, part) in found.associations}
        only = () if gone == mine else (f"partition={partition}",)
        pairs.append((("go", *only), (account, user)))
    calls = [
        (words[1:], names, accounts)
        for words, names, accounts in merged(dict.fromkeys(pairs), everyone)
    ]
    return calls, whole


def _drains(cluster: str, found: Doomed) -> Iterator[Step]:
    """No new jobs under associations that go as soon as their jobs have ended."""
    pairs = (
        ((f"account={account}", f"cluster={cluster}", f"partition={part}"), user)
        for account, user, part in found.drains
    )
    for words, names in grouped(pairs).items():
        for listed in chunks(names):
            argv = ("modify", "user", "where", f"name={listed}", *words, "set", "MaxSubmitJobs=0")
            yield Step(Stage.DRAINS, argv)


def _default_moves(
    cluster: str, partial: Partial, found: Doomed, wanted: Tree, present: Tree
) -> Iterator[Step]:
    """Who loses the default account and keeps others gets one of these; Slurm would refuse."""
    losers = sorted({user for _, names, _ in partial for user in names})
    remaining: dict[str, str] = {}
    for account, user, _ in _staying(found, wanted, present):
        remaining.setdefault(user, account)
    pairs = []
    for user in losers:
        default = present.users.get(user, User()).default_account
        told = wanted.users.get(user, User()).default_account
        lost = any((default, user, key[2]) == key for key in found.associations)
        if lost and not told and user in remaining:
            pairs.append(((f"defaultaccount={remaining[user]}",), user))
    for words, names in grouped(pairs).items():
        for listed in chunks(names):
            where = (f"name={listed}", f"cluster={cluster}")
            yield Step(Stage.DEFAULTS, ("modify", "user", "where", *where, "set", *words))


def _staying(found: Doomed, wanted: Tree, present: Tree) -> Iterable[Key]:
    """Associations after the removal; those that the plan wants first, in its order."""
    return (
        *wanted.associations,
        *(key for key in sorted(present.associations) if key not in found.associations),
    )
