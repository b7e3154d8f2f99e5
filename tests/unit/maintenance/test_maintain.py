"""A maintenance's order, and what becomes of nodes that others hold, that stay busy, that fail, or
that are silent; minions and Slurm are simulated."""

import copy

import pytest
import saltern_maintain
import saltern_master
import saltern_record
from saltern import plan as plans
from saltern.joins import JoinFailed
from saltern_lifecycle import Refused
from support import ROOT, SCHEMA, everyone

TOP = saltern_master.top({"file_roots": {"base": [str(ROOT / "salt")]}})
NODES = ["cpu1", "cpu2", "cpu3", "cpu4"]
WELL = {"x": {"__sls__": "p4_scheduler", "__id__": "y", "result": True, "duration": 1.0}}
FAILED = {**WELL, "z": {"__sls__": "p1_foundation", "__id__": "clock", "result": False,
                        "comment": "off"}}  # fmt: skip


class Cluster:
    """Simulated nodes behind a simulated Slurm."""

    def __init__(self):
        self.drained = {}  # node: whose
        self.jobs = {}  # job: its nodes
        self.silent, self.unwell = set(), {}
        self.states = {}  # node: what its highstate answers
        self.done, self.worked = [], []
        self.also = {}  # node: who holds it too
        self.unheard = {}  # node: how often it is said not to respond
        self.cut_at = None  # the node at which the master loses its power

    def controllers(self, plan, within):
        return ["ctl1"]

    def run(self, name, function, *arguments, within):
        assert name == "ctl1"
        return getattr(self, function.partition(".")[2])(*arguments)

    def ask(self, names, function, *_, within, **__):
        there = [name for name in names if name not in self.silent]
        if function == "test.ping":
            return dict.fromkeys(there, True)
        assert function.startswith("saltern_gate.")
        return {name: self.unwell.get(name, []) for name in there}

    def follow(self, calls, function, *, within, **_):
        ((names, arguments),) = calls
        assert all(self.drained.get(name) == "ours" for name in names)
        assert not any(set(where) & set(names) for where in self.jobs.values())
        if self.cut_at in names:
            raise KeyboardInterrupt
        self.worked.append((tuple(names), function, *arguments))
        return {name: self.states.get(name, WELL) for name in names}

    def flags(self, node):
        """Slurm has not heard yet of a node that was given back just now."""
        if node in self.drained:
            return ["DRAIN"]
        unheard = self.unheard.get(node, 0)
        self.unheard[node] = unheard - 1
        return ["NOT_RESPONDING"] if unheard > 0 else []

    # what the controller runs

    def drain(self, nodes, _cause, finding):
        found = {}
        for node in nodes:
            left = "drained by bob" if self.drained.get(node) == "bob" else ""
            if not left:
                self.drained[node] = "ours"
                self.done.append(f"drain {node}: {finding}")
            found[node] = {"left": left}
        return found

    def resume(self, nodes, _cause):
        for node in nodes:
            assert self.drained.pop(node) == "ours"
            self.done.append(f"resume {node}")
            self.unheard[node] = 2
        return {node: {"left": self.also.get(node, "")} for node in nodes}

    def jobs_of(self, nodes):
        return {job: ",".join(where) for job, where in self.jobs.items() if set(where) & set(nodes)}


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """Four nodes of one partition."""
    plan = copy.deepcopy(everyone())
    for number, name in enumerate(NODES[1:]):
        plan["hosts"][name] = {**plan["hosts"]["cpu1"], "address": f"10.213.0.{40 + number}"}
    plan["partitions"] = {"batch": {"nodes": ",".join(NODES), "default": True}}
    monkeypatch.setattr(saltern_master, "top", lambda _opts: TOP)
    monkeypatch.setattr(saltern_maintain, "person", lambda: "ada")
    monkeypatch.setattr(saltern_maintain, "_POLL_S", 0)
    monkeypatch.setattr(saltern_maintain, "_PATIENCE_S", 0)
    monkeypatch.setattr(saltern_maintain, "_ROOM_S", 0.1)
    simulated = Cluster()
    simulated.opts = {"ext_pillar": [{"saltern": {"join_file": str(tmp_path / "register.db")}}]}
    simulated.plan = plans.resolve(SCHEMA, plan)

    class Minions:
        def __init__(self, _opts):
            pass

        def __enter__(self):
            return Asked(simulated)

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(saltern_maintain, "Minions", Minions)
    return simulated


