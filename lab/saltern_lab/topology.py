"""Topologies: which bare hosts a lab has. What they are for stands in the plan."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from saltern_lab.errors import LabError
from saltern_lab.paths import LAB_DIR

HOST_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")
KEYS = {
    "hosts",
    "master",
    "plan",
    "measured_node_types",
    "binds",
    "shared",
    "nspawn",
    "job_user",
    "login",
}


@dataclass(frozen=True)
class Topology:
    """One parsed topology file."""

    name: str
    hosts: dict[str, int]
    master: str | None = None
    plan: str = "example.plan"
    measured_node_types: tuple[str, ...] = ()
    binds: dict[str, dict[str, str]] = field(default_factory=dict)
    shared: dict[str, tuple[str, ...]] = field(default_factory=dict)
    nspawn: dict[str, tuple[str, ...]] = field(default_factory=dict)
    job_user: str = "researcher"
    login: str | None = None


def topology_file(name: str) -> Path:
    """A topology by its name in lab/topologies, or by the path of a file."""
    path = Path(name) if "/" in name else LAB_DIR / "topologies" / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in (LAB_DIR / "topologies").glob("*.yaml")))
        raise LabError(f"There is no topology {name!r}; the ones in lab/topologies are: {known}.")
    return path


def load(name: str) -> Topology:
    """Read a topology file."""
    path = topology_file(name)
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise LabError(f"The topology {path} is not YAML: {error}") from None
    return parse(path.stem, data)


def parse(name: str, data: Any) -> Topology:
    """Turn a topology's data into a Topology; all problems are told at once."""
    if not isinstance(data, dict) or not isinstance(data.get("hosts"), dict) or not data["hosts"]:
        raise LabError(f"The topology {name} needs `hosts:` with at least one host.")
    problems = [f"unknown key {key!r}" for key in sorted(set(data) - KEYS, key=str)]
    problems += _host_problems(data["hosts"])
    for key in ("master", "login"):
        if data.get(key) is not None and data[key] not in data["hosts"]:
            problems.append(f"{key}: {data[key]!r} is none of its hosts")
    for key in ("binds", "nspawn"):
        for host in sorted(set(data.get(key) or {}) - set(data["hosts"])):
            problems.append(f"{key}: {host!r} is none of its hosts")
    problems += _shared_problems(data.get("shared") or {}, data["hosts"])
    if problems:
        raise LabError(f"The topology {name} cannot be used: " + "; ".join(problems) + ".")
    return Topology(
        name=name,
        hosts=dict(data["hosts"]),
        master=data.get("master"),
        plan=data.get("plan", "example.plan"),
        measured_node_types=tuple(data.get("measured_node_types") or ()),
        binds={host: dict(binds) for host, binds in (data.get("binds") or {}).items()},
        shared={path: tuple(hosts) for path, hosts in (data.get("shared") or {}).items()},
        nspawn={host: tuple(options) for host, options in (data.get("nspawn") or {}).items()},
        job_user=data.get("job_user", "researcher"),
        login=data.get("login"),
    )


def _shared_problems(shared: dict[Any, Any], hosts: dict[Any, Any]) -> list[str]:
    return [
        f"shared: {path}: {host!r} is none of its hosts"
        for path, names in shared.items()
        for host in names
        if host not in hosts
    ]


def _host_problems(hosts: dict[Any, Any]) -> list[str]:
    problems = []
    seen: dict[int, str] = {}
    for host, suffix in hosts.items():
        if not isinstance(host, str) or not HOST_NAME.fullmatch(host):
            problems.append(f"{host!r} is no host name (lower case letters, digits, dashes)")
        if isinstance(suffix, bool) or not isinstance(suffix, int) or not 2 <= suffix <= 254:
            problems.append(f"{host}: the address suffix {suffix!r} is not a number from 2 to 254")
        elif suffix in seen:
            problems.append(f"{host}: the address suffix {suffix} is already {seen[suffix]}'s")
        else:
            seen[suffix] = host
    return problems
