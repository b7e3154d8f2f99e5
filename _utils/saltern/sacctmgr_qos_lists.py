"""Changes of QOS lists and default QOS in an order in which no association loses its default.

Slurm refuses a call after which an association could not use its default QOS, whoever's list the
call changes. So lists grow first, then the defaults move, then lists shrink.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from saltern import sacctmgr_fields as fields
from saltern.sacctmgr_model import ROOT, Account, Key, Settings, Tree

Words = tuple[str, ...]


@dataclass(frozen=True)
class Waves:
    """The words of one row for each wave; empty for none."""

    first: Words = ()
    defaults: Words = ()
    last: Words = ()


class Lists:
    """Effective QOS lists before and after, and whether any of the changed ones loses a QOS."""

    def __init__(self, wanted: Tree, present: Tree) -> None:
        self._now = {name: _own(account.settings) for name, account in present.accounts.items()}
        self._parents_now = {name: account.parent for name, account in present.accounts.items()}
        self._then = {**self._now}
        self._parents_then: dict[str, str | None] = {**self._parents_now}
        for name, account in wanted.accounts.items():
            if "qos" in account.settings:
                self._then[name] = _own(account.settings)
            if account.parent is not None:
                self._parents_then[name] = account.parent
        self.shrink = any(
            self.shrinks_account(name, account.settings)
            for name, account in wanted.accounts.items()
            if name in present.accounts
        ) or any(
            self.shrinks_user(key, settings, present.associations[key])
            for key, settings in wanted.associations.items()
            if key in present.associations
        )

    def shrinks_account(self, name: str, wanted: Settings) -> bool:
        """Whether an account's list loses a QOS by its own change; one that is given up may, since
        what is above it can still change."""
        if "qos" not in wanted or _own(wanted) == self._now[name]:
            return False
        return not _own(wanted) or bool(self.now(name) - _own(wanted))

    def shrinks_user(self, key: Key, wanted: Settings, present: Settings) -> bool:
        """Whether an association's list loses a QOS by its own change, as for an account."""
        if "qos" not in wanted or _own(wanted) == _own(present):
            return False
        return not _own(wanted) or bool((_own(present) or self.now(key[0])) - _own(wanted))

    def parent_then(self, name: str) -> str | None:
        """The account above one, after the change."""
        return self._parents_then.get(name)

    def now(self, name: str | None) -> frozenset[str]:
        """The list that an account has, its own or an inherited one."""
        return _effective(self._now, self._parents_now, name)

    def then(self, name: str | None) -> frozenset[str]:
        """The list that an account will have."""
        return _effective(self._then, self._parents_then, name)


def _own(settings: Settings) -> frozenset[str]:
    return frozenset(word for word in settings.get("qos", "").split(",") if word)


def _effective(
    own: Mapping[str, frozenset[str]], parents: Mapping[str, str | None], name: str | None
) -> frozenset[str]:
    for _ in range(len(parents) + 1):  # no longer way up than there are accounts
        if not name:
            break
        if own.get(name):
            return own[name]
        name = parents.get(name) if name != ROOT else None
    return frozenset()


def differences(
    table: Mapping[str, fields.Field], wanted: Settings, present: Settings
) -> dict[str, str]:
    """The words of each setting that differs."""
    return {
        key: table[key].words(value, present.get(key, ""))
        for key, value in wanted.items()
        if value != present.get(key, "")
    }


def waves(words: Mapping[str, str], grown: str | None, shrinks: bool, careful: bool) -> Waves:
    """One row's changed words, by wave.

    grown: the old and the new list together, if the new one has what the old has not
    shrinks: whether this row's list loses a QOS
    careful: whether the default has to wait, for example since any list of the tree loses a QOS
    """
    if not careful:
        return Waves(first=tuple(words.values()))
    default = (words["default_qos"],) if "default_qos" in words else ()
    rest = tuple(word for key, word in words.items() if key != "default_qos")
    if not shrinks:
        return Waves(first=rest, defaults=default)
    return Waves(first=(f"QOS={grown}",) if grown else (), defaults=default, last=rest)


def account_waves(name: str, wanted: Account, present: Account, lists: Lists) -> Waves:
    """The waves of an account's association."""
    words = differences(fields.ASSOCIATION, wanted.settings, present.settings)
    shrinks = "qos" in words and lists.shrinks_account(name, wanted.settings)
    new = _own(wanted.settings) or lists.then(lists.parent_then(name))
    # A default in an inherited list waits for the accounts above, and for moves.
    careful = lists.shrink or not ("qos" in words and _own(wanted.settings))
    own = _own(present.settings)
    return waves(words, _grown(lists.now(name), new, own), shrinks, careful)


def user_waves(key: Key, wanted: Settings, present: Settings, lists: Lists) -> Waves:
    """The waves of a user's association."""
    words = differences(fields.ASSOCIATION, wanted, present)
    if not words:
        return Waves()
    shrinks = "qos" in words and lists.shrinks_user(key, wanted, present)
    old = _own(present) or lists.now(key[0])
    new = _own(wanted) or lists.then(key[0])
    return waves(words, _grown(old, new, _own(present)), shrinks, lists.shrink)


def _grown(old: frozenset[str], new: frozenset[str], own: frozenset[str]) -> str | None:
    """The list for the time between; also for who inherits one that may move away meanwhile."""
    return ",".join(sorted(old | new)) if new - old or not own else None
