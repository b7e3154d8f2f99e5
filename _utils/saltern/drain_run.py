"""One run of the drain logic on a node: read, decide, tell Slurm; the world is handed in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from saltern import drain_rules
from saltern.drain_board import Node
from saltern.drain_record import Record, Result
from saltern.drain_rules import Decision, Policy


class Away(Exception):
    """slurmctld did not answer, or refused."""


class World(Protocol):
    """What a run needs of its node; each may raise Away."""

    name: str

    def now(self) -> float:
        """Seconds since the epoch."""

    def node(self) -> Node:
        """This node as Slurm has it."""

    def board(self) -> Sequence[Node]:
        """The nodes of the cluster, or a sample of a large one."""

    def closer(self, board: Sequence[Node]) -> Sequence[Node]:
        """A board that tells who of all is the first; the same one if it does already."""

    def update(self, values: Mapping[str, str]) -> None:
        """``scontrol update`` of this node."""

    def wait(self, seconds: float) -> None:
        """Give other nodes time to show the same failure."""

    def keep(self, record: Record) -> None:
        """Make a record survive."""

    def tell(self, tag: str, data: Mapping[str, Any]) -> None:
        """An event for the master's bus."""


def run(record: Record, results: Iterable[Result], policy: Policy, world: World) -> Decision:
    """One run after the checks; returns the last decision, whose record was kept."""
    record = record.seen(results, policy.good_results, world.now())
    world.keep(record)  # what was found survives whatever hangs from here on
    try:
        decision = _decided(record, policy, world)
    except Away as error:
        decision = drain_rules.decide(record, None, policy, world.now())
        decision = Decision(decision.record, left=f"{decision.left} ({error})")
    world.keep(decision.record)
    for tag, data in decision.events:
        world.tell(tag, data)
    return decision


def _decided(record: Record, policy: Policy, world: World) -> Decision:
    decision = drain_rules.decide(record, world.node(), policy, world.now())
    told = list(decision.events)
    if decision.update:
        world.update(decision.update)
    if decision.board:
        world.keep(decision.record)
        if decision.wait_s:
            world.wait(decision.wait_s)
        # Also this node's own state is read anew: a person may have come in the meantime.
        board = world.board()
        mine = next((node for node in board if node.name == world.name), None)
        if mine is None:
            raise Away(f"slurmctld has no node {world.name}")
        record = decision.record
        decision = drain_rules.decide(record, mine, policy, world.now(), board)
        if any(tag == "widespread" for tag, _ in decision.events):
            whole = world.closer(board)
            decision = drain_rules.decide(record, mine, policy, world.now(), whole)
        if decision.update:
            world.update(decision.update)
    events = (*told, *(event for event in decision.events if event not in told))
    return replace(decision, events=events)
