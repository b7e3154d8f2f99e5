"""Rules of joining: when a host is complete, what a highstate came to, when to try again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Applied = Mapping[str, Any]


class JoinFailed(Exception):
    """A host's join ended; the phase and the reason, for the event and the table."""

    def __init__(self, phase: str, reason: str) -> None:
        super().__init__(reason)
        self.phase = phase
        self.reason = reason


def is_complete(applied: Any, phases: Sequence[str], wanted: str) -> bool:
    """Whether a host's gates were all open with the view that it should have.

    applied: what ``saltern.applied`` answered; anything else (no such function yet) is "no"
    phases: the phases of its roles
    wanted: the digest of its view now
    """
    if not isinstance(applied, Mapping):
        return False
    gates = applied.get("gates") or {}
    return bool(phases) and all(gates.get(phase) == wanted for phase in phases)


def phase_of(state: Mapping[str, Any]) -> str:
    """The phase that a state of a highstate's answer belongs to."""
    return str(state.get("__sls__") or "?").partition(".")[0]


def is_gate(state: Mapping[str, Any]) -> bool:
    """Whether a state is the gate of its phase."""
    return str(state.get("__id__")) == f"{phase_of(state)}: gate"


def words(state: Mapping[str, Any]) -> str:
    """A state's words after its id; a gate's words name the phase themselves."""
    name = "" if is_gate(state) else f"{state.get('__id__')}: "
    return f"{name}{state.get('comment')}"


def states(answer: Any) -> list[Mapping[str, Any]]:
    """The states of a highstate's answer, in their order.

    Raises JoinFailed with Salt's words when it ran none.
    """
    if isinstance(answer, list):
        raise JoinFailed("pillar", "; ".join(str(text) for text in answer))
    if not isinstance(answer, Mapping) or not answer:
        raise JoinFailed("salt", str(answer) if answer else "the highstate gave no answer")
    return sorted(answer.values(), key=lambda state: state.get("__run_num__", 0))


def result(answer: Any) -> dict[str, float]:
    """The seconds that each phase took, from a highstate's answer.

    Raises JoinFailed with the first failed state, or with Salt's words when it ran none.
    """
    ran = states(answer)
    failures = [state for state in ran if state.get("result") is False]
    # One that was not run only waits for one that failed.
    told = [state for state in failures if state.get("__state_ran__") is not False] or failures
    if told:
        first = told[0]
        more = f" (and {len(told) - 1} more)" if len(told) > 1 else ""
        raise JoinFailed(phase_of(first), f"{words(first)}{more}")
    seconds: dict[str, float] = {}
    for state in ran:
        phase = phase_of(state)
        seconds[phase] = seconds.get(phase, 0.0) + float(state.get("duration") or 0) / 1000
    return {phase: round(value, 1) for phase, value in seconds.items()}


def pause(attempts: int, first: float, most: float) -> float:
    """The seconds until the next try after so many failed ones: doubling, up to a bound."""
    return float(min(most, first * 2 ** min(max(attempts - 1, 0), 30)))
