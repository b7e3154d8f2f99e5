"""Slurm's configuration files as data: what a view means, and the one writer of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from saltern import runs
from saltern import slurm_conf_defaults as defaults
from saltern.gates import real_memory_mb

View = Mapping[str, Any]

HEADER = "# Written by Saltern from the plan; what is changed here is written over."


@dataclass(frozen=True)
class Pair:
    """One key=value, and the key path of the plan that it comes from."""

    key: str
    value: str
    origin: str


@dataclass(frozen=True)
class Line:
    """One line of a file."""

    pairs: tuple[Pair, ...]

    @property
    def text(self) -> str:
        """The line as Slurm reads it."""
        return " ".join(f"{pair.key}={pair.value}" for pair in self.pairs)


@dataclass(frozen=True)
class File:
    """One configuration file; line 1 is the header, so line n of the text is lines[n - 2]."""

    name: str
    lines: tuple[Line, ...]

    @property
    def text(self) -> str:
        """The whole file."""
        return "\n".join([HEADER, *(line.text for line in self.lines)]) + "\n"


def files(view: View) -> list[File]:
    """What stands in /etc/slurm on a controller; slurm.conf last: it names the others' things."""
    return [
        File("cgroup.conf", _cgroup(view)),
        File("gres.conf", tuple(_gres(view["slurm"]))),
        File(
            "slurm.conf",
            (
                *_parameters(view),
                *_nodes(view["slurm"]),
                *_node_sets(view["slurm"]),
                *_partitions(view["slurm"]),
            ),
        ),
    ]


def slurmdbd(view: View) -> File:
    """slurmdbd.conf; its password is a placeholder that `secret.file` resolves on the host."""
    own = _with_origins(defaults.slurmdbd(view))
    return File(
        "slurmdbd.conf",
        _lines(_merged(own, view["accounting"]["parameters"], "accounting:parameters")),
    )


def value_text(value: Any) -> str:
    """A value in Slurm's spelling; an empty list is empty text, and such a key is left out."""
    if isinstance(value, bool):
        return "YES" if value else "NO"
    if isinstance(value, (list, tuple)):
        return ",".join(value_text(item) for item in value)
    return str(value)


Own = Mapping[str, "tuple[Any, str]"]  # key: (value, origin)


def _with_origins(values: Mapping[str, Any], origin: str | None = None) -> Own:
    return {key: (value, origin or defaults.origin_of(key)) for key, value in values.items()}


def _merged(own: Own, given: Mapping[str, Any], where: str) -> Iterator[Pair]:
    """Sorted pairs; the plan's win over Saltern's own, whatever the case of their letters."""
    table = {key.lower(): (key, value, origin) for key, (value, origin) in own.items()}
    for key, value in given.items():
        spelling = table[key.lower()][0] if key.lower() in table else key
        table[key.lower()] = (spelling, value, f"{where}:{key}")
    for _, (key, value, origin) in sorted(table.items()):
        text = value_text(value)
        if text or not isinstance(value, (list, tuple)):
            yield Pair(key, text, origin)


def _lines(pairs: Iterable[Pair]) -> tuple[Line, ...]:
    return tuple(Line((pair,)) for pair in pairs)


def _parameters(view: View) -> Iterator[Line]:
    for peer in view["peers"]["controller"]:
        address = f"({peer['address']})" if peer["address"] else ""
        yield Line((Pair("SlurmctldHost", f"{peer['name']}{address}", f"hosts:{peer['name']}"),))
    given = {
        key: _with_configless(value) if key.lower() == "slurmctldparameters" else value
        for key, value in view["slurm"]["parameters"].items()
    }
    yield from _lines(
        _merged(_with_origins(defaults.slurm(view, given)), given, "slurm:parameters")
    )


def _with_configless(value: Any) -> list[str]:
    items = [str(item) for item in value] if isinstance(value, list) else str(value).split(",")
    return list(dict.fromkeys(["enable_configless", *items]))


def _cgroup(view: View) -> tuple[Line, ...]:
    given = view["slurm"]["cgroup"]
    return _lines(
        _merged(_with_origins(defaults.cgroup(given), "slurm:cgroup"), given, "slurm:cgroup")
    )


def _nodes(slurm: View) -> Iterator[Line]:
    for node in slurm["nodes"]:
        where = f"node_types:{node['node_type']}"
        kind = slurm["node_types"][node["node_type"]]
        names = [Pair("NodeName", runs.names(node["run"]), "hosts")]
        address = runs.addresses(node["run"])
        if address:
            names.append(Pair("NodeAddr", address, "hosts"))
        hardware = _with_origins(_hardware(kind), where)
        yield Line((*names, *_merged(hardware, kind["parameters"], f"{where}:parameters")))


def _node_sets(slurm: View) -> Iterator[Line]:
    """One set for each elastic group; its nodes carry the group's name as a feature."""
    for group in sorted(slurm["elastic"]):
        origin = f"elastic:{group}"
        yield Line((Pair("NodeSet", group, origin), Pair("Feature", group, origin)))


def dynamic(host: View) -> str:
    """What the slurmd of an elastic host says of itself when it registers (slurmd(8), --conf)."""
    words = _hardware(host["hardware"])
    words["Feature"] = [*words["Feature"], host["elastic"]]
    return Line(
        tuple(_merged(_with_origins(words), host["hardware"]["parameters"], "node_types"))
    ).text


def _hardware(kind: Mapping[str, Any]) -> dict[str, Any]:
    """A node type in the words of a NodeName line; what is not declared is left out."""
    words: dict[str, Any] = {
        "CPUs": kind["cpus"],
        "RealMemory": real_memory_mb(kind),
        "Feature": kind["features"],
        "Weight": kind["weight"],
    }
    if "cores_per_socket" in kind:
        words["Sockets"] = kind["sockets"]
        words["CoresPerSocket"] = kind["cores_per_socket"]
        words["ThreadsPerCore"] = kind["threads_per_core"]
    if kind["tmp_disk_mb"]:
        words["TmpDisk"] = kind["tmp_disk_mb"]
    if kind.get("gpus"):
        words["Gres"] = f"gpu:{kind['gpus']['type']}:{kind['gpus']['count']}"
    return words


def _gres(slurm: View) -> Iterator[Line]:
    """Lines for nodes with GPUs: each names its nodes, and detects or names files, never both."""
    for node in slurm["nodes"]:
        gpus = slurm["node_types"][node["node_type"]].get("gpus")
        if not gpus:
            continue
        words = {"NodeName": runs.names(node["run"])}
        if gpus["autodetect"] == "off":
            words.update({"Name": "gpu", "Type": gpus["type"], "File": gpus["files"]})
        else:
            words["AutoDetect"] = gpus["autodetect"]
        origin = f"node_types:{node['node_type']}:gpus"
        yield Line(tuple(Pair(key, value, origin) for key, value in words.items()))


def _partitions(slurm: View) -> Iterator[Line]:
    for name, partition in sorted(slurm["partitions"].items()):
        where = f"partitions:{name}"
        own = {
            "Nodes": (
                [*(runs.names(run) for run in partition["nodes"]), *partition["elastic"]],
                f"{where}:nodes",
            ),
            "Default": (bool(partition["default"]), f"{where}:default"),
            "MaxTime": (partition["max_time"], f"{where}:max_time"),
            "State": (partition["state"], f"{where}:state"),
        }
        rest = _merged(own, partition["parameters"], f"{where}:parameters")
        yield Line((Pair("PartitionName", name, where), *rest))
