"""Node sets, by ClusterShell. Only the master has it: a minion gets ranges (`runs`) that need no
parser."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

# A run: consecutive numbers in name and in the last octet of the address, as plain data:
# prefix "node", first 1, last 2, width 2, suffix "", address "10.0.0.21" are node01 and node02.
# width 0 means no zero padding; first None means a name without a number.
Run = dict[str, Any]

_LAST_NUMBER = re.compile(r"^(?P<prefix>.*?)(?P<digits>[0-9]+)(?P<suffix>[^0-9]*)$")
_COMMA_OUTSIDE = re.compile(r",(?![^\[\]]*\])")
_STRANGE = re.compile(r"[^A-Za-z0-9._\-\[\],/]")
_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+)(?:/[0-9]+)?)?")


class NodeSetError(ValueError):
    """Not a node set; the text says why."""


def expand(expression: str) -> list[str]:
    """The names of a node set, in the order in which they are written: they pair with addresses.

    Raises NodeSetError for what is not one, for a name that stands twice, and for numbers in a
    bracket that do not ascend (ClusterShell would sort them, and so pair them with other addresses
    than the reader does).
    """
    strange = _STRANGE.search(expression)
    if strange:
        raise NodeSetError(f"the character {strange[0]!r} has no place in it")
    names: list[str] = []
    for part in _COMMA_OUTSIDE.split(expression):
        for inside in re.findall(r"\[([^\]]*)\]", part):
            _check_ascending(inside)
        try:
            names += NodeSet(part, resolver=RESOLVER_NOGROUP)
        except NodeSetException as error:
            raise NodeSetError(str(error)) from None
    if any(set(name) & set("[]/") for name in names):
        raise NodeSetError("brackets are unbalanced")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise NodeSetError(f"{twice} stands twice")
    return names


def _check_ascending(inside: str) -> None:
    before = -1
    for item in inside.split(","):
        match = _RANGE.fullmatch(item)
        if not match:
            raise NodeSetError(f"{item!r} is no number and no range of numbers")
        low, high = int(match[1]), int(match[2] or match[1])
        if low > high:
            raise NodeSetError(f"the range {item} runs backwards")
        if low <= before:
            raise NodeSetError(f"{item} after {before}: numbers ascend, and each stands once")
        before = high


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


# A name that counts: what stands before the number, the number's text, what stands after.
_Counted = tuple[str, str, str]


def _groups(
    pairs: Sequence[tuple[str, str | None]],
) -> Iterator[list[tuple[str, str | None]]]:
    group: list[tuple[str, str | None]] = []
    before: tuple[_Counted | None, str | None] = (None, None)
    for name, address in pairs:
        parts = _split(name)
        if group and _follows(before[0], parts) and _next_address(before[1]) == address:
            group.append((name, address))
        else:
            if group:
                yield group
            group = [(name, address)]
        before = (parts, address)
    if group:
        yield group


def _split(name: str) -> _Counted | None:
    match = _LAST_NUMBER.match(name)
    return (match["prefix"], match["digits"], match["suffix"]) if match else None


def _width(digits: str) -> int:
    return len(digits) if digits.startswith("0") and len(digits) > 1 else 0


def _follows(one: _Counted | None, two: _Counted | None) -> bool:
    if one is None or two is None or one[0] != two[0] or one[2] != two[2]:
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
    run: Run = {
        "prefix": name,
        "first": None,
        "last": None,
        "width": 0,
        "suffix": "",
        "address": address,
    }
    if parts is not None:
        prefix, digits, suffix = parts
        first = int(digits)
        run.update(
            prefix=prefix,
            first=first,
            last=first + len(group) - 1,
            width=_width(digits),
            suffix=suffix,
        )
    return run
