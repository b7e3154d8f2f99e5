"""Which key may become which host: one decision on what the master knows of it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from saltern import roles

# What Saltern takes as a host's name at all (RFC 1123): it becomes a path on the master, a word in
# slurm.conf and a part of an event's tag.
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")

# Proofs, as the register keeps them.
PRESEEDED = "preseeded"
FINGERPRINT = "fingerprint"
TOKEN = "join token"  # noqa: S105 - the word for it
BY_HAND = "accepted by hand"
REPLACED = "replaced by a person"


@dataclass(frozen=True)
class Keys:
    """The fingerprints that Salt's master holds for one id, by the state of the key."""

    accepted: str | None = None
    pending: str | None = None
    rejected: str | None = None
    denied: str | None = None  # shown while another one is accepted

    @property
    def shown(self) -> str | None:
        """The key that asks."""
        return self.pending or self.rejected or self.accepted or self.denied


@dataclass(frozen=True)
class Known:
    """What is known of an id beside its keys."""

    roles: frozenset[str] | None  # by the plan or an elastic pattern; None: not in the plan
    registered: str | None = None  # the fingerprint in the register
    expected: str | None = None  # the fingerprint that the plan or a person names
    token: bool = False  # whether a join token has been given out


@dataclass(frozen=True)
class Decision:
    """What comes of a key.

    outcome: ``admitted`` (in the register and accepted), ``admit`` (enter it now), ``waiting``,
        ``refused``, ``second key``, or ``none`` (there is no key)
    action: what to do with Salt's key: ``accept``, ``reject`` or nothing
    """

    outcome: str
    reason: str = ""
    action: str = ""
    proof: str = ""
    fingerprint: str = ""
    stands: bool = False  # the key was refused before: what was said then is the reason


def is_host_name(minion_id: str) -> bool:
    """Whether an id can be a host's name."""
    return bool(_NAME.fullmatch(minion_id))


def judge(minion_id: str, keys: Keys, known: Known) -> Decision:
    """What comes of the key that an id shows."""
    if not is_host_name(minion_id):
        return _refused(keys, f"{minion_id!r} is no host name: letters, digits and hyphens")
    if keys == Keys():
        return Decision("none")
    if known.registered:
        return _registered(minion_id, keys, known.registered)
    if known.roles is None:
        return _refused(
            keys,
            f"the plan has no host {minion_id} and no elastic pattern that fits it; add it there, "
            f"or correct the minion's id",
        )
    if known.expected:
        return _by_fingerprint(minion_id, keys, known.expected)
    return _without_name(minion_id, keys, known)


def _without_name(minion_id: str, keys: Keys, known: Known) -> Decision:
    """A key whose fingerprint nobody named."""
    if keys.accepted:
        return _accepted_by_salt(minion_id, keys.accepted, known)
    if keys.rejected:
        return Decision(
            "refused",
            f"its key {keys.rejected} was rejected; if it is the host's, "
            f"`salt-run saltern.admit {minion_id} fingerprint={keys.rejected}`",
            stands=True,
        )
    return Decision(
        "waiting",
        f"no proof for its key {keys.shown}: compare it with `salt-call --local key.finger` on "
        f"the host, then `salt-run saltern.admit {minion_id} fingerprint=…`",
    )


def _registered(minion_id: str, keys: Keys, registered: str) -> Decision:
    others = [
        key
        for key in (keys.accepted, keys.pending, keys.rejected, keys.denied)
        if key and key != registered
    ]
    if others:
        reason = (
            f"a second key {others[0]} for a host that is registered with {registered}: it was "
            f"installed anew, or something claims its name. When you know, "
            f"`salt-run saltern.replace {minion_id}`"
        )
        wrong = keys.accepted and keys.accepted != registered
        return Decision("second key", reason, action="reject" if wrong else "")
    action = "" if keys.accepted else "accept"
    return Decision("admitted", action=action, fingerprint=registered)


def _by_fingerprint(minion_id: str, keys: Keys, expected: str) -> Decision:
    if keys.shown == expected:
        action = "" if keys.accepted else "accept"
        return Decision("admit", action=action, proof=FINGERPRINT, fingerprint=expected)
    return _refused(
        keys,
        f"its key is {keys.shown}, expected {expected}: another host with this id, or the "
        f"fingerprint is of an earlier installation. "
        f"`salt-run saltern.admit {minion_id} fingerprint=…` names another",
    )


def _accepted_by_salt(minion_id: str, accepted: str, known: Known) -> Decision:
    """A key that Salt accepted: by the join token, or a person's salt-key."""
    given = known.roles or frozenset()
    if not known.token:
        return Decision(
            "waiting",
            f"its key {accepted} was accepted outside Saltern; "
            f"`salt-run saltern.admit {minion_id} fingerprint=…` admits the host",
        )
    if not given or given - roles.JOBS:
        listed = ", ".join(sorted(given))
        return Decision(
            "refused",
            f"a join token does not admit a host of the roles {listed}, only of "
            f"{', '.join(sorted(roles.JOBS))}. `salt-run saltern.invite {minion_id}` "
            "makes a key for it",
            action="reject",
        )
    return Decision("admit", proof=TOKEN, fingerprint=accepted)


def _refused(keys: Keys, reason: str) -> Decision:
    action = "reject" if keys.accepted else ""
    return Decision("refused", reason, action=action, stands=bool(keys.rejected))
