"""The commands that a difference needs, in their order: what is a step, a batch and a plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum


class Stage(IntEnum):
    """Steps of one stage do not depend on each other; after each stage Slurm is read again."""

    QOS = 1
    QOS_PREEMPT = 2  # names a QOS that the stage before made
    RESOURCES = 3
    ACCOUNTS = 4  # settings that accounts get, and lists of QOS that grow
    NEW_ACCOUNTS = 5  # one stage whatever their depth: a parent's step comes first
    MOVES = 6
    NEW_USERS = 7
    USERS = 8
    DEFAULTS = 9  # of QOS: the list already holds the new, and still the old one
    COORDINATORS = 10
    DRAINS = 11
    GONE_USERS = 12
    GONE_ACCOUNTS = 13
    QOS_LISTS = 14  # of users, that shrink; whose default was in the way has moved, or is gone
    ACCOUNT_QOS_LISTS = 15  # after those of users, and from the leaves up
    GONE_QOS = 16
    GONE_RESOURCES = 17


REMOVALS = frozenset({Stage.GONE_USERS, Stage.GONE_ACCOUNTS, Stage.GONE_QOS, Stage.GONE_RESOURCES})
# What others stand on: if one of these fails, nothing behind it is tried, and nobody loses an
# association whose successor was not made.
BASIS = frozenset({Stage.QOS, Stage.ACCOUNTS, Stage.NEW_ACCOUNTS, Stage.MOVES, Stage.NEW_USERS})


@dataclass(frozen=True)
class Step:
    """One call: arguments after ``sacctmgr --immediate``."""

    stage: Stage
    argv: tuple[str, ...]

    @property
    def text(self) -> str:
        """The command as a person would type it."""
        return " ".join(["sacctmgr", "-i", *(_quoted(word) for word in self.argv)])


@dataclass(frozen=True)
class Kept:
    """Something that the plan names for removal and that stays for now, and why."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


@dataclass(frozen=True)
class Plan:
    """Steps in order; what stays although it shall go; what the plan does not know."""

    steps: tuple[Step, ...] = ()
    kept: tuple[Kept, ...] = ()
    unknown: tuple[str, ...] = ()
    refused: tuple[str, ...] = field(default=())  # what is wanted of an untouchable


# Names of one call. 1,000 users in one call take 1.5 s (FACTS), far below the time-out, and a call
# that fails holds up no more than these.
CHUNK = 1000


def chunks(names: Iterable[str]) -> Iterator[str]:
    """Names as sacctmgr takes them, so many to a call."""
    listed = list(names)
    for start in range(0, len(listed), CHUNK):
        yield ",".join(listed[start : start + CHUNK])


Group = Mapping[tuple[str, ...], list[str]]


def grouped(pairs: Iterable[tuple[tuple[str, ...], str]]) -> dict[tuple[str, ...], list[str]]:
    """Names by their equal settings; names without any are left out."""
    found: dict[tuple[str, ...], list[str]] = {}
    for words, name in pairs:
        if words:
            found.setdefault(words, []).append(name)
    return found


def _quoted(word: str) -> str:
    plain = all(letter.isalnum() or letter in "_@%+=:,./-" for letter in word)
    return word if plain else "'" + word.replace("'", "'\\''") + "'"
