"""When a node leaves service for its health, and comes back: facts in, orders out; no I/O.

The node's own record says what fails here (``drain_record``); Slurm says how the node stands. Each
run brings the second in line with the first, so what was found while slurmctld was away is
delivered by the first run that reaches it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from saltern import drain_reasons, node_states
from saltern.drain_board import Node
from saltern.drain_reasons import DRAINED, FLAPPING, HELD, IN_SERVICE, SUSPECT, WIDESPREAD, Cause
from saltern.drain_record import Record


@dataclass(frozen=True)
class Policy:
    """The plan's numbers; times in seconds."""

    good_results: int = 3
    flaps: int = 4
    flap_window_s: int = 86400
    widespread_share: float = 0.25
    widespread_min_nodes: int = 3
    settle_s: int = 10
    recheck_s: int = 1800

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Policy:
        """The policy in a section of the plan that holds more than it."""
        return cls(**{key: values[key] for key in cls.__dataclass_fields__ if key in values})


@dataclass(frozen=True)
class Decision:
    """What to do now.

    update: arguments of ``scontrol update`` for this node, empty for nothing
    record: the record to keep once the update was taken
    events: (tag, data) to raise once the update was taken
    wait_s: look again after this, with every node in view; 0 for no need
    board: every node must be in view to go on
    left: why the node is left alone, in words
    held_up: it is Slurm's for now, so the result is to be delivered later
    """

    record: Record
    update: Mapping[str, str] = field(default_factory=dict)
    events: tuple[tuple[str, dict[str, Any]], ...] = ()
    wait_s: float = 0.0
    board: bool = False
    left: str = ""
    held_up: bool = False


def decide(
    record: Record,
    node: Node | None,
    policy: Policy,
    now: float,
    board: Sequence[Node] | None = None,
) -> Decision:
    """The one rule.

    node: this node as Slurm has it now; None while slurmctld does not answer
    board: every node of the cluster, when it was asked for
    """
    if node is None:
        return Decision(record.away(now), left="slurmctld does not answer; the result is kept")
    left = why_left(node)
    if left:
        return _left(record, node, left)
    record, events = _resumed_by_hand(record.back(), node)
    marks = {cause.name: cause for cause in node.causes if cause.is_check}
    record = record.kept([name for name in record.open if _stands(record, name, marks)])
    step = _Step(record, node, policy, now, board, marks)
    causes = [cause for cause in node.causes if not cause.is_check]
    causes += [step.judged(name) for name in record.open]
    if step.asks and board is None:
        suspected = _update(node, causes)
        return Decision(record, suspected, tuple(events), step.wait_s, board=True)
    update = _update(node, causes)
    events += _events(node, causes, update, step)
    return Decision(_noted(step, causes), update, tuple(events))


def _stands(record: Record, name: str, marks: Mapping[str, Cause]) -> bool:
    """Whether an open cause is one still: what passed again before it could be told is over (a node
    that booted), unless slurmctld was away: then it is told all the same."""
    return name in marks or not record.open[name].good or record.was_away


def why_left(node: Node) -> str:
    """Why this node's drain is not ours to set or lift; empty when it is."""
    reason = node_states.hands_off(node.state)
    if reason or not node.is_foreign:
        return reason
    who = f"{node.user or 'somebody'}'s" if node.owner == "person" else "Slurm's own"
    said = f": {node.reason}" if node.reason else ", without a reason"
    return f"its {'drain' if node.state.drained else 'reason'} is {who}{said}"


class _Step:
    """What becomes of each open cause, and whether the other nodes must be looked at first."""

    def __init__(
        self,
        record: Record,
        node: Node,
        policy: Policy,
        now: float,
        board: Sequence[Node] | None,
        marks: Mapping[str, Cause],
    ) -> None:
        self.record, self.node, self.policy, self.now = record, node, policy, now
        self.board, self.marks = board, marks
        self.asks = False
        self.wait_s = 0.0
        self.looked_at: list[str] = []  # causes for which the others were looked at now
        self.first: dict[str, list[str]] = {}  # widespread causes that this node reports: nodes

    def judged(self, name: str) -> Cause:
        """An open cause with its kind."""
        opened = self.record.open[name]
        return Cause(name, opened.finding, opened.since, self._kind(name))

    def _kind(self, name: str) -> str:
        mark = self.marks.get(name)
        age = self.now - self.record.open[name].asked
        if mark and mark.kind == FLAPPING:
            return FLAPPING
        # A node that went first looks again for a while: others may follow with the same failure.
        if mark and mark.kind == DRAINED and age > self.policy.recheck_s:
            return DRAINED
        # A hold lasts while the check fails, but a node that alone stays ill is found in the end.
        if mark and mark.kind in (HELD, WIDESPREAD) and age < self.policy.recheck_s:
            return mark.kind
        self.asks = True
        if self.board is None:
            if mark and mark.kind != SUSPECT:
                return mark.kind
            self.wait_s = float(self.policy.settle_s)
            return SUSPECT
        if not mark or mark.kind != DRAINED:
            self.looked_at.append(name)
        return self._kind_among(name, mark)

    def _kind_among(self, name: str, mark: Cause | None) -> str:
        board = self.board or ()
        others = {node.name: [c for c in node.causes if c.name == name] for node in board}
        others.pop(self.node.name, None)
        marked = sorted([self.node.name, *(node for node, causes in others.items() if causes)])
        known = {node.name for node in board if _counts(node)} | {self.node.name}
        enough = len(marked) >= self.policy.widespread_min_nodes
        if enough and len(marked) > self.policy.widespread_share * len(known):
            told = any(c.kind == WIDESPREAD for causes in others.values() for c in causes)
            if mark and mark.kind == WIDESPREAD:
                return WIDESPREAD
            if marked[0] == self.node.name and not told:
                self.first[name] = marked
                return WIDESPREAD
            return HELD
        if mark and mark.kind == DRAINED:
            return DRAINED
        recent = self.record.drains_since(name, self.now - self.policy.flap_window_s)
        return FLAPPING if recent + 1 >= self.policy.flaps else DRAINED


