"""A node's own record of its health: which checks fail, since when, and how often it drained."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

FORMAT = 1
_DRAINS_KEPT = 50  # of a cause; more than a plan's flaps can be


@dataclass(frozen=True)
class Result:
    """One check's result. An empty finding is a pass."""

    cause: str
    finding: str = ""


@dataclass(frozen=True)
class Open:
    """A cause from its first failure until enough good results in a row; times in seconds.

    good: good results since the last failure
    asked: when the other nodes were looked at for it, 0 for never
    """

    finding: str
    since: float
    good: int = 0
    asked: float = 0.0


@dataclass(frozen=True)
class Record:
    """What survives from run to run.

    open: the causes that are not over
    drains: cause: when this node drained for it
    drained: the causes of a drain of ours that Slurm took
    flapping: those of them that came and went too often
    away_since: since when slurmctld has not answered, 0 for not at all
    was_away: it did not answer the last time
    left: why the node was left alone the last time
    """

    open: Mapping[str, Open] = field(default_factory=dict)
    drains: Mapping[str, Sequence[float]] = field(default_factory=dict)
    drained: Sequence[str] = ()
    flapping: Sequence[str] = ()
    away_since: float = 0.0
    was_away: bool = False
    left: str = ""

    def seen(self, results: Iterable[Result], good_results: int, now: float) -> Record:
        """The record after a run of the checks.

        A cause that is no longer checked counts as good. One whose check did not run to its end
        must be a failure among the results, never missing.
        """
        failed = {result.cause: result.finding for result in results if result.finding}
        still: dict[str, Open] = {}
        for name, opened in self.open.items():
            if name in failed:
                still[name] = replace(opened, finding=failed[name], good=0)
            elif opened.good + 1 < good_results or self.flaps(name):
                still[name] = replace(opened, good=opened.good + 1)
        for name, finding in failed.items():
            still.setdefault(name, Open(finding, now))
        return replace(self, open=still)

    def flaps(self, name: str) -> bool:
        """Whether a cause came and went too often, so that a person must lift it."""
        return name in self.flapping

    def away(self, now: float) -> Record:
        """slurmctld does not answer."""
        return replace(self, away_since=self.away_since or now, was_away=True)

    def back(self) -> Record:
        """slurmctld answers."""
        return replace(self, away_since=0.0)

    def drains_since(self, name: str, moment: float) -> int:
        """How often this node drained for a cause since a moment."""
        return sum(1 for drain in self.drains.get(name, ()) if drain >= moment)

    def forgiven(self, names: Iterable[str]) -> Record:
        """Somebody resumed the node: a cause that is well now is over, and its flaps are too."""
        lifted = set(names)
        return replace(
            self,
            open={
                name: opened
                for name, opened in self.open.items()
                if name not in lifted or not opened.good
            },
            drains={name: times for name, times in self.drains.items() if name not in lifted},
            flapping=[name for name in self.flapping if name not in lifted],
            drained=[name for name in self.drained if name not in lifted],
        )

    def noted(self, drained: Sequence[str], flapping: Sequence[str], now: float) -> Record:
        """Slurm has the node drained for these causes; each new one is a drain more."""
        drains = {name: list(times) for name, times in self.drains.items()}
        for name in drained:
            if name not in self.drained:
                drains[name] = [*drains.get(name, []), now][-_DRAINS_KEPT:]
        return replace(
            self, drains=drains, drained=list(drained), flapping=list(flapping), was_away=False
        )

    def kept(self, names: Iterable[str]) -> Record:
        """Only these causes stay open."""
        return replace(self, open={name: self.open[name] for name in names})

    def asked(self, names: Iterable[str], now: float) -> Record:
        """The other nodes were looked at for these causes."""
        return replace(
            self, open={**self.open, **{n: replace(self.open[n], asked=now) for n in names}}
        )

    def data(self) -> dict[str, Any]:
        """As plain data, for a file."""
        return {"format": FORMAT, **asdict(self)}

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> Record:
        """From plain data; of another format, an empty one (the next runs find out again)."""
        if data.get("format") != FORMAT:
            return cls()
        values = {key: data[key] for key in cls.__dataclass_fields__ if key in data}
        values["open"] = {name: Open(**opened) for name, opened in data.get("open", {}).items()}
        return cls(**values)
