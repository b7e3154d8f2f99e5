"""Where the lab keeps things. Nothing of it lies in the repository."""

import os
from pathlib import Path

LAB_DIR = Path(__file__).resolve().parent.parent
REPOSITORY = LAB_DIR.parent


def cache_dir() -> Path:
    """What can be made again from its inputs: roots, wheels, sources, packages, artefacts."""
    return Path(os.environ.get("SALTERN_CACHE", "/var/cache/saltern-lab"))


def state_dir() -> Path:
    """The labs themselves: records and the disks of their hosts."""
    return Path(os.environ.get("SALTERN_STATE", "/var/lib/saltern-lab"))
