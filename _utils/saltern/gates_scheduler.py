"""The gate of phase 4: what Slurm's own programs say of a host, in; reasons out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from saltern import build_features, slurm_answers, slurm_daemons
from saltern.gates import real_memory_mb
from saltern.gates_shared_state import shared_state
from saltern.problem import Problem

Facts = Mapping[str, Any]
View = Mapping[str, Any]

_SPARE_BYTES = 1 << 20  # scripts and environments of the batch jobs of some minutes
_SPARE_FILES = 1000


def scheduler(facts: Facts, view: View) -> list[Problem]:
    """Why Slurm does not work on this host; a host without its daemons has nothing to show.

    facts: what ``slurm_cluster.facts`` collects
    """
    found = list(_mariadb(facts["mariadb"])) if "mariadb" in facts else []
    if not facts["daemons"]:
        return found
    found += [*_tree(facts["tree"], view["build"]["features"]), *_daemons(facts["daemons"])]
    if "slurmdbd" in facts:
        found += _slurmdbd(facts["slurmdbd"])
    if "clusters" in facts:
        found += _clusters(facts["clusters"], view["cluster"]["name"])
    if facts.get("shared_state"):
        found += shared_state(facts["shared_state"])
    if "room" in facts:
        found += _room(facts["room"])
    if "pings" in facts:
        found += _pings(facts["pings"], view)
    if "node" in facts:
        found += _node(facts["node"], view["host"])
    return found


def _tree(tree: Facts, features: list[str]) -> list[Problem]:
    if tree["path"] is None:
        return [
            Problem(
                slurm_daemons.TREE,
                "no tree",
                "a link to a deployed artefact",
                "run the state p4_scheduler.deployed",
            )
        ]
    return build_features.lacking(features, tree["files"], tree["path"])


def _daemons(daemons: Mapping[str, Facts]) -> Iterator[Problem]:
    for name, daemon in daemons.items():
        properties = daemon["properties"]
        if properties.get("ConditionResult") == "no" and not daemon["active"]:
            yield Problem(
                f"unit {name}",
                "inactive, a condition failed",
                "active; Saltern's unit has no condition",
                f"systemctl cat {name}",
            )
        elif not daemon["active"]:
            result = properties.get("Result", "unknown")
            state = f"{properties.get('ActiveState', 'unknown')} ({result})"
            yield Problem(f"unit {name}", state, "active", f"journalctl -u {name}")
        elif daemon["executable"] != daemon["binary"]:
            yield Problem(
                f"unit {name}",
                f"the running program is {daemon['executable']}",
                daemon["binary"],
                f"systemctl restart {name}",
            )
        if properties.get("UnitFileState") not in ("enabled", "enabled-runtime"):
            yield Problem(
                f"unit {name}", properties.get("UnitFileState") or "no unit file", "enabled at boot"
            )
        if properties.get("NeedDaemonReload") == "yes":
            yield Problem(
                f"unit {name}",
                "changed on disk",
                "what systemd has loaded",
                "systemctl daemon-reload",
            )
        if name == "slurmd":
            yield from slurm_daemons.spares_jobs(properties)


def _mariadb(answer: Facts) -> Iterator[Problem]:
    advice = "run the state p4_scheduler.database here"
    if answer["error"]:
        yield Problem("MariaDB", answer["error"], "an answer", "look at its unit and log here")
    elif answer["value"]:
        lacking = f"no {', no '.join(answer['value'])}"
        yield Problem("MariaDB", lacking, "slurmdbd's database and accounts", advice)


def _slurmdbd(answer: Facts) -> Iterator[Problem]:
    if answer["error"]:
        yield Problem("slurmdbd", answer["error"], "an answer to sacctmgr")


def _clusters(answer: Facts, name: str) -> Iterator[Problem]:
    if answer["error"]:
        yield Problem("accounting", answer["error"], "slurmdbd's answer to sacctmgr")
    elif name not in answer["value"]:
        known = ", ".join(answer["value"]) or "no cluster"
        yield Problem(
            "accounting", known, f"the cluster {name}", "run the state p4_scheduler.slurmctld"
        )


def _room(room: Facts) -> Iterator[Problem]:
    """slurmctld writes each file of its state anew before it drops the old one. On a full disk it
    says so in its log only and goes on: it refuses batch jobs and saves nothing (seen with
    24.11.5)."""
    path, do = room["path"], "make room before slurmctld stops: what was not saved by then is lost"
    if room["error"]:
        yield Problem(path, room["error"], "StateSaveLocation with room for slurmctld's state")
        return
    least = room["needed"] + _SPARE_BYTES
    if room["free"] < least:
        found = f"{room['free'] >> 10} KiB free"
        yield Problem(path, found, f"{least >> 10} KiB to write slurmctld's state anew", do)
    if room["inodes"] is not None and room["inodes"] < _SPARE_FILES:
        found = f"room for {room['inodes']} more files"
        yield Problem(path, found, f"room for {_SPARE_FILES}: each batch job takes three", do)


def _pings(answer: Facts, view: View) -> Iterator[Problem]:
    if answer["error"]:
        yield Problem("scontrol ping", answer["error"], "an answer from the controllers")
        return
    for controller in view["peers"]["controller"]:
        if not answer["value"].get(controller["name"]):
            yield Problem(
                f"slurmctld on {controller['name']}",
                "no answer to scontrol ping",
                "an answer",
                "look at its unit and log there, and at the way from here to its port",
            )


def _node(answer: Facts, host: View) -> Iterator[Problem]:
    """A node that a person drained is well; one that never registered or does not fit is not."""
    name, node = host["name"], answer["node"]
    if not node:
        yield Problem(
            f"node {name}",
            answer["error"] or "unknown to the controller",
            "a node of the running configuration",
        )
        return
    reason = f" ({node['reason']})" if node["reason"] else ""
    if "INVALID_REG" in node["flags"]:
        yield Problem(
            f"node {name}",
            f"its registration is invalid{reason}",
            "hardware as its line in slurm.conf says",
        )
    elif not node["registered"] or node["base"] == "UNKNOWN":
        yield Problem(
            f"node {name}", "never registered", "a slurmd that registered", "journalctl -u slurmd"
        )
    elif node["base"] not in slurm_answers.USABLE or "NOT_RESPONDING" in node["flags"]:
        state = "+".join([node["base"], *node["flags"]])
        yield Problem(
            f"node {name}",
            f"state {state}{reason}",
            "IDLE, MIXED or ALLOCATED",
            f"scontrol show node {name}",
        )
    yield from _memory(answer["memory_mb"], node["real_memory"], host["hardware"])


def _memory(found: int, running: int, hardware: View) -> Iterator[Problem]:
    """found: MiB that slurmd sees; running: RealMemory as the controller has it."""
    wanted = real_memory_mb(hardware)
    if found and found < running:
        yield Problem(
            "RealMemory",
            f"{found} MiB, {running - found} MiB too few",
            f"{running} MiB or more ({hardware['memory_mb']} declared, "
            f"{hardware['memory_headroom']:.0%} kept back)",
            "look for a failed module, or correct the node type in the plan",
        )
    if running != wanted:
        yield Problem(
            "RealMemory in the running configuration",
            f"{running} MiB, {running - wanted:+d} MiB",
            f"{wanted} MiB, by the plan",
            "run the state p4_scheduler.slurmctld on the controllers",
        )
