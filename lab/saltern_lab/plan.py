"""The lab's part of the plan: what only this machine knows. The rest is the example plan."""

from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

import yaml

from saltern_lab import hardware, mirror_control
from saltern_lab.errors import LabError
from saltern_lab.paths import REPOSITORY
from saltern_lab.record import Lab
from saltern_lab.topology import Topology

CONTAINER = REPOSITORY / "lab" / "container.yaml"
HEADER = (
    "# Written by the lab: addresses in this lab's network, its mirror, this machine's hardware.\n"
)


def example(topology: Topology) -> dict[str, Any]:
    """The plan that the topology names, as data (empty while the repository has none)."""
    path = REPOSITORY / "pillar" / f"{topology.plan.replace('.', '/')}.sls"
    if not path.is_file():
        return {}
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise LabError(f"The plan {path} is not YAML: {error}") from None
    return data.get("saltern", {}) if isinstance(data, dict) else {}


def moved(address: str, network: IPv4Network) -> str:
    """An address of the plan in this lab's /24; a range in its last number stays a range."""
    return f"{str(network[0]).rpartition('.')[0]}.{address.rpartition('.')[2]}"


def local(lab: Lab, topology: Topology) -> dict[str, Any]:
    """What lab.sls holds."""
    plan = example(topology)
    saltern: dict[str, Any] = {
        "hosts": {
            name: {"address": moved(host["address"], lab.subnet)}
            for name, host in (plan.get("hosts") or {}).items()
            if isinstance(host, dict) and "address" in host
        },
        "mirror": {"sources": f"{mirror_control.url(lab)}/sources"},
        **yaml.safe_load(CONTAINER.read_text(encoding="utf-8")),
    }
    if topology.master:
        # The lab's bare hosts have no name server that knew the master's name.
        saltern.setdefault("join", {})["master"] = lab.address(topology.master)
    if topology.measured_node_types:
        measured = hardware.node_type(
            Path("/proc/cpuinfo").read_text(encoding="utf-8"),
            Path("/proc/meminfo").read_text(encoding="utf-8"),
        )
        saltern["node_types"] = dict.fromkeys(topology.measured_node_types, measured)
    return {"saltern": saltern}


def files(lab: Lab, topology: Topology) -> dict[str, str]:
    """The files of /etc/saltern/plan."""
    return {
        "plan.sls": f"# This lab's plan.\ninclude:\n  - {topology.plan}\n  - lab\n",
        "lab.sls": HEADER + yaml.safe_dump(local(lab, topology), sort_keys=False),
    }
