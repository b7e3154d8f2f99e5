"""The nodes as Slurm shows them to everyone: their states and reasons, from JSON or text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from saltern import drain_reasons, node_states, slurm_answers
from saltern.drain_reasons import Cause
from saltern.node_states import State


@dataclass(frozen=True)
class Node:
    """One node, once, however many partitions it is in.

    user, since: who set the reason, and when (seconds since the epoch, 0 if unknown)
    """

    name: str
    state: State
    reason: str = ""
    user: str = ""
    since: float = 0.0
    comment: str = ""

    @property
    def causes(self) -> list[Cause]:
        """What we say of the node, in its reason and in its comment."""
        _, said = drain_reasons.comment_parts(self.comment)
        return [*drain_reasons.parse(self.reason), *drain_reasons.parse(said)]

    @property
    def owner(self) -> str:
        """Whose the drain or the reason is: ``saltern``, ``slurm``, ``person`` or empty."""
        return drain_reasons.owner(self.reason, self.user, self.state.drained)

    @property
    def is_foreign(self) -> bool:
        """Whether another's drain or reason stands here, which we neither change nor lift."""
        return self.owner not in ("", "saltern")


def nodes(text: str) -> list[Node]:
    """The nodes of `scontrol show nodes`, with or without ``--json``.

    Raises slurm_answers.Unreadable.
    """
    if "NodeName=" in text and not text.lstrip().startswith("{"):
        return [_from_text(block) for block in _blocks(text)]
    return [_from_json(node) for node in slurm_answers.document(text).get("nodes") or []]


@dataclass(frozen=True)
class Glance:
    """One node and the size of its surroundings, from a question about this node alone.

    partition: the largest that it is in, as Slurm writes a list of nodes
    """

    node: Node
    partition: str
    nodes: int


def glance(text: str, name: str) -> Glance | None:
    """A node of `sinfo --nodes NAME --json`, which asks slurmctld for this one node.

    ``scontrol show node NAME`` asks for every node of the cluster (measured with sdiag, 24.11.5).
    None if sinfo does not show it: it is unknown, or in no partition.
    Raises slurm_answers.Unreadable.
    """
    rows = [
        row
        for row in slurm_answers.document(text).get("sinfo") or []
        if row["nodes"]["nodes"] == [name]
    ]
    if not rows:
        return None
    row = max(rows, key=lambda row: int(row["partition"]["nodes"]["total"]))
    node = Node(
        name=name,
        state=node_states.parse(row["node"]["state"]),
        reason=row["reason"]["description"],
        user=row["reason"]["user"],
        since=float(slurm_answers.number(row["reason"]["time"])),
        comment=row["comment"],
    )
    around = row["partition"]["nodes"]
    return Glance(node, around["configured"], int(around["total"]))


def _from_json(node: Mapping[str, Any]) -> Node:
    return Node(
        name=node["name"],
        state=node_states.parse(node["state"]),
        reason=node.get("reason") or "",
        user=node.get("reason_set_by_user") or "",
        since=float(slurm_answers.number(node.get("reason_changed_at", 0))),
        comment=node.get("comment") or "",
    )


def _blocks(text: str) -> Iterator[str]:
    """A block begins where a line begins with NodeName=; a reason's lines are indented."""
    for block in re.split(r"^(?=NodeName=)", text, flags=re.MULTILINE):
        if block.startswith("NodeName="):
            yield block


# The keys that Slurm prints after the reason (slurm_sprint_node_table); one in a reason itself
# stands in the middle of a line.
_AFTER = re.compile(r"^   (?:Comment|Extra|InstanceId|InstanceType|ReservationName)=", re.MULTILINE)
_COMMENT = re.compile(r"^   Comment=(.*)$", re.MULTILINE)


def _from_text(block: str) -> Node:
    state = re.search(r"^ +State=(\S+)", block, re.MULTILINE)
    if state is None:
        raise slurm_answers.Unreadable(f"expected State=, found {block[:200]!r}")
    comment = _COMMENT.search(block)
    _, _, said = block.partition("\n   Reason=")
    reason, user, at = drain_reasons.author(_AFTER.split(said)[0].rstrip())
    return Node(
        name=block[len("NodeName=") :].split(maxsplit=1)[0],
        state=node_states.parse(state[1]),
        reason=reason,
        user=user,
        since=_seconds(at),
        comment=comment[1] if comment else "",
    )


def _seconds(stamp: str) -> float:
    """Slurm prints the local time of the host that asks."""
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except ValueError:
        return 0.0
