"""Sick nodes leave by themselves, and come back when the cause is gone and the drain was ours.
Slurm itself calls the checks here, every few seconds."""

import json
import re
import subprocess

import pytest
from labs import LAB, until

NODES = ("node01", "node02")
SCONTROL = "/opt/slurm/current/bin/scontrol"
WELL = "/var/tmp/health"  # noqa: S108 - a site's own check looks here
MARK = "check_file_test(/var/tmp/health/mark)"
NOTE = "check_file_contents(/var/tmp/health/note)"
PERSON = "memory swap, J. [slot 3]"
PLAN = {
    "health": {
        "interval_s": 2,
        "good_results": 2,
        "flaps": 3,
        "settle_s": 3,
        "recheck_s": 3600,
        "widespread_min_nodes": 2,
        "widespread_share": 0.5,
        "lines": [
            f"* || check_file_test -e {WELL}/mark",
            f"{{node[01-02]}} || check_file_contents {WELL}/note /well/",
        ],
    }
}


@pytest.fixture(scope="module")
def health(lab):
    """The cluster with a site's own checks, called often."""
    for node in NODES:
        mend(lab, node)
    with lab.plan(PLAN):
        closed = failed(lab.highstate())
        assert not closed
        yield lab
    for node in NODES:
        mend(lab, node)
        until(lambda node=node: in_service(lab, node), 60, f"{node} to come back")
    assert not failed(lab.highstate())
    lab.exec("mgmt01", f"rm -rf {WELL}")
    for node in NODES:
        lab.exec(node, f"rm -rf {WELL}")


@pytest.fixture(autouse=True)
def well_again(health):
    """Each test begins and ends with nodes that are well, in service, and without a past."""
    yield
    for node in NODES:
        mend(health, node)
        scontrol(health, f"update nodename={node} state=undrain")
        health.exec(node, "rm -f /var/lib/saltern/health/record.json")
    for node in NODES:
        until(lambda node=node: in_service(health, node), 60, f"{node} to be in service")
        until(lambda node=node: not comment(health, node), 60, f"{node} to be spoken of no more")


def failed(states):
    return {
        f"{host} {name}": result["comment"]
        for host, results in states.items()
        for name, result in results.items()
        if result["result"] is False
    }


def mend(lab, node):
    lab.exec(
        node, f"mkdir -p {WELL}; touch {WELL}/mark; rm -f {WELL}/note; echo well > {WELL}/note"
    )


def scontrol(lab, words):
    return lab.exec("mgmt01", f"{SCONTROL} {words}")


def shown(lab, node, key):
    found = re.search(rf"^ +{key}=(.*)$", scontrol(lab, f"show node {node}"), re.MULTILINE)
    return found[1] if found else ""


def state(lab, node):
    return shown(lab, node, "State").split()[0]


def reason(lab, node):
    return shown(lab, node, "Reason")


def comment(lab, node):
    return shown(lab, node, "Comment")


def in_service(lab, node):
    return state(lab, node) in ("IDLE", "MIXED", "ALLOCATED")


def drained(lab, node):
    return "DRAIN" in state(lab, node)


def told(lab, node):
    """The events that a node's log has since the test began, by tag."""
    said = lab.exec(node, "journalctl -t saltern-health -o cat --no-pager")
    return [line.split(":")[0] for line in said.splitlines() if ": {" in line]


def runs_since(lab, node, count):
    """Wait until a node's checks ran so often: the record is written each time while one fails."""
    path = "/var/lib/saltern/health/record.json"

    def stamp():
        return lab.attempt(node, f"stat -c %Y.%y {path}").stdout

    for _ in range(count):
        before = stamp()
        until(lambda before=before: stamp() != before, 60, f"{node} to run its checks")


