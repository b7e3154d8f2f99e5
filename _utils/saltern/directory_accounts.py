"""Accounts whose members are groups of the directory: rules in, a tree out.

What the directory says comes as a snapshot that `taken` has accepted, never straight from it: an
answer of nobody, or of far fewer than yesterday, must not empty Slurm.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from saltern import directory_entries, sacctmgr_wanted
from saltern.directory_entries import dn_key
from saltern.problem import Problem
from saltern.sacctmgr_model import Absent, Account, Key, Policy, Settings, Tree, User
from saltern.sacctmgr_wanted import lower

Section = Mapping[str, Any]  # the plan's accounts:directory
Groups = Mapping[str, Sequence[str]]  # group: user names

_DAY_S = 86400
# What accounting takes as a user's name (schema.json, slurm_name).
_NAME = re.compile(r"[a-z0-9_][a-z0-9_.@+-]{0,63}")


def read(people: str, groups: str, layout: Mapping[str, str]) -> tuple[list[str], Groups]:
    """The user names, and the groups with their members, of two answers in LDIF.

    A member that is no user of the directory's (a group within the group) is left out.
    """
    by_dn = {
        dn: attributes[layout["user_name"]][0]
        for dn, attributes in directory_entries.present(people).items()
        if attributes.get(layout["user_name"])
    }
    found: dict[str, Sequence[str]] = {}
    for attributes in directory_entries.present(groups).values():
        for name in attributes.get(layout["group_name"], [])[:1]:
            listed = attributes.get(layout["member"], [])
            if layout["member"] != "memberUid":
                listed = [by_dn[dn_key(dn)] for dn in listed if dn_key(dn) in by_dn]
            found[name] = sorted(set(listed))
    return sorted(by_dn.values()), found


def chosen(section: Section, groups: Groups) -> Iterator[tuple[str, str, Section, str]]:
    """(group, account, rule, group of coordinators) of each group that a rule means.

    Rules in the plan's order; a group is the first rule's that fits.
    """
    seen: set[str] = set()
    for pattern, rule in section["groups"].items():
        for name in sorted(groups):
            fit = _pattern(pattern).fullmatch(name)
            if not fit or name in seen:
                continue
            seen.add(name)
            star = fit["star"] if "*" in pattern else ""
            account = lower(rule["account"].replace("*", star))
            yield name, account, rule, rule.get("coordinators", "").replace("*", star)


def taken(
    section: Section, groups: Groups, last: Mapping[str, Any], now: float, fewer: bool = False
) -> tuple[dict[str, Any], list[Problem]]:
    """The snapshot of what the directory says now, and why it may not take the last one's place.

    last: the snapshot before, empty if there was none
    now: seconds since 1970
    fewer: a person said that so few are right
    """
    kept: dict[str, Sequence[str]] = {}
    for name, _, _, leads in chosen(section, groups):
        kept[name] = groups[name]
        if leads:
            kept[leads] = groups.get(leads, [])
    count = len({user for name, *_ in chosen(section, groups) for user in groups[name]})
    looks = [list(pair) for pair in last.get("counts", [])]
    # The last one counts however old it is: a directory may be away for longer than a day.
    recent = [pair for pair in looks if now - pair[0] < _DAY_S] or looks[-1:]
    most = max((number for _, number in recent), default=0)
    # One may always leave: of four people one is more than a usual share.
    least = min(-(-most * section["at_least"] // 100), most - 1)
    problems = list(_missing(section, groups, last.get("groups", {})))
    if not count:
        problems.append(
            Problem("the directory", "nobody in the groups of accounts:directory", "somebody")
        )
    elif count < least and not fewer:
        share = f"by at_least ({section['at_least']} %) of the {most} of the last day"
        problems.append(
            Problem(
                "the directory",
                f"{count} people in the groups of accounts:directory",
                f"at least {least}, {share}",
                "if so many really left: salt-run saltern.sync_accounts accept_fewer=True",
            )
        )
    counts = [[now, count]] if fewer else [*recent, [now, count]]
    asked = looks_for(section)
    return {"groups": kept, "rules": asked, "taken": now, "counts": counts}, problems


def looks_for(section: Section) -> dict[str, str]:
    """The groups that a look asks for, each with that of its coordinators; a look for others is
    none for these."""
    return {pattern: rule.get("coordinators", "") for pattern, rule in section["groups"].items()}


def _missing(section: Section, groups: Groups, before: Groups) -> Iterator[Problem]:
    for pattern in section["groups"]:
        if pattern not in groups and pattern in before:
            yield Problem(
                f"accounts:directory:groups:{pattern}",
                "no such group in the directory any more",
                f"it, with {len(before[pattern])} people at the last look",
                "was it renamed? Then rename it in the plan; else take it out of the plan",
            )


def tree(section: Section, snapshot: Mapping[str, Any]) -> Tree:
    """What the directory wants of accounting."""
    groups: Groups = snapshot["groups"]
    accounts: dict[str, Account] = {}
    associations: dict[Key, Settings] = {}
    users: dict[str, User] = {}
    for name, account, rule, leads in chosen(section, groups):
        members = names_of(groups[name])
        where = f"accounts:directory:groups:{name}"
        made = sacctmgr_wanted.account(lower(rule.get("parent", "root")), rule, where)
        if leads:
            made = replace(made, coordinators=frozenset(names_of(groups.get(leads, []))))
        accounts.setdefault(account, made)
        for user in members:
            associations[account, user, ""] = {}
            users.setdefault(user, User(default_account=account))
    # Slurm takes as coordinators only users that it knows.
    for name, found in accounts.items():
        if found.coordinators is not None:
            accounts[name] = replace(found, coordinators=found.coordinators & users.keys())
    return Tree(accounts, users, associations)


def names_of(members: Sequence[str]) -> list[str]:
    """Members as Slurm names them; those whose names it cannot hold are left out."""
    return [lower(name) for name in members if _NAME.fullmatch(lower(name))]


def strange(snapshot: Mapping[str, Any]) -> list[str]:
    """Members whose names Slurm's accounting cannot hold."""
    everyone = {user for members in snapshot["groups"].values() for user in members}
    return sorted(user for user in everyone if not _NAME.fullmatch(lower(user)))


def with_leavers(
    policy: Policy, section: Section, snapshot: Mapping[str, Any], wanted: Tree, present: Tree
) -> Policy:
    """The policy, with those who left a group whose rule says `leaving: remove`."""
    strict = {
        account
        for _, account, rule, _ in chosen(section, snapshot["groups"])
        if rule["leaving"] == "remove"
    }
    gone = frozenset(
        key for key in present.associations if key[0] in strict and key not in wanted.associations
    )
    left = frozenset(key[1] for key in gone) - wanted.users.keys()
    others = {key[1] for key in present.associations if key not in gone}
    absent = policy.absent
    return replace(
        policy,
        purge="listed" if policy.purge == "none" else policy.purge,
        absent=Absent(
            absent.accounts,
            absent.users | (left - others),
            absent.associations | gone,
            absent.qos,
            absent.resources,
        ),
    )


def _pattern(text: str) -> re.Pattern[str]:
    before, star, after = text.partition("*")
    middle = "(?P<star>.+)" if star else ""
    return re.compile(re.escape(before) + middle + re.escape(after))
