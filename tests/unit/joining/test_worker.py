"""The worker of the join queue, with simulated minions and the real book."""

import time

import pytest
import saltern_joins
import simulated
from saltern import plan, stamp, view
from saltern.join_book import Book
from saltern.problem import PlanError, Problem
from support import SCHEMA, example

TREE = "tree-1"


@pytest.fixture
def cluster():
    return simulated.Cluster()


@pytest.fixture
def events():
    return []


@pytest.fixture
def worker(tmp_path, monkeypatch, cluster, events):
    """A worker on a plan of 42 compute nodes, three at a time."""
    book = Book(tmp_path / "join/register.db")
    data = example(
        **{
            "hosts:node[03-42]": {
                "roles": ["compute"], "address": "10.213.0.[23-62]", "node_type": "small",
            },
            "join": {"batch": 3, "retry_s": 60},
        }
    )  # fmt: skip
    resolved = plan.resolve(SCHEMA, data)
    monkeypatch.setattr(saltern_joins, "_plan", lambda opts: resolved)
    monkeypatch.setattr(saltern_joins, "Minions", cluster.minions)
    monkeypatch.setattr(saltern_joins.saltern_admission, "book", lambda opts: book)
    monkeypatch.setattr(
        saltern_joins.saltern_admission, "fire", lambda opts, tag, data: events.append((tag, data))
    )
    monkeypatch.setattr(saltern_joins.saltern_master, "tree_version", lambda opts: TREE)
    top = {"*": ["p0_plan", "p1_foundation"], "saltern:roles:compute": ["p4_scheduler"]}
    monkeypatch.setattr(saltern_joins.saltern_master, "top", lambda opts: top)
    made = saltern_joins.Worker({})
    made.tests_plan = resolved
    for host in resolved.hosts:
        book.admit(host, "aa", "fingerprint", "the test", 0.0)
    for name in ("node01", "node02", *(f"node{n:02d}" for n in range(3, 43))):
        cluster.states[name] = {"base": "UNKNOWN", "flags": ["DRAIN"], "reason": ""}
    yield made
    for work in made.at_work.values():
        work.join(30)


def digest(worker, name):
    return stamp.of({**view.of(worker.tests_plan, name), "tree": TREE})


def turn(worker, until, seconds=30):
    """Let the worker tick until something holds."""
    deadline = time.monotonic() + seconds
    while not until():
        assert time.monotonic() < deadline, worker.book.queue()
        worker.tick()
        time.sleep(0.01)


def test_simulated_hosts_join_at_most_the_batch_at_a_time_and_none_twice(worker, cluster, events):
    names = [f"node{number:02d}" for number in range(1, 16)]
    cluster.busy_s = 0.4  # longer than some ticks, so that a missing bound shows
    for name in names:
        worker.book.enqueue(name, time.time())
    turn(worker, lambda: not worker.book.queue() and not cluster.now)
    assert cluster.highstates == dict.fromkeys(names, 1)
    assert cluster.twice == []
    assert 1 < cluster.most <= 3
    joined = [data for tag, data in events if tag == "saltern/node/joined"]
    assert sorted(data["id"] for data in joined) == sorted(names)
    steps = {"modules", "pillar", "controllers", "highstate", "registered"}
    assert steps <= joined[0]["steps"].keys()


def test_a_complete_simulated_host_costs_one_question_and_no_highstate(worker, cluster, events):
    for name in ("node01", "node02"):
        cluster.applied[name] = digest(worker, name)
        cluster.states[name] = dict(simulated.IDLE)
        worker.book.enqueue(name, time.time())
    worker.tick()
    assert worker.book.queue() == []
    assert not cluster.highstates
    assert [function for name, function in cluster.asked if name == "node01"] == ["saltern.applied"]
    assert [data["nothing_to_do"] for _, data in events] == [True, True]


OUT_OF_USE = {
    "not responding": {"flags": ["NOT_RESPONDING"]},
    "down": {"base": "DOWN"},
    "held for its join": {"reason": "saltern: join: gates not open yet @2026-12-01T10:00Z"},
}


