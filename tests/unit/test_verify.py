"""What a verification makes of answers: what is well, what failed, what was left out."""

from itertools import count

import pytest
import saltern_failover
from saltern import nodeset, verify
from saltern.joins import JoinFailed
from saltern.node_states import State, parse
from support import load


def results(rows):
    return [(row["check"], row["result"]) for row in rows]


def test_open_gates_are_one_row_and_each_other_host_has_its_own():
    said = {"n1": [], "n2": [], "n3": ["clock: off", "munge: down"], "n4": "Traceback"}
    rows = verify.gates("p1_foundation", ["n1", "n2", "n3", "n4", "n5"], said, nodeset.fold)
    assert results(rows) == [
        ("gate p1_foundation on n[1-2]", "ok"),
        ("gate p1_foundation on n3", "failed"),
        ("gate p1_foundation on n4", "failed"),
        ("gate p1_foundation on n5", "failed"),
    ]
    assert rows[1]["found"] == "clock: off; munge: down"
    assert rows[3]["found"] == "no answer from its minion"


@pytest.mark.parametrize(
    ("state", "partition", "result"),
    [
        pytest.param("IDLE", "batch", None, id="idle"),
        pytest.param("MIXED+PLANNED", "batch", None, id="busy"),
        pytest.param("IDLE+DRAIN", "batch", "left out", id="a-persons-drain"),
        pytest.param("IDLE+MAINTENANCE", "batch", "left out", id="maintenance"),
        pytest.param("IDLE+A_FLAG_OF_TOMORROW", "batch", "left out", id="an-unknown-flag"),
        pytest.param("DOWN", "batch", "failed", id="down"),
        pytest.param("IDLE+NOT_RESPONDING", "batch", "failed", id="silent"),
        pytest.param("DOWN+DRAIN", "batch", "failed", id="down-and-drained"),
        pytest.param("IDLE", None, "left out", id="in-no-partition"),
    ],
)
def test_which_nodes_get_a_job(state, partition, result):
    row = verify.idle_reason("n1", parse(state), "why", partition)
    assert (row and row["result"]) == result
    assert isinstance(parse(state), State)


@pytest.mark.parametrize(
    ("state", "result"),
    [
        pytest.param("COMPLETED", "ok", id="completed"),
        pytest.param(None, "failed", id="no-row-in-accounting"),
        pytest.param("PENDING", "left out", id="no-room"),
        pytest.param("RUNNING", "failed", id="hangs"),
        pytest.param("FAILED", "failed", id="failed"),
        pytest.param("CANCELLED by 0", "failed", id="cancelled-by-another"),
        pytest.param("NODE_FAIL", "failed", id="node-failed"),
    ],
)
def test_what_a_job_says(state, result):
    assert verify.job("job on n1", state, "Resources", 60)["result"] == result


def test_the_summary_never_says_verified_over_a_failure():
    good = verify.job("a", "COMPLETED", "", 60)
    busy = verify.job("b", "PENDING", "Priority", 60)
    bad = verify.job("c", "FAILED", "", 60)
    assert verify.summary([good, busy]) == "verified: 1 ok, 1 left out"
    assert verify.summary([good, bad]) == "NOT verified: 1 ok, 1 failed"
    assert [row["check"] for row in verify.in_order([bad, good, busy])] == ["a", "b", "c"]


# --- the module on a controller ---


class Slurm:
    """Slurm's programs, simulated: three nodes, one of them drained."""

    def __init__(self, states=("COMPLETED",), sbatch=0):
        self.calls, self.numbers = [], count(11)
        self.states, self.sbatch = list(states), sbatch

    def run(self, command, *_, **__):
        program = command[0]
        self.calls.append(list(command))
        said = {
            "sinfo": "n1|other|up\nn1|batch*|up\nn2|batch*|up\nn3|batch*|up\nn4|old|down\n",
            "squeue": "11|Resources\n12|Resources\n13|Resources\n",
        }.get(program, "")
        if program == "sbatch":
            said = f"{next(self.numbers)};lab\n" if not self.sbatch else ""
        if program == "sacct":
            state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
            said = "".join(f"{job}|{state}\n" for job in (11, 12, 13)) if state else ""
        failed = self.sbatch if program == "sbatch" else 0
        return {"retcode": failed, "stdout": said, "stderr": "no" if failed else ""}

    def named(self, program):
        return [call for call in self.calls if call[0] == program]


