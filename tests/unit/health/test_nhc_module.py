"""nhc.drain, resume, status and the states over them, against a simulated Slurm."""

import json

import pytest
from fake_slurm import Slurm
from salt.exceptions import CommandExecutionError
from support import load

PERSON = "memory swap, J."


def nhc(slurm, host="mgmt01"):
    salt = {
        "slurm_cluster.client_env": dict,
        "cmd.run_all": slurm.scontrol,
        "saltern.view": lambda path="": host,
    }
    return load("modules", "nhc", __salt__=salt)


def states(slurm, test=False):
    module = nhc(slurm)
    salt = {"nhc.drain": module.drain, "nhc.resume": module.resume}
    return load("states", "nhc", __salt__=salt, __opts__={"test": test})


def test_drain_then_resume_simulated():
    slurm = Slurm(node01="IDLE", node02="MIXED")
    said = nhc(slurm).drain(["node01", "node02"], "join", "waiting")
    assert {name: (one["changed"], one["state"], one["left"]) for name, one in said.items()} == {
        "node01": (True, "IDLE+DRAIN", ""),
        "node02": (True, "MIXED+DRAIN", ""),
    }
    assert said["node01"]["reason"].startswith("saltern: join: waiting @")
    said = nhc(slurm).resume(["node01", "node02"], "join")
    assert [one["changed"] for one in said.values()] == [True, True]
    assert [slurm.state(name) for name in slurm.nodes] == ["IDLE", "MIXED"]


def test_a_second_time_is_no_change_simulated():
    """PITFALL 29: resuming an undrained node is an error for Slurm and no change for us."""
    slurm = Slurm(node01="IDLE")
    module = nhc(slurm)
    module.drain("node01", "join", "waiting")
    before = len(slurm.updates)
    assert not module.drain("node01", "join", "waiting")["node01"]["changed"]
    assert len(slurm.updates) == before
    module.resume("node01", "join")
    assert module.resume("node01", "join") == {
        "node01": {"changed": False, "state": "IDLE", "reason": "", "left": ""}
    }


def test_drain_and_resume_leave_a_persons_drain_simulated():
    """PITFALL 28."""
    slurm = Slurm(node01="IDLE")
    slurm.drained_by("node01", PERSON)
    module = nhc(slurm)
    for said in (module.drain("node01", "join", "x"), module.resume("node01", "*")):
        assert not said["node01"]["changed"]
        assert PERSON in said["node01"]["left"]
    assert slurm.updates == []
    assert slurm.nodes["node01"]["reason"] == PERSON


@pytest.mark.parametrize(
    "state", ["DOWN", "IDLE+POWERED_DOWN", "IDLE+MAINTENANCE", "IDLE+REBOOT_ISSUED", "IDLE+NEW"]
)
def test_what_is_slurms_is_left_simulated(state):
    slurm = Slurm(node01=state)
    said = nhc(slurm).drain("node01", "join", "x")["node01"]
    assert not said["changed"]
    assert said["left"]
    assert slurm.updates == []


def test_two_causes_are_kept_and_the_last_brings_the_node_back_simulated():
    slurm = Slurm(node01="IDLE")
    module = nhc(slurm)
    module.drain("node01", "join", "waiting")
    module.drain("node01", "maintenance", "new disk")
    assert [cause["name"] for cause in module.status()["node01"]["causes"]] == [
        "join",
        "maintenance",
    ]
    assert slurm.state("node01") == "IDLE+DRAIN"
    module.resume("node01", "join")
    assert slurm.state("node01") == "IDLE+DRAIN"
    assert "join" not in slurm.nodes["node01"]["reason"]
    module.resume("node01", "maintenance")
    assert slurm.state("node01") == "IDLE"


def test_results_are_per_node_simulated():
    slurm = Slurm(node01="IDLE", node02="DOWN")
    said = nhc(slurm).drain(["node01", "node02", "node09"], "join", "x")
    assert [one["changed"] for one in said.values()] == [True, False, False]
    assert "DOWN" in said["node02"]["left"]
    assert "no such node" in said["node09"]["left"]


