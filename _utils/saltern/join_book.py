"""The master's book of joining: admission register, queue and history, in one SQLite file.
file.

Every call is one transaction, so a cut leaves the book as it was before or after, and several
processes of the master can write in it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Row = dict[str, Any]

# How long a process waits for another one's transaction, in seconds; one takes milliseconds.
_BUSY_S = 20
# What is remembered of keys that nobody knows: bounded, because anyone can show some.
_KEYS_KEPT = 1000
_HISTORY_KEPT = 100_000  # lines; some years of a cluster of 1,000 nodes

_TABLES = """
CREATE TABLE IF NOT EXISTS hosts (
    id TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, proof TEXT NOT NULL, by TEXT NOT NULL,
    at REAL NOT NULL, joined_at REAL, steps TEXT);
CREATE TABLE IF NOT EXISTS expected (
    id TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, by TEXT NOT NULL, at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS keys (
    id TEXT PRIMARY KEY, outcome TEXT NOT NULL, reason TEXT NOT NULL, at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS knocks (id TEXT PRIMARY KEY, started INTEGER NOT NULL, at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS queue (
    id TEXT PRIMARY KEY, state TEXT NOT NULL, reason TEXT NOT NULL, step TEXT NOT NULL,
    attempts INTEGER NOT NULL, queued_at REAL NOT NULL, due REAL NOT NULL);
CREATE TABLE IF NOT EXISTS history (
    number INTEGER PRIMARY KEY, at REAL NOT NULL, id TEXT NOT NULL, what TEXT NOT NULL,
    by TEXT NOT NULL, detail TEXT NOT NULL);
"""


class BookError(Exception):
    """The book cannot be used; the text says where and what to do."""


class Book:
    """The book at a path; its folder and file are made on first use, for root alone."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    # --- the register -----------------------------------------------------------------------------

    def host(self, minion_id: str) -> Row | None:
        """An admitted host, or None: id, fingerprint, proof, by, at, joined_at, steps."""
        return self._one("SELECT * FROM hosts WHERE id = ?", minion_id)

    def hosts(self) -> list[Row]:
        """Every admitted host."""
        return self._all("SELECT * FROM hosts ORDER BY id")

    def admit(self, minion_id: str, fingerprint: str, proof: str, by: str, at: float) -> None:
        """Enter a host, or its new key: from now on it gets what its roles need."""
        with self._open() as book:
            book.execute(
                "INSERT INTO hosts (id, fingerprint, proof, by, at) VALUES (?, ?, ?, ?, ?) "
                "ON CONFLICT (id) DO UPDATE SET fingerprint = excluded.fingerprint, "
                "proof = excluded.proof, by = excluded.by, at = excluded.at, joined_at = NULL",
                (minion_id, fingerprint, proof, by, at),
            )
            book.execute("DELETE FROM keys WHERE id = ?", (minion_id,))
            book.execute("DELETE FROM expected WHERE id = ?", (minion_id,))
            _note(book, at, minion_id, "admitted", by, f"{proof}, key {fingerprint}")

    def forget(self, minion_id: str, what: str, by: str, at: float) -> None:
        """Take a host out of the register and the queue."""
        with self._open() as book:
            for table in ("hosts", "expected", "keys", "queue"):
                book.execute(f"DELETE FROM {table} WHERE id = ?", (minion_id,))  # noqa: S608
            _note(book, at, minion_id, what, by, "")

    def expect(self, minion_id: str, fingerprint: str, by: str, at: float) -> None:
        """Remember the fingerprint of a key that has not been shown yet."""
        with self._open() as book:
            book.execute(
                "INSERT OR REPLACE INTO expected VALUES (?, ?, ?, ?)",
                (minion_id, fingerprint, by, at),
            )
            _note(book, at, minion_id, "fingerprint named", by, fingerprint)

    def expected(self, minion_id: str) -> Row | None:
        """The fingerprint that a person named: id, fingerprint, by, at."""
        return self._one("SELECT * FROM expected WHERE id = ?", minion_id)

    # --- what the reactor saw
    # -----------------------------------------------------------------------

    def knock(self, minion_id: str, started: bool, at: float) -> None:
        """Note that an id showed its key, or that its minion started; the worker looks at it."""
        with self._open() as book:
            book.execute(
                "INSERT INTO knocks VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
                "started = MAX(started, excluded.started), at = excluded.at",
                (minion_id, int(started), at),
            )

    def knocks(self) -> list[Row]:
        """What has not been looked at: id, started, at."""
        return self._all("SELECT * FROM knocks ORDER BY at, id")

    def answered(self, knock: Row) -> None:
        """A knock was looked at; a newer one of the same id stays."""
        with self._open() as book:
            book.execute("DELETE FROM knocks WHERE id = ? AND at = ?", (knock["id"], knock["at"]))

    # --- keys that are not admitted ---------------------------------------------------------------

    def key_seen(
        self, minion_id: str, outcome: str, reason: str, at: float, stands: bool = False
    ) -> bool:
        """Note what came of a key. True when that is news: a minion asks every few seconds.

        stands: the key was refused before, and what was said then stands
        """
        with self._open() as book:
            found = book.execute(
                "SELECT outcome, reason FROM keys WHERE id = ?", (minion_id,)
            ).fetchone()
            if found and (stands or tuple(found) == (outcome, reason)):
                return False
            book.execute(
                "INSERT OR REPLACE INTO keys VALUES (?, ?, ?, ?)", (minion_id, outcome, reason, at)
            )
            book.execute(
                "DELETE FROM keys WHERE id NOT IN (SELECT id FROM keys ORDER BY at DESC LIMIT ?)",
                (_KEYS_KEPT,),
            )
            if outcome != "waiting":  # every new host waits for a moment
                _note(book, at, minion_id, outcome, "", reason)
        return True

    def unadmitted(self) -> list[Row]:
        """Keys that are not admitted, newest first: id, outcome, reason, at."""
        return self._all("SELECT * FROM keys ORDER BY at DESC, id")

    # --- the queue --------------------------------------------------------------------------------

    def enqueue(self, minion_id: str, at: float) -> bool:
        """Queue a host, due at once; one that stands there or is in work stays. True if it is new.

        A host that waits for another try is due at once: its start is news.
        """
        with self._open() as book:
            found = book.execute("SELECT state FROM queue WHERE id = ?", (minion_id,)).fetchone()
            if found is None:
                book.execute(
                    "INSERT INTO queue VALUES (?, 'waiting', 'queued', '', 0, ?, ?)",
                    (minion_id, at, at),
                )
                return True
            book.execute(
                "UPDATE queue SET due = ? WHERE id = ? AND state = 'waiting'", (at, minion_id)
            )
        return False

    def due(self, at: float, most: int) -> list[Row]:
        """The hosts that wait and are due, the longest waiting first."""
        return self._all(
            "SELECT * FROM queue WHERE state = 'waiting' AND due <= ? ORDER BY due, queued_at "
            "LIMIT ?",
            at,
            most,
        )

    def ready(self, minion_id: str, reason: str) -> None:
        """A host that was asked and needs work: it waits for room, and is not asked again."""
        with self._open() as book:
            book.execute(
                "UPDATE queue SET state = 'ready', reason = ? WHERE id = ? AND state = 'waiting'",
                (reason, minion_id),
            )

    def next_ready(self, most: int) -> list[str]:
        """The hosts that wait for room, the longest queued first."""
        found = self._all(
            "SELECT id FROM queue WHERE state = 'ready' ORDER BY queued_at, id LIMIT ?", most
        )
        return [row["id"] for row in found]

    def queue(self) -> list[Row]:
        """Everything in the queue: id, state, reason, step, attempts, queued_at, due."""
        return self._all("SELECT * FROM queue ORDER BY state DESC, queued_at, id")

    def take(self, minion_id: str) -> int:
        """Take a host into work; the number of the try, 0 if it is not there or someone has it."""
        with self._open() as book:
            done = book.execute(
                "UPDATE queue SET state = 'working', reason = '', attempts = attempts + 1 "
                "WHERE id = ? AND state IN ('waiting', 'ready')",
                (minion_id,),
            )
            if done.rowcount != 1:
                return 0
            found = book.execute("SELECT attempts FROM queue WHERE id = ?", (minion_id,))
            return int(found.fetchone()["attempts"])

    def in_work(self) -> list[str]:
        """The hosts in work."""
        return [row["id"] for row in self._all("SELECT id FROM queue WHERE state = 'working'")]

    def step(self, minion_id: str, step: str) -> None:
        """What is being done with a host in work."""
        with self._open() as book:
            book.execute("UPDATE queue SET step = ? WHERE id = ?", (step, minion_id))

    def wait(self, minion_id: str, reason: str, due: float, tried: bool = False) -> None:
        """Put a host back, with the reason for its wait and the time of the next look.

        tried: the look itself was a try, so that the next pause is longer
        """
        with self._open() as book:
            _put_back(book, minion_id, reason, due)
            if tried:
                book.execute("UPDATE queue SET attempts = attempts + 1 WHERE id = ?", (minion_id,))

    def failed(self, minion_id: str, reason: str, at: float, due: float) -> None:
        """Put a host back after a failed try."""
        with self._open() as book:
            _put_back(book, minion_id, reason, due)
            _note(book, at, minion_id, "join failed", "", reason)

    def joined(self, minion_id: str, at: float, steps: Mapping[str, float]) -> None:
        """A host is done: out of the queue, with the seconds of each step.

        One that had joined and needed nothing now is no history: they are asked at each start.
        """
        with self._open() as book:
            book.execute("DELETE FROM queue WHERE id = ?", (minion_id,))
            before = book.execute("SELECT joined_at FROM hosts WHERE id = ?", (minion_id,))
            again = any(row["joined_at"] is not None for row in before)
            book.execute(
                "UPDATE hosts SET joined_at = ?, steps = COALESCE(?, steps) WHERE id = ?",
                (at, json.dumps(steps) if steps else None, minion_id),
            )
            if steps or not again:
                took = ", ".join(f"{step} {seconds:.1f} s" for step, seconds in steps.items())
                _note(book, at, minion_id, "joined", "", took)

    def drop(self, minion_id: str) -> None:
        """Out of the queue: there was nothing to do."""
        with self._open() as book:
            book.execute("DELETE FROM queue WHERE id = ?", (minion_id,))

    def recover(self) -> list[str]:
        """Put back what was in work when the master ended; the names."""
        with self._open() as book:
            found = book.execute("SELECT id FROM queue WHERE state = 'working'").fetchall()
            book.execute(
                "UPDATE queue SET state = 'waiting', step = '', due = 0, "
                "reason = 'the master was restarted', attempts = MAX(attempts - 1, 0) "
                "WHERE state = 'working'"
            )
            book.execute("UPDATE queue SET state = 'waiting', due = 0 WHERE state = 'ready'")
        return [row["id"] for row in found]

    # --- history ----------------------------------------------------------------------------------

    def note(self, minion_id: str, what: str, by: str, detail: str, at: float) -> None:
        """A line of history."""
        with self._open() as book:
            _note(book, at, minion_id, what, by, detail)

    def history(self, most: int) -> list[Row]:
        """The last lines of history, oldest first: number, at, id, what, by, detail."""
        found = self._all("SELECT * FROM history ORDER BY number DESC LIMIT ?", most)
        return found[::-1]

    # --- the file ---------------------------------------------------------------------------------

    def _one(self, question: str, *values: Any) -> Row | None:
        found = self._all(question, *values)
        return found[0] if found else None

    def _all(self, question: str, *values: Any) -> list[Row]:
        with self._open() as book:
            return [dict(row) for row in book.execute(question, values)]

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A connection in a transaction of its own."""
        try:
            self._check_place()
            book = sqlite3.connect(self.path, timeout=_BUSY_S, isolation_level=None)
        except (OSError, sqlite3.Error) as error:
            raise BookError(f"The join register {self.path}: {error}.") from None
        try:
            book.row_factory = sqlite3.Row
            book.executescript(_TABLES)
            book.execute("BEGIN IMMEDIATE")
            yield book
            book.execute("COMMIT")
        except sqlite3.Error as error:
            raise BookError(
                f"The join register {self.path}: {error}. Nothing was changed. If the file is "
                "damaged, restore it from a backup: without it no host gets a secret."
            ) from None
        finally:
            book.close()

    def _check_place(self) -> None:
        folder = self.path.parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = folder.lstat()
        if state.st_uid != os.geteuid() or stat.S_IMODE(state.st_mode) & 0o022:
            raise OSError(
                f"{folder} can be written by others than uid {os.geteuid()} (mode "
                f"{stat.S_IMODE(state.st_mode):04o}); whoever can write there can admit hosts"
            )
        if not self.path.exists():
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o600))


def _put_back(book: sqlite3.Connection, minion_id: str, reason: str, due: float) -> None:
    book.execute(
        "UPDATE queue SET state = 'waiting', step = '', reason = ?, due = ? WHERE id = ?",
        (reason, due, minion_id),
    )


def _note(
    book: sqlite3.Connection, at: float, minion_id: str, what: str, by: str, detail: str
) -> None:
    book.execute(
        "INSERT INTO history (at, id, what, by, detail) VALUES (?, ?, ?, ?, ?)",
        (at, minion_id, what, by, detail),
    )
    book.execute(
        "DELETE FROM history WHERE number <= (SELECT MAX(number) FROM history) - ?",
        (_HISTORY_KEPT,),
    )
