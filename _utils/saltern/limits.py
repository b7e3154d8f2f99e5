"""systemd's default limits (systemd-system.conf(5)), by the names of limits.conf(5)."""

from __future__ import annotations

from collections.abc import Mapping


def directive(name: str) -> str:
    """systemd's name: DefaultLimitNOFILE for nofile."""
    return f"DefaultLimit{name.upper()}"


def value(limit: int | str) -> str:
    """systemd's spelling of a limit."""
    return "infinity" if limit == "unlimited" else str(limit)


def stale(shown: str, wanted: Mapping[str, int | str]) -> dict[str, dict[str, str]]:
    """What differs between `systemctl show` of the manager and what it should have."""
    have = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
    pairs = {
        name: {"old": have.get(directive(name), "nothing"), "new": value(limit)}
        for name, limit in wanted.items()
    }
    return {name: pair for name, pair in pairs.items() if pair["old"] != pair["new"]}
