"""LDIF (RFC 2849), as OpenLDAP's programs print and read it."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping

Attributes = dict[str, list[str]]

# What may stand as it is (RFC 2849, SAFE-STRING); a blank at the end would be lost.
_SAFE = re.compile(
    r"[\x01-\x09\x0b\x0c\x0e-\x1f\x21-\x39\x3b\x3d-\x7f][\x01-\x09\x0b\x0c\x0e-\x7f]*"
)


def parse(text: str) -> list[tuple[str, Attributes]]:
    """The entries of an answer: (dn, {attribute: values}); comments are left out."""
    entries = []
    for block in re.split(r"\n{2,}", _unfolded(text).strip("\n")):
        pairs = [_pair(line) for line in block.split("\n") if line and not line.startswith("#")]
        if not pairs or pairs[0][0] != "dn":
            continue  # what a search says about itself
        found: Attributes = {}
        for name, value in pairs[1:]:
            found.setdefault(name, []).append(value)
        entries.append((pairs[0][1], found))
    return entries


def line(name: str, value: str) -> str:
    """One attribute's line."""
    if _SAFE.fullmatch(value) and not value.endswith(" "):
        return f"{name}: {value}"
    return f"{name}:: {base64.b64encode(value.encode()).decode('ascii')}"


def added(dn: str, attributes: Mapping[str, Iterable[str]]) -> str:
    """The record that adds an entry."""
    lines = [line("dn", dn), "changetype: add"]
    lines += [line(name, value) for name, values in attributes.items() for value in values]
    return "\n".join(lines) + "\n"


def modified(dn: str, parts: Iterable[tuple[str, str, Iterable[str]]]) -> str:
    """The record that changes an entry; parts: (add, delete or replace, attribute, values)."""
    lines = [line("dn", dn), "changetype: modify"]
    for action, name, values in parts:
        lines += [f"{action}: {name}", *(line(name, value) for value in values), "-"]
    return "\n".join(lines) + "\n"


def deleted(dn: str) -> str:
    """The record that removes an entry."""
    return f"{line('dn', dn)}\nchangetype: delete\n"


def _unfolded(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n ", "")


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition(":")
    if value.startswith(":"):
        return name, base64.b64decode(value[1:].strip()).decode("utf-8", errors="replace")
    return name, value.removeprefix(" ")
