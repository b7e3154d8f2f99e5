"""Which nodes may be away together, and in which order nodes are maintained."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

DONE = "done"

_MOST = re.compile(r"^([1-9][0-9]{0,5})(%?)$")


class Unclear(Exception):
    """What a person asked for cannot be understood; in words."""


def most(text: str) -> str:
    """How many nodes of a partition may be away, checked: ``2`` or ``10%``. Raises Unclear."""
    found = _MOST.match(text)
    if not found or (found[2] and int(found[1]) > 100):
        raise Unclear(f"most={text}: expected a number of nodes, or a part such as 10%")
    return text


def limit(text: str, size: int) -> int:
    """The nodes of a partition that may be away: a part is rounded down, but never to none.

    text: as ``most`` gives it; size: nodes of the partition
    """
    return max(1, size * int(text[:-1]) // 100) if text.endswith("%") else int(text)


def next_batch(
    to_do: Sequence[str],
    partitions: Mapping[str, Collection[str]],
    text: str,
    away: Collection[str],
) -> list[str]:
    """The nodes that can be maintained now; empty when others use up what may be away.

    to_do: names, in order; partitions: {name: its nodes}; text: as ``most`` gives it
    away: nodes that take no jobs now. Those of them that are to be maintained cost nothing more.
    """
    room = {
        name: limit(text, len(nodes)) - sum(node in away for node in nodes)
        for name, nodes in partitions.items()
    }
    taken = [node for node in to_do if node in away]
    for node in to_do:
        mine = [name for name, nodes in partitions.items() if node in nodes]
        if node not in away and all(room[name] > 0 for name in mine):
            taken.append(node)
            for name in mine:
                room[name] -= 1
    return taken


def batches(
    to_do: Sequence[str],
    partitions: Mapping[str, Collection[str]],
    text: str,
    away: Collection[str],
) -> tuple[list[list[str]], list[str]]:
    """All batches, if every node comes back as it went; and the nodes for which there is no room.

    As ``next_batch``.
    """
    left, gone, found = list(to_do), set(away), []
    while left:
        batch = next_batch(left, partitions, text, gone)
        if not batch:
            break
        found.append(batch)
        left = [node for node in left if node not in batch]
        gone -= set(batch)
    return found, left


def busy(jobs: Mapping[str, Iterable[str]], nodes: Collection[str]) -> dict[str, list[str]]:
    """The nodes that still run jobs: {node: jobs, in words}.

    jobs: {job: all its nodes}
    """
    found: dict[str, list[str]] = {}
    for job, where in jobs.items():
        for node in where:
            if node in nodes:
                found.setdefault(node, []).append(job)
    return found
