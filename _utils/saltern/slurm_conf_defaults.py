"""Saltern's own values of Slurm's keys; the plan's win, and other keys are left to Slurm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from saltern import enforcement, nhc_conf, runs
from saltern.gates import real_memory_mb

View = Mapping[str, Any]

CONF_DIR = "/etc/slurm"
JWT_KEY = f"{CONF_DIR}/jwt_hs256.key"
DATABASE = "slurm_acct_db"
DATABASE_USER = "slurm"

# Keys made from other parts of the plan: where a refusal of them points.
_ORIGINS = {
    "ClusterName": "cluster:name",
    "SlurmctldPort": "slurm:ports:slurmctld",
    "SlurmdPort": "slurm:ports:slurmd",
    "DbdPort": "slurm:ports:slurmdbd",
    "AccountingStoragePort": "slurm:ports:slurmdbd",
    "AccountingStorageHost": "hosts (the role database)",
    "AccountingStorageBackupHost": "hosts (the role database)",
    "DbdHost": "hosts (the role database)",
    "StateSaveLocation": "slurm:state_dir",
    "SlurmdSpoolDir": "slurm:spool_dir",
    "SlurmctldLogFile": "slurm:log_dir",
    "SlurmdLogFile": "slurm:log_dir",
    "LogFile": "slurm:log_dir",
    "GresTypes": "node_types:*:gpus",
    "DefMemPerCPU": "node_types",
    "HealthCheckProgram": "health",
    "HealthCheckInterval": "health:interval_s",
    "HealthCheckNodeState": "health:node_state",
    "HealthCheckTimeout": "health:timeout_s",
    "AccountingStorageEnforce": "accounts:enforce",
    "PriorityType": "accounts:priority",
    "PriorityDecayHalfLife": "accounts:priority:decay_half_life",
    "PriorityMaxAge": "accounts:priority:max_age",
    "PriorityFavorSmall": "accounts:priority:favor_small",
    "PriorityFlags": "accounts:priority:flags",
    "PriorityWeightTRES": "accounts:priority:weights:tres",
}


def origin_of(key: str) -> str:
    """The key path of the plan behind one of Saltern's own values."""
    if key in _WEIGHTS.values():
        return "accounts:priority:weights"
    return _ORIGINS.get(key, f"slurm:parameters:{key}")


