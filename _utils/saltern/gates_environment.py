"""The gate of phase 5: what the health checks of a host found, in; reasons out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from saltern.problem import Problem

Facts = Mapping[str, Any]
View = Mapping[str, Any]


def environment(facts: Facts, view: View) -> list[Problem]:
    """Why a node's environment does not hold; a host without jobs has nothing to show.

    facts: ``checks``, what ``nhc.run`` returns; ``program`` the health program's faults
    """
    if "checks" not in facts:
        return []
    found = [
        Problem(
            f"health check {check['cause']}",
            check["finding"],
            "a pass",
            "mend it, or correct the plan (docs/health.md)",
        )
        for check in facts["checks"]["checks"]
        if not check["passed"]
    ]
    if not facts["checks"]["checks"]:
        found.append(Problem("/etc/nhc/nhc.conf", "no check for this node", "its type's checks"))
    running = facts["program"]
    if running["interval_s"] != view["health"]["interval_s"]:
        found.append(
            Problem(
                "HealthCheckInterval in the running configuration",
                str(running["interval_s"]),
                str(view["health"]["interval_s"]),
                "run the state p4_scheduler.slurmctld on the controllers",
            )
        )
    return found
