"""Where directory, plan and Slurm's accounting say different things of a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from saltern.sacctmgr_model import ROOT
from saltern.sacctmgr_wanted import association, lower

Row = Mapping[str, str]
Dump = Mapping[str, Any]  # a tree as plain data (sacctmgr_data.of)


def users(present: Dump) -> list[str]:
    """The users of Slurm's accounting, without root."""
    return sorted({association(name)[1] for name in present["associations"]} - {ROOT, ""})


def rows(
    people: Sequence[str] | None,
    may_log_in: Sequence[str],
    wanted: Dump,
    present: Dump,
    unknown_here: Sequence[str],
) -> list[Row]:
    """One row for each finding, by user.

    people: the directory's users; None without a directory
    may_log_in: those whom login hosts let in
    unknown_here: the users of Slurm's accounting whom the controller does not know
    """
    return sorted(
        (
            {"user": user, "finding": finding, "means": means}
            for user, finding, means in _found(people, may_log_in, wanted, present, unknown_here)
        ),
        key=lambda row: (row["user"], row["finding"]),
    )


def _found(
    people: Sequence[str] | None,
    may_log_in: Sequence[str],
    wanted: Dump,
    present: Dump,
    unknown_here: Sequence[str],
) -> Iterator[tuple[str, str, str]]:
    accounts: dict[str, set[str]] = {}
    for name in present["associations"]:
        account, user, _ = association(name)
        if user not in ("", ROOT):
            accounts.setdefault(user, set()).add(account)
    for user in may_log_in:
        if lower(user) not in accounts:
            yield user, "no account", "can log in, and submit nothing"
    known = None if people is None else {lower(user) for user in people}
    for user, mine in accounts.items():
        if known is not None and user not in known and user in unknown_here:
            yield user, "left", f"in Slurm ({', '.join(sorted(mine))}), nowhere else"
        elif user in unknown_here:
            yield user, "unknown to the controller", "his jobs would be refused"
        if user not in wanted["users"]:
            yield user, "not wanted", "neither plan nor directory gives him an account"
        default = present["users"].get(user, {}).get("default_account")
        if default and default not in mine:
            yield user, "default account gone", f"{default}, of which he is no member"
