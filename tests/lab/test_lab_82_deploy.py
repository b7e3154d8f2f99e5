"""`salt-run saltern.deploy` while a job runs: nothing to do, a change, a closed gate, a cut, a
silent node. On the lab of pairs."""

import json

import pytest
from jobs import end, endless, lived, state
from labs import until
from saltern import nodeset

NOTHING = "nothing was to do, all gates are open"


def kill_wait(seconds):
    return {"slurm": {"parameters": {"KillWait": seconds}}}


def deploy(lab, *words, check=True):
    return lab.runner("saltern.deploy", *words, check=check)


def cell(said, host, phase):
    (found,) = (row[phase] for row in said["phases"] if host in nodeset.expand(row["hosts"]))
    return found


def configured(lab):
    return lab.job("scontrol show config | sed -n 's/^KillWait *= //p'").split()[0]


@pytest.fixture(scope="module")
def job(pair):
    """A job that runs through everything here."""
    deploy(pair)
    number = endless(pair)
    yield number
    end(pair, number)
    lived(pair, number)


def test_nothing_to_do_changes_nothing_and_is_not_on_record(pair, job):
    before = pair.runner("saltern.status")
    assert before["retcode"] == 0, before
    assert deploy(pair)["summary"] == NOTHING
    assert pair.runner("saltern.status") == before


def test_a_change_goes_phase_by_phase_and_back(pair, job):
    with pair.plan(kill_wait(45)):
        shown = deploy(pair, "test=True")
        assert cell(shown, "mgmt01", "p4_scheduler").endswith("to change")
        assert configured(pair) == "30"
        said = deploy(pair)
        assert said["retcode"] == 0, said
        assert cell(said, "mgmt01", "p4_scheduler").endswith("changed")
        assert configured(pair) == "45"
        last = pair.runner("saltern.status")["deploys"][-1]
        assert last["result"] == "done, all gates are open"
        assert last["by"] == "root" and last["phases"] == "p0_plan to service"
    assert deploy(pair)["retcode"] == 0
    assert configured(pair) == "30"
    assert state(pair, job) == "RUNNING"


def test_a_closed_gate_stops_every_host_before_the_next_phase(pair, job):
    """Nodes with less memory than the plan says: no configuration with it reaches Slurm."""
    wrong = {"node_types": {"small": {"memory_mb": 10_000_000}}, **kill_wait(46)}
    with pair.plan(wrong):
        said = deploy(pair, check=False)
        assert said["retcode"] == 1
        assert said["summary"] == "stopped at a closed gate"
        assert cell(said, "node01", "p0_plan") == "closed"
        assert any("node01, p0_plan: " in words and "memory" in words for words in said["problems"])
        assert configured(pair) == "30"
        assert pair.runner("saltern.status", check=False)["deploys"][-1]["phases"] == "p0_plan"
    assert state(pair, job) == "RUNNING"


def test_a_part_stands_on_what_is_before_it(pair, job):
    with pair.plan(kill_wait(47)):
        said = deploy(pair, "from=p7", check=False)
        assert said["problem"].startswith("p4_scheduler has something to do on mgmt[01-02]")
        assert configured(pair) == "30"
    said = deploy(pair, "only=p9", check=False)
    assert "expected one of p0_plan" in said["problem"]


def test_a_cut_deployment_is_seen_and_goes_on_when_called_again(pair, job):
    with pair.plan(kill_wait(48)):
        pair.exec(
            "mgmt01",
            "salt-run saltern.deploy > /dev/null 2> /run/deploy & run=$!; "
            "until grep -q 'p4_scheduler on' /run/deploy; do sleep 0.1; kill -0 $run; done; "
            "kill -9 $run; rm /run/deploy",
        )
        last = pair.runner("saltern.status", check=False)["deploys"][-1]
        assert last["result"] == "cut, or it runs"
        said = deploy(pair)
        assert said["retcode"] == 0, said
        assert configured(pair) == "48"


def test_a_node_that_does_not_answer_is_left_out_and_said(pair, job):
    pair.exec("node02", "systemctl stop salt-minion")
    try:
        said = deploy(pair, check=False)
        assert said["retcode"] == 1
        assert said["summary"].endswith("left out, because silent: node02"), json.dumps(said)
        assert cell(said, "node02", "p0_plan") == "silent"
        assert cell(said, "node01", "p7_identity") == "ok"
        assert configured(pair) == "30"
    finally:
        pair.exec("node02", "systemctl start salt-minion")
    until(lambda: deploy(pair, check=False)["summary"] == NOTHING, 180, "node02 to answer again")
