"""Drains asked for from outside a node (a join, a person's command): one node, one cause, in;
arguments of ``scontrol update`` out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from saltern import drain_reasons
from saltern.drain_board import Node
from saltern.drain_reasons import IN_SERVICE, Cause
from saltern.drain_rules import why_left

# A cause's name has no blank and no mark of a reason of ours in it.
NAME = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_.()/:@+-]*$")


@dataclass(frozen=True)
class Order:
    """left: why the node is left alone, in words; update: empty when it stands so already."""

    update: Mapping[str, str] = field(default_factory=dict)
    left: str = ""


def drain(node: Node, cause: Cause) -> Order:
    """Take a node out of service for one cause more, or tell a cause's newer finding."""
    left = why_left(node)
    if left:
        return Order(left=left)
    there = _out_of_service(node)
    same = next((known for known in there if known.name == cause.name), None)
    if same:
        cause = replace(cause, since=same.since or cause.since, kind=same.kind)
    reason = drain_reasons.text([*(known for known in there if known != same), cause])
    update = {} if reason == node.reason else {"reason": reason}
    return Order(update if node.state.drained else {"state": "DRAIN", "reason": reason})


def resume(node: Node, name: str) -> Order:
    """Take one cause back, every one of ours for ``*``; the last one brings the node back."""
    left = why_left(node)
    if left:
        return Order(left=left)
    there = _out_of_service(node)
    kept = [cause for cause in there if name not in (cause.name, "*")]
    if len(kept) == len(there):
        return Order()
    return Order({"reason": drain_reasons.text(kept)} if kept else {"state": "UNDRAIN"})


def _out_of_service(node: Node) -> list[Cause]:
    causes = drain_reasons.parse(node.reason)
    return [cause for cause in causes if cause.kind not in IN_SERVICE]


def row(node: Node) -> dict[str, Any]:
    """A node for people and programs: state, reason, owner of the drain, causes, since when."""
    return {
        "state": node.state.text,
        "reason": node.reason,
        "owner": node.owner,
        "causes": [
            {
                "name": cause.name,
                "kind": cause.kind or "drained",
                "finding": cause.finding,
                "since": drain_reasons.stamp(cause.since) if cause.since else "",
            }
            for cause in node.causes
        ],
        "since": drain_reasons.stamp(node.since) if node.since and node.reason else "",
        "user": node.user,
    }


def rows(nodes: Sequence[Node]) -> dict[str, dict[str, Any]]:
    """Rows by name, in the order of the names."""
    return {node.name: row(node) for node in sorted(nodes, key=lambda node: node.name)}
