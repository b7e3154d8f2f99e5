"""A plan at a glance: its hosts, and what each role gets in each phase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from saltern import nodeset, roles
from saltern.plan import Plan

_MATCH = "saltern:roles:"


def tables(plan: Plan, top: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """The parts of `salt-run saltern.plan`.

    top: the environment ``base`` of salt/top.sls: {target: [SLS, …]}
    """
    return {
        "cluster": f"{plan.data['cluster']['name']}, {len(plan.hosts)} hosts, "
        f"{plan.data['os']['name']} {plan.data['os']['release']}",
        "hosts": _hosts(plan),
        "roles": _roles(plan, top),
        "partitions": _partitions(plan),
    }


def _hosts(plan: Plan) -> list[dict[str, Any]]:
    entries: dict[str, list[str]] = {}
    for host in plan.hosts.values():
        entries.setdefault(host.entry, []).append(host.name)
    return [
        {
            "hosts": nodeset.fold(names),
            "count": len(names),
            "roles": sorted(plan.hosts[names[0]].roles),
            "node_type": plan.hosts[names[0]].node_type or "",
            "address": plan.data["hosts"][entry].get("address", "by DNS"),
        }
        for entry, names in entries.items()
    ]


def _roles(plan: Plan, top: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Each role of the plan with its components by phase, from the one table that Salt itself
    reads."""
    phases = sorted({phase for target in top.values() for phase, _ in _components(target)})
    used = [role for role in roles.MEANING if plan.with_role(role)]
    rows: list[tuple[str, Sequence[Any]]] = [("every host", top.get("*", []))]
    rows += [(role, top.get(_MATCH + role, [])) for role in used]
    return [
        {
            "role": name,
            **{
                phase: [component for at, component in _components(target) if at == phase]
                for phase in phases
            },
        }
        for name, target in rows
    ]


def phases(top: Mapping[str, Sequence[Any]], roles_of_host: frozenset[str]) -> list[str]:
    """The phases whose gates a host of these roles has, in their order."""
    targets = [top.get("*", []), *(top.get(_MATCH + role, []) for role in roles_of_host)]
    return sorted(
        {phase for target in targets for phase, part in _components(target) if part == "gate"}
    )


def steps(top: Mapping[str, Sequence[Any]], roles_of_host: frozenset[str]) -> dict[str, list[str]]:
    """What a host of these roles gets: {phase: its SLS}, in the order of the phases."""
    found: dict[str, list[str]] = {}
    for target in (top.get("*", []), *(top.get(_MATCH + role, []) for role in roles_of_host)):
        for sls in target:
            if isinstance(sls, str):
                part = found.setdefault(sls.partition(".")[0], [])
                part += [] if sls in part else [sls]
    return {phase: sorted(found[phase]) for phase in sorted(found)}


def _components(target: Sequence[Any]) -> list[tuple[str, str]]:
    """(phase, component), a phase's own name being its gate; gates come last."""
    names = [entry.partition(".") for entry in target if isinstance(entry, str)]
    found = [(phase, component or "gate") for phase, _, component in names]
    return sorted(found, key=lambda pair: pair[1] == "gate")


def _partitions(plan: Plan) -> list[dict[str, Any]]:
    return [
        {
            "partition": name,
            "nodes": nodeset.fold(members),
            "count": len(members),
            "default": "yes" if plan.data["partitions"][name]["default"] else "",
            "max_time": plan.data["partitions"][name]["max_time"],
        }
        for name, members in plan.partitions.items()
    ]