def test_no_answer_is_an_error_and_not_an_empty_cluster_simulated():
    slurm = Slurm(node01="IDLE")
    slurm.answers = False
    for ask in (
        lambda module: module.status(),
        lambda module: module.drain("node01", "join", "x"),
        lambda module: module.resume("node01", "join"),
    ):
        with pytest.raises(CommandExecutionError, match="Unable to contact"):
            ask(nhc(slurm))


@pytest.mark.parametrize("cause", ["two words", "a|b", "", "x\ny", "-x"])
def test_a_cause_that_would_not_be_read_back_is_refused_simulated(cause):
    slurm = Slurm(node01="IDLE")
    with pytest.raises(CommandExecutionError, match="one word"):
        nhc(slurm).drain("node01", cause, "x")
    assert slurm.updates == []


def test_somebody_who_undoes_it_at_once_is_told_of_simulated():
    slurm = Slurm(node01="IDLE")
    told = slurm._update

    def undone(name, values):
        told(name, values)
        told(name, {"state": "UNDRAIN"})

    slurm._update = undone
    with pytest.raises(CommandExecutionError, match="Somebody else"):
        nhc(slurm).drain("node01", "join", "x")


def test_owners_simulated():
    slurm = Slurm(a="IDLE", b="IDLE", c="IDLE", d="IDLE")
    slurm.drained_by("a", PERSON)
    slurm.drained_by("b", "Kill task failed")
    module = nhc(slurm)
    module.drain("c", "join", "x")
    assert {name: row["owner"] for name, row in module.status().items()} == {
        "a": "person",
        "b": "slurm",
        "c": "saltern",
        "d": "",
    }
    assert list(module.status("b")) == ["b"]
    assert module.reason("a") == PERSON


# The four cases of each state function, and a second run.
def test_drained_state_simulated():
    slurm = Slurm(node01="IDLE")
    arguments = {"name": "node01", "cause": "join", "finding": "waiting"}
    dry = states(slurm, test=True).drained(**arguments)
    assert dry["result"] is None
    assert dry["changes"] == {"node01": "would be drained"}
    assert slurm.updates == []
    done = states(slurm).drained(**arguments)
    assert done["result"] is True
    assert "IDLE+DRAIN" in done["changes"]["node01"]
    again = states(slurm).drained(**arguments)
    assert (again["result"], again["changes"]) == (True, {})
    slurm.answers = False
    failed = states(slurm).drained(**arguments)
    assert (failed["result"], failed["changes"]) == (False, {})


def test_resumed_state_simulated():
    slurm = Slurm(node01="IDLE")
    slurm.drained_by("node01", "saltern: join: x @2026-12-01T13:01Z")
    dry = states(slurm, test=True).resumed("node01", "join")
    assert dry["result"] is None
    assert slurm.state("node01") == "IDLE+DRAIN"
    assert states(slurm).resumed("node01", "join")["changes"]
    assert slurm.state("node01") == "IDLE"
    again = states(slurm).resumed("node01", "join")
    assert (again["result"], again["changes"]) == (True, {})


def test_a_persons_drain_is_no_failure_of_a_state_simulated():
    slurm = Slurm(node01="IDLE")
    slurm.drained_by("node01", PERSON)
    ret = states(slurm).resumed("node01", "join")
    assert (ret["result"], ret["changes"]) == (True, {})
    assert PERSON in ret["comment"]


def test_run_gives_the_checkers_words(tmp_path):
    checker = tmp_path / "node_health"
    module = nhc(Slurm())
    module._CHECKER = str(checker)
    with pytest.raises(CommandExecutionError, match="p5_environment"):
        module.run()
    checker.touch()
    answer = {"passed": True, "checks": []}
    module.__salt__["cmd.run_all"] = lambda command, **_: {
        "stdout": json.dumps(answer),
        "stderr": "",
        "retcode": 0,
    }
    assert module.run() == answer
    module.__salt__["cmd.run_all"] = lambda command, **_: {
        "stdout": "",
        "stderr": "Traceback",
        "retcode": 1,
    }
    with pytest.raises(CommandExecutionError, match="Traceback"):
        module.run()
