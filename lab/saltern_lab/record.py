"""What the lab remembers of itself: one JSON file a lab, replaced atomically, under a lock."""

import contextlib
import fcntl
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from saltern_lab import subnet
from saltern_lab.errors import LabError
from saltern_lab.paths import state_dir

NAME = re.compile(r"[a-z][a-z0-9]{0,9}")


@dataclass
class Host:
    """One host of a lab as the lab knows it."""

    suffix: int
    nspawn: dict[str, int] | None = None
    leader: dict[str, int] | None = None
    layers: list[str] = field(default_factory=list)
    boot_id: str = ""
    cut: bool = False


@dataclass
class Lab:
    """A lab: its name, network and hosts."""

    name: str
    topology: str
    network: str
    hosts: dict[str, Host] = field(default_factory=dict)
    mirror: dict[str, int] | None = None

    @property
    def folder(self) -> Path:
        return state_dir() / self.name

    @property
    def bridge(self) -> str:
        return f"slt-{self.name}"

    @property
    def subnet(self) -> IPv4Network:
        return IPv4Network(self.network)

    @property
    def gateway(self) -> str:
        return subnet.gateway(self.subnet)

    def address(self, host: str) -> str:
        return subnet.address(self.subnet, self.host(host).suffix)

    def host(self, host: str) -> Host:
        """A host's record, or a sentence."""
        if host not in self.hosts:
            known = ", ".join(sorted(self.hosts)) or "none"
            raise LabError(f"The lab {self.name!r} has no host {host!r}; its hosts are: {known}.")
        return self.hosts[host]

    def disk(self, host: str) -> Path:
        """The folder of a host's disk and console."""
        return self.folder / "hosts" / host

    def shared(self, path: str) -> Path:
        """The folder that several hosts see under a path of theirs."""
        return self.folder / "shared" / path.strip("/").replace("/", "-")

    def save(self) -> None:
        """Write the record in one step."""
        self.folder.mkdir(parents=True, exist_ok=True)
        data = {**vars(self), "hosts": {name: vars(host) for name, host in self.hosts.items()}}
        write_json(self.folder / "lab.json", data)


def write_json(path: Path, data: Any) -> None:
    """Replace a JSON file atomically."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    new.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
    new.replace(path)


def check_name(name: str) -> None:
    """A lab's name is part of interface and container names, so it is short."""
    if not NAME.fullmatch(name):
        raise LabError(f"{name!r} is no name for a lab: up to 10 lower case letters and digits.")


def load(name: str) -> Lab | None:
    """The lab of this name, or None."""
    check_name(name)
    try:
        data = json.loads((state_dir() / name / "lab.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except json.JSONDecodeError:
        raise LabError(
            f"The record {state_dir() / name / 'lab.json'} is damaged: restart the machine, or "
            f"end what runs of the lab, and remove {state_dir() / name}."
        ) from None
    hosts = {host: Host(**fields) for host, fields in data.pop("hosts").items()}
    return Lab(hosts=hosts, **data)


def require(name: str) -> Lab:
    """The lab of this name, or a sentence."""
    lab = load(name)
    if lab is None:
        raise LabError(
            f"There is no lab {name!r} on this machine: `lab/lab up --name {name}` makes it."
        )
    return lab


def all_labs() -> list[Lab]:
    """Every lab of this machine's state folder."""
    names = [path.parent.name for path in state_dir().glob("*/lab.json")]
    return [lab for lab in map(load, sorted(names)) if lab]


@contextlib.contextmanager
def changing(name: str) -> Iterator[None]:
    """Hold a lab's lock while its record changes; short, so that hosts can be cut in a long run."""
    with locked(state_dir(), f"lab-{name}"):
        yield


@contextlib.contextmanager
def locked(folder: Path, what: str) -> Iterator[None]:
    """Hold the lock of a folder; wait for whoever holds it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f".{what}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
