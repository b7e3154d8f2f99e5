"""Other hardware of a node: no job starts there meanwhile, and every node comes back."""

import json
from unittest.mock import Mock, call

import pytest
from salt.exceptions import CommandExecutionError
from support import load

CHANGES = {"n1": "cpus 2 -> 4", "n2": "cpus 2 -> 4"}
NAMES = ["n1", "n2"]


def node(started, *, base="IDLE", flags=()):
    return {"base": base, "flags": list(flags), "slurmd_started": started}


@pytest.fixture
def module(tmp_path):
    found = load(
        "modules",
        "node_reshape",
        __salt__={
            "nhc.drain": Mock(),
            "nhc.resume": Mock(),
            "slurm_nodes.jobs_on": Mock(return_value=[]),
            "slurm_nodes.states": Mock(return_value={"n1": node(100), "n2": node(100)}),
        },
    )
    found._NOTE = str(tmp_path / "note.json")
    found._TAKEN_S, found._PAUSE_S = 5, 0
    return found


def salt(module, name):
    return module.__salt__[name]


def test_nothing_to_do_asks_nothing(module):
    module.hold({})
    assert (module.jobs({}), module.release(0)) == ([], [])
    salt(module, "nhc.drain").assert_not_called()
    salt(module, "slurm_nodes.jobs_on").assert_not_called()


def test_nodes_are_held_then_given_back_when_their_slurmd_started_again(module):
    module.hold(CHANGES)
    assert module.held() == NAMES
    salt(module, "slurm_nodes.states").side_effect = [
        {"n1": node(100), "n2": node(50)},
        {"n1": node(100), "n2": node(101)},
    ]
    assert module.release(100.7) == NAMES
    assert salt(module, "slurm_nodes.states").call_count == 2
    salt(module, "nhc.drain").assert_called_once_with(NAMES, "definition", module._FINDING)
    salt(module, "nhc.resume").assert_called_once_with(NAMES, "definition")
    assert module.held() == []


def test_a_node_that_is_down_is_not_waited_for(module):
    module.hold(CHANGES)
    module._TAKEN_S = 1e9
    salt(module, "slurm_nodes.states").return_value = {
        "n1": node(1, base="DOWN"),
        "n2": node(1, flags=["NOT_RESPONDING"]),
    }
    assert module.release(100) == NAMES


def test_a_slurmd_that_does_not_start_again_is_not_waited_for_without_end(module):
    module.hold(CHANGES)
    module._TAKEN_S = 0
    assert module.release(1e9) == NAMES
    salt(module, "nhc.resume").assert_called_once()


def test_a_job_that_started_meanwhile_gives_the_nodes_back(module):
    salt(module, "slurm_nodes.jobs_on").return_value = ["7 alice RUNNING"]
    with pytest.raises(CommandExecutionError, match=r"n1, n2: jobs started there.*7 alice"):
        module.hold(CHANGES)
    assert salt(module, "nhc.resume").mock_calls == [call(NAMES, "definition")]
    assert module.held() == []


def test_a_cut_run_is_remembered_with_the_next(module, tmp_path):
    (tmp_path / "note.json").write_text(json.dumps(["n0"]), encoding="utf-8")
    module.hold(CHANGES)
    assert module.held() == ["n0", *NAMES]
    assert [file.name for file in tmp_path.iterdir()] == ["note.json"]
