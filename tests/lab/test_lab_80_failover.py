"""A control plane in pairs, broken on purpose while jobs run: two controllers over one state, two
slurmdbd over one MariaDB on a host of its own. The shared state is simulated: a folder of this
machine, bound into both hosts.
"""

import json
import time

from jobs import end, endless, lived, runs_for, sleeper, state, submit
from labs import until

SLURM = ". /etc/profile.d/slurm.sh; "
SAVED_S = 15  # slurmctld writes its state some seconds after a change; a power cut loses those
TIMEOUT_S = 10  # SlurmctldTimeout of the plan
TAKEOVER_S = 60  # a bound, not a measure


def standby(lab, host):
    said = lab.exec(host, "salt-call --out=json slurm_controller.standby")
    return json.loads(said)["local"]


def in_charge(lab, host):
    """This host's slurmctld answers by itself, and does not wait for another."""
    active = lab.attempt(host, "systemctl is-active slurmctld").stdout.strip() == "active"
    return active and lab.attempt(host, SLURM + "sinfo").returncode == 0 and not standby(lab, host)


def test_verify_shows_the_failover_with_times(pair):
    """What a person would run; a job of another user runs through it."""
    job = endless(pair)
    found = pair.runner("saltern.verify", "failover=True")
    assert found["summary"].startswith("verified: "), found
    checks = {row["check"]: row for row in found["checks"]}
    assert {"job on node01", "job on node02", "job over node01 and node02"} <= checks.keys()
    assert "in charge after" in checks["failover: takeover"]["found"]
    assert checks["failover: both jobs in accounting"]["result"] == "ok"
    assert checks["failover: slurmdbd in reserve"]["result"] == "ok"
    assert in_charge(pair, "mgmt01")
    left = pair.exec("mgmt01", "systemctl list-timers --all --no-legend 'saltern-verify*'")
    assert left.strip() == ""
    end(pair, job)
    lived(pair, job)


def test_a_second_run_changes_nothing(pair):
    for host, states in pair.highstate().items():
        wrong = [name for name, one in states.items() if one["changes"] or not one["result"]]
        assert not wrong, f"{host}: {wrong}"
    assert [standby(pair, host) for host in ("mgmt01", "mgmt02")] == [False, True]


def test_a_changed_configuration_reaches_both_controllers(pair):
    """A reconfigure reaches the one in charge only; the other is started again by itself."""
    job = endless(pair)
    with pair.plan({"slurm": {"parameters": {"KillWait": 45}}}):
        states = pair.highstate("mgmt0*")
        for host in ("mgmt01", "mgmt02"):
            assert all(one["result"] for one in states[host].values()), states[host]
            said = pair.exec(host, "salt-call --out=json slurm_controller.pending")
            assert json.loads(said)["local"]["state"] == "same"
        assert "KillWait                = 45" in pair.job("scontrol show config | grep KillWait")
        assert standby(pair, "mgmt02")
    pair.highstate("mgmt0*")
    end(pair, job)
    lived(pair, job)


def test_two_states_are_refused(pair):
    """A mount that was lost on one controller closes its gate, and names the other's mark."""
    pair.exec("mgmt02", "mount -t tmpfs -o mode=700,uid=slurm,gid=slurm none /srv/slurmctld")
    try:
        (problem,) = pair.gate("mgmt02", "p4_scheduler")
        assert "/srv/slurmctld, the mark of mgmt01: found none; expected" in problem
    finally:
        pair.exec("mgmt02", "umount /srv/slurmctld")
    until(lambda: pair.gate("mgmt02", "p4_scheduler") == [], TAKEOVER_S, "mgmt02's gate")


def test_mariadb_away_loses_no_job(pair):
    """Scheduling and submission go on; accounting catches up."""
    pair.exec("sql01", "systemctl stop mariadb")
    try:
        jobs = [submit(pair, "--wrap='sleep 1'") for _ in range(5)]
        for job in jobs:
            until(lambda job=job: state(pair, job) == "COMPLETED", 120, f"job {job} to end")
    finally:
        pair.exec("sql01", "systemctl start mariadb")
    lived(pair, *jobs)


def test_a_slurmdbd_that_is_gone_is_replaced(pair):
    job = sleeper(pair, 10)
    pair.exec("mgmt01", "systemctl stop slurmdbd")
    try:
        until(
            lambda: pair.attempt("login01", SLURM + "sacctmgr -n show cluster").returncode == 0,
            TAKEOVER_S,
            "the other slurmdbd to answer",
        )
        lived(pair, job, sleeper(pair, 1))
    finally:
        pair.exec("mgmt01", "systemctl start slurmdbd")
    until(
        lambda: "running in background mode" in pair.exec("mgmt02", last_words("slurmdbd")),
        TAKEOVER_S,
        "the slurmdbd in reserve to step back",
    )


