"""What a deployment makes of answers: cells, the first phase with something to do, the table."""

import pytest
from saltern import deployment, nodeset, overview
from saltern.deployment import Result
from saltern.joins import JoinFailed

PHASES = ["p0_plan", "p1_foundation", "p4_scheduler", "service"]


def state(sls, result=True, *, name="thing", changes=None, ran=True, comment="why"):
    return {
        "__sls__": sls, "__id__": name, "result": result, "changes": changes or {},
        "comment": comment, "__state_ran__": ran, "__run_num__": 1,
    }  # fmt: skip


def gate(phase, result, comment="closed"):
    return state(phase, result, name=f"{phase}: gate", comment=comment)


@pytest.mark.parametrize(
    ("states", "word"),
    [
        pytest.param([state("p1_foundation.time")], "ok", id="nothing"),
        pytest.param([state("p1_foundation.time", changes={"a": 1})], "1 changed", id="changed"),
        pytest.param([state("p1_foundation", None)] * 2, "2 changed", id="would-change"),
        pytest.param([state("p1_foundation.time", result=False)], "failed", id="failed"),
        pytest.param([gate("p1_foundation", result=False)], "closed", id="gate"),
        pytest.param(
            [state("p1_foundation.time", result=False), gate("p1_foundation", result=False)],
            "closed",
            id="gate-and-state",
        ),
        pytest.param(
            [state("p1_foundation", result=False, ran=False)], "failed", id="waits-for-another"
        ),
    ],
)
def test_the_cell_of_a_phase(states, word):
    found = deployment.results({str(number): one for number, one in enumerate(states)})
    assert found["p1_foundation"].word("changed") == word


def test_a_gates_words_stand_alone_and_a_states_have_its_name():
    found = deployment.results(
        {
            "1": state("p1_foundation.time", result=False, comment="off"),
            "2": state("p1_foundation", result=False, ran=False, comment="One or more requisite"),
            "3": gate("p4_scheduler", result=False, comment="The gate is closed"),
        }
    )
    assert found["p1_foundation"].problems == ["thing: off"]
    assert found["p4_scheduler"].problems == ["The gate is closed"]


@pytest.mark.parametrize("answer", [["Rendering failed"], {}, None, "busy"])
def test_an_answer_without_states_is_no_success(answer):
    with pytest.raises(JoinFailed):
        deployment.results(answer)


@pytest.mark.parametrize(
    ("dry", "first"),
    [
        pytest.param({"n1": dict.fromkeys(PHASES, Result())}, "", id="nothing"),
        pytest.param(
            {"n1": {"p1_foundation": Result()}, "n2": {"p4_scheduler": Result(changes=1)}},
            "p4_scheduler",
            id="one-host",
        ),
        pytest.param({"n1": {"p1_foundation": Result(problems=["x"])}}, "p1_foundation", id="bad"),
        pytest.param({"n1": None, "n2": {"p4_scheduler": Result(changes=1)}}, "p0_plan", id="new"),
    ],
)
def test_where_to_begin(dry, first):
    assert deployment.first_to_do(PHASES, dry) == first


@pytest.mark.parametrize("name", ["p4_scheduler", "p4", "4"])
def test_a_phase_by_its_start(name):
    assert deployment.phase(name, PHASES) == "p4_scheduler"


@pytest.mark.parametrize("name", ["p", "5", "sched", ""])
def test_an_unknown_phase_is_named_with_those_that_are_known(name):
    with pytest.raises(deployment.UnknownPhase, match="expected one of p0_plan, p1_foundation"):
        deployment.phase(name, PHASES)


def test_hosts_that_are_alike_share_a_row():
    cells = {
        **{f"n{number}": {"p0_plan": "ok", "p4_scheduler": "ok"} for number in range(1, 4)},
        "sql1": {"p0_plan": "ok"},
    }
    assert deployment.table(cells, ["p0_plan", "p4_scheduler"], nodeset.fold) == [
        {"hosts": "n[1-3]", "p0_plan": "ok", "p4_scheduler": "ok"},
        {"hosts": "sql1", "p0_plan": "ok", "p4_scheduler": ""},
    ]


def test_how_a_host_stands():
    gates = {"p0_plan": "now", "p1_foundation": "before"}
    said = deployment.standing({"gates": gates}, PHASES[:3], "now")
    assert list(said.values()) == ["ok", "older", "closed"]
    assert set(deployment.standing(None, PHASES, "now").values()) == {"silent"}
    assert set(deployment.standing("no such function", PHASES, "now").values()) == {"closed"}


def test_the_steps_of_a_host_come_from_the_one_table():
    top = {
        "*": ["p1_foundation", "p0_plan", "p1_foundation.time"],
        "saltern:roles:compute": [{"match": "pillar"}, "p4_scheduler.slurmd", "service.node"],
        "saltern:roles:gpu": [{"match": "pillar"}, "p4_scheduler.slurmd", "service.node"],
        "saltern:roles:login": [{"match": "pillar"}, "p4_scheduler.login"],
    }
    assert overview.steps(top, frozenset({"compute", "gpu"})) == {
        "p0_plan": ["p0_plan"],
        "p1_foundation": ["p1_foundation", "p1_foundation.time"],
        "p4_scheduler": ["p4_scheduler.slurmd"],
        "service": ["service.node"],
    }
