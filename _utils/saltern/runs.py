"""Ranges of hosts as the view carries them (made by nodeset.runs on the master), turned into text
without a parser."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Run = Mapping[str, Any]


def count(run: Run) -> int:
    """How many hosts a run has."""
    return 1 if run["first"] is None else int(run["last"] - run["first"] + 1)


def hosts(run: Run) -> Iterator[tuple[str, str | None]]:
    """Each host of a run with its address."""
    if run["first"] is None:
        yield run["prefix"], run["address"]
        return
    for offset in range(count(run)):
        yield _name(run, run["first"] + offset), _address(run, offset)


def names(run: Run) -> str:
    """The run as Slurm writes it: one name, or one bracket."""
    return _bracketed(
        run["prefix"],
        None if run["first"] is None else (run["first"], run["last"]),
        run["width"],
        run["suffix"],
    )


def addresses(run: Run) -> str | None:
    """The run's addresses in the same form and order."""
    if run["address"] is None:
        return None
    network, _, last = run["address"].rpartition(".")
    return _bracketed(f"{network}.", (int(last), int(last) + count(run) - 1), 0, "")


def _bracketed(prefix: str, span: tuple[int, int] | None, width: int, suffix: str) -> str:
    if span is None:
        return f"{prefix}{suffix}"
    low, high = (f"{number:0{width}d}" for number in span)
    return f"{prefix}{low}{suffix}" if low == high else f"{prefix}[{low}-{high}]{suffix}"


def _name(run: Run, number: int) -> str:
    return f"{run['prefix']}{number:0{run['width']}d}{run['suffix']}"


def _address(run: Run, offset: int) -> str | None:
    if run["address"] is None:
        return None
    network, _, last = run["address"].rpartition(".")
    return f"{network}.{int(last) + offset}"
