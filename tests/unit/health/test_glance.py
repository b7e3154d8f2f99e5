"""PITFALL 27: sinfo prints a node once a partition; a node is one node, and nothing is cut."""

import json
from unittest.mock import MagicMock

import pytest
import saltern_master_health
from saltern import drain_board, node_states, plan, slurm_answers
from saltern.problem import PlanError
from support import ROOT, SCHEMA, example

SINFO = (ROOT / "tests/fixtures/slurm-24.11.5/sinfo.txt").read_text("utf-8")


def row(name, partition, total, **changes):
    """A row of `sinfo --nodes NAME --json`, with the keys that 24.11.5 prints and we read."""
    values = {
        "node": {"state": ["IDLE", "DRAIN"]},
        "nodes": {"nodes": [name]},
        "reason": {"description": "two\nlines, and a long one" * 9, "time": 7, "user": "root"},
        "comment": "rack 7",
        "partition": {"nodes": {"configured": partition, "total": total}},
    }
    return {**values, **changes}


def test_a_node_in_two_partitions_is_one_node_in_the_larger():
    text = json.dumps({"sinfo": [row("n1", "n[1-2]", 2), row("n1", "n[1-900]", 900)]})
    glance = drain_board.glance(text, "n1")
    assert (glance.partition, glance.nodes) == ("n[1-900]", 900)
    assert glance.node.state.text == "IDLE+DRAIN"
    assert glance.node.reason == "two\nlines, and a long one" * 9
    assert (glance.node.user, glance.node.since, glance.node.comment) == ("root", 7.0, "rack 7")


def test_a_node_that_sinfo_does_not_show_is_none_and_no_answer_is_an_error():
    nobody = row("", "", 0, nodes={"nodes": []})
    assert drain_board.glance(json.dumps({"sinfo": [nobody]}), "n1") is None
    assert drain_board.glance('{"sinfo": []}', "n1") is None
    with pytest.raises(slurm_answers.Unreadable, match="Unable"):
        drain_board.glance("slurm_load_node: Unable to contact slurm controller", "n1")


def test_sinfos_own_words_for_states():
    rows = [line.split("|") for line in SINFO.splitlines() if line.count("|") == 4]
    states = {name: node_states.parse(word).text for name, word, *_ in rows if name[0] != "#"}
    assert states == {
        "gpu001": "IDLE+DRAIN",
        "gpu002": "UNKNOWN+NOT_RESPONDING",
        "gpu006": "UNKNOWN+NOT_RESPONDING",
        "rack1n01": "IDLE",
    }


# --- the runner's way to a controller ---


def overview(monkeypatch, answer):
    client = MagicMock()
    client.__enter__.return_value.cmd.return_value = answer
    get = MagicMock(return_value=client)
    monkeypatch.setattr(saltern_master_health.salt.client, "get_local_client", get)
    return saltern_master_health.overview({}, plan.resolve(SCHEMA, example()), False)


def test_a_controller_is_asked_for_all_nodes(monkeypatch):
    node = {
        "state": "DOWN",
        "owner": "slurm",
        "reason": "Not responding",
        "causes": [],
        "since": "",
    }
    parts = overview(monkeypatch, {"mgmt01": {"node01": node}})
    assert [row["node"] for row in parts["nodes"]] == ["node01"]
    assert parts["not_in_slurm"] == "node02"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({}, "no answer from its minion"),
        ({"mgmt01": "ERROR: scontrol show nodes: found 'Unable'"}, "Unable"),
    ],
)
def test_no_answer_is_no_healthy_cluster(monkeypatch, answer, words):
    with pytest.raises(PlanError, match=words):
        overview(monkeypatch, answer)
