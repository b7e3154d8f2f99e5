"""Node sets, by ClusterShell. Only the master has it: a minion gets ranges (`runs`) that need no
parser."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from ClusterShell.NodeSet import NodeSet, NodeSetException, NodeSetParseError

# A run: consecutive numbers in name and in the last octet of the address, as plain data:
# prefix "node", first 1, last 2, width 2, suffix "", address "10.0.0.21" are node01 and node02.
# width 0 means no zero padding; first None means a name without a number.
Run = dict[str, Any]

_LAST_NUMBER = re.compile(r"^(?P<prefix>.*?)(?P<digits>[0-9]+)(?P<suffix>[^0-9]*)$")
_BACKWARDS = re.compile(r"([0-9]+)-([0-9]+)")


class NodeSetError(ValueError):
    """Not a node set; the text says why."""


def expand(expression: str) -> list[str]:
    """The names of a node set, in ClusterShell's order.

    Raises NodeSetError for what is not one, and for a range that runs backwards.
    """
    for inside in re.findall(r"\[([^\]]*)\]", expression):
        for low, high in _BACKWARDS.findall(inside):
            if int(low) > int(high):
                raise NodeSetError(f"the range {low}-{high} runs backwards")
    try:
        names = list(NodeSet(expression))
    except (NodeSetParseError, NodeSetException) as error:
        raise NodeSetError(str(error)) from None
    if any(set(name) & set("[]{},") for name in names):
        raise NodeSetError(f"{expression!r} has unbalanced brackets")
    return names


def fold(names: Iterable[str]) -> str:
    """The shortest node set of these names, for people."""
    return str(NodeSet.fromlist(list(names)))


def runs(pairs: Sequence[tuple[str, str | None]]) -> list[Run]:
    """Names with their addresses as runs.

    ClusterShell folds sets, not pairs, so the pairs are joined here while both count up together. A
    run never
    has more than one number, because Slurm expands three brackets in another order than
    ClusterShell does.
    """
    return [_run(group) for group in _groups(pairs)]


def _groups(
    pairs: Sequence[tuple[str, str | None]],
) -> Iterator[list[tuple[str, str | None]]]:
    if not pairs:
        return
    group = [pairs[0]]
    for before, after in pairwise(pairs):
        if _follows(before[0], after[0]) and _next_address(before[1]) == after[1]:
            group.append(after)
        else:
            yield group
            group = [after]
    yield group


def _split(name: str) -> tuple[str, str, str] | None:
    match = _LAST_NUMBER.match(name)
    return (match["prefix"], match["digits"], match["suffix"]) if match else None


def _width(digits: str) -> int:
    return len(digits) if digits.startswith("0") and len(digits) > 1 else 0


def _follows(before: str, after: str) -> bool:
    one, two = _split(before), _split(after)
    if one is None or two is None or (one[0], one[2]) != (two[0], two[2]):
        return False
    return f"{int(one[1]) + 1:0{_width(one[1])}d}" == two[1]


def _next_address(address: str | None) -> str | None:
    if address is None:
        return None
    network, _, last = address.rpartition(".")
    return f"{network}.{int(last) + 1}"


def _run(group: Sequence[tuple[str, str | None]]) -> Run:
    name, address = group[0]
    parts = _split(name)
    if parts is None:
        return {
            "prefix": name,
            "first": None,
            "last": None,
            "width": 0,
            "suffix": "",
            "address": address,
        }
    prefix, digits, suffix = parts
    first = int(digits)
    return {
        "prefix": prefix,
        "first": first,
        "last": first + len(group) - 1,
        "width": _width(digits),
        "suffix": suffix,
        "address": address,
    }
