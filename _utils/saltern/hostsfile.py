"""The block of /etc/hosts that knows every host of the plan."""

from __future__ import annotations

from collections.abc import Iterable

from saltern import runs


def text(groups: Iterable[runs.Run], domain: str) -> str:
    """One line a host: address, full name, short name."""
    return "\n".join(
        f"{address} {name}.{domain} {name}"
        for run in groups
        for name, address in runs.hosts(run)
        if address is not None
    )
