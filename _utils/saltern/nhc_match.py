"""LBNL NHC's host matches, for a plan's own lines: which hosts one hits, and which form misleads.

Measured against LBNL NHC 1.4.3's own ``mcheck`` (tests/fixtures/nhc-match.txt). The checker on the
nodes is one file without imports of ours, so it has its own copy; a test compares the two.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable

_ONE = re.compile(r"[-a-zA-Z0-9_]+[0-9]+[-.a-zA-Z0-9]*")
_RANGE = re.compile(r"([-a-zA-Z0-9_]+)\[([0-9]+)-([0-9]+)\]([-.a-zA-Z0-9]*)")


class Unreadable(ValueError):
    """A match that LBNL NHC would not read, or not as its writer means it."""


def hits(match: str, hosts: Iterable[str]) -> list[str]:
    """The hosts that a match hits. Raises Unreadable for a form that misleads."""
    bare = match.removeprefix("!")
    if len(bare) > 1 and bare[0] == bare[-1] == "/":
        try:
            pattern = re.compile(bare[1:-1])
        except re.error as error:
            raise Unreadable(f"no regular expression: {error}") from None
        found = [host for host in hosts if pattern.search(host)]
    elif bare.startswith("{") and bare.endswith("}"):
        parts = bare[1:-1].split(",")
        wrong = [part for part in parts if not (_ONE.fullmatch(part) or _RANGE.fullmatch(part))]
        if wrong:
            raise Unreadable(
                f"{wrong[0]!r} is no range that LBNL NHC reads; one bracket of one range each: "
                "{node[001-003],node007}"
            )
        found = [host for host in hosts if any(_in_range(host, part) for part in parts)]
    elif re.search(r"\[[0-9]{2,}-|\[[0-9]-[0-9]{2,}|,", bare):
        raise Unreadable("a glob's bracket is one character; ranges stand in braces: {node[01-12]}")
    else:
        found = [host for host in hosts if fnmatch.fnmatchcase(host, bare)]
    return [host for host in hosts if host not in found] if match.startswith("!") else found


def _in_range(host: str, part: str) -> bool:
    found = _RANGE.fullmatch(part)
    if found is None:
        return host == part
    before, low, high, after = found.groups()
    if not (host.startswith(before) and host.endswith(after)):
        return False
    digits = host[len(before) : len(host) - len(after)]
    first, last = sorted((int(low), int(high)))
    wide = len(digits) == max(len(low), len(high))
    return digits.isdecimal() and wide and first <= int(digits) <= last
