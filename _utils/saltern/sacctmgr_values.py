"""Slurm's spelling of limits: what people write and what sacctmgr prints, in one canonical form.

Canonical is text, and empty means "not limited". Sources: sacctmgr(1), Slurm's parse_time.c
(mins2time_str, secs2time_str, time_str2secs) and slurmdb_make_tres_string_from_simple, read in
24.11.5 and compared with its real output.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any


class Unreadable(ValueError):
    """A value that is none of Slurm's."""


NONE = frozenset({"", "-1", "none", "unlimited", "infinite", "invalid", "(null)", "n/a"})

_UNITS = {unit: Decimal(1024) ** power for unit, power in zip("KMGTP", range(-1, 4))}  # noqa: B905 - Python 3.9
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)([KMGTP]?)B?", re.IGNORECASE)
_DAYS = re.compile(r"(?:([0-9]+)-)?([0-9]+)(?::([0-9]+))?(?::([0-9]+))?")


def text(value: Any) -> str:
    """A description or comment as Slurm keeps it: letters of ASCII low, quotes as back quotes."""
    kept = str(value).replace('"', "`").replace("'", "`").strip()
    return "".join(letter.lower() if letter.isascii() else letter for letter in kept)


def number(value: Any) -> str:
    """A count."""
    if str(value).strip().lower() in NONE:
        return ""
    try:
        return str(int(str(value).strip()))
    except ValueError:
        raise Unreadable(f"{value!r} is no whole number") from None


def decimal(value: Any) -> str:
    """A factor; Slurm prints six places."""
    if str(value).strip().lower() in NONE:
        return ""
    try:
        found = Decimal(str(value).strip()).quantize(Decimal("0.000001")).normalize()
    except InvalidOperation:
        raise Unreadable(f"{value!r} is no number") from None
    return f"{found:f}"


def seconds(value: Any, *, plain: int = 60) -> str:
    """A time as seconds.

    plain: what a number alone counts, in seconds; Slurm's limits take minutes
    """
    words = str(value).strip()
    if words.lower() in NONE:
        return ""
    match = _DAYS.fullmatch(words)
    if not match:
        raise Unreadable(f"{value!r} is no time such as 1-12:00:00")
    days, *rest = match.groups()
    parts = [int(part) for part in rest if part is not None]
    if days is not None:  # days-hours[:minutes[:seconds]]
        hours, minutes, secs = (*parts, 0, 0)[:3]
        return str(((int(days) * 24 + hours) * 60 + minutes) * 60 + secs)
    if len(parts) == 1:
        return str(parts[0] * plain)
    if len(parts) == 2:  # minutes:seconds
        return str(parts[0] * 60 + parts[1])
    return str((parts[0] * 60 + parts[1]) * 60 + parts[2])


def minutes(value: Any) -> str:
    """A limit of time as Slurm prints it; parts of a minute count as one (time_str2mins)."""
    found = seconds(value)
    return clock((int(found) + 59) // 60 * 60) if found else ""


def clock(secs: int) -> str:
    """Seconds as Slurm prints them: 1-12:00:00."""
    days, rest = divmod(secs, 86400)
    shown = f"{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}"
    return f"{days}-{shown}" if days else shown


def size_mb(value: Any) -> int:
    """Memory in MiB; a number alone is MiB already, as in Slurm."""
    match = _SIZE.fullmatch(str(value).strip())
    if not match:
        raise Unreadable(f"{value!r} is no amount of memory such as 500G")
    return int(Decimal(match[1]) * _UNITS[match[2].upper() or "M"])


_MEMORY = frozenset({"mem", "gres/gpumem"})


def tres(value: Any) -> str:
    """Counts of trackable resources, sorted: ``cpu=4,mem=1536M``. A map or Slurm's text."""
    if isinstance(value, Mapping):
        pairs: Iterable[tuple[str, Any]] = value.items()
    else:
        words = str(value).strip()
        if words.lower() in NONE:
            return ""
        pairs = [_pair(word) for word in words.split(",") if word.strip()]
    found = {}
    for name, count in pairs:
        if count is None or str(count).strip().lower() in NONE:
            continue
        key = name.strip().lower()
        found[key] = f"{size_mb(count)}M" if key in _MEMORY or key[:3] == "bb/" else number(count)
    return ",".join(f"{key}={found[key]}" for key in sorted(found))


def _pair(word: str) -> tuple[str, str]:
    name, separator, count = word.partition("=")
    if not separator:
        raise Unreadable(f"{word!r} is no resource such as cpu=4")
    return name, count


def names(value: Any) -> str:
    """A set of names, sorted; Slurm's lists have no order, and its names are in lower case."""
    words = value if isinstance(value, (list, tuple, set, frozenset)) else str(value).split(",")
    return ",".join(sorted({str(word).strip().lower() for word in words if str(word).strip()}))


def flags(value: Any) -> str:
    """A set of flags, sorted, in Slurm's spelling."""
    words = value if isinstance(value, (list, tuple, set, frozenset)) else str(value).split(",")
    kept = {str(word).strip() for word in words}
    return ",".join(sorted(word for word in kept if word and word.lower() != "none"))


def shares(value: Any) -> str:
    """Fairshare: a number, or ``parent``; 1 is what Slurm gives when nobody says."""
    words = str(value).strip().lower()
    return "parent" if words == "parent" else number(words)


KINDS: Mapping[str, Callable[[Any], str]] = {
    "text": text,
    "number": number,
    "decimal": decimal,
    "minutes": minutes,
    "seconds": lambda value: _clock_of(seconds(value, plain=1)),
    "tres": tres,
    "names": names,
    "flags": flags,
    "shares": shares,
}


def _clock_of(secs: str) -> str:
    return clock(int(secs)) if secs else ""


@lru_cache(maxsize=65536)
def read(kind: str, shown: str) -> str:
    """The canonical form of what sacctmgr printed; the same few values stand in many rows."""
    return KINDS[kind](shown)


def given(kind: str, value: Any) -> str:
    """The canonical form of a plan's value; null is no limit. Raises Unreadable."""
    return "" if value is None else KINDS[kind](value)