def test_a_failing_check_drains_with_a_reason_and_the_master_hears_of_it(health):
    watch = [LAB, "exec", "--name", health.name, "mgmt01", "--"]
    watch += ["timeout", "90", "salt-run", "state.event", "saltern/health/drained", "count=1"]
    with subprocess.Popen(watch, stdout=subprocess.PIPE, text=True) as events:
        until(lambda: health.attempt("mgmt01", "pgrep -f state.event").stdout, 30, "a listener")
        health.exec("node01", f"rm {WELL}/mark")
        until(lambda: drained(health, "node01"), 60, "node01 to be drained")
        heard, _ = events.communicate(timeout=120)
    assert reason(health, "node01").startswith(f"saltern: {MARK}: {WELL}/mark: No such file")
    assert not drained(health, "node02")
    tag, _, data = heard.splitlines()[0].partition("\t")
    assert tag == "saltern/health/drained"
    event = json.loads(data)
    assert (event["data"]["node"], list(event["data"]["data"]["causes"])) == ("node01", [MARK])
    until(
        lambda: not health.exec("node01", "ls /var/lib/saltern/health/outbox"),
        30,
        "an empty outbox",
    )


def test_it_comes_back_after_good_results_in_a_row(health):
    health.exec("node01", f"rm {WELL}/mark")
    until(lambda: drained(health, "node01"), 60, "node01 to be drained")
    mend(health, "node01")
    until(lambda: in_service(health, "node01"), 60, "node01 to come back")
    assert reason(health, "node01") == ""
    until(lambda: told(health, "node01")[-1] == "recovered", 30, "its event")


def test_two_causes_and_the_last_brings_it_back(health):
    health.exec("node01", f"rm {WELL}/mark; echo ill > {WELL}/note")
    until(lambda: MARK in reason(health, "node01"), 60, "the first cause")
    until(lambda: NOTE in reason(health, "node01"), 60, "the second cause")
    health.exec("node01", f"touch {WELL}/mark")
    until(lambda: MARK not in reason(health, "node01"), 60, "the first cause to go")
    assert drained(health, "node01")
    assert NOTE in reason(health, "node01")
    mend(health, "node01")
    until(lambda: in_service(health, "node01"), 60, "node01 to come back")


def test_a_persons_drain_survives_checks_and_a_highstate(health):
    scontrol(health, f"update nodename=node01 state=drain reason='{PERSON}'")
    before = reason(health, "node01")
    assert before.startswith(PERSON)
    health.exec("node01", f"rm {WELL}/mark")
    runs_since(health, "node01", 3)
    assert reason(health, "node01") == before
    mend(health, "node01")
    runs_since(health, "node01", 3)
    assert not failed(health.highstate("node01"))
    said = health.exec("mgmt01", "salt mgmt01 nhc.resume node01 '*' --out=json --static")
    assert PERSON in json.loads(said)["mgmt01"]["node01"]["left"]
    assert reason(health, "node01") == before
    assert drained(health, "node01")


def test_a_running_job_survives_the_drain(health):
    number = health.job("sbatch --parsable -w node01 -o /dev/null --wrap 'sleep 600'").strip()
    try:
        where = f"squeue -h -j {number} -o %T"
        until(lambda: health.job(where).strip() == "RUNNING", 60, "the job to run")
        health.exec("node01", f"rm {WELL}/mark")
        until(lambda: drained(health, "node01"), 60, "node01 to be drained")
        runs_since(health, "node01", 2)
        assert health.job(where).strip() == "RUNNING"
        assert "DRAIN" in state(health, "node01")
    finally:
        health.job(f"scancel {number}")
    until(
        lambda: not health.job(f"squeue -h -j {number} -o %T 2>/dev/null || true").strip(),
        60,
        "the job to end",
    )


def test_a_failure_while_slurmctld_is_away_is_delivered_later(health):
    health.exec("mgmt01", "systemctl stop slurmctld")
    try:
        health.exec("node01", f"rm {WELL}/mark; /usr/lib/saltern/health_program", timeout=120)
        record = json.loads(health.exec("node01", "cat /var/lib/saltern/health/record.json"))
        assert MARK in record["open"]
        assert record["away_since"]
    finally:
        health.exec("mgmt01", "systemctl start slurmctld")
    until(lambda: drained(health, "node01"), 120, "node01 to be drained")
    assert MARK in reason(health, "node01")


