"""AccountingStorageEnforce in an order that locks nobody out.

Raised when the tree is in place, lowered before it changes: so phase 4 writes only what is both
wanted and enforced already, and phase 7 writes the rest after the tree (docs/design/0004).
"""

from __future__ import annotations

from collections.abc import Iterable

# What each flag brings with it (slurm.conf(5), AccountingStorageEnforce).
_IMPLIED = {
    "associations": (),
    "limits": ("associations",),
    "nojobs": (),
    "nosteps": (),
    "qos": ("associations",),
    "safe": ("limits", "associations"),
    "wckeys": ("associations",),
}


def whole(flags: Iterable[str]) -> list[str]:
    """Flags with all that they imply, sorted."""
    found = {flag.lower() for flag in flags}
    return sorted(found | {more for flag in found for more in _IMPLIED.get(flag, ())})


def cautious(wanted: Iterable[str], text: str) -> list[str]:
    """The wanted flags of which the tree is known to stand them: those that are enforced already.

    text: slurm.conf as it is now; empty if there is none
    """
    return sorted(set(whole(wanted)) & set(enforced(text)))


def enforced(text: str) -> list[str]:
    """What a slurm.conf enforces, with all that it implies."""
    for line in text.splitlines():
        key, separator, value = line.strip().partition("=")
        if separator and key.strip().lower() == "accountingstorageenforce":
            flags = (flag.strip().lower() for flag in value.split(","))
            return whole(flag for flag in flags if flag not in ("", "none"))
    return []
