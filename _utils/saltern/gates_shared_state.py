"""Whether several controllers have one state: what each wrote into StateSaveLocation, read by the
others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from saltern.problem import Problem

Facts = Mapping[str, Any]
_MOUNT = "mount one shared file system there on every controller"


def shared_state(facts: Facts) -> list[Problem]:
    """Why this host's controller may not run beside the others.

    facts: ``path`` of StateSaveLocation; ``real``, where it leads; ``error``, why this host could
    not leave its mark there, or empty; ``awaited``, names of the controllers that have to be there
    before this one; ``others`` {name: {``shown``: the mark that it says it wrote, or None;
    ``read``: what stands here under its name, or None; ``error``: why it was not read}}.
    """
    path, real = facts["path"], facts["real"]
    found = []
    if real != path:
        found.append(
            Problem(
                "slurm:state_dir",
                f"{path} leads to {real}",
                "the shared folder itself, for a link may lead to each host's own disk",
                f"set slurm:state_dir to the shared folder, or {_MOUNT}",
            )
        )
    if facts["error"]:
        found.append(Problem(path, facts["error"], "a folder in which slurm may write", _MOUNT))
        return found
    return [*found, *_others(facts)]


def _others(facts: Facts) -> Iterator[Problem]:
    path = facts["path"]
    for name, other in facts["others"].items():
        if other["shown"] is None:
            if name in facts["awaited"]:
                yield Problem(
                    f"controller {name}",
                    "no mark of its own in the Salt mine",
                    f"the mark that it left in {path}",
                    "run the state p4_scheduler.slurmctld there first",
                )
        elif other["read"] != other["shown"]:
            read = other["error"] or ("another one" if other["read"] else "none")
            yield Problem(
                f"{path}, the mark of {name}",
                read,
                f"the one that {name} wrote: two controllers with two states lose jobs",
                _MOUNT,
            )
