"""A bare host's way from power-on to IDLE, by the lab, with the steps that the master timed."""

import json
import subprocess
import tempfile
import time
from pathlib import Path

from bench import cluster

HOST, SUFFIX = "node03", "23"
STEPS = ("modules", "pillar", "controllers", "highstate", "registered")
BOUND_S = 600


def join() -> dict[str, float]:
    """Power a host on that the plan declares and no person touches; the artefact is there."""
    cluster.begin()
    _declare()
    script = cluster.exec_("mgmt01", "salt-run saltern.token format=script")
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder) / "join.sh"
        image.write_text(script, encoding="utf-8")
        began = time.time()
        cluster.lab("add", HOST, "--address", SUFFIX, "--first-boot", str(image))
        joined = _joined()
    words = [word.split() for word in joined["detail"].split(", ")]
    found = {f"join_{step}_s": float(seconds) for step, seconds, _ in words if step in STEPS}
    at = time.mktime(time.strptime(joined["at"], "%Y-%m-%d %H:%M:%S"))
    return {"join_s": round(at - began, 1), **found}


def _declare() -> None:
    """Declare the host, and have the controller know it."""
    text = (
        "saltern:\n  hosts:\n"
        f"    {HOST}: {{roles: [compute], address: $ADDRESS, node_type: small}}\n"
        "  partitions:\n    batch: {nodes: 'node[01-03]'}\n"
    )
    script = (
        f"ADDRESS=$(hostname -I | cut -d. -f1-3).{SUFFIX}; cd /etc/saltern/plan; "
        f"cat > bench.sls <<END\n{text}END\n"
        "grep -q bench plan.sls || echo '  - bench' >> plan.sls; "
        "salt --out=quiet mgmt01 saltutil.refresh_pillar wait=True; "
        "salt --out=quiet mgmt01 state.highstate"
    )
    cluster.exec_("mgmt01", f"set -e; {script}")


def _joined() -> dict[str, str]:
    deadline = time.monotonic() + BOUND_S
    while time.monotonic() < deadline:
        said = cluster.exec_("mgmt01", "salt-run --out=json saltern.joins")
        history = json.loads(said[said.index("{") :])["history"]
        rows = [row for row in history if row["host"] == HOST and row["what"] == "joined"]
        if rows:
            return dict(rows[-1])
        time.sleep(1)
    raise subprocess.CalledProcessError(1, [f"waiting {BOUND_S} s for {HOST} to join"])
