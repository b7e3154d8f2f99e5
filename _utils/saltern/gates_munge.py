"""munge's part of the gate of phase 1: files as munged demands them, and a round trip.

munged refuses to start for each of the faults below, and says it only in its log; with --force it
would start all the same, and so it is never used. Source of the rules: munged(8), FILES and
SECURITY, and munged's own messages (tests/unit/test_gates_munge.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from saltern.problem import Problem

Facts = Mapping[str, Any]

KEY = "/etc/munge/munge.key"
KEY_MODE = "0400"
KEY_LEAST_BYTES = 32
# made by its unit while it runs; everyone must reach the socket in it
RUN = {"/run/munge": "0755"}
# made by munged itself; whoever ran it by hand as root left them to root
MADE = ("/var/log/munge/munged.log", "/var/lib/munge/munged.seed")

# unmunge's word for a credential, and what it says of the key and the clock. One that was seen
# before, or is old, was still sealed with the same key: unmunge looks at the seal first.
SAME_KEY = ("Success", "Replayed credential", "Expired credential")
ADVICE = {
    "Rewound credential": "set the clock: the other host's is ahead",
    "Invalid credential": "the munge keys differ: run the state p1_foundation.munge on both",
}


def munge(facts: Facts) -> list[Problem]:
    """Why munge does not hold here.

    facts: ``uid`` of munge in the plan; ``wanted`` {path: mode}; ``paths`` {path: {uid, mode, size}
    or None}, the wanted ones and those of MADE; ``parents`` likewise; ``local`` {status}; ``peers``
    {name: {status}}; ``waited_s``.
    """
    return [
        *_files(facts),
        *_key(facts["paths"].get(KEY)),
        *_parents(facts),
        *_local(facts["local"]["status"]),
        *_round_trip(facts),
    ]


def _files(facts: Facts) -> Iterator[Problem]:
    uid = facts["uid"]
    for path, mode in facts["wanted"].items():
        state = facts["paths"][path]
        if state is None and path in RUN:
            continue  # munged is down, and that is said once
        if state is None:
            yield Problem(
                path, "nothing", f"mode {mode}, owned by munge", "run the state p1_foundation.munge"
            )
            continue
        if state["mode"] != int(mode, 8):
            yield Problem(path, f"mode {state['mode']:04o}", mode, f"chmod {mode} {path}")
        yield from _owner(path, state, uid)
    for path in MADE:
        state = facts["paths"][path]
        if state is not None:
            yield from _owner(path, state, uid)


def _owner(path: str, state: Mapping[str, int], uid: int) -> Iterator[Problem]:
    if state["uid"] != uid:
        yield Problem(path, f"owner {state['uid']}", f"{uid} (munge)", f"chown munge: {path}")


def _key(state: Mapping[str, int] | None) -> Iterator[Problem]:
    if state is not None and state["size"] < KEY_LEAST_BYTES:
        yield Problem(
            KEY,
            f"{state['size']} bytes",
            f"{KEY_LEAST_BYTES} or more",
            "run the state p1_foundation.munge",
        )


def _parents(facts: Facts) -> Iterator[Problem]:
    for path, state in facts["parents"].items():
        if state is None:
            continue
        if state["mode"] & 0o022 and not state["mode"] & 0o1000:
            yield Problem(
                path,
                f"mode {state['mode']:04o}, open to others without the sticky bit",
                "a parent folder of munge's files that only its owner may write",
                f"chmod go-w {path}",
            )
        if state["uid"] not in (0, facts["uid"]):
            yield Problem(path, f"owner {state['uid']}", "root or munge", f"chown root {path}")


def _local(status: str) -> Iterator[Problem]:
    if status != "Success":
        yield Problem("munge on this host", status, "Success", "systemctl status munge")


def _round_trip(facts: Facts) -> Iterator[Problem]:
    """One readable peer is enough: whoever has another key than the rest closes its own gate.

    A cluster of one host has no peer; and a host whose munge is down has asked nobody.
    """
    peers = facts["peers"]
    if not peers or any(peer["status"] in SAME_KEY for peer in peers.values()):
        return
    hints = [ADVICE[peer["status"]] for peer in peers.values() if peer["status"] in ADVICE]
    yield Problem(
        "munge round trip with another host",
        "; ".join(f"{name}: {peer['status']}" for name, peer in peers.items()),
        "a credential of one of them that this host can read",
        hints[0] if hints else f"bring munge up there; waited {facts['waited_s']:.0f} s for it",
    )