class Asked:
    """The door to the simulated cluster."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.ask, self.follow = cluster.ask, cluster.follow
        self.controllers = cluster.controllers

    def run(self, name, function, *arguments, within):
        if function == "slurm_nodes.states":
            return {node: {"base": "IDLE", "flags": self.cluster.flags(node)} for node in NODES}
        if function == "slurm_nodes.jobs":
            return self.cluster.jobs_of(*arguments)
        return self.cluster.run(name, function, *arguments, within=within)


def maintain(cluster, target="batch", do="highstate", wait_s=0, failures=0, test=False, **more):
    asked = {"target": target, "do": do, "command": "", "most": "2", **more}
    return saltern_maintain.run(cluster.opts, cluster.plan, asked, wait_s, failures, test)


def result(said, node):
    (found,) = (row["result"] for row in said["nodes"] if node in _names(row["nodes"]))
    return found


def _names(folded):
    return saltern_maintain.nodeset.expand(folded)


def test_batch_after_batch_each_drained_worked_on_and_given_back(cluster):
    said = maintain(cluster)
    assert [names for names, *_ in cluster.worked] == [("cpu1", "cpu2"), ("cpu3", "cpu4")]
    assert cluster.done[:4] == [
        "drain cpu1: highstate, by ada", "drain cpu2: highstate, by ada", "resume cpu1",
        "resume cpu2",
    ]  # fmt: skip
    assert cluster.drained == {}
    assert said["summary"] == "4 of 4 nodes done" and said["retcode"] == 0


def test_a_command_is_given_as_it_is(cluster):
    cluster.states = {"cpu3": {"retcode": 0, "stdout": "", "stderr": ""}}
    maintain(cluster, "cpu3", "command", command="uname -r")
    assert cluster.worked == [(("cpu3",), "cmd.run_all", "uname -r")]


def test_a_node_whose_jobs_do_not_end_goes_back_and_nothing_is_done_on_it(cluster):
    cluster.jobs = {"7 bob RUNNING": ["cpu1"]}
    said = maintain(cluster)
    assert result(said, "cpu1") == "given back, still runs 7 bob RUNNING"
    assert "cpu1" not in {name for names, *_ in cluster.worked for name in names}
    assert cluster.drained == {} and said["retcode"] == 1
    cluster.jobs, cluster.worked = {}, []
    said = maintain(cluster)
    assert cluster.worked[0][0] == ("cpu1",) and len(cluster.worked) == 1
    assert said["retcode"] == 0 and result(said, "cpu3").startswith("done in 2")


def test_what_a_person_drained_is_left_alone(cluster):
    cluster.drained = {"cpu2": "bob"}
    said = maintain(cluster)
    assert result(said, "cpu2") == "left alone: drained by bob"
    assert cluster.drained == {"cpu2": "bob"}
    assert said["retcode"] == 1


@pytest.mark.parametrize(
    ("answers", "unwell", "words"),
    [
        ({"cpu1": FAILED}, {}, "p1_foundation: clock: off"),
        ({"cpu1": JoinFailed("salt", "cpu1 fell silent")}, {}, "cpu1 fell silent"),
        ({}, {"cpu1": ["a disk is full"]}, "a disk is full"),
        ({}, {"cpu1": "Traceback"}, "Traceback"),
    ],
)
def test_a_node_that_failed_stays_drained_with_the_reason_and_stops_the_rest(
    cluster, answers, unwell, words
):
    cluster.states, cluster.unwell = answers, unwell
    said = maintain(cluster)
    assert words in result(said, "cpu1")
    assert cluster.drained == {"cpu1": "ours"}
    assert any(words in line for line in cluster.done if line.startswith("drain cpu1"))
    assert len(cluster.worked) == 1 and said["not_begun"] == "cpu[3-4]"
    assert result(said, "cpu2") == "done"


def test_a_budget_of_failures_lets_it_go_on(cluster):
    cluster.states = {"cpu1": FAILED}
    said = maintain(cluster, failures=1)
    assert said["summary"] == "3 of 4 nodes done" and said["retcode"] == 1


def test_a_silent_node_is_not_drained(cluster):
    cluster.silent = {"cpu1"}
    said = maintain(cluster)
    assert result(said, "cpu1") == "its minion does not answer"
    assert cluster.drained == {}


def test_one_that_was_cut_goes_on_with_what_it_had_drained(cluster):
    cluster.cut_at = "cpu3"
    with pytest.raises(KeyboardInterrupt):
        maintain(cluster)
    assert set(cluster.drained) == {"cpu3", "cpu4"}
    cluster.cut_at, cluster.worked = None, []
    said = maintain(cluster)
    assert [names for names, *_ in cluster.worked] == [("cpu3", "cpu4")]
    assert cluster.drained == {} and said["retcode"] == 0
    assert len(saltern_record.Record(cluster.opts, "maintenances").runs()) == 2


def test_a_finished_one_begins_anew_and_so_does_another(cluster):
    maintain(cluster)
    cluster.worked = []
    maintain(cluster)
    assert len(cluster.worked) == 2
    cluster.states = {"cpu1": FAILED}
    maintain(cluster)
    cluster.states, cluster.drained, cluster.worked = {}, {}, []
    maintain(cluster, most="4")
    assert [sorted(names) for names, *_ in cluster.worked] == [NODES]


def test_a_node_that_another_drained_meanwhile_is_done_all_the_same(cluster):
    cluster.also = {"cpu1": "drained by bob"}
    cluster.states = {"cpu2": FAILED}
    said = maintain(cluster)
    assert result(said, "cpu1") == "done, drained by bob"
    cluster.states, cluster.worked = {}, []
    maintain(cluster)
    assert "cpu1" not in {name for names, *_ in cluster.worked for name in names}


def test_others_that_are_away_leave_no_room(cluster):
    cluster.drained = {"cpu3": "bob", "cpu4": "bob"}
    said = maintain(cluster, "cpu[1-2]")
    assert cluster.worked == [] and said["retcode"] == 1
    assert "no room" in said["summary"] and said["not_begun"] == "cpu[1-2]"


def test_a_dry_run_lists_batches_and_touches_nothing(cluster):
    cluster.jobs = {"7 bob RUNNING": ["cpu1", "cpu3"]}
    said = maintain(cluster, test=True)
    assert [row["nodes"] for row in said["batches"]] == ["cpu[1-2]", "cpu[3-4]"]
    assert said["batches"][0]["waits_for"] == ["7 bob RUNNING"]
    assert cluster.done == [] and cluster.worked == []


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"target": "cpu9"}, "cpu9"),
        ({"target": "cpu[1-"}, "Nothing was done"),
        ({"do": "dance"}, "expected one of highstate, command"),
        ({"do": "command"}, "belongs to do=command"),
        ({"command": "true"}, "belongs to do=command"),
        ({"most": "0"}, "expected a number of nodes"),
    ],
)
def test_what_cannot_be_asked_is_refused(cluster, asked, words):
    with pytest.raises(Refused) as refused:
        maintain(cluster, **asked)
    assert words in str(refused.value)
    assert cluster.done == []
