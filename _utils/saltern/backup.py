"""What is backed up, when it is due, and what stands against putting it back."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from saltern import backup_store
from saltern.slurm_conf_defaults import DATABASE

Row = dict[str, Any]

# What is kept of each part, in the order in which they are made: each on the host that has it.
FILES: Mapping[str, str] = {
    "database": "slurm_acct_db.sql.gz",
    "state": "state.tar.gz",
    "secrets": "secrets.tar.gz",
    "register": "register.db.gz",
    "keys": "pki.tar.gz",
}
ON_HOSTS = ("database", "state")
ON_MASTER = ("secrets", "register", "keys")

# Of StateSaveLocation: the marks by which controllers prove that they share it are no state, and
# what a restore lays out there is none yet.
STATE_ASIDE = ".saltern-restore"
STATE_EXCLUDED = ("saltern.*", STATE_ASIDE)
STATE_CORE = "job_state"  # slurmctld's file of all jobs

# Where a dump is loaded before it takes the place of the database, and where what it replaces
# stands for that moment.
LOADED, REPLACED = f"{DATABASE}_restored", f"{DATABASE}_replaced"
DUMP_ENDS = b"-- Dump completed"  # the last line of mariadb-dump, and of no dump that was cut


def name(at: float) -> str:
    """A backup's name, from seconds since the epoch."""
    return time.strftime(backup_store.NAME, time.gmtime(at))


def is_due(rows: Iterable[Row], every_h: float, now: float) -> bool:
    """Whether the newest of a part is older than the plan wants, or there is none.

    A run that comes hourly finds a part a little younger than its hours; it is due then too.
    """
    newest = max((row["at"] for row in rows), default=0.0)
    return now - newest > (every_h - 0.5) * 3600


def late(rows: Sequence[Row], parts: Iterable[str], every_h: float, now: float) -> list[str]:
    """The parts of which no backup is young enough, in words."""
    found = []
    for part in parts:
        newest = max((row["at"] for row in rows if row["part"] == part), default=None)
        if newest is None:
            found.append(f"{part}: none")
        elif now - newest > 2 * every_h * 3600:
            found.append(f"{part}: the newest is {age(now - newest)} old")
    return found


def table(rows: Iterable[Row], now: float) -> list[Row]:
    """For people and programs: a line for each part of each backup."""
    return [
        {
            "backup": row["backup"],
            "part": row["part"],
            "age": age(now - row["at"]),
            "size": size(row["bytes"]),
            "host": row["host"],
            "of": row["of"],
        }
        for row in rows
    ]


def age(seconds: float) -> str:
    """A time span in its largest unit."""
    for unit, length in (("days", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def size(count: int) -> str:
    """A number of bytes, in binary units."""
    for unit, length in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= length:
            return f"{count / length:.1f} {unit}"
    return f"{count} B"


def too_new(row: Row, version: str) -> str:
    """Why Slurm here cannot read a part of a newer one; empty if it can.

    version: str, of Slurm here, such as ``24.11.5``. Slurm reads what its own and the two or three
        major versions before it wrote, and refuses what a newer one did.
    """
    made = row.get("slurm") or ""
    if not made or not version or _major(made) <= _major(version):
        return ""
    return f"it was made under Slurm {made}, and here is {version}, which cannot read it"


def _major(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split(".")[:2])


# --- SQL ------------------------------------------------------------------------------------------

MAKE_LOADED = f"DROP DATABASE IF EXISTS {LOADED}; CREATE DATABASE {LOADED};"
DROP_LOADED = f"DROP DATABASE IF EXISTS {LOADED};"


def tables(schema: str) -> str:
    """SQL that prints a database's tables, one a line.

    schema: str, DATABASE or LOADED
    """
    return (
        "SELECT TABLE_NAME FROM information_schema.TABLES "  # noqa: S608
        f"WHERE TABLE_SCHEMA = '{schema}' AND TABLE_TYPE = 'BASE TABLE' ORDER BY TABLE_NAME;"
    )


def count_jobs(schema: str, cluster: str, since: float = 0) -> str:
    """SQL that prints how many jobs were submitted after a time, and when the last one was.

    schema: str, DATABASE or LOADED; cluster: str, by its name in the plan
    since: float, seconds since the epoch
    """
    return (
        f"SELECT COUNT(*), COALESCE(MAX(time_submit), 0) FROM {schema}.`{cluster}_job_table` "  # noqa: S608
        f"WHERE time_submit > {int(since)};"
    )


def swap(present: Sequence[str], loaded: Sequence[str]) -> str:
    """SQL that puts the loaded tables in the place of the present ones, in one statement.

    present, loaded: the tables of both databases
    """
    moves = [f"{DATABASE}.`{table}` TO {REPLACED}.`{table}`" for table in present]
    moves += [f"{LOADED}.`{table}` TO {DATABASE}.`{table}`" for table in loaded]
    return (
        f"DROP DATABASE IF EXISTS {REPLACED}; CREATE DATABASE {REPLACED}; "
        f"CREATE DATABASE IF NOT EXISTS {DATABASE}; RENAME TABLE {', '.join(moves)}; "
        f"DROP DATABASE {REPLACED}; DROP DATABASE {LOADED};"
    )
