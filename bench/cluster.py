"""The lab from nothing, again with its caches, and once more with nothing to do."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAB = "bench"
REPEATS = 3

_cache: "tempfile.TemporaryDirectory[str] | None" = None
_begun = False


def cold_and_warm() -> dict[str, float]:
    """`lab/lab cluster` with an empty cache, then with bare hosts and the cache that it left.

    The tools' Python environment is there already; everything else (root, packages, sources,
    artefact) is not.
    """
    global _cache  # noqa: PLW0603 - the bench's own folder, removed by clean()
    _cache = tempfile.TemporaryDirectory(prefix="saltern-bench-", dir="/var/tmp")
    return {"cluster_cold_s": _from_bare(), "cluster_warm_s": _from_bare()}


def highstate_noop() -> dict[str, float]:
    """The median of some further `salt '*' state.highstate`, each without changes."""
    begin()
    times = []
    for _ in range(REPEATS):
        began = time.monotonic()
        lab("exec", "mgmt01", "--", "salt", "--out=quiet", "*", "state.highstate")
        times.append(time.monotonic() - began)
    return {"highstate_noop_s": round(sorted(times)[REPEATS // 2], 1)}


def deploy_noop() -> dict[str, float]:
    """The median of some further `salt-run saltern.deploy`, each with nothing to do."""
    begin()
    deploy = "salt-run --out=json saltern.deploy"
    exec_("mgmt01", deploy)
    times = []
    for _ in range(REPEATS):
        began = time.monotonic()
        said = exec_("mgmt01", deploy)
        times.append(time.monotonic() - began)
        if "nothing was to do" not in said:
            raise RuntimeError(f"a deployment found something to do: {said}")
    return {"deploy_noop_s": round(sorted(times)[REPEATS // 2], 1)}


def begin() -> None:
    """A finished cluster, if there is none yet."""
    if not _begun:
        _from_bare()


def exec_(host: str, script: str, stdin: str = "") -> str:
    """What a shell script prints in a host of the bench's lab."""
    command = [str(ROOT / "lab/lab"), "exec", "--name", LAB, host, "--", "sh", "-c", script]
    result = subprocess.run(
        command, check=True, input=stdin, stdout=subprocess.PIPE, text=True, cwd=Path("/")
    )
    return result.stdout


def clean() -> None:
    """End the bench's lab, if it was begun, and remove its cache."""
    if _begun:
        lab("destroy", check=False)
    if _cache is not None:
        _cache.cleanup()


def _from_bare() -> float:
    global _begun  # noqa: PLW0603
    _begun = True
    lab("destroy", check=False)
    began = time.monotonic()
    lab("cluster")
    return round(time.monotonic() - began, 1)


def lab(verb: str, *rest: str, check: bool = True) -> None:
    """A command of `lab/lab`, on the bench's own lab."""
    command = [str(ROOT / "lab/lab"), verb, "--name", LAB, *rest]
    env = {**os.environ, **({"SALTERN_CACHE": _cache.name} if _cache else {})}
    # Everything that is not the JSON object goes to standard error.
    subprocess.run(command, check=check, env=env, stdout=sys.stderr, cwd=Path("/"))
