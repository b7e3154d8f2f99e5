"""What every refusal says: where, what was found, what was expected, what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Problem:
    """One reason to stop.

    where: a key path of the plan (``hosts:node01:roles``), a file, or a thing on a host.
    found, expected, do: short phrases without a full stop.
    """

    where: str
    found: str
    expected: str
    do: str = ""

    def __str__(self) -> str:
        advice = f" -> {self.do}" if self.do else ""
        return f"{self.where}: found {self.found}; expected {self.expected}{advice}"


def listing(title: str, problems: Iterable[Problem]) -> str:
    """A title and one line for each problem."""
    return "\n".join([title, *(f"  - {problem}" for problem in problems)])


class PlanError(Exception):
    """The plan cannot be used; carries all the reasons."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        super().__init__(
            listing(f"The plan has {count} problem{'' if count == 1 else 's'}:", self.problems)
        )
