"""Each gate closes when its thing is broken, names it, and opens when it is mended."""

from dataclasses import dataclass

import pytest
from labs import until


@dataclass(frozen=True)
class Break:
    """How a thing is broken and mended on a host, and what its gate says meanwhile."""

    phase: str
    host: str
    damage: str
    repair: str
    words: tuple[str, ...]


TREE = "/opt/slurm/current/lib/slurm"
BREAKS = {
    "munge stopped": Break("p1_foundation", "node01", "systemctl stop munge", "systemctl start munge", ("munge",)),
    "munge key readable": Break(
        "p1_foundation", "node01", "chmod 0644 /etc/munge/munge.key", "chmod 0400 /etc/munge/munge.key",
        ("/etc/munge/munge.key", "0644", "0400"),
    ),
    "parent folder open to others": Break(
        "p1_foundation", "node02", "chmod g+w /etc", "chmod g-w /etc", ("/etc", "0775"),
    ),
    "uid changed": Break(
        "p1_foundation", "node01", "usermod -u 12345 slurm", "usermod -u 10011 slurm", ("slurm", "12345", "10011"),
    ),
    "kernel parameter changed": Break(
        "p1_foundation", "login01", "sysctl -qw net.core.somaxconn=128", "sysctl -qw net.core.somaxconn=8192",
        ("net.core.somaxconn", "128", "8192"),
    ),
    "chrony stopped": Break("p1_foundation", "login01", "systemctl stop chrony", "systemctl start chrony", ("clock",)),
    "plugin removed": Break(
        "p4_scheduler", "node01", f"mv {TREE}/gpu_nvml.so /var/tmp/", f"mv /var/tmp/gpu_nvml.so {TREE}/", ("nvml",),
    ),
    "slurmd stopped": Break("p4_scheduler", "node02", "systemctl stop slurmd", "systemctl start slurmd", ("slurmd",)),
    "slurmdbd stopped": Break(
        "p4_scheduler", "mgmt01", "systemctl stop slurmdbd", "systemctl start slurmdbd", ("slurmdbd",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BREAKS)
def test_gate_closes_names_it_and_opens_again(lab, name):
    case = BREAKS[name]

    def is_open():
        return lab.gate(case.host, case.phase) == []

    until(is_open, 60, f"the gate of {case.phase} on {case.host} to be open before")
    lab.exec(case.host, case.damage)
    try:
        reasons = lab.gate(case.host, case.phase)
    finally:
        lab.exec(case.host, case.repair)
    assert reasons, "the gate stayed open"
    assert all(word in " ".join(reasons) for word in case.words), reasons
    until(is_open, 60, f"the gate of {case.phase} on {case.host} to open")


def test_a_wrong_clock_closes_the_gate_and_names_the_offset(lab):
    try:
        lab.do("skew", "node02", "900")
        reasons = lab.gate("node02", "p1_foundation")
        states = lab.highstate("node02", test=True)["node02"]
    finally:
        lab.do("skew", "node02", "0")
    assert any("clock" in reason and "900." in reason for reason in reasons), reasons
    assert states["p1_foundation: gate"]["result"] is None
    until(lambda: lab.gate("node02", "p1_foundation") == [], 120, "the clock of node02")
    until(lambda: lab.gate("node02", "p4_scheduler") == [], 120, "slurmd of node02")


def test_verify_is_green_by_jobs_and_red_while_something_is_broken(lab):
    good = lab.runner("saltern.verify")
    assert good["summary"].startswith("verified: ") and good["retcode"] == 0
    ran = {row["check"] for row in good["checks"] if row["result"] == "ok"}
    assert {"job on node01", "job on node02", "job over node01 and node02"} <= ran
    slurm = ". /etc/profile.d/slurm.sh; scontrol update nodename=node02"
    lab.exec("login01", "systemctl stop chrony")
    lab.exec("mgmt01", f"{slurm} state=drain reason='a person'")
    try:
        bad = lab.runner("saltern.verify", check=False)
    finally:
        lab.exec("login01", "systemctl start chrony")
        lab.exec("mgmt01", f"{slurm} state=resume")
    assert bad["retcode"] == 1 and bad["summary"].startswith("NOT verified: ")
    results = {row["check"]: row["result"] for row in bad["checks"]}
    assert results["gate p1_foundation on login01"] == "failed"
    assert results["job on node02"] == "left out"
    until(lambda: lab.gate("login01", "p1_foundation") == [], 120, "login01's clock")


def test_a_closed_gate_stops_the_phase_behind_it(lab):
    """The gate of phase 0: a host that is not the declared one."""
    with lab.plan({"node_types": {"small": {"memory_mb": 10_000_000}}}):
        states = lab.highstate("node01")["node01"]
    gate = states["p0_plan: gate"]
    assert gate["result"] is False
    assert "memory_mb" in gate["comment"]
    assert all(
        not state["result"]
        for name, state in states.items()
        if name.startswith(("munge", "slurmd"))
    )
    assert lab.machine("node01").service("slurmd").is_running
