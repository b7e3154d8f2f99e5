"""The gate of phase 4: what Slurm's own programs say of a host, in; reasons out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from saltern.problem import Problem


def scheduler(facts: Mapping[str, Any], view: Mapping[str, Any]) -> list[Problem]:
    """Why Slurm does not work on this host."""
    return []