def test_a_killed_slurmdbd_comes_back_by_itself(pair):
    job = endless(pair)
    pair.exec("mgmt01", "systemctl kill --signal=KILL slurmdbd")
    end(pair, job)
    up = "systemctl is-active slurmdbd"
    until(
        lambda: pair.attempt("mgmt01", up).stdout.strip() == "active",
        TAKEOVER_S,
        "slurmdbd to run again",
    )
    lived(pair, job, sleeper(pair, 1))


def last_words(daemon):
    return f"grep -E 'mode|Taking|started' /var/log/slurm/{daemon}.log | tail -n 3"


def test_the_first_host_loses_its_power(pair):
    """With it go the primary slurmctld, the primary slurmdbd and the Salt master."""
    runs = endless(pair)
    until(lambda: runs_for(pair, runs) > SAVED_S, 60, f"the state with job {runs} to be saved")
    pair.do("power-off", "mgmt01")
    try:
        until(lambda: in_charge_alone(pair, "mgmt02"), TAKEOVER_S, "mgmt02 to take over")
        assert state(pair, runs) == "RUNNING"
        new = sleeper(pair, 1)
        until(lambda: state(pair, new) == "COMPLETED", 60, "a new job to end")
    finally:
        pair.do("power-on", "mgmt01")
    until(lambda: in_charge(pair, "mgmt01"), 180, "mgmt01 to take control back")
    until(lambda: standby(pair, "mgmt02"), TAKEOVER_S, "mgmt02 to step back")
    end(pair, runs)
    lived(pair, runs, new)
    for host in ("mgmt01", "mgmt02", "sql01", "node01"):
        until(lambda host=host: pair.gate(host, "p4_scheduler") == [], 120, f"{host}'s gate")


def in_charge_alone(lab, host):
    """Asked without Salt, whose master is off: a client there gets an answer."""
    return lab.attempt(host, SLURM + "timeout 20 sinfo", timeout=60).returncode == 0


def test_both_controllers_stop_one_after_the_other(pair):
    runs = endless(pair)
    pair.exec("mgmt01", "systemctl stop slurmctld")
    until(lambda: in_charge(pair, "mgmt02"), TAKEOVER_S, "mgmt02 to take over")
    pair.exec("mgmt02", "systemctl stop slurmctld")
    pair.exec("mgmt01", "systemctl start slurmctld")
    until(lambda: in_charge(pair, "mgmt01"), TAKEOVER_S, "mgmt01 to answer")
    pair.exec("mgmt02", "systemctl start slurmctld")
    until(lambda: standby(pair, "mgmt02"), TAKEOVER_S, "mgmt02 to wait again")
    assert state(pair, runs) == "RUNNING"
    end(pair, runs)
    lived(pair, runs)


def test_a_cut_cable_makes_no_second_master_of_the_state(pair):
    """The first controller still writes its state, so the other leaves it alone: one writes."""
    runs = endless(pair)
    pair.do("cut", "mgmt01")
    try:
        patience = time.monotonic() + 3 * TIMEOUT_S
        while time.monotonic() < patience:
            assert alone_in_standby(pair)
    finally:
        pair.do("heal", "mgmt01")
    until(lambda: in_charge(pair, "mgmt01"), 120, "mgmt01 to answer again")
    end(pair, runs)
    lived(pair, runs)


def test_a_wrong_clock_on_the_second_controller_takes_no_control(pair):
    """It cannot talk to the first one any more, and sees by the heartbeat that it lives."""
    runs = endless(pair)
    before = reigns(pair)
    pair.do("skew", "mgmt02", "900")
    try:
        patience = time.monotonic() + 4 * TIMEOUT_S
        while time.monotonic() < patience:
            assert in_charge(pair, "mgmt01")
            assert reigns(pair) == before
        reasons = pair.gate("mgmt02", "p1_foundation")
        assert any("clock" in reason and "900." in reason for reason in reasons), reasons
        new = sleeper(pair, 1)
    finally:
        pair.do("skew", "mgmt02", "0")
    until(lambda: pair.gate("mgmt02", "p1_foundation") == [], 120, "the clock of mgmt02")
    until(lambda: pair.gate("mgmt02", "p4_scheduler") == [], 120, "the daemons of mgmt02")
    until(lambda: standby(pair, "mgmt02"), TAKEOVER_S, "mgmt02 to wait again")
    end(pair, runs)
    lived(pair, runs, new)


def reigns(lab):
    """How often mgmt02 took control."""
    command = "grep -c 'Running as primary controller' /var/log/slurm/slurmctld.log || true"
    return int(lab.exec("mgmt02", command))


def alone_in_standby(lab):
    """mgmt02's own slurmctld, asked without the other."""
    conf = "SLURM_CONF=/var/lib/saltern/slurmctld_client/slurm.conf"
    command = f"{SLURM} {conf} timeout 5 scontrol show config 2>&1"
    return "standby mode" in lab.attempt("mgmt02", command).stdout


def test_nothing_is_left_to_do(pair):
    for host, states in pair.highstate().items():
        wrong = [name for name, one in states.items() if one["changes"] or not one["result"]]
        assert not wrong, f"{host}: {wrong}"
