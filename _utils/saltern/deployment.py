"""A deployment: the phases across the cluster, one after the other, and what each host came to.

A host's cell in the table says ``ok``, how many states changed or would, or what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from saltern import joins

OK, WAITS, RUNS, SILENT, NONE = "ok", "waits", "runs", "silent", ""
CLOSED, FAILED, OLDER = "closed", "failed", "older"

# A host's cells by phase; one without a phase has no cell of it.
Cells = dict[str, str]


@dataclass
class Result:
    """What a run of states came to, in one phase of one host."""

    changes: int = 0
    """States that changed something; in a dry run, that would, or whose gate is not open yet."""
    problems: list[str] = field(default_factory=list)
    is_gate: bool = False
    """Whether the gate itself is among the problems."""

    @property
    def is_done(self) -> bool:
        """Whether nothing was to do."""
        return not self.changes and not self.problems

    def word(self, verb: str) -> str:
        """The cell. verb: of the changes, ``changed`` or ``to change``."""
        if self.problems:
            return CLOSED if self.is_gate else FAILED
        return f"{self.changes} {verb}" if self.changes else OK


def results(answer: Any) -> dict[str, Result]:
    """What a host's answer says of each phase.

    Raises joins.JoinFailed with Salt's words when it ran no state.
    """
    found: dict[str, Result] = {}
    waiting: dict[str, int] = {}
    for state in joins.states(answer):
        phase = joins.phase_of(state)
        result = found.setdefault(phase, Result())
        if state.get("result") is False:
            if state.get("__state_ran__") is False:
                waiting[phase] = waiting.get(phase, 0) + 1
                continue
            result.problems.append(joins.words(state))
            result.is_gate |= joins.is_gate(state)
        elif state.get("result") is None or state.get("changes"):
            result.changes += 1
    for phase, count in waiting.items():
        if not found[phase].problems:
            found[phase].problems = [f"{count} states were not run, because others failed"]
    return found


def first_to_do(phases: Sequence[str], dry: Mapping[str, Mapping[str, Result] | None]) -> str:
    """The first phase in which any host has something to do; empty when none has.

    dry: by host, what a dry run came to; None for a host that could not make one: it is new
    """
    for phase in phases:
        for found in dry.values():
            if found is None or not found.get(phase, Result()).is_done:
                return phase
    return ""


def first_older(phases: Sequence[str], standings: Iterable[Cells]) -> str:
    """The first phase whose gate any host has not passed with this plan and tree; empty when all
    have. A dry run sees no difference there, but only a run proves it, and is what ``standing``
    goes by."""
    for phase in phases:
        if any(mine.get(phase, OK) != OK for mine in standings):
            return phase
    return ""


class UnknownPhase(Exception):
    """A phase that the cluster does not have, in words."""


def phase(name: str, phases: Sequence[str]) -> str:
    """A phase by its name or its start: ``p4_scheduler``, ``p4``, ``4``. Raises UnknownPhase."""
    wanted = name if not name.isdigit() else f"p{name}"
    found = [one for one in phases if one == wanted or one.partition("_")[0] == wanted]
    if len(found) != 1:
        raise UnknownPhase(f"found the phase {name!r}; expected one of {', '.join(phases)}")
    return found[0]


def table(
    cells: Mapping[str, Cells], phases: Sequence[str], fold: Callable[[Sequence[str]], str]
) -> list[dict[str, str]]:
    """Rows of hosts and phases; hosts whose cells are the same share one.

    fold: names in short, ``nodeset.fold``
    """
    alike: dict[tuple[str, ...], list[str]] = {}
    for host, mine in cells.items():
        key = tuple(mine.get(phase, NONE) or NONE for phase in phases)
        alike.setdefault(key, []).append(host)
    return [
        {"hosts": fold(names), **dict(zip(phases, key, strict=True))}
        for key, names in alike.items()
    ]


def in_words(words: Mapping[str, str], fold: Callable[[Sequence[str]], str]) -> str:
    """What the hosts came to in one phase, in a line. words: each host's cell"""
    hosts: dict[str, list[str]] = {}
    for host, word in words.items():
        hosts.setdefault(word, []).append(host)
    return ", ".join(f"{word} on {fold(names)}" for word, names in hosts.items())


def standing(applied: Any, phases: Iterable[str], wanted: str) -> Cells:
    """How a host stands: each gate as it was left by the last run that reached it.

    applied: what ``saltern.applied`` answered, None if nothing
    wanted: the digest of the host's view now, of plan and tree
    ``ok`` is a gate that was open with this very plan and tree, ``older`` with others.
    """
    if applied is None:
        return dict.fromkeys(phases, SILENT)
    gates = applied.get("gates", {}) if isinstance(applied, Mapping) else {}
    return {
        phase: CLOSED if phase not in gates else OK if gates[phase] == wanted else OLDER
        for phase in phases
    }
