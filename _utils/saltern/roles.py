"""The roles: what each means, which cannot share a host, and which know which secret."""

from __future__ import annotations

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


def secrets_of(roles: frozenset[str]) -> list[str]:
    """The names of the secrets that these roles need."""
    return [name for name, owners in SECRETS.items() if owners & roles]
