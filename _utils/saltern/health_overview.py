"""`salt-run saltern.health`: every node's state, and whose each drain is, as rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from saltern import nodeset

# Alone they are of no interest: a healthy node in service.
_WELL = {"IDLE", "ALLOCATED", "MIXED", "IDLE+PLANNED", "MIXED+PLANNED"}


def tables(
    status: Mapping[str, Mapping[str, Any]], planned: Sequence[str], whole: bool
) -> dict[str, Any]:
    """The parts of the answer.

    status: what ``nhc.status`` returns
    planned: the names of the plan's nodes
    whole: a row for nodes that are well, too
    """
    rows = [_row(name, node) for name, node in status.items()]
    ill = [row for row in rows if row["owner"] or row["state"] not in _WELL or row["watched"]]
    well = [row["node"] for row in rows if row not in ill]
    missing = [name for name in planned if name not in status]
    parts: dict[str, Any] = {
        "summary": f"{len(rows)} nodes, {len(well)} well and in service, {len(ill)} below",
        "nodes": rows if whole else ill,
    }
    if missing:
        parts["not_in_slurm"] = nodeset.fold(missing)
    return parts


def _row(name: str, node: Mapping[str, Any]) -> dict[str, Any]:
    """watched: failures for which the node was not drained (suspect, held)."""
    kept = [cause for cause in node["causes"] if cause["kind"] in ("suspect", "held", "widespread")]
    return {
        "node": name,
        "state": node["state"],
        "owner": node["owner"],
        "since": node["since"],
        "reason": node["reason"],
        "watched": ", ".join(f"{cause['kind']} {cause['name']}" for cause in kept),
    }
