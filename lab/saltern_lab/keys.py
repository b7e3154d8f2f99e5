"""Fingerprints of Salt's keys: what a minion holds, against what its master was shown."""

import hashlib


def fingerprint(pem: str) -> str:
    """The SHA-256 fingerprint of a PEM key, as `salt-key --finger` prints it."""
    lines = [line.strip() for line in pem.splitlines() if line.strip()]
    digest = hashlib.sha256("".join(f"{line}\n" for line in lines[1:-1]).encode()).hexdigest()
    return ":".join(digest[start : start + 2] for start in range(0, len(digest), 2))
