"""Node states of Slurm: one base and any flags, in every spelling, and what each means for drains.

Names: slurm/slurm.h, enum node_states and NODE_STATE_*; ``scontrol --json`` and ``scontrol show``
print them whole and joined by ``+``, sinfo prints words of its own and one character for a flag.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

BASES = frozenset({"UNKNOWN", "DOWN", "IDLE", "ALLOCATED", "ERROR", "MIXED", "FUTURE"})

# What sinfo, or an older Slurm, calls them.
_SPELLINGS = {
    "ALLOC": ("ALLOCATED",),
    "MIX": ("MIXED",),
    "UNK": ("UNKNOWN",),
    "FUTR": ("FUTURE",),
    "NO_RESPOND": ("NOT_RESPONDING",),
    "NPC": ("PERFCTRS",),
    "DRAINED": ("IDLE", "DRAIN"),
    "DRAINING": ("ALLOCATED", "DRAIN"),
    "DRNG": ("ALLOCATED", "DRAIN"),
    "COMP": ("COMPLETING",),
    "FAILG": ("ALLOCATED", "FAIL"),
    "FAILING": ("ALLOCATED", "FAIL"),
    "MAINT": ("MAINTENANCE",),
    "RESV": ("RESERVED",),
    "PLND": ("PLANNED",),
    "INVAL": ("INVALID_REG",),
    "BLOCK": ("BLOCKED",),
    "REBOOT": ("REBOOT_ISSUED",),
    "REBOOT_CANCELED": ("REBOOT_CANCEL",),
    "POW_DN": ("POWERING_DOWN",),
    "POW_UP": ("POWERING_UP",),
}
_SUFFIXES = {
    "*": "NOT_RESPONDING",
    "~": "POWERED_DOWN",
    "#": "POWERING_UP",
    "!": "POWER_DOWN",
    "%": "POWERING_DOWN",
    "$": "MAINTENANCE",
    "@": "REBOOT_ISSUED",
    "^": "REBOOT_REQUESTED",
    "-": "PLANNED",
}

# Beside these flags a drain may be set and lifted.
_HARMLESS = frozenset(
    {
        *("DRAIN", "COMPLETING", "PLANNED", "RESERVED", "CLOUD", "DYNAMIC_NORM", "EXTERNAL"),
        *("NOT_RESPONDING", "BLOCKED", "UNDRAIN", "RESUME", "REBOOT_CANCEL"),
    }
)
# With these the node is Slurm's, or the one's who set it, and comes back by another way.
_SLURMS = {
    "POWERED_DOWN": "it is powered down",
    "POWERING_DOWN": "it is being powered down",
    "POWER_DOWN": "it is about to be powered down",
    "POWERING_UP": "it is being powered up",
    "POWER_UP": "it is being powered up",
    "POWER_DRAIN": "it is being drained to be powered down",
    "MAINTENANCE": "it is in a maintenance reservation",
    "REBOOT_REQUESTED": "Slurm is to reboot it",
    "REBOOT_ISSUED": "Slurm is rebooting it",
    "FAIL": "it is marked as failing",
    "INVALID_REG": "its registration is invalid",
    "DYNAMIC_FUTURE": "it is not in use yet",
    "PERFCTRS": "its performance counters are in use",
}
_SLURMS_BASES = {
    "DOWN": "it is DOWN, and its reason says why",
    "ERROR": "it is in the state ERROR",
    "FUTURE": "it is not in use yet",
}


@dataclass(frozen=True)
class State:
    """One base and its flags, in the order they were printed."""

    base: str
    flags: tuple[str, ...] = ()

    @property
    def drained(self) -> bool:
        """Whether no new job starts there; jobs may still run."""
        return "DRAIN" in self.flags

    @property
    def text(self) -> str:
        """As ``scontrol show node`` prints it."""
        return "+".join([self.base, *self.flags])


def parse(words: str | Sequence[str]) -> State:
    """A state from words, or from a text like ``IDLE+DRAIN``, ``drained*`` or ``down~``."""
    texts = words.split("+") if isinstance(words, str) else words
    found: list[str] = []
    for text in texts:
        word = re.sub(r"[^A-Z0-9_]*$", "", text.strip().upper())
        # One with a suffix that is new to us has a flag that is new to us.
        marks = text.strip()[len(word) :]
        if word:
            found += _SPELLINGS.get(word, (word,))
        found += [_SUFFIXES.get(mark, f"UNKNOWN_MARK_{mark}") for mark in marks]
    base = next((word for word in found if word in BASES), "UNKNOWN")
    return State(base, tuple(dict.fromkeys(word for word in found if word != base)))


def hands_off(state: State) -> str:
    """Why a node is left to Slurm, in words; empty when a drain may be set or lifted."""
    if state.base in _SLURMS_BASES:
        return _SLURMS_BASES[state.base]
    for flag in state.flags:
        if flag in _SLURMS:
            return _SLURMS[flag]
        if flag not in _HARMLESS:
            return f"its state has the flag {flag}, which Saltern does not know"
    return ""