def _counts(node: Node) -> bool:
    """Whether a node counts among all: one that is not there could not fail."""
    absent = {"POWERED_DOWN", "DYNAMIC_FUTURE"}
    return node.state.base != "FUTURE" and not absent & set(node.state.flags)


def _update(node: Node, causes: Sequence[Cause]) -> dict[str, str]:
    """What Slurm is told so that the node stands for these causes; nothing if it does already."""
    out = [cause for cause in causes if cause.kind not in IN_SERVICE]
    kept = [cause for cause in causes if cause.kind in IN_SERVICE]
    update: dict[str, str] = {}
    if out and not (node.state.drained and _same(out, drain_reasons.parse(node.reason))):
        update["reason"] = drain_reasons.text(out)
        if not node.state.drained:
            update["state"] = "DRAIN"
    elif not out and node.state.drained:
        update["state"] = "UNDRAIN"
    words, said = drain_reasons.comment_parts(node.comment)
    if not _same(kept, drain_reasons.parse(said)):
        update["comment"] = drain_reasons.comment(words, kept)
    return update


def _same(wanted: Sequence[Cause], found: Sequence[Cause]) -> bool:
    """Whether the same causes stand there; findings that only changed in their numbers do."""
    there = {(cause.name, cause.kind) for cause in found}
    return there == {(cause.name, cause.kind) for cause in drain_reasons.fitting(wanted)}


def _left(record: Record, node: Node, left: str) -> Decision:
    """Nothing is done; it is told once, if there was something to do."""
    held_up = bool(node_states.hands_off(node.state))
    if not record.open or record.left == left:
        return Decision(replace(record, left=left), left=left, held_up=held_up)
    data = {"left": left, "causes": sorted(record.open), "state": node.state.text}
    events = (("left", data),)
    return Decision(replace(record, left=left), events=events, left=left, held_up=held_up)


def _resumed_by_hand(record: Record, node: Node) -> tuple[Record, list[tuple[str, dict[str, Any]]]]:
    """A drain of ours that somebody lifted: what is well again is forgotten, flaps too."""
    if node.state.drained and drain_reasons.overflows(node.reason):
        return record, []
    there = {cause.name for cause in drain_reasons.parse(node.reason)}
    lifted = sorted(set(record.drained) - there)
    return record.forgiven(lifted), [("lifted", {"causes": lifted})] if lifted else []


def _noted(step: _Step, causes: Sequence[Cause]) -> Record:
    """The record once the update was taken."""
    out = [cause for cause in causes if cause.is_check and cause.kind not in IN_SERVICE]
    record = step.record.noted(
        drained=[cause.name for cause in out],
        flapping=[cause.name for cause in out if cause.kind == FLAPPING],
        now=step.now,
    )
    return replace(record.asked(step.looked_at, step.now), left="")


def _events(
    node: Node, causes: Sequence[Cause], update: Mapping[str, str], step: _Step
) -> list[tuple[str, dict[str, Any]]]:
    """What the master's bus learns: what changed, never what stays."""
    found: list[tuple[str, dict[str, Any]]] = [
        ("widespread", {"cause": name, "nodes": nodes}) for name, nodes in step.first.items()
    ]
    out = [cause for cause in causes if cause.kind not in IN_SERVICE]
    before = {cause.name for cause in drain_reasons.parse(node.reason)}
    fresh = [cause for cause in out if cause.name not in before]
    if fresh and "reason" in update:
        data = {
            "causes": {cause.name: cause.finding for cause in fresh},
            "reason": update["reason"],
            "delivered_late": step.record.was_away,
        }
        found.append(("flapping" if fresh[0].kind == FLAPPING else "drained", data))
    if update.get("state") == "UNDRAIN":
        found.append(("recovered", {"causes": sorted(before), "reason": node.reason}))
    return found
