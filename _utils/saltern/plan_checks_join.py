"""What the plan's sections about joining hosts must be beyond the schema."""

from __future__ import annotations

import fnmatch
import itertools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from saltern import nodeset
from saltern.problem import Problem

if TYPE_CHECKING:
    from saltern.plan import Host

Found = Iterator[Problem]
Data = Mapping[str, Any]
Hosts = Mapping[str, "Host"]
Members = Mapping[str, list[str]]


def elastic(data: Data, hosts: Hosts, partitions: Members) -> Found:
    """Patterns that fit no declared host and not one another; names that exist."""
    for group, fields in data["elastic"].items():
        where = f"elastic:{group}"
        declared = [name for name in hosts if fnmatch.fnmatchcase(name, fields["ids"])]
        if declared:
            yield Problem(
                f"{where}:ids",
                f"{fields['ids']} fits {nodeset.fold(declared)}, which hosts declares",
                "a pattern that fits no declared host",
            )
        kind = fields["node_type"]
        if kind not in data["node_types"]:
            known = ", ".join(sorted(data["node_types"])) or "none is declared"
            yield Problem(f"{where}:node_type", kind, f"a key of node_types ({known})")
        if group in data["partitions"]:
            yield Problem(where, f"{group}, a partition's name too", "a name of its own")
    for name, fields in data["partitions"].items():
        for group in fields["elastic"] if fields else ():
            if group not in data["elastic"]:
                known = ", ".join(sorted(data["elastic"])) or "none is declared"
                yield Problem(f"partitions:{name}:elastic", group, f"a key of elastic ({known})")
    yield from _same_pattern(data["elastic"])


def _same_pattern(groups: Data) -> Found:
    """An id that fits two patterns could become either."""
    stems = {group: fields["ids"].rstrip("*") for group, fields in groups.items()}
    for one, two in itertools.permutations(sorted(stems), 2):
        if stems[two].startswith(stems[one]) and (stems[one] != stems[two] or one < two):
            yield Problem(
                f"elastic:{two}:ids",
                f"{groups[two]['ids']}, which elastic:{one} ({groups[one]['ids']}) fits too",
                "patterns that no id fits twice",
            )


def join(data: Data, hosts: Hosts, partitions: Members) -> Found:
    """Fingerprints of hosts that the plan knows."""
    for name in data["join"]["fingerprints"]:
        known = name in hosts or any(
            fnmatch.fnmatchcase(name, fields["ids"]) for fields in data["elastic"].values()
        )
        if not known:
            yield Problem(f"join:fingerprints:{name}", name, "a host of the plan")