def slurm(view: View, given: Mapping[str, Any]) -> dict[str, Any]:
    """slurm.conf without nodes and partitions.

    given: the plan's own parameters, on which some defaults depend
    """
    conf, accounts = view["slurm"], view["accounts"]
    tracks_by_cgroup = _given(given, "ProctrackType", "proctrack/cgroup") == "proctrack/cgroup"
    kinds = [conf["node_types"][node["node_type"]] for node in conf["nodes"]]
    gpus = any(kind.get("gpus") for kind in kinds)
    elastic = sum(group["most"] for group in conf["elastic"].values())
    return {
        "ClusterName": view["cluster"]["name"],
        "SlurmctldPort": conf["ports"]["slurmctld"],
        "SlurmdPort": conf["ports"]["slurmd"],
        "SlurmUser": "slurm",
        "StateSaveLocation": conf["state_dir"],
        "SlurmdSpoolDir": conf["spool_dir"],
        "SlurmctldPidFile": "/run/slurmctld/slurmctld.pid",
        "SlurmdPidFile": "/run/slurm/slurmd.pid",
        "SlurmctldLogFile": f"{conf['log_dir']}/slurmctld.log",
        "SlurmdLogFile": f"{conf['log_dir']}/slurmd.log",
        "LogTimeFormat": "rfc5424_ms",
        "AuthType": "auth/munge",
        **_tokens(view),
        "AccountingStorageType": "accounting_storage/slurmdbd",
        **_in_order(view, "AccountingStorageHost", "AccountingStorageBackupHost"),
        "AccountingStoragePort": conf["ports"]["slurmdbd"],
        "AccountingStorageTRES": ["gres/gpu"] if gpus else [],
        "SlurmctldParameters": ["enable_configless"],
        # Memory is a consumable: without it, two jobs can each take all of a node's memory.
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core_Memory",
        "DefMemPerCPU": min((real_memory_mb(kind) // kind["cpus"] for kind in kinds), default=[]),
        "ProctrackType": "proctrack/cgroup",
        "TaskPlugin": ["task/cgroup", "task/affinity"],
        "JobAcctGatherType": "jobacct_gather/cgroup",
        # Contain needs proctrack/cgroup (slurm.conf(5), PrologFlags).
        "PrologFlags": ["Contain"] if tracks_by_cgroup else [],
        # A node that was only silent comes back by itself; one that a person set down does not.
        "ReturnToService": 1,
        "MpiDefault": "pmix" if "pmix" in view["build"]["features"] else "none",
        # The login node's memlock must not follow a job: RDMA needs the compute node's own.
        "PropagateResourceLimitsExcept": "MEMLOCK",
        "GresTypes": ["gpu"] if gpus else [],
        "MaxNodeCount": _room(conf, elastic) if elastic else [],
        # They are in no other node's configuration, so the controller speaks to each node itself
        # (Slurm's page on dynamic nodes).
        "TreeWidth": 65533 if elastic else [],
        **_health(view),
        # What may be enforced now (saltern.enforcement); the plan's own words until somebody says.
        "AccountingStorageEnforce": view.get("enforced", enforcement.whole(accounts["enforce"])),
        **_priority(accounts["priority"]),
    }


# PriorityWeight* by the plan's words.
_WEIGHTS = {
    "age": "PriorityWeightAge",
    "assoc": "PriorityWeightAssoc",
    "fairshare": "PriorityWeightFairshare",
    "job_size": "PriorityWeightJobSize",
    "partition": "PriorityWeightPartition",
    "qos": "PriorityWeightQOS",
}


def _priority(priority: Mapping[str, Any] | None) -> dict[str, Any]:
    """Who comes first; nothing is written if the plan says nothing."""
    if priority is None:
        return {}
    weights = priority["weights"]
    return {
        "PriorityType": "priority/multifactor",
        "PriorityDecayHalfLife": priority["decay_half_life"],
        "PriorityMaxAge": priority["max_age"],
        "PriorityFavorSmall": priority["favor_small"],
        "PriorityFlags": priority["flags"],
        **{key: weights[word] for word, key in _WEIGHTS.items()},
        "PriorityWeightTRES": [f"{name}={value}" for name, value in weights["tres"].items()],
    }


HEALTH_PROGRAM = "/usr/lib/saltern/health_program"
# The first release whose parser knows HealthCheckTimeout. 24.11.5 refuses it (measured); the
# present slurm.conf(5) has it.
_KNOWS_TIMEOUT = (26, 5)


def _health(view: View) -> dict[str, Any]:
    health = view["health"]
    if not health["interval_s"]:
        return {}
    keys = {
        "HealthCheckProgram": HEALTH_PROGRAM,
        "HealthCheckInterval": health["interval_s"],
        "HealthCheckNodeState": health["node_state"],
    }
    major, minor = view["build"]["sources"]["slurm"]["version"].split(".")[:2]
    if (int(major), int(minor)) >= _KNOWS_TIMEOUT:
        keys["HealthCheckTimeout"] = nhc_conf.program_s(health)
    return keys


# MaxNodeCount takes a restart of slurmctld, so a plan that grows by some nodes must not change it.
_ROOM_STEP = 1000


def _room(conf: Mapping[str, Any], elastic: int) -> int:
    """Room for dynamic nodes beside the declared ones."""
    declared = sum(runs.count(node["run"]) for node in conf["nodes"])
    return elastic + -(-declared // _ROOM_STEP) * _ROOM_STEP


def cgroup(given: Mapping[str, Any]) -> dict[str, Any]:
    """cgroup.conf: enforcement is the default, unless the plan switches the plugin off."""
    if _given(given, "CgroupPlugin", "autodetect") == "disabled":
        return {}
    return {
        "CgroupPlugin": "autodetect",
        "ConstrainCores": True,
        "ConstrainDevices": True,
        "ConstrainRAMSpace": True,
    }


def slurmdbd(view: View) -> dict[str, Any]:
    """slurmdbd.conf. No Purge key: Slurm then keeps everything."""
    return {
        "AuthType": "auth/munge",
        **_tokens(view),
        **_in_order(view, "DbdHost", "DbdBackupHost"),
        "DbdPort": view["slurm"]["ports"]["slurmdbd"],
        "SlurmUser": "slurm",
        "LogFile": f"{view['slurm']['log_dir']}/slurmdbd.log",
        "LogTimeFormat": "rfc5424_ms",
        "PidFile": "/run/slurmdbd/slurmdbd.pid",
        "StorageType": "accounting_storage/mysql",
        "StorageHost": storage_host(view),
        "StorageLoc": DATABASE,
        "StorageUser": DATABASE_USER,
        "StoragePass": "<secret:slurmdbd_password>",
    }


def _in_order(view: View, *keys: str) -> dict[str, Any]:
    """The database hosts: the primary, and the one in reserve if there is one."""
    names = [peer["name"] for peer in view["peers"]["database"]]
    return dict(zip(keys, names, strict=False))


def storage_host(view: View) -> str:
    """Where a slurmdbd finds MariaDB: through the socket on the same host, where its account is
    another than over the network."""
    peer = view["peers"]["mariadb"][0]
    local = peer["name"] == view["host"]["name"]
    return "localhost" if local else str(peer["address"] or peer["name"])


def _tokens(view: View) -> dict[str, Any]:
    if "jwt" not in view["build"]["features"]:
        return {}
    return {"AuthAltTypes": "auth/jwt", "AuthAltParameters": f"jwt_key={JWT_KEY}"}


def _given(given: Mapping[str, Any], key: str, default: str) -> str:
    return next(
        (str(value) for name, value in given.items() if name.lower() == key.lower()), default
    ).lower()