def module(slurm, monkeypatch):
    def node(name, flags=()):
        return {"name": name, "base": "IDLE", "flags": list(flags), "reason": "why"}

    found = load(
        "modules",
        "slurm_verify",
        __salt__={
            "cmd.run_all": slurm.run,
            "slurm_cluster.program": slurm.run,
            "slurm_nodes.states": lambda: {
                "n1": node("n1"),
                "n2": node("n2"),
                "n3": node("n3", ["DRAIN"]),
            },
        },
    )
    clock = count(0, 0.1)
    monkeypatch.setattr(found.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(found.time, "sleep", lambda _: None)
    return found


def test_every_node_in_service_runs_a_job_and_two_run_one_together(monkeypatch):
    slurm = Slurm(["", "RUNNING", "COMPLETED"])
    rows = module(slurm, monkeypatch).jobs(within=60)
    assert results(rows) == [
        ("job on n3", "left out"),
        ("job on n1", "ok"),
        ("job on n2", "ok"),
        ("job over n1 and n2", "ok"),
    ]
    assert all("--partition=batch" in call for call in slurm.named("sbatch"))
    assert not slurm.named("scancel")


def test_jobs_that_wait_are_taken_back_and_no_others(monkeypatch):
    slurm = Slurm(["PENDING"])
    rows = module(slurm, monkeypatch).jobs(within=1)
    assert {row["result"] for row in rows} == {"left out"}
    assert "Resources" in rows[-1]["found"]
    assert slurm.named("scancel") == [["scancel", "11", "12", "13"]]


def test_a_refused_job_and_a_silent_slurmdbd_are_failures(monkeypatch):
    refused = module(Slurm(sbatch=1), monkeypatch).jobs(within=1)
    assert [row["result"] for row in refused if row["check"] != "job on n3"] == ["failed"] * 3
    silent = module(Slurm([""]), monkeypatch).jobs(within=1)
    assert all("no row in accounting" in row["found"] for row in silent[1:])


def test_only_the_control_planes_daemons_are_held(monkeypatch):
    slurm = Slurm()
    held = module(slurm, monkeypatch)
    with pytest.raises(Exception, match="expected one of slurmctld, slurmdbd"):
        held.hold("slurmd", 60)
    held.hold("slurmctld", 60)
    assert [call[0] for call in slurm.calls] == ["systemd-run", "systemctl"]
    assert slurm.calls[0][1:] == [
        "--on-active=60", "--unit=saltern-verify-slurmctld", "systemctl", "start", "slurmctld",
    ]  # fmt: skip


# --- failover, seen from the master ---


class Cluster:
    """Minions of two controllers and two database hosts, simulated."""

    def __init__(self, **faults):
        self.faults, self.held, self.calls = faults, set(), []

    def ask(self, names, function, *arguments, within, **_):
        self.calls.append((function, *arguments))
        return {name: self.answer(name, function, *arguments) for name in names}

    def answer(self, name, function, *arguments):
        what = function.partition(".")[2]
        if what == "reign":
            up = name == "c2" or "slurmctld" not in self.held
            charge = (name == "c1") == ("slurmctld" not in self.held) and what not in self.faults
            return {"active": up, "in_charge": up and charge, "timeout_s": 10}
        if what in self.faults:
            return self.faults[what]
        if what == "hold":
            self.held.add(arguments[0])
        if what == "release":
            self.held.discard(arguments[0])
        state = {"state": "RUNNING", "restarts": 0}
        return {
            "sleeper": "7",
            "queue": {"7": state},
            "accounted": {"7": "COMPLETED"},
            "slurmdbd_answers": True,
        }.get(what)


class Plan:
    data = {}

    def __init__(self, controllers=2, databases=2):
        self.counts = {"controller": controllers, "database": databases}

    def with_role(self, role):
        names = [f"{role[0]}{number + 1}" for number in range(self.counts[role])]
        return [type("Host", (), {"name": name}) for name in names]


def trial(monkeypatch, cluster, plan=None):
    clock = count(0, 0.1)
    monkeypatch.setattr(saltern_failover.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(saltern_failover.time, "sleep", lambda _: None)
    return saltern_failover.Failover(cluster, plan or Plan()).run()


def test_a_failover_that_works(monkeypatch):
    cluster = Cluster()
    rows = trial(monkeypatch, cluster)
    assert {row["result"] for row in rows} == {"ok"}
    assert [row["check"].removeprefix("failover: ") for row in rows] == [
        "takeover",
        "the running job lives",
        "a waiting job starts",
        "c1 takes control back",
        "both jobs in accounting",
        "slurmdbd in reserve",
        "slurmdbd on d1 again",
    ]
    assert cluster.held == set()


@pytest.mark.parametrize(
    ("faults", "plan", "check", "held"),
    [
        pytest.param({}, Plan(controllers=1), "takeover", False, id="one-controller"),
        pytest.param({"reign": 1}, None, "takeover", False, id="nobody-in-charge"),
        pytest.param({"queue": {}}, None, "a running job", False, id="no-room-for-a-job"),
        pytest.param({"sleeper": "ERROR: x"}, None, "slurm_verify.sleeper", False, id="no-sbatch"),
        pytest.param(
            {"accounted": {"7": "CANCELLED by 0"}}, None, "both jobs in accounting", True,
            id="a-job-was-lost",
        ),
        pytest.param(
            {"release": "ERROR: no"}, None, "slurmctld on c1 started again", True,
            id="not-started-again",
        ),
    ],
)  # fmt: skip
def test_a_failover_that_does_not(monkeypatch, faults, plan, check, held):
    cluster = Cluster(**faults)
    rows = trial(monkeypatch, cluster, plan)
    assert (f"failover: {check}", "failed") in results(rows)
    assert any(call[0] == "slurm_verify.hold" for call in cluster.calls) == held


def test_a_silent_master_is_a_row_and_no_traceback(monkeypatch):
    class Silent(Cluster):
        def ask(self, *_, **__):
            raise JoinFailed("salt", "the master did not publish")

    (row,) = trial(monkeypatch, Silent())
    assert row["result"] == "failed" and "did not publish" in row["found"]
