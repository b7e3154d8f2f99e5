"""The master's secrets: one file each, made on first use, never overwritten. The only module here
that touches files."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import string
from collections.abc import Callable
from pathlib import Path

from saltern import certificates

MUNGE_KEY_CHARACTERS = 128  # munge takes 32 to 1024 bytes; its own default key has 128.
JWT_KEY_CHARACTERS = 64  # HS256 asks for 32 bytes or more (RFC 7518, 3.2).
PASSWORD_CHARACTERS = 40
LEAST_CHARACTERS = {
    "munge_key": 32,
    "jwt_key": 32,
    "slurmdbd_password": 16,
    "saltern_join_token": 32,
    "directory_client_password": 16,
    "directory_replication_password": 16,
    "directory_ca_key": 128,
    "directory_key": 128,
}

_ALPHABET = string.ascii_letters + string.digits


class SecretError(Exception):
    """The store cannot be used; the text says what to do."""


def _random(length: int) -> Callable[[], str]:
    return lambda: "".join(secrets.choice(_ALPHABET) for _ in range(length))


MAKERS: dict[str, Callable[[], str]] = {
    "munge_key": _random(MUNGE_KEY_CHARACTERS),
    "slurmdbd_password": _random(PASSWORD_CHARACTERS),
    "jwt_key": _random(JWT_KEY_CHARACTERS),
    "saltern_join_token": _random(PASSWORD_CHARACTERS),
    "directory_client_password": _random(PASSWORD_CHARACTERS),
    "directory_replication_password": _random(PASSWORD_CHARACTERS),
    "directory_ca_key": certificates.new_key,
    "directory_key": certificates.new_key,
}
# These are several lines.
_PEM = "-----BEGIN "


class Store:
    """A directory of mode 0700 that belongs to the user of the master process."""

    def __init__(self, directory: str) -> None:
        self.directory = Path(directory)

    def get(self, name: str) -> str:
        """A secret's value; made now if it does not exist. Raises SecretError."""
        path = self.directory / name
        try:
            self._check_directory()
            if not path.exists():
                self._make(path, MAKERS[name]())
            return self._read(path, LEAST_CHARACTERS[name])
        except OSError as error:
            raise SecretError(f"The secret {path}: {error.strerror}.") from None

    def kept(self, name: str, make: Callable[[], str], fits: Callable[[str], bool]) -> str:
        """A text beside the secrets, public by itself, that is made again when it does not fit."""
        path = self.directory / name
        try:
            self._check_directory()
            found = path.read_text(encoding="ascii") if path.exists() else ""
            if not found or not fits(found):
                found = make()
                aside = self._aside(path, found)
                aside.replace(path)
        except OSError as error:
            raise SecretError(f"{path}: {error.strerror}.") from None
        return found

    def _check_directory(self) -> None:
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = self.directory.lstat()
        if not stat.S_ISDIR(state.st_mode):
            raise SecretError(
                f"{self.directory} is not a directory. Move it away; Saltern makes its own."
            )
        self._check_owner_and_mode(self.directory, state, 0o700)

    def _check_owner_and_mode(self, path: Path, state: os.stat_result, mode: int) -> None:
        found = stat.S_IMODE(state.st_mode)
        if state.st_uid != os.geteuid() or found & ~mode:
            raise SecretError(
                f"{path} has mode {found:04o} and owner {state.st_uid}; expected {mode:04o} and "
                "owner "
                f"{os.geteuid()}. Others could have read it: find out who did, then "
                f"chown {os.geteuid()} and chmod {mode:04o} it."
            )

    def _make(self, path: Path, value: str) -> None:
        """Write aside, then link under the name: whoever comes second keeps the first one's
        value."""
        aside = self._aside(path, value + "\n")
        try:
            with contextlib.suppress(FileExistsError):
                os.link(aside, path)
        finally:
            aside.unlink()
        folder = os.open(self.directory, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _aside(self, path: Path, text: str) -> Path:
        """The text in a file of its own, safe on disk, that can take the name."""
        aside = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="ascii") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            aside.unlink()
            raise
        return aside

    def _read(self, path: Path, least: int) -> str:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(descriptor, encoding="ascii", errors="replace") as file:
            self._check_owner_and_mode(path, os.fstat(file.fileno()), 0o600)
            value = file.read().strip("\n")
        whole = value.replace("\n", "").replace(" ", "") if value.startswith(_PEM) else value
        if len(whole) < least or not whole.isprintable() or any(c.isspace() for c in whole):
            raise SecretError(
                f"{path} holds {len(value)} characters or unprintable ones; expected at least "
                f"{least} "
                "printable ones without blanks. It is not made anew, because hosts may still use "
                "the old value: "
                "restore it from a backup, or remove it to have a new one made for every host."
            )
        return value