@pytest.mark.parametrize("held", OUT_OF_USE.values(), ids=OUT_OF_USE.keys())
def test_a_simulated_host_with_open_gates_that_slurm_does_not_use_is_set_up(worker, cluster, held):
    cluster.applied["node01"] = digest(worker, "node01")
    cluster.states["node01"] = {**simulated.IDLE, **held}
    worker.book.enqueue("node01", time.time())
    turn(worker, lambda: cluster.highstates["node01"])


def test_a_person_s_drain_keeps_no_simulated_host_from_being_complete(worker, cluster):
    cluster.applied["node01"] = digest(worker, "node01")
    cluster.states["node01"] = {**simulated.IDLE, "flags": ["DRAIN"], "reason": "memory swap, J."}
    worker.book.enqueue("node01", time.time())
    worker.tick()
    assert worker.book.queue() == [] and not cluster.highstates


def test_a_failing_simulated_host_waits_longer_each_time_and_holds_nobody_up(
    worker, cluster, events
):
    cluster.failing["node01"] = "The gate is closed:\n- the clock is off"
    for name in ("node01", "node02"):
        worker.book.enqueue(name, time.time())
    turn(worker, lambda: len(events) == 2)
    failed = next(data for tag, data in events if tag == "saltern/node/join-failed")
    assert (failed["id"], failed["phase"], failed["attempt"]) == ("node01", "p1_foundation", 1)
    assert "the clock is off" in failed["reason"]
    assert failed["retry_s"] == 60
    assert ("saltern/node/joined", "node02") in [(tag, data["id"]) for tag, data in events]
    assert cluster.told == [
        ("node01", "p1_foundation: thing: The gate is closed: - the clock is off")
    ]
    worker.book.enqueue("node01", time.time())  # its minion starts again
    turn(worker, lambda: len(events) == 3)
    assert events[-1][1]["retry_s"] == 120
    row = worker.book.queue()[0]
    assert row["state"] == "waiting" and "the clock is off" in row["reason"]


def test_a_silent_simulated_host_is_asked_again_later(worker, cluster):
    cluster.silent.add("node01")
    worker.book.enqueue("node01", time.time())
    worker.tick()
    row = worker.book.queue()[0]
    assert row["reason"] == "its minion does not answer" and row["due"] > time.time() + 5


def test_without_a_controller_everyone_waits_and_nobody_fails(worker, cluster, events):
    cluster.controller_runs = False
    worker.book.enqueue("node01", time.time())
    worker.tick()
    assert "waits for a controller" in worker.book.queue()[0]["reason"]
    assert not events and not cluster.highstates


def test_a_simulated_host_that_loses_power_in_its_join_fails_with_that(worker, cluster, events):
    cluster.dying.add("node01")
    worker.book.enqueue("node01", time.time())
    turn(worker, lambda: events)
    tag, data = events[0]
    assert (tag, data["phase"]) == ("saltern/node/join-failed", "salt")
    assert data["reason"] == "node01 fell silent during state.highstate"
    assert worker.book.queue()[0]["state"] == "waiting"


def test_work_that_broke_off_without_a_word_is_taken_up_again(worker, cluster):
    worker.book.enqueue("node01", time.time())
    worker.book.take("node01")
    worker.tick()
    row = worker.book.queue()[0]
    assert (row["state"], row["reason"]) == ("waiting", "its work was broken off")


def test_a_host_that_is_gone_from_the_plan_leaves_the_queue(worker, cluster):
    worker.book.enqueue("node99", time.time())
    worker.tick()
    assert worker.book.queue() == []


def test_a_broken_plan_is_the_reason_of_every_wait(worker, monkeypatch):
    def broken(opts):
        raise PlanError([Problem("hosts", "nothing", "a host")])

    monkeypatch.setattr(saltern_joins, "_plan", broken)
    worker.book.enqueue("node01", time.time())
    worker.tick()
    assert worker.book.queue()[0]["reason"].startswith("the plan has problems: hosts")
