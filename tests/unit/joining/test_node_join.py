"""A node's way into service: the module and the state, with simulated answers of Slurm."""

import pytest
from salt.exceptions import CommandExecutionError
from support import load

HELD = {"state": "IDLE+DRAIN", "reason": "saltern: join: x", "causes": [{"name": "join"}]}
FREE = {"state": "IDLE", "reason": "", "causes": []}


def node(base="UNKNOWN", flags=(), registered=False):
    return {"base": base, "flags": list(flags), "registered": registered, "reason": ""}


def module(states=None, status=None, slurmd=False):
    calls = []

    def drain(names, cause, finding, test=False):
        calls.append(("drain", names, cause, finding, test))
        return {n: {"changed": True, "state": "DRAIN", "reason": "r", "left": ""} for n in names}

    salt = {
        "slurm_nodes.states": lambda: states,
        "nhc.status": lambda names: status or {},
        "nhc.drain": drain,
        "daemon.status": lambda name: {"active": slurmd},
        "saltern.view": lambda path: "node03",
    }
    loaded = load("modules", "node_join", __salt__=salt)
    return loaded, calls


NEWCOMERS = {
    "never registered": (node(), True),
    "registered": (node("IDLE", registered=True), False),
    "held already": (node(flags=["DRAIN"]), False),
    "down, with Slurm's reason": (node("DOWN"), False),
    "powered down": (node("IDLE", ["POWERED_DOWN"]), False),
    "a flag of a newer Slurm": (node(flags=["SOMETHING_NEW"]), False),
}


@pytest.mark.parametrize("case", NEWCOMERS)
def test_newcomers(case):
    found, is_new = NEWCOMERS[case]
    assert module({"node03": found})[0].newcomers() == (["node03"] if is_new else [])


def test_a_node_in_service_is_not_held_by_a_highstate():
    loaded, calls = module(status={"node03": FREE}, slurmd=True)
    assert loaded.hold()["left"] == "its slurmd runs"
    assert calls == []


def test_a_node_that_starts_is_held_once():
    loaded, calls = module(status={"node03": FREE})
    assert loaded.hold()["changed"]
    assert calls == [("drain", ["node03"], "join", "its gates are not open yet", False)]
    loaded, calls = module(status={"node03": HELD})
    assert not loaded.hold()["changed"]
    assert calls == []


def test_a_failed_join_is_told_in_the_reason_of_a_held_node_only():
    loaded, calls = module(status={"node03": HELD})
    loaded.tell_failure("node03", "p1_foundation: clock")
    assert calls == [("drain", ["node03"], "join", "p1_foundation: clock", False)]
    loaded, calls = module(status={"node03": FREE})
    assert loaded.tell_failure("node03", "p1_foundation: clock") == {}
    assert calls == []


# --- the states
# ------------------------------------------------------------------------------------

ALREADY = {"changed": False, "state": "IDLE", "reason": "", "left": ""}
DONE = {"changed": True, "state": "IDLE+DRAIN", "reason": "saltern: join: x", "left": ""}


def states(answers, test=False):
    def function(name):
        def run(*arguments, **keywords):
            if isinstance(answers[name], Exception):
                raise answers[name]
            return answers[name]

        return run

    salt = {name: function(name) for name in answers}
    return load("states", "node_join", __salt__=salt, __opts__={"test": test})


CASES = {
    "held": ("held", "node_join.hold"),
    "in service": ("in_service", "node_join.release"),
}


@pytest.mark.parametrize("case", CASES)
def test_node_states(case):
    state, function = CASES[case]

    def run(answer, test=False):
        return getattr(states({function: answer}, test), state)("join")

    assert (run(ALREADY)["result"], run(ALREADY)["changes"]) == (True, {})
    assert run(DONE, test=True)["result"] is None and run(DONE, test=True)["changes"]
    assert run(DONE)["result"] is True
    assert run(DONE)["changes"]["state"] == {"new": "IDLE+DRAIN"}
    failed = run(CommandExecutionError("no controller answers"))
    assert (failed["result"], failed["changes"]) == (False, {})
    assert "no controller answers" in failed["comment"]
    left = run({**ALREADY, "left": "its drain is J.'s: memory swap"})
    assert (left["result"], left["changes"]) == (True, {})
    assert "memory swap" in left["comment"]


def test_newcomers_held():
    none = states({"node_join.newcomers": []}).newcomers_held("join")
    assert (none["result"], none["changes"]) == (True, {})
    answers = {
        "node_join.newcomers": ["n1", "n2"],
        "node_join.hold_newcomers": {"n1": DONE, "n2": ALREADY},
    }
    dry = states(answers, test=True).newcomers_held("join")
    assert dry["result"] is None and dry["changes"].keys() == {"n1", "n2"}
    real = states(answers).newcomers_held("join")
    assert real["result"] is True and real["changes"].keys() == {"n1"}
    away = states({"node_join.newcomers": CommandExecutionError("slurmctld did not answer")})
    assert away.newcomers_held("join")["result"] is False
