"""What a change of Slurm's files asks for: nothing, a reconfigure, a restart, or a person."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import IntEnum

from saltern.problem import Problem
from saltern.slurm_conf_checks import expanded


class Action(IntEnum):
    """What applies a change; of several, the greatest."""

    NOTHING = 0
    RECONFIGURE = 1
    RESTART = 2


# scontrol(1), reconfigure, since 23.11, the oldest that Saltern builds: new processes replace
# the old ones if they start well, and jobs live on. It cannot change listening ports or
# authentication; every other key needs no more than that.
_RESTARTS = frozenset(
    {
        "slurmctldport",
        "slurmctldhost",
        "slurmctldpidfile",
        "authalttypes",
        "authaltparameters",
        "authinfo",
        "maxnodecount",
    }
)
# Under a running cluster these lose the jobs' records (slurm.conf(5)), or need every daemon stopped
# and no job left: key: (path in the plan, what to do).
_DRAIN = "drain the cluster and stop every daemon first"
_REFUSED = {
    "authtype": ("slurm:parameters:AuthType", _DRAIN),
    "credtype": ("slurm:parameters:CredType", _DRAIN),
    "switchtype": ("slurm:parameters:SwitchType", "jobs' records would be lost: " + _DRAIN),
    "clustername": ("cluster:name", "accounting and state belong to the old name: put it back"),
    "statesavelocation": (
        "slurm:state_dir",
        "slurmctld would start without its jobs: stop it and copy the folder first",
    ),
}

# What a node is made of. slurmctld aborts and requeues a job whose node has other sockets or cores
# than before ("change in socket/core configuration of allocated nodes", measured with 24.11.5); the
# others let it run on CPUs, threads or GPUs that the node no longer offers. Memory, features and
# weight are not among them: a reconfigure under jobs does them no harm (measured).
_HARDWARE = (
    "boards",
    "cpus",
    "sockets",
    "socketsperboard",
    "corespersocket",
    "threadspercore",
    "corespeccount",
    "cpuspeclist",
    "gres",
)
_PAIR = re.compile(r'(\w+)=("[^"]*"|\S+)')

Files = Mapping[str, str]


def changed(before: Files, after: Files) -> list[str]:
    """What differs, in words, one line for each key or entity."""
    return [text for _, text in _changes(before, after)]


def action(before: Files, after: Files) -> Action:
    """The least that applies these changes; an unknown ``before`` asks for a reconfigure."""
    if not before:
        return Action.RECONFIGURE
    keys = {key for key, _ in _changes(before, after)}
    if keys & _RESTARTS:
        return Action.RESTART
    return Action.RECONFIGURE if keys else Action.NOTHING


def refused(before: Files, after: Files) -> list[Problem]:
    """Changes that may not be made under a running controller."""
    return [
        Problem(_REFUSED[key][0], text, "no change while slurmctld runs", _REFUSED[key][1])
        for key, text in (_changes(before, after) if before else ())
        if key in _REFUSED
    ]


def removed_nodes(before: Files, after: Files) -> list[str]:
    """The nodes that are declared before and not after."""
    old, new = _nodes(before), _nodes(after)
    return [name for name in old if name not in new]


def reshaped_nodes(before: Files, after: Files) -> dict[str, str]:
    """The nodes that are declared before and after with other hardware: {name: what differs}."""
    old, new = _nodes(before), _nodes(after)
    both = {name: (old[name], new[name]) for name in old if name in new}
    found = {name: _reshaped(*lines) for name, lines in both.items() if lines[0] != lines[1]}
    return {name: words for name, words in found.items() if words}


def _reshaped(old: str, new: str) -> str:
    shapes = [dict(_hardware(line)) for line in (old, new)]
    keys = [key for key in _HARDWARE if shapes[0].get(key) != shapes[1].get(key)]
    return ", ".join(
        f"{key} {shapes[0].get(key, 'none')} -> {shapes[1].get(key, 'none')}" for key in keys
    )


def _hardware(line: str) -> Iterator[tuple[str, str]]:
    return ((key.lower(), value) for key, value in _PAIR.findall(line))


def _nodes(files: Files) -> dict[str, str]:
    """Each declared node's line."""
    lines = entries(files.get("slurm.conf", "")).items()
    declared = [(key.partition("=")[2], line) for key, line in lines if key.startswith("nodename=")]
    return {name: line for text, line in declared for name in expanded(text)}


def _changes(before: Files, after: Files) -> Iterator[tuple[str, str]]:
    """(lower-case key, words) for each difference; comments and the order of lines mean nothing."""
    for name in sorted(before.keys() | after.keys()):
        old, new = entries(before.get(name, "")), entries(after.get(name, ""))
        for key in sorted(old.keys() | new.keys()):
            if old.get(key) != new.get(key):
                yield key.split("=")[0], f"{name}: {_words(key, old.get(key), new.get(key))}"


def _words(key: str, old: str | None, new: str | None) -> str:
    if old is None:
        return f"+ {new}"
    if new is None:
        return f"- {old}"
    return f"{old} -> {new.split('=', 1)[1] if '=' not in key else new}"


_ENTITIES = ("nodename", "nodeset", "partitionname")


def entries(text: str) -> dict[str, str]:
    """The lines of a file by key; nodes and partitions by key and name, for their keys repeat."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        first = stripped.split(" ", 1)[0]
        key, _, value = first.partition("=")
        lower = key.lower()
        if lower in _ENTITIES:
            found[f"{lower}={value}"] = stripped
        elif lower == "slurmctldhost" and lower in found:
            found[lower] += f" {value}"
        else:
            found[lower] = stripped
    return found
