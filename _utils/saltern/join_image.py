"""The join register as a whole: taken while it is in use, and put back the same way."""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

from saltern.join_book import Book, BookError

_BUSY_S = 20  # until another process's transaction is over


def take(book: Book) -> bytes:
    """All of a register at one moment, as the bytes of a SQLite file. Raises BookError."""
    book.hosts()  # its place is sound, and it has its tables
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / book.path.name
        try:
            with (
                contextlib.closing(sqlite3.connect(book.path, timeout=_BUSY_S)) as source,
                contextlib.closing(sqlite3.connect(path)) as copy,
            ):
                source.backup(copy)
        except sqlite3.Error as error:
            raise BookError(f"The join register {book.path}: {error}.") from None
        return path.read_bytes()


def put_back(book: Book, image: bytes) -> None:
    """Put another register in the place of one, in one transaction; who has it open goes on.

    image: what ``take`` returned. Raises BookError when it is none; the register is as it was.
    """
    with _opened(image) as source:
        book.hosts()
        try:
            with contextlib.closing(sqlite3.connect(book.path, timeout=_BUSY_S)) as target:
                source.backup(target)
        except sqlite3.Error as error:
            raise BookError(f"The join register {book.path}: {error}; it is as it was.") from None


def hosts(image: bytes) -> dict[str, str]:
    """The admitted hosts of what ``take`` returned, with their keys' fingerprints.

    Raises BookError when it is none.
    """
    with _opened(image) as book:
        return dict(book.execute("SELECT id, fingerprint FROM hosts ORDER BY id"))


@contextlib.contextmanager
def _opened(image: bytes) -> Iterator[sqlite3.Connection]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "register.db"
        path.write_bytes(image)
        with contextlib.closing(sqlite3.connect(path)) as book:
            try:
                book.execute("SELECT COUNT(*) FROM hosts")
            except sqlite3.Error as error:
                raise BookError(f"The backup of the join register is none: {error}.") from None
            yield book
