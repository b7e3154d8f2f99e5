"""Carrying out a plan: call by call, reading back, until nothing is left or something fails.

sacctmgr's exit status and words do not tell what happened (1 for "already so", 0 for half done),
so only what is read afterwards counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from saltern.sacctmgr_model import Tree
from saltern.sacctmgr_steps import BASIS, Plan, Stage, Step

# A pass can show what the one before hid, for example a coordinator under a removed one, and do
# what was in the way of something that went in it.
PASSES = 3


class Unreadable(Exception):
    """Slurm could not be asked what is there now."""


@dataclass(frozen=True)
class Said:
    """What a call said."""

    retcode: int
    words: str
    timed_out: bool = False


@dataclass
class Report:
    """What was done and what was not; plain data by ``as_data``."""

    done: list[str] = field(default_factory=list)
    failed: list[dict[str, str]] = field(default_factory=list)  # command, said
    interrupted: str = ""
    left: list[str] = field(default_factory=list)  # commands that were not reached
    kept: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether everything that was to be done is done."""
        return not (self.failed or self.interrupted or self.left)

    def as_data(self) -> Mapping[str, Any]:
        """For Salt."""
        return asdict(self)


Read = Callable[[], Tree]
Make = Callable[[Tree], Plan]
Call = Callable[[Step], Said]


def reconcile(read: Read, make: Make, call: Call) -> Report:
    """Make Slurm what the plan wants.

    read: what is there; raises Unreadable
    make: the plan from that
    call: runs one step
    """
    report = Report()
    todo = make(read())
    try:
        for _ in range(PASSES):
            if not todo.steps:
                break
            before = len(report.done)
            report.failed = []
            todo = _one_pass(todo, read, make, call, report)
            if len(report.done) == before:
                break
    except Unreadable as error:
        report.interrupted = str(error)
    failed = {failure["command"] for failure in report.failed}
    report.left = [step.text for step in todo.steps if step.text not in failed | set(report.done)]
    report.kept = [str(kept) for kept in todo.kept]
    report.unknown = list(todo.unknown)
    report.refused = list(todo.refused)
    return report


def _one_pass(todo: Plan, read: Read, make: Make, call: Call, report: Report) -> Plan:
    """Each stage once, in order; ends early when a stage on which others stand failed."""
    for stage in Stage:
        steps = [step for step in todo.steps if step.stage == stage]
        if not steps:
            continue
        doubted = _stage(steps, read, make, call, report)
        todo = make(read())
        open_calls = {step.argv for step in todo.steps}
        failed = [(step, said) for step, said in doubted if step.argv in open_calls]
        report.done += [step.text for step, _ in doubted if step.argv not in open_calls]
        report.failed += [{"command": step.text, "said": said.words} for step, said in failed]
        if failed and stage in BASIS:
            return todo
    return todo


def _stage(
    steps: list[Step], read: Read, make: Make, call: Call, report: Report
) -> list[tuple[Step, Said]]:
    """Run steps; returns those of which only reading back can tell. A call that failed is looked
    into at once: slurmdbd may be away, and the rest would fail one by one."""
    doubted: list[tuple[Step, Said]] = []
    for step in steps:
        said = call(step)
        doubted.append((step, said))
        if said.retcode == 0 or said.timed_out:
            if said.timed_out:
                raise _timed_out(doubted, report, said)
            continue
        try:
            still = {other.argv for other in make(read()).steps}
        except Unreadable as error:
            report.done += [done.text for done, it in doubted if it.retcode == 0]
            report.failed.append({"command": step.text, "said": said.words})
            raise Unreadable(str(error)) from None
        if step.argv in still and step.stage in BASIS:
            break
    return doubted


def _timed_out(doubted: list[tuple[Step, Said]], report: Report, said: Said) -> Unreadable:
    report.done += [step.text for step, it in doubted if not it.timed_out]
    report.failed.append({"command": doubted[-1][0].text, "said": said.words})
    return Unreadable("a call did not end in time, and slurmdbd may still be at work on it")
