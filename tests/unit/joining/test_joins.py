"""The rules of joining."""

import pytest
from saltern import joins, stamp
from saltern.joins import JoinFailed


def state(sls, number, result=True, **more):
    return {
        "__sls__": sls, "__id__": f"{sls}: {number}", "__run_num__": number, "result": result,
        "duration": 500.0, "comment": "words", **more,
    }  # fmt: skip


def test_phases_and_their_seconds():
    answer = {"a": state("p1_foundation.munge", 1), "b": state("p1_foundation", 2)}
    assert joins.result(answer) == {"p1_foundation": 1.0}


def test_the_first_failure_is_told_and_what_waited_for_it_is_not():
    answer = {
        "c": state("p4_scheduler.slurmd", 3, False, __state_ran__=False, comment="requisite"),
        "b": state("p1_foundation", 2, False, comment="The gate is closed: clock"),
        "a": state("p0_plan", 1),
    }
    with pytest.raises(JoinFailed) as failed:
        joins.result(answer)
    assert failed.value.phase == "p1_foundation"
    assert failed.value.reason == "p1_foundation: 2: The gate is closed: clock"


def test_a_gate_s_own_words_are_enough():
    gate = state("p0_plan", 1, False, comment="The gate of p0_plan is closed: x")
    with pytest.raises(JoinFailed) as failed:
        joins.result({"a": {**gate, "__id__": "p0_plan: gate"}})
    assert failed.value.reason == "The gate of p0_plan is closed: x"


@pytest.mark.parametrize(
    ("answer", "phase", "words"),
    [
        (["Pillar failed to render", "plan"], "pillar", "Pillar failed to render; plan"),
        ({}, "salt", "no answer"),
        ("The function is running", "salt", "The function is running"),
        (None, "salt", "no answer"),
    ],
    ids=["pillar", "empty", "words", "nothing"],
)
def test_no_states_at_all(answer, phase, words):
    with pytest.raises(JoinFailed, match=words) as failed:
        joins.result(answer)
    assert failed.value.phase == phase


@pytest.mark.parametrize(
    ("attempts", "seconds"), [(0, 60), (1, 60), (2, 120), (3, 240), (7, 3600), (10_000, 3600)]
)
def test_pauses_grow_to_a_bound(attempts, seconds):
    assert joins.pause(attempts, 60, 3600) == seconds


GATES = {"p0_plan": "x", "p4_scheduler": "x"}
COMPLETE = {
    "all": ({"gates": GATES}, True),
    "one for an older plan": ({"gates": {**GATES, "p0_plan": "w"}}, False),
    "one closed": ({"gates": {"p0_plan": "x"}}, False),
    "no such function": ("'saltern.applied' is not available.", False),
    "nothing yet": ({"view": "x", "gates": {}}, False),
}


@pytest.mark.parametrize("case", COMPLETE)
def test_complete(case):
    applied, complete = COMPLETE[case]
    assert joins.is_complete(applied, ["p0_plan", "p4_scheduler"], "x") is complete


def test_a_role_without_phases_is_never_complete():
    assert not joins.is_complete({"gates": {}}, [], "x")


def test_a_stamp_knows_nothing_of_secrets_and_everything_else():
    view = {"roles": ["compute"], "tree": "1", "secrets": {"munge_key": "k"}}
    assert stamp.of(view) == stamp.of({**view, "secrets": {"munge_key": "other"}})
    assert stamp.of(view) != stamp.of({**view, "tree": "2"})
    assert stamp.of(view) == stamp.of(dict(reversed(view.items())))
