"""What one host may know of the plan: its view, made on the master, carried by pillar."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from saltern import directory, nodeset, roles
from saltern.plan import Host, Plan

FORMAT = 1


class UnknownHost(LookupError):
    """A minion id that the plan does not know."""

    def __init__(self, minion_id: str) -> None:
        super().__init__(
            f"The plan knows no host {minion_id!r}, so it gets nothing. "
            "Add it under `hosts` (the key is the minion id), or correct the minion's id."
        )


def of(plan: Plan, minion_id: str) -> dict[str, Any]:
    """The view of one host. Raises UnknownHost."""
    host = plan.host(minion_id)
    if host is None:
        raise UnknownHost(minion_id)
    view: dict[str, Any] = {
        "format": FORMAT,
        "roles": sorted(host.roles),
        "host": _host(plan, host),
    }
    for section, (owners, make) in SECTIONS.items():
        if owners is None or owners & host.roles:
            view[section] = make(plan, host)
    return view


def _host(plan: Plan, host: Host) -> dict[str, Any]:
    return {
        "name": host.name,
        "id": host.name,
        "fqdn": f"{host.name}.{plan.data['cluster']['domain']}",
        "address": host.address,
        "roles": sorted(host.roles),
        "node_type": host.node_type,
        "hardware": plan.data["node_types"].get(host.node_type) if host.node_type else None,
        "elastic": host.entry if host.elastic else None,
    }


def _runs(hosts: Iterable[Host]) -> list[nodeset.Run]:
    return nodeset.runs([(host.name, host.address) for host in hosts])


def _all_hosts(plan: Plan, host: Host) -> list[nodeset.Run]:
    return _runs(plan.hosts.values()) if plan.data["names"]["provider"] == "hosts" else []


def _peers(plan: Plan, host: Host) -> dict[str, list[dict[str, Any]]]:
    known = {role: _named(plan.with_role(role)) for role in roles.PEERS}
    if host.roles & {"database", "mariadb"}:  # nobody else has a way to it
        # The first database host runs MariaDB as well, unless a host of its own does.
        known["mariadb"] = (_named(plan.with_role("mariadb")) or known["database"])[:1]
    known["time"] = [
        {"name": name, "address": plan.hosts[name].address}
        for name in plan.data["foundation"]["time"]["serve"]
    ]
    return known


def _named(hosts: Iterable[Host]) -> list[dict[str, Any]]:
    return [{"name": host.name, "address": host.address} for host in hosts]


def _foundation(plan: Plan, host: Host) -> dict[str, Any]:
    foundation = plan.data["foundation"]
    has_users = bool(host.roles & (roles.JOBS | {"login", "controller"}))
    return {
        **foundation,
        "users": foundation["users"] if has_users else {},
        "time": {**foundation["time"], **_time(plan, host)},
        "munge": {**foundation["munge"], "peers": _munge_peers(plan, host)},
    }


def _time(plan: Plan, host: Host) -> dict[str, Any]:
    """Whom this host asks for the time, and whom it answers.

    Time hosts also ask each other, so that they stay in step when nothing above them answers. They
    answer the plan's
    networks; all, if DNS has the addresses.
    """
    time = plan.data["foundation"]["time"]
    serves = host.name in time["serve"]
    others = [name for name in time["serve"] if name != host.name]
    addresses = [other.address for other in plan.hosts.values()] if serves else []
    networks = {f"{address.rpartition('.')[0]}.0/24" if address else "all" for address in addresses}
    return {
        "serves": serves,
        "sources": [*time["servers"], *others] if serves or not others else others,
        "networks": sorted(networks),
    }


# How many other hosts a controller tries for its munge round trip; one answer is enough.
_MUNGE_CANDIDATES = 4


def _munge_peers(plan: Plan, host: Host) -> list[str]:
    """The hosts of which one must understand this host's munge: its controllers, or a controller's
    first others."""
    others = [other for other in plan.hosts.values() if other.roles & roles.SLURM and other != host]
    controllers = [other for other in others if "controller" in other.roles]
    chosen = controllers if "controller" not in host.roles else [*controllers, *others]
    return list(dict.fromkeys(other.name for other in chosen))[:_MUNGE_CANDIDATES]


def _slurm(plan: Plan, host: Host) -> dict[str, Any]:
    """Every Slurm host knows the ports and folders; only controllers know the configuration."""
    slurm = plan.data["slurm"]
    if "controller" not in host.roles:
        return {key: slurm[key] for key in ("ports", "state_dir", "spool_dir", "log_dir")}
    return {
        **slurm,
        "nodes": _nodes(plan),
        "node_types": plan.data["node_types"],
        "partitions": _partitions(plan),
        "elastic": plan.data["elastic"],
    }


def _nodes(plan: Plan) -> list[dict[str, Any]]:
    """NodeName lines to be: runs of hosts of one entry, each with its node type."""
    entries: dict[str, list[Host]] = {}
    for host in plan.hosts.values():
        if host.roles & roles.JOBS:
            entries.setdefault(host.entry, []).append(host)
    return [
        {"run": run, "node_type": hosts[0].node_type}
        for hosts in entries.values()
        for run in _runs(hosts)
    ]


def _partitions(plan: Plan) -> dict[str, Any]:
    """Each partition with its nodes as runs."""
    return {
        name: {
            **plan.data["partitions"][name],
            "nodes": nodeset.runs([(node, None) for node in members]),
        }
        for name, members in plan.partitions.items()
    }


def _accounts(plan: Plan, host: Host) -> dict[str, Any]:
    """Every controller knows what slurm.conf says of it; the tree goes to the first one only, as
    text, which costs the same to carry whether it holds ten users or ten thousand."""
    accounts = plan.data["accounts"]
    first = plan.with_role("controller")[0]
    own = {key: accounts[key] for key in ("enforce", "priority")}
    found = {
        **own,
        "from_directory": bool(accounts["directory"]["groups"]),
        "reconciler": first.name,
        "reconciles": host.name == first.name,
    }
    if found["reconciles"]:
        tree = {key: value for key, value in accounts.items() if key not in own}
        tree["reservations"] = {
            name: {**entry, "nodes": nodeset.fold(nodeset.expand(entry["nodes"]))}
            if "nodes" in entry
            else entry
            for name, entry in accounts["reservations"].items()
        }
        found["wanted"] = json.dumps(tree, ensure_ascii=False)
    return found


def _section(name: str) -> Callable[[Plan, Host], Any]:
    return lambda plan, host: plan.data[name]


# section: (the roles that get it, None for all; how it is made)
SECTIONS: Mapping[str, tuple[frozenset[str] | None, Callable[[Plan, Host], Any]]] = {
    "cluster": (None, _section("cluster")),
    "os": (None, _section("os")),
    "names": (None, _section("names")),
    "hosts": (None, _all_hosts),
    "peers": (None, _peers),
    "waits": (None, _section("waits")),
    "foundation": (None, _foundation),
    "mirror": (roles.SLURM | {"builder"}, _section("mirror")),
    "build": (roles.SLURM | {"builder"}, _section("build")),
    "slurm": (roles.SLURM, _slurm),
    "accounting": (frozenset({"controller", "database", "mariadb"}), _section("accounting")),
    "backup": (frozenset({"controller", "database", "mariadb"}), _section("backup")),
    "health": (roles.JOBS | {"controller"}, _section("health")),
    "accounts": (frozenset({"controller"}), _accounts),
    "directory": (roles.SLURM | {"directory"}, directory.section),
}
