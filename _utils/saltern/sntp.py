"""One question to a time server (RFC 4330, SNTP): texts of bytes only, no sockets."""

from __future__ import annotations

import struct

PORT = 123
PACKET = 48
_CLIENT = 0x23  # version 4, mode 3
_MODE, _SERVER = 0x07, 4
_UNSYNCHRONISED = 3  # leap indicator
_TO_UNIX = 2208988800  # seconds from 1900 to 1970


def question() -> bytes:
    """What a client sends."""
    return bytes([_CLIENT]) + bytes(PACKET - 1)


def ahead(answer: bytes, sent: float, received: float) -> float | None:
    """By how many seconds this host's clock is ahead of a server's; None if that is no answer.

    sent, received: this host's clock at the question and at the answer, seconds since 1970
    """
    if len(answer) < PACKET or answer[0] & _MODE != _SERVER or answer[0] >> 6 == _UNSYNCHRONISED:
        return None
    heard, told = (_seconds(answer, at) for at in (32, 40))
    return ((sent - heard) + (received - told)) / 2


def _seconds(answer: bytes, at: int) -> float:
    whole, part = struct.unpack_from("!II", answer, at)
    return float(whole - _TO_UNIX + part / 2**32)
