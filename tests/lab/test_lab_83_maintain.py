"""`salt-run saltern.maintain` while a job runs on a node of it: on the lab of pairs."""

import pytest
from jobs import end, endless, lived, sleeper, state
from labs import until

MARK = "/run/maintained"


def maintain(lab, *words, check=True):
    return lab.runner("saltern.maintain", *words, check=check)


def idle(lab):
    said = lab.job("sinfo -h -N -p batch -o '%N %T'").split("\n")
    return sorted(line.strip() for line in said if line) == ["node01 idle", "node02 idle"]


def reason(lab, node):
    return lab.job(f"sinfo -h -n {node} -o '%T %E'").strip()


def marks(lab):
    return [lab.attempt(node, f"cat {MARK}").stdout.split() for node in ("node01", "node02")]


@pytest.fixture
def job(pair):
    """A job on node01."""
    for node in ("node01", "node02"):
        pair.exec(node, f"rm -f {MARK}")
    until(lambda: idle(pair), 90, "both nodes to be idle")
    return endless(pair, "--nodelist=node01")


def test_a_running_job_is_awaited_and_the_other_node_waits_for_its_turn(pair, job):
    """One of two may be away; the master is cut while it waits, and goes on."""
    words = ("batch", "do=command", f"command=echo done >> {MARK}", "most=1")
    shown = maintain(pair, *words, "test=True")
    assert [row["nodes"] for row in shown["batches"]] == ["node01", "node02"]
    assert shown["batches"][0]["waits_for"] == [f"{job} researcher RUNNING"]
    quoted = " ".join(f"'{word}'" for word in words)
    start = f"setsid salt-run saltern.maintain {quoted} > /run/maintain 2>&1 &"
    pair.exec("mgmt01", start)
    until(lambda: "waits for" in pair.exec("mgmt01", "cat /run/maintain"), 60, "it to wait")
    assert reason(pair, "node01").startswith("draining saltern: maintenance: command, by root")
    lived(pair, sleeper(pair, 1))
    pair.exec("mgmt01", "pkill -9 -f '[s]alt-run saltern.maintain'")
    assert state(pair, job) == "RUNNING"
    assert marks(pair) == [[], []]
    pair.exec("mgmt01", start)
    until(lambda: "waits for" in pair.exec("mgmt01", "cat /run/maintain"), 60, "it to wait")
    end(pair, job)
    lived(pair, job)
    until(lambda: "2 of 2 nodes" in pair.exec("mgmt01", "cat /run/maintain"), 180, "its end")
    assert marks(pair) == [["done"], ["done"]]
    until(lambda: idle(pair), 60, "both nodes back in service")


def test_a_job_that_does_not_end_in_time_keeps_its_node(pair, job):
    command = f"command=echo late >> {MARK}"
    said = maintain(pair, "batch", "do=command", command, "most=2", "wait_s=1", check=False)
    assert said["retcode"] == 1 and said["summary"] == "1 of 2 nodes done"
    assert marks(pair) == [[], ["late"]]
    assert state(pair, job) == "RUNNING"
    assert reason(pair, "node01") == "mixed none"
    end(pair, job)
    lived(pair, job)
    said = maintain(pair, "batch", "do=command", command, "most=2", "wait_s=1")
    assert marks(pair) == [["late"], ["late"]], "the other node is not done twice"


def test_a_node_that_failed_stays_out_with_its_reason_and_the_rest_is_not_begun(pair, job):
    end(pair, job)
    lived(pair, job)
    command = f"command=echo no >&2; [ -e {MARK} ]"
    said = maintain(pair, "batch", "do=command", command, "most=1", check=False)
    assert said["not_begun"] == "node02"
    assert "maintenance: exit status 1: no" in reason(pair, "node01")
    assert reason(pair, "node02") == "idle none"
    for node in ("node01", "node02"):
        pair.exec(node, f"touch {MARK}")
    assert maintain(pair, "batch", "do=command", command, "most=1")["retcode"] == 0
    until(lambda: idle(pair), 60, "both nodes back in service")


def test_a_persons_drain_is_theirs(pair, job):
    end(pair, job)
    scontrol = "/opt/slurm/current/bin/scontrol update nodename=node02"
    pair.exec("mgmt01", f"{scontrol} state=drain reason='new fan, ticket 7'")
    try:
        said = maintain(pair, "node[01-02]", "do=highstate", "most=2", check=False)
        rows = {row["nodes"]: row["result"] for row in said["nodes"]}
        assert rows["node01"] == "done"
        assert rows["node02"].startswith("left alone: ")
        assert "new fan, ticket 7" in reason(pair, "node02")
    finally:
        pair.exec("mgmt01", f"{scontrol} state=resume")
    lived(pair, job)