def test_a_cluster_wide_failure_drains_nobody_and_raises_one_event(health):
    before = {node: told(health, node).count("widespread") for node in NODES}
    for node in NODES:
        health.exec(node, f"rm {WELL}/mark")
    for node in NODES:
        until(
            lambda node=node: re.match(r"saltern: (held|widespread) ", comment(health, node)),
            90,
            f"{node} to be spared",
        )
    runs_since(health, "node01", 2)
    runs_since(health, "node02", 2)
    assert not [node for node in NODES if drained(health, node)]
    after = {node: told(health, node).count("widespread") for node in NODES}
    assert sum(after.values()) - sum(before.values()) == 1
    shown_to_people = health.exec("mgmt01", "salt-run saltern.health")
    assert f"held {MARK}" in shown_to_people
    for node in NODES:
        mend(health, node)
    for node in NODES:
        until(lambda node=node: not comment(health, node), 60, f"{node} to be well")


def test_a_node_that_flaps_stays_drained_until_a_person_resumes_it(health):
    for _ in range(2):
        health.exec("node01", f"rm {WELL}/mark")
        until(lambda: drained(health, "node01"), 60, "node01 to be drained")
        mend(health, "node01")
        until(lambda: in_service(health, "node01"), 60, "node01 to come back")
    health.exec("node01", f"rm {WELL}/mark")
    until(lambda: drained(health, "node01"), 60, "node01 to be drained")
    assert reason(health, "node01").startswith(f"saltern: flapping {MARK}")
    mend(health, "node01")
    runs_since(health, "node01", 4)
    assert drained(health, "node01")
    health.exec("mgmt01", "salt mgmt01 nhc.resume node01 '*'")
    until(lambda: in_service(health, "node01"), 60, "node01 to come back")


def test_a_check_that_hangs_delays_no_other(health):
    health.exec("node01", f"rm {WELL}/note; mkfifo {WELL}/note")
    said = health.attempt("node01", "/usr/lib/saltern/node_health --json --timeout 2").stdout
    checks = {check["cause"]: check for check in json.loads(said)["checks"]}
    hung = checks.pop(NOTE)
    assert hung["finding"].startswith("hung: no answer within 2")
    assert [check["finding"] for check in checks.values() if not check["passed"]] == []
    mend(health, "node01")


def test_a_gate_closes_for_a_failing_check_and_names_it(health):
    health.exec("node02", f"echo ill > {WELL}/note")
    reasons = health.gate("node02", "p5_environment")
    mend(health, "node02")
    assert any(NOTE in one and "/well/" in one for one in reasons), reasons
    assert health.gate("node02", "p5_environment") == []


def test_drains_from_a_controller_have_an_owner(health):
    asked = "salt --static --out=json mgmt01 nhc."

    def ask(words):
        return json.loads(health.exec("mgmt01", asked + words))["mgmt01"]

    said = ask("drain '[\"node01\",\"node02\"]' maintenance 'new disks'")
    assert [one["changed"] for one in said.values()] == [True, True]
    assert ask("status node01")["node01"]["owner"] == "saltern"
    table = health.exec("mgmt01", "salt-run saltern.health")
    assert "saltern: maintenance: new disks" in table
    assert drained(health, "node01"), "good checks do not lift what another program drained"
    said = ask('resume \'["node01","node02","node09"]\' maintenance')
    assert [one["changed"] for one in said.values()] == [True, True, False]
    assert "no such node" in said["node09"]["left"]
    again = ask('resume \'["node01","node02"]\' maintenance')
    assert not any(one["changed"] for one in again.values())


def test_a_second_run_changes_nothing(health):
    for host, states in health.highstate().items():
        changed = {name: one["changes"] for name, one in states.items() if one["changes"]}
        assert not changed, f"{host}: {changed}"
