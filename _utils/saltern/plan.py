"""The plan: schema, defaults and cross-checks, into one object. Runs on the master."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from saltern import nodeset, plan_checks, schema
from saltern.problem import PlanError, Problem

Data = Mapping[str, Any]


@dataclass(frozen=True)
class Host:
    """One host of the plan."""

    name: str
    entry: str  # its key under `hosts`
    roles: frozenset[str]
    address: str | None
    node_type: str | None
    sound: bool = True  # False: known by name only, since its entry has problems
    elastic: bool = False  # known by a pattern, not by name


@dataclass(frozen=True)
class Plan:
    """A plan without problems: data with every default, hosts by name in the plan's order."""

    data: dict[str, Any]
    hosts: dict[str, Host]
    partitions: dict[str, list[str]]  # the node names of each partition

    def host(self, minion_id: str) -> Host | None:
        """The host that a minion id names, declared or by an elastic pattern; None for others."""
        if minion_id in self.hosts:
            return self.hosts[minion_id]
        for group, fields in self.data["elastic"].items():
            if fnmatch.fnmatchcase(minion_id, fields["ids"]):
                given = frozenset(fields["roles"])
                return Host(minion_id, group, given, None, fields["node_type"], elastic=True)
        return None

    def with_role(self, role: str) -> list[Host]:
        """The hosts that have a role, in the plan's order."""
        return [host for host in self.hosts.values() if role in host.roles]

    @cached_property
    def runs(self) -> list[nodeset.Run]:
        """All hosts with their addresses; the same for every view."""
        return nodeset.runs([(host.name, host.address) for host in self.hosts.values()])


# Sections of named entries. One that the schema refuses is None while the rest is checked, since
# others may speak of it.
ENTRIES = ("hosts", "node_types", "partitions")


def resolve(plan_schema: Data, raw: Any) -> Plan:
    """The plan that these pillar data mean. Raises PlanError with every problem at once."""
    faults = schema.faults(plan_schema, raw)
    found = [fault.problem for fault in faults]
    if not isinstance(raw, dict):
        raise PlanError(found)
    # What the schema refuses is left out, so that the checks can say everything about the rest.
    data = schema.with_defaults(
        plan_schema, schema.usable(plan_schema, raw, ENTRIES) if faults else raw
    )
    hosts, problems = _hosts(data.get("hosts", {}), raw)
    found += problems
    partitions, problems = _partitions(data["partitions"])
    found += problems
    for sections, check in plan_checks.CHECKS:
        if all(section in data for section in sections):
            found += check(data, hosts, partitions)
    if found:
        raise PlanError(found)
    return Plan(data, hosts, partitions)


# --- reading -------------------------------------------------------------------------------------


def _hosts(entries: Data, raw: Data) -> tuple[dict[str, Host], list[Problem]]:
    hosts: dict[str, Host] = {}
    problems: list[Problem] = []
    for entry, fields in entries.items():
        made, refusals = _entry(entry, fields if fields is not None else _unsound(raw, entry))
        problems += refusals
        for host in made:
            if host.name in hosts:
                found = f"{host.name}, which hosts:{hosts[host.name].entry} has too"
                problems.append(Problem(f"hosts:{entry}", found, "each host once"))
            hosts.setdefault(host.name, host)
    return hosts, problems


def _unsound(raw: Data, entry: str) -> dict[str, Any]:
    """What can still be read of an entry that the schema refuses."""
    address = raw["hosts"][entry].get("address") if isinstance(raw["hosts"][entry], dict) else None
    return {"address": address} if isinstance(address, str) else {}


def _entry(entry: str, fields: Data) -> tuple[list[Host], list[Problem]]:
    """The hosts of one entry."""
    where = f"hosts:{entry}"
    names, problems = _expanded(where, entry)
    addresses: list[str | None] = [None] * len(names)
    if "address" in fields and not problems:
        listed, problems = _expanded(f"{where}:address", fields["address"])
        if not problems and len(listed) != len(names):
            found, expected = f"{len(listed)} addresses", f"{len(names)}, one for each name"
            problems = [Problem(f"{where}:address", found, expected)]
        elif not problems:
            addresses = list(listed)
    given = frozenset(fields.get("roles", ()))
    kind = fields.get("node_type")
    sound = "roles" in fields
    hosts = [
        Host(name, entry, given, address, kind, sound)
        for name, address in zip(names, addresses)  # noqa: B905 - Python 3.9; equal by the above
    ]
    return hosts, problems


def _partitions(entries: Data) -> tuple[dict[str, list[str]], list[Problem]]:
    members: dict[str, list[str]] = {}
    problems: list[Problem] = []
    for name, fields in plan_checks.sound(entries).items():
        members[name], refusal = _expanded(f"partitions:{name}:nodes", fields["nodes"])
        problems += refusal
    return members, problems


def _expanded(where: str, expression: str) -> tuple[list[str], list[Problem]]:
    try:
        return nodeset.expand(expression), []
    except nodeset.NodeSetError as error:
        return [], [
            Problem(where, f"{expression!r}: {error}", "a node set such as node[001-128,130]")
        ]
