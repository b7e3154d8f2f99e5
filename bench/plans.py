"""A plan of 10,000 nodes: resolved for one minion, and written as slurm.conf."""

import importlib.util
import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import salt.config
import yaml
from saltern import plan as plans
from saltern import slurm_conf, slurm_conf_checks, view

ROOT = Path(__file__).resolve().parent.parent
NODES = 10_000
TYPES = 20
REPEATS = 5


def big_plan() -> dict[str, Any]:
    """10,000 nodes of 20 types in 20 partitions, with three hosts for the rest."""
    share = NODES // TYPES
    hosts: dict[str, Any] = {
        "ctl1": {"roles": ["controller"], "address": "10.0.0.1"},
        "db1": {"roles": ["database"], "address": "10.0.0.2"},
        "bld1": {"roles": ["builder"], "address": "10.0.0.3"},
    }
    types: dict[str, Any] = {}
    partitions: dict[str, Any] = {}
    for kind in range(TYPES):
        names = f"n[{kind * share + 1:05d}-{(kind + 1) * share:05d}]"
        hosts[names] = {
            "roles": ["compute"],
            "node_type": f"t{kind}",
            "address": f"10.{kind + 1}.[0-4].[1-{share // 5}]",
        }
        types[f"t{kind}"] = {"cpus": 64 + kind, "memory_mb": 256_000}
        partitions[f"p{kind}"] = {"nodes": names}
    return {
        "cluster": {"name": "big", "domain": "big.example"},
        "os": {"name": "Debian", "release": "13"},
        "hosts": hosts,
        "node_types": types,
        "partitions": partitions,
    }


def plan_10k() -> dict[str, float]:
    """The external pillar for one node, nothing cached: pillar files, schema, cross-checks, view,
    secrets."""
    with tempfile.TemporaryDirectory() as folder:
        opts = _master(Path(folder))

        def resolve() -> None:
            pillar = _external_pillar(opts)
            mine = pillar.ext_pillar("n00042", {}, **opts["ext_pillar"][0]["saltern"])["saltern"]
            if mine["host"]["node_type"] != "t0":
                raise RuntimeError("the view is not what was measured")

        return {"plan_10k_s": _median(resolve)}


def _master(folder: Path) -> dict[str, Any]:
    """The options of a master whose site has the big plan."""
    (folder / "plan.sls").write_text(yaml.safe_dump({"saltern": big_plan()}, sort_keys=False))
    opts: dict[str, Any] = dict(salt.config.master_config(None))
    opts |= {
        "root_dir": str(folder),
        "cachedir": str(folder / "cache"),
        "extension_modules": str(folder / "cache/extmods"),
        "file_client": "local",
        "pillar_roots": {"base": [str(folder), str(ROOT / "pillar")]},
        "ext_pillar": [
            {
                "saltern": {
                    "schema_file": str(ROOT / "pillar/schema.json"),
                    "secrets_dir": str(folder / "secrets"),
                }
            }
        ],
    }
    return opts


def slurm_conf_10k() -> dict[str, float]:
    """A controller's files of a resolved plan: written, and checked as before an installation.

    Slurm's own parser belongs to a deployed tree and is not in this figure (5 ms for four nodes;
    FACTS).
    """
    schema = json.loads((ROOT / "pillar/schema.json").read_text(encoding="utf-8"))
    mine = view.of(plans.resolve(schema, big_plan()), "ctl1")

    def write() -> None:
        files = slurm_conf.files(mine)
        problems = slurm_conf_checks.problems(files)
        if problems or sum("NodeName=" in line for line in files[-1].text.splitlines()) < TYPES:
            raise RuntimeError(f"the files are not what was measured: {problems[:3]}")

    return {"slurm_conf_10k_s": _median(write)}


def _external_pillar(opts: dict[str, Any]) -> ModuleType:
    """A fresh module, so that its cache is empty."""
    spec = importlib.util.spec_from_file_location("bench_pillar", ROOT / "_pillar/saltern.py")
    if spec is None or spec.loader is None:
        raise RuntimeError("_pillar/saltern.py is not there")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    vars(module)["__opts__"] = opts
    return module


def _median(act: Callable[[], None]) -> float:
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        act()
        times.append(time.perf_counter() - began)
    return round(statistics.median(times), 3)
