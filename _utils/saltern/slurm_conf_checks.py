"""What is wrong with Slurm's files: what its own parser lets through, and what that refuses.

The master checked the plan; this is the second look, at the very lines that are to be installed.
Every reason names the key's path in the plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from saltern.problem import Problem
from saltern.slurm_conf import File, Line, Pair

# cgroup.conf(5) of 24.11, in lower case. No Slurm client reads this file, so an unknown key would
# first be met by slurmd, as fatal.
_CGROUP_KEYS = frozenset(
    {
        "alloweddevicesfile",
        "allowedramspace",
        "allowedswapspace",
        "cgroupmountpoint",
        "cgroupplugin",
        "constraincores",
        "constraindevices",
        "constrainramspace",
        "constrainswapspace",
        "enablecontrollers",
        "enableextracontrollers",
        "ignoresystemd",
        "ignoresystemdonfailure",
        "maxrampercent",
        "maxswappercent",
        "memoryswappiness",
        "minramspace",
        "signalchildrenprocesses",
        "systemdtimeout",
    }
)
# Keys whose values name plugins, so that each must be a file of the tree.
_PLUGIN_KEYS = re.compile(r"(Type|Types|Plugin|Plugins)$")
_PLUGIN = re.compile(r"^[a-z_]+/[a-z0-9_]+$")


def problems(files: Iterable[File], plugins: Iterable[str] | None = None) -> list[Problem]:
    """What Slurm's parser would let through.

    plugins: the plugin files of the deployed tree (``task_cgroup.so``), None when it is not known
    """
    have = None if plugins is None else frozenset(plugins)
    return [problem for file in files for problem in _file_problems(file, have)]


def _file_problems(file: File, plugins: frozenset[str] | None) -> Iterator[Problem]:
    for line in file.lines:
        for pair in line.pairs:
            yield from _value(pair)
            if plugins is not None and _PLUGIN_KEYS.search(pair.key):
                yield from _plugins(pair, plugins)
        yield from _host(line.pairs[0])
    if file.name == "cgroup.conf":
        yield from _unknown_cgroup_keys(file)
    if file.name == "slurm.conf":
        yield from _names(file)


def _value(pair: Pair) -> Iterator[Problem]:
    if not pair.value:
        yield Problem(pair.origin, "an empty value", f"a value for {pair.key}", "remove the key")
    elif re.search(r"[\s#\"']", pair.value):
        yield Problem(
            pair.origin, repr(pair.value), "a value without blanks, quotes, line breaks or #"
        )


def _host(pair: Pair) -> Iterator[Problem]:
    if pair.key == "SlurmctldHost" and "," in pair.value:
        yield Problem(pair.origin, f"{pair.key}={pair.value}", "one controller a line")


def _plugins(pair: Pair, plugins: frozenset[str]) -> Iterator[Problem]:
    for value in pair.value.split(","):
        if _PLUGIN.match(value) and f"{value.replace('/', '_')}.so" not in plugins:
            yield Problem(
                pair.origin,
                value,
                "a plugin that the deployed Slurm has",
                "see its folder lib/slurm",
            )


def _unknown_cgroup_keys(file: File) -> Iterator[Problem]:
    for line in file.lines:
        if line.pairs[0].key.lower() not in _CGROUP_KEYS:
            yield Problem(line.pairs[0].origin, line.pairs[0].key, "a key of cgroup.conf(5)")


@dataclass
class _Names:
    nodes: set[str] = field(default_factory=set)
    partitions: dict[str, str] = field(default_factory=dict)
    defaults: list[str] = field(default_factory=list)


def _names(file: File) -> Iterator[Problem]:
    """Duplicates, unknown nodes and second defaults, over the whole of slurm.conf."""
    seen = _Names()
    for line in file.lines:
        first = line.pairs[0]
        if first.key == "NodeName":
            yield from _new_nodes(first, seen)
        elif first.key == "NodeSet":
            seen.nodes.add(first.value)
        elif first.key == "PartitionName":
            yield from _partition(line, seen)
    if len(seen.defaults) > 1:
        yield Problem(
            "partitions",
            f"Default=YES in {', '.join(seen.defaults)}",
            "one default partition at most",
        )


def _new_nodes(pair: Pair, seen: _Names) -> Iterator[Problem]:
    names = expanded(pair.value)
    again = [name for name in names if name in seen.nodes]
    if again or len(set(names)) != len(names):
        yield Problem(pair.origin, f"{again[0] if again else pair.value} twice", "each node once")
    seen.nodes.update(names)


def _partition(line: Line, seen: _Names) -> Iterator[Problem]:
    values = {pair.key: pair for pair in line.pairs}
    name = values["PartitionName"]
    other = seen.partitions.setdefault(name.value.lower(), name.value)
    if other != name.value or name.value.lower() == "default":
        yield Problem(name.origin, name.value, f"a name that is not {other} in other letters")
    if values["Default"].value == "YES":
        seen.defaults.append(name.value)
    nodes = values.get("Nodes")
    unknown = [node for node in expanded(nodes.value) if node not in seen.nodes] if nodes else []
    if unknown:
        yield Problem(
            values["Nodes"].origin, f"unknown nodes: {', '.join(unknown[:5])}", "nodes of this file"
        )


def expanded(expression: str) -> list[str]:
    """The names of what the writer wrote: a list of names with one bracket of one range each."""
    return [name for part in expression.split(",") for name in _range(part)]


_ONE_RANGE = re.compile(r"^([^\[]*)\[([0-9]+)-([0-9]+)\](.*)$")


def _range(part: str) -> list[str]:
    match = _ONE_RANGE.match(part)
    if not match:
        return [part]
    prefix, low, high, suffix = match.groups()
    return [f"{prefix}{number:0{len(low)}d}{suffix}" for number in range(int(low), int(high) + 1)]


# --- the parser's refusals ---

_AT_LINE = re.compile(r'Parse error in file \S*?([^/\s]+) line ([0-9]+): "(.*)"')
_OF_KEY = re.compile(
    r"unrecognized key: (?P<unknown>\w+)|(?P<number>\w+) value \".*\" is not"
    r"|Bad value \".*\" for (?P<bad>\w+)"
)
_PREFIX = re.compile(r"^\w+: (error|fatal): (_\w+: )?")
_CLOSING = "Unable to process configuration file"


def refusals(output: str, files: Sequence[File]) -> list[Problem]:
    """What Slurm's parser said, by the plan's key paths."""
    found: dict[Problem, None] = {}
    said: list[str] = []
    for line in output.splitlines():
        match = _AT_LINE.search(line)
        if match:
            where = _at(
                files, match[1], int(match[2]), _key_of(said) or match[3].strip().split("=")[0]
            )
            found[_refusal(where, said or [f"{match[3].strip()!r}, which Slurm cannot read"])] = (
                None
            )
            said = []
        elif _CLOSING not in line and line.strip():
            said.append(_PREFIX.sub("", line.strip()))
    for text in dict.fromkeys(said):
        found[_refusal(_by_words(files, text), [text])] = None
    return list(found)


def _refusal(where: str, said: Sequence[str]) -> Problem:
    return Problem(where, "; ".join(said), "a value that this Slurm accepts")


def _key_of(said: Sequence[str]) -> str | None:
    for text in said:
        match = _OF_KEY.search(text)
        if match:
            return next(group for group in match.groups() if group)
    return None


def _at(files: Sequence[File], name: str, number: int, key: str) -> str:
    lines = next((file.lines for file in files if file.name == name), ())
    if not 2 <= number <= len(lines) + 1:
        return name
    pairs = lines[number - 2].pairs
    return next((pair.origin for pair in pairs if pair.key.lower() == key.lower()), pairs[0].origin)


def _by_words(files: Sequence[File], text: str) -> str:
    """The origin of the pair that a message speaks of: by its key, else by its value."""
    key = _key_of([text])
    words = {key.lower()} if key else set(re.findall(r"[\w/.-]+", text.lower()))
    pairs = [pair for file in files for line in file.lines for pair in line.pairs]
    by_key = [pair.origin for pair in pairs if pair.key.lower() in words]
    by_value = [
        pair.origin for pair in pairs if not pair.value.isdigit() and pair.value.lower() in words
    ]
    return next(iter([*by_key, *by_value]), "slurm:parameters")


# --- the cluster's name ---


def cluster_name(wanted: str, stored: str | None, where: str) -> list[Problem]:
    """A cluster cannot be renamed: its accounting and its saved state belong to the old name.

    stored: what the file ``clustername`` in StateSaveLocation says, None if there is none
    where: its path
    """
    if stored is None or stored == wanted:
        return []
    return [
        Problem(
            "cluster:name",
            f"{wanted}; {where} says {stored}",
            f"{stored}, the cluster that ran here",
            "put the name back, or start a new cluster with an empty state directory",
        )
    ]


def stored_cluster_name(text: str) -> str:
    """The name in the file ``clustername``; 24.11 writes ``name|id``, others the name alone."""
    return text.split("\n", 1)[0].partition("|")[0].strip()
