"""The roles: what each means, which cannot share a host, and which know which secret."""

from __future__ import annotations

from collections.abc import Mapping

MEANING = {
    "controller": "runs slurmctld; the first one in the plan is the primary",
    "database": "runs slurmdbd, a second one in reserve; the first one MariaDB too, unless another "
    "host has the role mariadb",
    "mariadb": "runs MariaDB for the database hosts, apart from them",
    "storage": "serves shared file systems",
    "builder": "builds hwloc, PMIx and Slurm once, and serves the artefact",
    "login": "where users log in and submit",
    "compute": "runs jobs",
    "gpu": "runs jobs on GPUs",
    "monitoring": "metrics, alerts, logs",
    "directory": "serves users and groups",
}

# Hosts on which users run their own programs may not hold what the whole cluster trusts.
OPEN = frozenset({"login", "compute", "gpu"})
GUARDED = frozenset({"controller", "database", "mariadb", "builder", "directory"})

# Hosts that speak to Slurm need the tree, munge and the fixed accounts.
SLURM = frozenset({"controller", "database", "login", "compute", "gpu"})
JOBS = frozenset({"compute", "gpu"})
# Roles whose few hosts others must know by name; never the compute nodes.
PEERS = ("controller", "database", "builder", "storage", "monitoring", "directory")

SECRETS = {
    "munge_key": SLURM,
    "slurmdbd_password": frozenset({"database", "mariadb"}),
    "jwt_key": frozenset({"controller", "database"}),
}
# The same, where the plan has a directory; what its servers need beside it, where they are ours.
DIRECTORY_SECRETS = {"directory_client_password": SLURM | {"directory"}}
DIRECTORY_SERVER_SECRETS = {
    "directory_replication_password": frozenset({"directory"}),
    "directory_key": frozenset({"directory"}),
}

# The phases whose gates a host has, in their order, by its roles; None for every host.
PHASES: Mapping[str, frozenset[str] | None] = {
    "p0_plan": None,
    "p1_foundation": None,
    "p4_scheduler": SLURM | {"builder", "mariadb"},
    "p5_environment": JOBS,
    "p7_identity": SLURM | {"directory"},
}


def secrets_of(roles: frozenset[str], directory: str = "none") -> list[str]:
    """The names of the secrets that these roles need.

    directory: whose the directory is, see ``directory.kind``
    """
    needed = {
        **SECRETS,
        **(DIRECTORY_SECRETS if directory != "none" else {}),
        **(DIRECTORY_SERVER_SECRETS if directory == "own" else {}),
    }
    return [name for name, owners in needed.items() if owners & roles]


def phase_before(phase: str, roles: frozenset[str]) -> str:
    """The phase that a host of these roles completes before this one."""
    names = list(PHASES)
    earlier = [
        name
        for name in names[: names.index(phase)]
        if PHASES[name] is None or (PHASES[name] or frozenset()) & roles
    ]
    return earlier[-1]
