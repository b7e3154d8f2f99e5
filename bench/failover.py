"""`salt-run saltern.verify failover=True`, on a lab of two controllers of its own."""

import json
import subprocess
import sys
from pathlib import Path

from bench.cluster import ROOT

LAB = "benchp"
# SlurmctldTimeout of pillar/example/pair.sls; the aim is that and 5 s (issue 4).
TIMEOUT_S = 10


def takeover() -> dict[str, float]:
    """Seconds from the end of the first slurmctld until the other one is in charge, and as a ratio
    of SlurmctldTimeout."""
    lab("destroy", check=False)
    try:
        lab("cluster", "--topology", "pair")
        said = lab("exec", "mgmt01", "--", "salt-run", "--out=json", *VERIFY, keep=True)
    finally:
        lab("destroy", check=False)
    checks = json.loads(said[said.index("{") :])["checks"]
    (took,) = (row["took_s"] for row in checks if row["check"] == "failover: takeover")
    return {"failover_s": took, "failover_ratio": round(took / TIMEOUT_S, 2)}


VERIFY = ("saltern.verify", "failover=True")


def lab(verb: str, *rest: str, check: bool = True, keep: bool = False) -> str:
    """A command of `lab/lab`; what it prints is progress, unless it is kept."""
    command = [str(ROOT / "lab/lab"), verb, "--name", LAB, *rest]
    out = subprocess.PIPE if keep else sys.stderr
    done = subprocess.run(command, check=check, stdout=out, text=True, cwd=Path("/"))
    return done.stdout or ""
