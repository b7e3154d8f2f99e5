"""What a plan must be beyond its schema: names, addresses, roles, ids, ports, Slurm's values.

Each check gets the data (of hosts, node_types and partitions an entry that the schema refused is
None), the hosts by name, and the node names of each partition.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from saltern import (
    accounts_checks,
    directory_checks,
    nhc_conf,
    nodeset,
    plan_checks_join,
    platform,
    roles,
)
from saltern.problem import Problem

if TYPE_CHECKING:
    from saltern.plan import Host

Found = Iterator[Problem]
Data = Mapping[str, Any]
Hosts = Mapping[str, "Host"]
Members = Mapping[str, list[str]]


_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")  # RFC 1123
_OCTET = r"(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_ADDRESS = re.compile(rf"({_OCTET}\.){{3}}{_OCTET}")


def sound(entries: Mapping[str, Any]) -> dict[str, Any]:
    """The entries of a section (hosts, node_types, partitions) that the schema accepts."""
    return {name: fields for name, fields in entries.items() if fields is not None}


def _check_names(data: Data, hosts: Hosts, partitions: Members) -> Found:
    for host in hosts.values():
        if not _HOST_NAME.fullmatch(host.name):
            yield Problem(
                f"hosts:{host.entry}",
                f"the name {host.name!r}",
                "a short host name of letters, digits and hyphens",
                "the domain stands once, in cluster:domain",
            )
    for kind, names in (("hosts", hosts), ("partitions", data["partitions"])):
        yield from _same_but_for_case(kind, names)


def _same_but_for_case(kind: str, names: Iterable[str]) -> Found:
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            yield Problem(
                f"{kind}:{name}", f"{other} and {name}", "names that differ by more than case"
            )


def _check_os(data: Data, hosts: Hosts, partitions: Members) -> Found:
    os = data["os"]
    if not platform.is_supported(os["name"], os["release"]):
        known = platform.SUPPORTED[os["name"]][1]
        yield Problem("os:release", os["release"], f"one of {', '.join(known)} for {os['name']}")


def _check_addresses(data: Data, hosts: Hosts, partitions: Members) -> Found:
    seen: dict[str, str] = {}
    for host in hosts.values():
        if host.address is None:
            continue  # said below, or where its address was read
        if not _ADDRESS.fullmatch(host.address):
            yield Problem(f"hosts:{host.entry}:address", host.address, "an IPv4 address")
            continue
        other = seen.setdefault(host.address, host.name)
        if other != host.name:
            yield Problem(
                f"hosts:{host.entry}:address",
                f"{host.address} for {other} and {host.name}",
                "each address once",
            )
    if data["names"]["provider"] == "hosts":
        for entry, fields in sound(data["hosts"]).items():
            if "address" not in fields:
                yield Problem(
                    f"hosts:{entry}:address",
                    "nothing",
                    "an address, because names:provider is hosts",
                    "add it, or let DNS provide the names",
                )


def _check_roles(data: Data, hosts: Hosts, partitions: Members) -> Found:
    for entry, fields in sound(data["hosts"]).items():
        given = frozenset(fields["roles"])
        where = f"hosts:{entry}:roles"
        for user_facing, guarded in sorted(
            (one, two) for one in given & roles.OPEN for two in given & roles.GUARDED
        ):
            yield Problem(
                where,
                f"{user_facing} with {guarded}",
                "hosts where users run programs apart from those that hold the cluster's secrets",
                "give one of them another host",
            )
        if given & roles.JOBS and "node_type" not in fields:
            yield Problem(
                f"hosts:{entry}:node_type", "nothing", "a key of node_types", "name its hardware"
            )
        if "node_type" in fields and not given & roles.JOBS:
            yield Problem(
                f"hosts:{entry}:node_type",
                fields["node_type"],
                "none, since this host runs no jobs",
            )


def _check_singles(data: Data, hosts: Hosts, partitions: Members) -> Found:
    counts = {role: [h.name for h in hosts.values() if role in h.roles] for role in roles.MEANING}
    needs = {role: names for role, names in counts.items() if role in roles.SLURM}
    if not any(needs.values()) or not all(host.sound for host in hosts.values()):
        return
    for role, (least, most) in _COUNTS.items():
        count = len(counts[role])
        if count < least or (most and count > most):
            found = f"{count}: {nodeset.fold(counts[role])}" if count else "none"
            yield Problem("hosts", f"{found} with the role {role}", _count_words(least, most))


# role: (least, most) hosts of a cluster; most 0 for no bound. slurmdbd.conf(5) knows one
# DbdBackupHost.
_COUNTS = {"controller": (1, 0), "database": (1, 2), "mariadb": (0, 1), "builder": (1, 1)}


def _count_words(least: int, most: int) -> str:
    if least == most:
        return f"exactly {_WORDS[least]}"
    return " and ".join(
        words
        for words, given in (
            (f"at least {_WORDS[least]}", least),
            (f"at most {_WORDS[most]}", most),
        )
        if given
    )


_WORDS = ("none", "one", "two")


def _check_node_types(data: Data, hosts: Hosts, partitions: Members) -> Found:
    for entry, fields in sound(data["hosts"]).items():
        kind = fields.get("node_type")
        if kind is not None and kind not in data["node_types"]:
            known = ", ".join(sorted(data["node_types"])) or "none is declared"
            yield Problem(f"hosts:{entry}:node_type", kind, f"a key of node_types ({known})")
        elif (
            kind
            and "gpu" in fields["roles"]
            and "gpus" not in (data["node_types"][kind] or {"gpus"})
        ):
            yield Problem(
                f"hosts:{entry}:roles",
                f"gpu with node_type {kind}, which has no gpus",
                "a node type with gpus",
            )
    for name, hardware in sound(data["node_types"]).items():
        if "cores_per_socket" not in hardware:
            continue
        product = hardware["sockets"] * hardware["cores_per_socket"] * hardware["threads_per_core"]
        if product != hardware["cpus"]:
            yield Problem(
                f"node_types:{name}:cpus",
                str(hardware["cpus"]),
                f"{product} = sockets x cores_per_socket x threads_per_core",
            )
    for name, hardware in sound(data["node_types"]).items():
        gpus = hardware.get("gpus")
        if gpus and (gpus["autodetect"] == "off") != (gpus["files"] is not None):
            yield Problem(
                f"node_types:{name}:gpus:files",
                str(gpus["files"]),
                "device files exactly when autodetect is off",
            )


def _check_partitions(data: Data, hosts: Hosts, partitions: Members) -> Found:
    for name, members in partitions.items():
        unknown = [node for node in members if node not in hosts]
        if unknown:
            yield Problem(
                f"partitions:{name}:nodes",
                f"{nodeset.fold(unknown)}, not in the plan",
                "hosts of the plan",
            )
        known = [hosts[node] for node in members if node in hosts and hosts[node].sound]
        idle = [host.name for host in known if not host.roles & roles.JOBS]
        if idle:
            yield Problem(
                f"partitions:{name}:nodes",
                f"{nodeset.fold(idle)} without a role that runs jobs",
                "compute or gpu",
            )
    defaults = [name for name, fields in sound(data["partitions"]).items() if fields["default"]]
    if len(defaults) > 1:
        yield Problem(
            "partitions", f"default: true in {', '.join(defaults)}", "one default partition at most"
        )
    for name in partitions:
        if name.upper() == "DEFAULT":
            yield Problem(
                f"partitions:{name}", name, "another name: Slurm gives this one a meaning"
            )


def _check_ids(data: Data, hosts: Hosts, partitions: Members) -> Found:
    accounts = [
        (f"foundation:{kind}:{name}", fields)
        for kind in ("system_accounts", "users")
        for name, fields in data["foundation"][kind].items()
    ]
    for number in ("uid", "gid"):
        seen: dict[int, str] = {}
        for where, fields in accounts:
            other = seen.setdefault(fields[number], where)
            if other != where:
                yield Problem(
                    f"{where}:{number}", f"{fields[number]}, as {other}", f"each {number} once"
                )
    for where, fields in accounts:
        if where.startswith("foundation:users") and fields["uid"] < 1000:
            yield Problem(f"{where}:uid", str(fields["uid"]), "1000 or more for a person")
    users, systems = (data["foundation"][kind] for kind in ("users", "system_accounts"))
    for name in sorted(users.keys() & systems.keys()):
        yield Problem(f"foundation:users:{name}", "the name of a system account", "another name")


# Ports of the other daemons that a host of this plan may run (FACTS, "Ports").
_FIXED_PORTS = {"MariaDB": 3306, "Salt": 4505, "Salt's returns": 4506, "slapd": 389}


def _check_ports(data: Data, hosts: Hosts, partitions: Members) -> Found:
    ports = {f"slurm:ports:{name}": port for name, port in data["slurm"]["ports"].items()}
    ports["build:port"] = data["build"]["port"]
    seen: dict[int, str] = {}
    for where, port in ports.items():
        other = seen.setdefault(port, where)
        if other != where:
            yield Problem(where, f"{port}, as {other}", "each port once")
        for owner, fixed in _FIXED_PORTS.items():
            if port == fixed:
                yield Problem(where, f"{port}, the port of {owner}", "a free port")


def _check_time(data: Data, hosts: Hosts, partitions: Members) -> Found:
    for name in data["foundation"]["time"]["serve"]:
        if name not in hosts:
            yield Problem("foundation:time:serve", name, "a host of the plan")


def _check_slurm_values(data: Data, hosts: Hosts, partitions: Members) -> Found:
    maps = {
        "slurm:parameters": data["slurm"]["parameters"],
        "slurm:cgroup": data["slurm"]["cgroup"],
        "accounting:parameters": data["accounting"]["parameters"],
        **{
            f"node_types:{k}:parameters": v["parameters"]
            for k, v in sound(data["node_types"]).items()
        },
        **{
            f"partitions:{k}:parameters": v["parameters"]
            for k, v in sound(data["partitions"]).items()
        },
    }
    for where, mapping in maps.items():
        yield from _same_but_for_case(where, mapping)
        for key, value in mapping.items():
            yield from _check_slurm_value(f"{where}:{key}", value)


def _check_slurm_value(where: str, value: Any) -> Found:
    for item in value if isinstance(value, list) else [value]:
        text = str(item)
        if not text and not isinstance(value, list):
            yield Problem(where, "an empty value", "a value", "remove the key to leave it to Slurm")
        elif any(character.isspace() or character == "#" for character in text):
            yield Problem(where, repr(text), "a value without blanks, line breaks or #")


# Keys that Saltern derives from the rest of the plan: (lower-case key, where the plan says it).
DERIVED = {
    "clustername": "cluster:name",
    "slurmctldhost": "hosts (the role controller)",
    "slurmctldport": "slurm:ports:slurmctld",
    "slurmdport": "slurm:ports:slurmd",
    "accountingstoragehost": "hosts (the role database)",
    "accountingstorageport": "slurm:ports:slurmdbd",
    "accountingstorageenforce": "accounts:enforce",
    "statesavelocation": "slurm:state_dir",
    "slurmdspooldir": "slurm:spool_dir",
    "slurmuser": "foundation:system_accounts:slurm",
    "nodename": "hosts and node_types",
    "partitionname": "partitions",
    "grestypes": "node_types:*:gpus",
    "backupcontroller": "hosts (the role controller)",
    "controlmachine": "hosts (the role controller)",
    "healthcheckprogram": "health",
    "healthcheckinterval": "health:interval_s",
    "healthchecknodestate": "health:node_state",
    "healthchecktimeout": "health:timeout_s",
    "include": "nowhere: the plan is the whole configuration",
    "dbdhost": "hosts (the role database)",
    "dbdport": "slurm:ports:slurmdbd",
    "storagepass": "secrets:slurmdbd_password",
}


def _check_derived(data: Data, hosts: Hosts, partitions: Members) -> Found:
    for where in ("slurm", "accounting"):
        for key in data[where]["parameters"]:
            if key.lower() in DERIVED:
                yield Problem(
                    f"{where}:parameters:{key}",
                    "a key that Saltern derives",
                    f"it at {DERIVED[key.lower()]}",
                )
    for key, value in data["slurm"]["parameters"].items():
        items = value if isinstance(value, list) else str(value).split(",")
        if key.lower() == "slurmdparameters" and "enable_configless" in items:
            yield Problem(
                f"slurm:parameters:{key}",
                "enable_configless",
                "it in SlurmctldParameters only, where Saltern puts it",
                "remove it",
            )


def _check_health(data: Data, hosts: Hosts, partitions: Members) -> Found:
    nodes = [host.name for host in hosts.values() if host.roles & roles.JOBS]
    if all(host.sound for host in hosts.values()):
        yield from nhc_conf.problems(data["health"], nodes)


# The sections that a check reads, the check.
CHECKS = (
    (("hosts", "partitions", "cluster", "os"), _check_names),
    (("os",), _check_os),
    (("hosts", "names"), _check_addresses),
    (("hosts",), _check_roles),
    (("hosts",), _check_singles),
    (("hosts", "node_types"), _check_node_types),
    (("hosts", "partitions"), _check_partitions),
    (("hosts", "node_types", "partitions", "elastic"), plan_checks_join.elastic),
    (("hosts", "join", "elastic"), plan_checks_join.join),
    (("foundation",), _check_ids),
    (("slurm", "build"), _check_ports),
    (("hosts", "foundation"), _check_time),
    (("slurm", "accounting", "node_types", "partitions"), _check_slurm_values),
    (("slurm", "accounting"), _check_derived),
    (("hosts", "health"), _check_health),
    (("hosts", "partitions", "accounts"), accounts_checks.check),
    (("hosts", "foundation", "directory", "people", "accounts", "secrets"), directory_checks.check),
)
