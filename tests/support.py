"""Helpers of the tests: plans as data, and Salt's modules loaded with the names that Salt would
give them."""

import copy
import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml
from salt.utils.crypt import pem_finger
from saltern.join_book import Book

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = json.loads((ROOT / "pillar/schema.json").read_text(encoding="utf-8"))
EXAMPLE = yaml.safe_load((ROOT / "pillar/example/plan.sls").read_text(encoding="utf-8"))["saltern"]


def example(**changes: Any) -> dict[str, Any]:
    """The example plan, with changes by key path: example(**{"hosts:mgmt01:roles": [...]}); None
    removes a key."""
    plan = copy.deepcopy(EXAMPLE)
    for path, value in changes.items():
        *parents, last = path.split(":")
        place = plan
        for key in parents:
            place = place.setdefault(key, {})
        if value is None:
            place.pop(last, None)
        else:
            place[last] = value
    return plan


def everyone() -> dict[str, Any]:
    """A plan in which each role has a host of its own, with GPUs and two controllers."""
    plan = example()
    plan["hosts"] = {
        name: {"roles": [role], "address": f"10.213.0.{number}"}
        for number, (name, role) in enumerate(
            {
                "ctl1": "controller",
                "ctl2": "controller",
                "db1": "database",
                "db2": "database",
                "sql1": "mariadb",
                "bld1": "builder",
                "login1": "login",
                "cpu1": "compute",
                "gpu1": "gpu",
                "store1": "storage",
                "mon1": "monitoring",
                "dir1": "directory",
            }.items(),
            start=11,
        )
    }
    plan["hosts"]["cpu1"]["node_type"] = "small"
    plan["hosts"]["gpu1"]["node_type"] = "dgx"
    plan["node_types"]["dgx"] = {
        "cpus": 128,
        "memory_mb": 1000000,
        "gpus": {"type": "h100", "count": 8},
    }
    plan["partitions"] = {"batch": {"nodes": "cpu1,gpu1", "default": True}}
    plan["foundation"]["time"] = {"serve": ["ctl1"], "servers": ["ntp.site.example"]}
    return plan


def admit(register: Path, pki_dir: Path, *names: str) -> None:
    """Hosts in the admission register, with the keys that Salt accepts for them (made up if there
    are none)."""
    for name in names:
        key = pki_dir / "minions" / name
        key.parent.mkdir(parents=True, exist_ok=True)
        if not key.exists():
            key.write_text(f"-----BEGIN PUBLIC KEY-----\n{name}\n-----END PUBLIC KEY-----\n")
        finger = pem_finger(path=str(key), sum_type="sha256")
        Book(register).admit(name, finger, "fingerprint", "the test", 0.0)


def load(kind: str, name: str, **dunders: Any) -> ModuleType:
    """A module of `_modules`, `_states`, … with its dunder names set: load("states", "secret",
    __salt__={...})."""
    path = ROOT / f"_{kind}" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"under_test_{kind}_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    defaults: Mapping[str, Any] = {
        "__salt__": {},
        "__states__": {},
        "__opts__": {"test": False, "id": "node01"},
        "__grains__": {
            "os": "Debian",
            "os_family": "Debian",
            "osmajorrelease": 13,
            "osrelease": "13",
        },
        "__pillar__": {},
        "__context__": {},
    }
    for key, value in {**defaults, **dunders}.items():
        setattr(module, key, value)
    return module
