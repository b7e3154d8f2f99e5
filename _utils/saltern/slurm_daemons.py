"""Slurm's daemons: which a host runs, and why one must be started again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from saltern import roles
from saltern.problem import Problem

TREE = "/opt/slurm/current"
# Their place in the tree: daemons that slurmd, slurmctld and slurmdbd are, sackd with them.
PATHS = {name: f"{TREE}/sbin/{name}" for name in ("slurmdbd", "slurmctld", "slurmd", "sackd")}


def of(host_roles: Sequence[str]) -> list[str]:
    """The daemons of a host. A node's slurmd serves its clients too, so a node needs no sackd."""
    mine = set(host_roles)
    found = ["slurmdbd"] if "database" in mine else []
    found += ["slurmctld"] if "controller" in mine else []
    if mine & roles.JOBS:
        found.append("slurmd")
    elif "login" in mine:
        found.append("sackd")
    return found


def client_conf(view: Mapping[str, Any], controllers: Sequence[str]) -> str:
    """A slurm.conf that is just enough for a client, where none stands or the cluster's says more.

    controllers: names of those that the client may ask
    """
    hosts = [peer["name"] for peer in view["peers"]["database"]]
    pairs = [
        ("ClusterName", view["cluster"]["name"]),
        *(("SlurmctldHost", name) for name in controllers),
        ("SlurmctldPort", view["slurm"]["ports"]["slurmctld"]),
        ("SlurmUser", "slurm"),
        ("AccountingStorageType", "accounting_storage/slurmdbd"),
        *zip(("AccountingStorageHost", "AccountingStorageBackupHost"), hosts, strict=False),
        ("AccountingStoragePort", view["slurm"]["ports"]["slurmdbd"]),
    ]
    return "".join(f"{key}={value}\n" for key, value in pairs)


def restart_reasons(
    status: Mapping[str, Any], binary: str | None, files: Mapping[str, float]
) -> list[str]:
    """Why a daemon must be started, in words; empty when it runs what and as it should.

    status: ``active`` bool, ``executable`` path or None, ``started`` seconds since the epoch
    binary: the real path of what it should run, None for a program of the system
    files: path: time of the last change
    """
    if not status["active"]:
        return ["does not run"]
    found = []
    if binary is not None and status["executable"] != binary:
        found.append(f"runs {status['executable']}, not {binary}")
    found += [
        f"started before {path} changed"
        for path, changed in files.items()
        if changed > status["started"]
    ]
    return found


def spares_jobs(properties: Mapping[str, str]) -> list[Problem]:
    """Why a restart of slurmd would kill jobs, by its unit after every drop-in."""
    wanted = {"KillMode": "process", "Delegate": "yes"}
    return [
        Problem(
            f"unit slurmd, {key}",
            properties.get(key, "nothing"),
            value,
            "remove the drop-in that changes it (systemctl cat slurmd)",
        )
        for key, value in wanted.items()
        if properties.get(key) != value
    ]
