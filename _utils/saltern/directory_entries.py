"""Entries of a directory server, wanted and present, and the LDIF between the two.

The same for slapd's own configuration (cn=config) and for what it serves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from saltern import ldif

Values = Mapping[str, tuple[str, ...]]
Present = Mapping[str, ldif.Attributes]  # by dn_key

# Lists whose order counts.
_ORDERED = frozenset({"olcAccess"})
_NUMBER = re.compile(r"\{-?\d+\}")


@dataclass(frozen=True)
class Entry:
    """What an entry shall be. An attribute that is not given is left alone."""

    dn: str
    exact: Values = field(default_factory=dict)  # the whole list; empty: none
    least: Values = field(default_factory=dict)  # these at least
    first: Values = field(default_factory=dict)  # only when the entry is made


@dataclass(frozen=True)
class Change:
    """One record, and what it does in words without values."""

    said: str
    record: str


def dn_key(dn: str) -> str:
    """A name as it is compared: slapd numbers its own entries, and blanks and case do not count."""
    return re.sub(r"\s*,\s*", ",", _NUMBER.sub("", dn)).lower()


def present(answer: str) -> dict[str, ldif.Attributes]:
    """A search's answer by dn_key."""
    return {dn_key(dn): attributes for dn, attributes in ldif.parse(answer)}


def changes(wanted: Iterable[Entry], there: Present) -> list[Change]:
    """What makes the wanted entries, in their order."""
    found = [_change(entry, there.get(dn_key(entry.dn))) for entry in wanted]
    return [change for change in found if change is not None]


def removals(names: Iterable[str], there: Present) -> list[Change]:
    """What removes the entries of these names, of those that are there."""
    return [Change(f"delete {dn}", ldif.deleted(dn)) for dn in names if dn_key(dn) in there]


def _change(entry: Entry, there: ldif.Attributes | None) -> Change | None:
    if there is None:
        whole = {**entry.first, **entry.least, **entry.exact}
        given = {name: values for name, values in whole.items() if values}
        return Change(f"add {entry.dn}", ldif.added(entry.dn, given))
    # Attribute names have no case.
    have = {name.lower(): values for name, values in there.items()}
    parts: list[tuple[str, str, tuple[str, ...]]] = []
    for name, values in entry.exact.items():
        parts += _parts(name, values, tuple(have.get(name.lower(), ())))
    for name, values in entry.least.items():
        known = {_comparable(name, value) for value in have.get(name.lower(), ())}
        new = tuple(value for value in values if _comparable(name, value) not in known)
        if new:
            parts.append(("add", name, new))
    if not parts:
        return None
    touched = ", ".join(dict.fromkeys(name for _, name, _ in parts))
    return Change(f"change {entry.dn}: {touched}", ldif.modified(entry.dn, parts))


def _parts(
    name: str, wanted: tuple[str, ...], have: tuple[str, ...]
) -> list[tuple[str, str, tuple[str, ...]]]:
    """Values that go and come; a whole new list where single values cannot be named."""
    ours = [_comparable(name, value) for value in wanted]
    theirs = [_comparable(name, value) for value in have]
    if ours == theirs or (name not in _ORDERED and sorted(ours) == sorted(theirs)):
        return []
    if name.startswith("olc"):
        numbered = (
            tuple(f"{{{at}}}{value}" for at, value in enumerate(wanted))
            if name in _ORDERED
            else wanted
        )
        return [("replace", name, numbered)] if wanted or have else []
    gone = tuple(value for value in have if _comparable(name, value) not in ours)
    new = tuple(value for value in wanted if _comparable(name, value) not in theirs)
    return [(action, name, values) for action, values in (("delete", gone), ("add", new)) if values]


def _comparable(name: str, value: str) -> str:
    """A value as it is compared: without slapd's number before it; names of entries as such."""
    if name.startswith("olc"):
        bare = re.sub(r"^\{-?\d+\}", "", value)
        return re.sub(r"\.(la|so)$", "", bare) if name == "olcModuleLoad" else bare
    if name == "member":
        return dn_key(value)
    return value.lower() if name == "objectClass" else value
