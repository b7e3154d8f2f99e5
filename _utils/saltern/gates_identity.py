"""The gate of phase 7: what Slurm's accounting and its controller say, in; reasons out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from saltern import enforcement
from saltern.problem import Problem

Facts = Mapping[str, Any]
View = Mapping[str, Any]

_SHOWN = 5


def identity(facts: Facts, view: View) -> list[Problem]:
    """Why this host does not know who may do what; a host without that task has nothing to show.

    facts: ``accounts``, the answer of ``sacctmgr.plan``; ``enforced``, what slurmctld enforces;
        each with an ``error``, and only what the host's roles ask for
    """
    found: list[Problem] = []
    if "accounts" in facts:
        found += _accounts(facts["accounts"])
    if "enforced" in facts:
        found += _enforced(facts["enforced"], view["accounts"]["enforce"])
    return found


def _accounts(answer: Facts) -> Iterator[Problem]:
    if answer["error"]:
        yield Problem("accounting", answer["error"], "an answer of slurmdbd")
        return
    commands = answer["value"]["commands"]
    if commands:
        more = f" and {len(commands) - _SHOWN} more" if len(commands) > _SHOWN else ""
        yield Problem(
            "accounting",
            f"{len(commands)} calls away from the plan: {'; '.join(commands[:_SHOWN])}{more}",
            "associations that equal the plan",
            "run the state p7_identity.accounts here",
        )


def _enforced(answer: Facts, wanted: list[str]) -> Iterator[Problem]:
    if answer["error"]:
        yield Problem("AccountingStorageEnforce", answer["error"], "an answer of slurmctld")
        return
    planned, running = enforcement.whole(wanted), sorted(answer["value"])
    if planned != running:
        yield Problem(
            "AccountingStorageEnforce",
            ", ".join(running) or "none",
            f"{', '.join(planned) or 'none'}, by the plan",
            "run the states p4_scheduler.slurmctld and p7_identity.accounts on the controllers",
        )
