"""Fixed ids: does an account of the plan fit what a host already has?"""

from __future__ import annotations

from collections.abc import Mapping

from saltern.problem import Problem

Ids = Mapping[str, int]  # name: number


def conflicts(name: str, uid: int, gid: int, users: Ids, groups: Ids) -> list[Problem]:
    """Why an account cannot get its ids here: it has others, or they have another owner."""
    found = []
    for kind, number, known in (("user", uid, users), ("group", gid, groups)):
        if name in known and known[name] != number:
            found.append(
                Problem(
                    f"{kind} {name}",
                    f"{kind[0]}id {known[name]}",
                    f"{number}, as the plan says",
                    f"stop its daemons, give its files to {number}, then change the {kind}'s id",
                )
            )
        for owner, taken in known.items():
            if taken == number and owner != name:
                found.append(
                    Problem(
                        f"{kind} {name}",
                        f"{kind[0]}id {number} taken by {owner}",
                        "a free number",
                        f"move {owner} away, or change the plan",
                    )
                )
    return found
