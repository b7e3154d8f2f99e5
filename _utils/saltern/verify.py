"""What a verification looks at, and what it makes of the answers: rows of check, result, found.

A result is ``ok``, ``failed``, or ``left out``: not looked at, for a reason that is no fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from saltern.node_states import State

OK, FAILED, LEFT_OUT = "ok", "failed", "left out"

Row = dict[str, Any]

# A node with other flags takes no job now, and says why in its state.
_IN_SERVICE = frozenset({"IDLE", "MIXED", "ALLOCATED"})
_HARMLESS = frozenset({"PLANNED", "COMPLETING", "CLOUD", "DYNAMIC_NORM", "EXTERNAL"})
# Broken, and nobody said that it may be.
_BROKEN = frozenset({"DOWN", "ERROR", "UNKNOWN"})
_BROKEN_FLAGS = frozenset({"NOT_RESPONDING", "INVALID_REG"})
# States of a job that has not ended (squeue(1), JOB STATE CODES).
_GOES_ON = frozenset(
    {
        *("PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "REQUEUED", "RESIZING"),
        *("SIGNALING", "STAGE_OUT", "STOPPED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"),
    }
)


def silent(hosts: Sequence[str]) -> list[Row]:
    """The rows of hosts whose minion does not answer."""
    return [_row(f"minion on {host}", FAILED, "no answer") for host in hosts]


def gates(
    phase: str,
    hosts: Sequence[str],
    answers: Mapping[str, Any],
    fold: Callable[[Sequence[str]], str],
) -> list[Row]:
    """The rows of one phase: one for the hosts whose gate is open, one for each other.

    hosts: those that have the phase; answers: what ``saltern_gate.<phase>`` said, of those that
        answered: a list of reasons, or a str, the error of the function itself
    fold: names in short, ``nodeset.fold``, whose library a minion does not have
    """
    rows, opened = [], []
    for host in hosts:
        said = answers.get(host)
        if said == []:
            opened.append(host)
            continue
        found = "no answer from its minion" if said is None else _reasons(said)
        rows.append(_row(f"gate {phase} on {host}", FAILED, found))
    if opened:
        rows.insert(0, _row(f"gate {phase} on {fold(opened)}", OK, "open"))
    return rows


def _reasons(said: Any) -> str:
    return "; ".join(said) if isinstance(said, list) else str(said)


def idle_reason(name: str, state: State, reason: str, partition: str | None) -> Row | None:
    """The row of a node that gets no job, None if it can have one."""
    check = f"job on {name}"
    flags = set(state.flags)
    if state.base in _BROKEN or flags & _BROKEN_FLAGS:
        return _row(check, FAILED, f"{state.text}: {reason or 'no reason'}")
    if not is_in_service(state):
        return _row(check, LEFT_OUT, f"{state.text}: {reason or 'no reason'}")
    if partition is None:
        return _row(check, LEFT_OUT, "in no partition that is up")
    return None


def is_in_service(state: State) -> bool:
    """Whether a node takes jobs, or would if it had room."""
    return state.base in _IN_SERVICE and not set(state.flags) - _HARMLESS


def ended(states: Mapping[str, str], jobs: Iterable[str]) -> bool:
    """Whether accounting has seen the end of each job."""
    return all(job in states and not goes_on(states[job]) for job in jobs)


def goes_on(state: str) -> bool:
    """Whether a job of this state has not ended; ``CANCELLED by 0`` has."""
    return state.split(maxsplit=1)[0] in _GOES_ON if state else True


def job(check: str, state: str | None, waits_for: str, within: float) -> Row:
    """The row of a job.

    state: what accounting has of it; None if it has no row
    waits_for: Slurm's reason, of one that still waits
    within: seconds that it had
    """
    if state is None:
        return _row(check, FAILED, f"no row in accounting after {within:.0f} s")
    if state == "COMPLETED":
        return _row(check, OK, "completed, with its row in accounting")
    if state == "PENDING":
        return _row(check, LEFT_OUT, f"waits ({waits_for or 'no reason'}); it was taken back")
    if goes_on(state):
        return _row(check, FAILED, f"{state} after {within:.0f} s; it was cancelled")
    return _row(check, FAILED, f"{state}, expected COMPLETED")


def summary(rows: Sequence[Row]) -> str:
    """One line for people."""
    counts = {kind: sum(row["result"] == kind for row in rows) for kind in (OK, FAILED, LEFT_OUT)}
    word = "verified" if not counts[FAILED] else "NOT verified"
    listed = ", ".join(f"{number} {kind}" for kind, number in counts.items() if number)
    return f"{word}: {listed}"


def in_order(rows: Sequence[Row]) -> Iterator[Row]:
    """What failed comes last, where a terminal shows it."""
    for kind in (OK, LEFT_OUT, FAILED):
        yield from (row for row in rows if row["result"] == kind)


def _row(check: str, result: str, found: str) -> Row:
    return {"check": check, "result": result, "found": found}
