"""Salted password hashes as OpenLDAP keeps them, for passwords of random characters only.

SHA-1 with a salt is no protection for what people choose; Saltern's own are 40 random characters.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

_SCHEME = "{SSHA}"
_DIGEST = 20  # bytes of SHA-1
_SALT = 8


def made(password: str) -> str:
    """A new hash."""
    salt = secrets.token_bytes(_SALT)
    return _SCHEME + base64.b64encode(_digest(password, salt) + salt).decode("ascii")


def fits(password: str, found: str) -> bool:
    """Whether a hash is of this password."""
    if not found.startswith(_SCHEME):
        return False
    raw = base64.b64decode(found.removeprefix(_SCHEME))
    return hmac.compare_digest(_digest(password, raw[_DIGEST:]), raw[:_DIGEST])


def _digest(password: str, salt: bytes) -> bytes:
    return hashlib.sha1(password.encode() + salt).digest()  # noqa: S324 - see above
