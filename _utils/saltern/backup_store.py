"""Backups in a folder of one host: ``<folder>/<backup>/<part>/`` with one file and what it is.

A backup shows its name only once it is whole and safe on disk. Nobody else may write on the way to
it, because root reads it back.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import re
import shutil
import stat
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

Row = dict[str, Any]
Write = Callable[[Callable[[bytes], Any]], None]

NAME = "%Y%m%dT%H%M%SZ"  # a backup's name is its time, UTC (strftime)
_IS_NAME = re.compile(r"[0-9]{8}T[0-9]{6}Z\Z")
_IS_PART = re.compile(r"[a-z]+\Z")
_MANIFEST = "backup.json"
_PIECE = 1 << 20
_CUT_S = 86_400  # no backup takes a day
_LEVEL = 3  # gzip: half the time of its default 9 for a tenth more bytes


class BackupError(Exception):
    """A backup cannot be made or used; the text says where and what to do."""


class Store:
    """The backups of a host; the folder is made on first use, for this process's user alone."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(os.path.realpath(folder))

    def keep(
        self, backup: str, part: str, about: Mapping[str, Any], write: Write, file: str
    ) -> Row:
        """Make one part of a backup.

        backup: str, its name; part: str; about: what to remember of it
        write: gets a function that takes bytes, and hands it all of the part
        file: str, the name of its file, which is compressed with gzip
        Returns its row. Raises BackupError; then nothing of it is left.
        """
        place = self._place(backup, part)
        aside = place.with_name(f".{part}.{os.getpid()}")
        try:
            self._check_folder()
            place.parent.mkdir(mode=0o700, exist_ok=True)
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir(mode=0o700)
            row = self._write(aside, {**about, "backup": backup, "part": part, "file": file}, write)
            if place.exists():
                raise BackupError(f"{place} exists already; nothing was written over it.")
            aside.rename(place)
            _flush(place.parent)
        except OSError as error:
            raise BackupError(f"{place}: {error.strerror or error}.") from None
        finally:
            shutil.rmtree(aside, ignore_errors=True)
            with contextlib.suppress(OSError):
                place.parent.rmdir()  # only an empty one goes
        return row

    def _write(self, folder: Path, about: Row, write: Write) -> Row:
        summed = hashlib.sha256()
        with _private(folder / about["file"]) as raw:
            with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=_LEVEL, mtime=0) as packed:

                def take(piece: bytes) -> None:
                    summed.update(piece)
                    packed.write(piece)

                write(take)
            size = raw.tell()
        row = {**about, "bytes": size, "sha256": summed.hexdigest()}
        with _private(folder / _MANIFEST) as file:
            file.write(json.dumps(row, indent=2, sort_keys=True).encode() + b"\n")
        _flush(folder)
        return row

    def rows(self, part: str | None = None) -> list[Row]:
        """What is kept, the newest first: what ``keep`` returned of each part."""
        if not self.folder.is_dir():
            return []
        self._check_folder()
        paths = self.folder.glob(f"*/{part or '[a-z]*'}/{_MANIFEST}")
        found = [_manifest(path) for path in paths if _IS_NAME.match(path.parent.parent.name)]
        return sorted(found, key=lambda row: (row["backup"], row["part"]), reverse=True)

    def row(self, backup: str, part: str) -> Row:
        """What is known of one part. Raises BackupError if it is not kept here."""
        path = self._place(backup, part) / _MANIFEST
        try:
            self._check_folder()
            return _manifest(path)
        except FileNotFoundError:
            names = sorted((row["backup"] for row in self.rows(part)), reverse=True)
            known = ", ".join(names[:5]) or "none"
            raise BackupError(
                f"{self.folder}: found no {part} in a backup {backup}; the newest are {known}."
            ) from None

    def read(self, backup: str, part: str) -> Iterator[bytes]:
        """One part, piece by piece, as it was handed to ``keep``.

        Raises BackupError, at its end too: what came before it was not what had been kept.
        """
        row = self.row(backup, part)
        path = self._place(backup, part) / row["file"]
        summed = hashlib.sha256()
        try:
            with gzip.open(path, "rb") as file:
                while piece := file.read(_PIECE):
                    summed.update(piece)
                    yield piece
        except (OSError, EOFError, zlib.error) as error:
            raise BackupError(f"{path} is damaged: {error}. Take another backup.") from None
        if summed.hexdigest() != row["sha256"]:
            raise BackupError(
                f"{path}: found sha256 {summed.hexdigest()}, expected {row['sha256']} of "
                f"{_MANIFEST} beside it. Take another backup."
            )

    def check(self, backup: str, part: str) -> Row:
        """Read one part through. Returns its row. Raises BackupError if it is not whole."""
        for _ in self.read(backup, part):
            pass
        return self.row(backup, part)

    def prune(self, part: str, keep: int) -> list[str]:
        """Remove all but the newest of a part, and what a cut left.

        Returns the names of the backups that lost it.
        """
        for cut in self.folder.glob(f"*/.{part}.*"):
            if time.time() - cut.stat().st_mtime > _CUT_S:
                shutil.rmtree(cut)
        surplus = [row["backup"] for row in self.rows(part)][keep:]
        for name in surplus:
            place = self._place(name, part)
            shutil.rmtree(place)
            with contextlib.suppress(OSError):
                place.parent.rmdir()
        return surplus

    def _place(self, backup: str, part: str) -> Path:
        if not _IS_NAME.match(backup) or not _IS_PART.match(part):
            raise BackupError(
                f"Found the backup {backup!r}; expected a name such as 20261203T021500Z "
                "(salt-run saltern.backups lists them)."
            )
        return self.folder / backup / part

    def _check_folder(self) -> None:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        own = os.geteuid()
        for path in (self.folder, *self.folder.parents):
            state = path.stat()
            mode = stat.S_IMODE(state.st_mode)
            loose = mode & 0o022 and not mode & stat.S_ISVTX
            if state.st_uid not in (0, own) or loose or (path == self.folder and mode & 0o022):
                raise BackupError(
                    f"{path} has mode {mode:04o} and owner {state.st_uid}; expected one that only "
                    f"uid {own} or root can write: whoever can write there can change what is "
                    "restored. Correct it, or set backup:folder to another folder."
                )
        if stat.S_IMODE(self.folder.stat().st_mode) & 0o055:
            self.folder.chmod(0o700)


def _manifest(path: Path) -> Row:
    try:
        return dict(json.loads(path.read_bytes()))
    except ValueError as error:
        raise BackupError(f"{path} is damaged: {error}. Move its folder away.") from None


@contextlib.contextmanager
def _private(path: Path) -> Iterator[IO[bytes]]:
    """A new file for its owner alone, safe on disk when the context ends."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def _flush(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
