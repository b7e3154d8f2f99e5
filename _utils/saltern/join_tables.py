"""The join register as tables for people and programs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from saltern.join_book import Book


def tables(book: Book, last: int, hosts: bool) -> dict[str, Any]:
    """The parts of `salt-run saltern.joins`.

    last: lines of history; hosts: the whole register too
    """
    queue = [
        {
            "host": row["id"],
            "state": row["state"],
            "step": row["step"],
            "tries": row["attempts"],
            "queued": moment(row["queued_at"]),
            "next try": moment(row["due"]) if row["state"] == "waiting" else "",
            "reason": row["reason"],
        }
        for row in book.queue()
    ]
    keys = [
        {
            "id": row["id"],
            "outcome": row["outcome"],
            "since": moment(row["at"]),
            "reason": row["reason"],
        }
        for row in book.unadmitted()
    ]
    history = [
        {
            "at": moment(row["at"]),
            "host": row["id"],
            "what": row["what"],
            "by": row["by"],
            "detail": row["detail"],
        }
        for row in book.history(int(last))
    ]
    register = book.hosts()
    joined = sum(host["joined_at"] is not None for host in register)
    rows = [
        {
            "host": row["id"],
            "proof": row["proof"],
            "by": row["by"],
            "admitted": moment(row["at"]),
            "complete at": moment(row["joined_at"] or 0),
            "key": row["fingerprint"],
        }
        for row in register
    ]
    return {
        "register": f"{len(register)} hosts admitted, {joined} of them joined by the queue",
        **({"hosts": rows or "none"} if hosts else {}),
        "queue": queue or "empty",
        "keys_not_admitted": keys or "none",
        "history": history or "none",
    }


def moment(at: float) -> str:
    """A time of this machine's clock, to the second; empty for 0."""
    return f"{datetime.fromtimestamp(at):%Y-%m-%d %H:%M:%S}" if at else ""
