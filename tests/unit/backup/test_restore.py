"""What a restore does in which order, and what stops it; minions are simulated."""

import pytest
import saltern_restore
from saltern import plan as plans
from saltern.joins import JoinFailed
from saltern_lifecycle import Refused
from support import SCHEMA, everyone

NAME = "20261203T000000Z"
ROW = {"backup": NAME, "part": "state", "at": 100.0, "slurm": "24.11.5", "of": "x", "bytes": 1}
LOADED = {"row": ROW, "tables": 34, "jobs": 3, "last": 90, "present": 5, "newer": 2}


class Minions:
    """Answers as a cluster in good health, but for what a test says: {function or (host, function):
    answer}; None is no answer, an exception is raised."""

    def __init__(self, **answers):
        self.answers = {
            "slurm_build.active": "24.11.5-abc",
            "slurm_backup.load": LOADED,
            "slurm_backup.swap": "saved",
            "slurm_backup.examine_state": ROW,
            "slurm_backup.restore_state": "saved",
            "slurm_backup.entries": {"rows": [ROW], "beside": False},
            "slurm_nodes.steps": [],
            **answers,
        }
        self.running = {"ctl1", "ctl2", "db1", "db2"}
        self.done = []

    def ask(self, names, function, *_, within, **__):
        found = {name: self._answer(name, function) for name in names}
        return {name: said for name, said in found.items() if said != "silent"}

    def run(self, name, function, *_, within, **__):
        said = self._answer(name, function)
        if isinstance(said, Exception):
            raise said
        return said

    def _answer(self, host, function):
        said = self.answers.get((host, function), self.answers.get(function))
        if said == "silent":
            return said
        if function in ("service.stop", "daemon.start"):
            self.done.append(f"{function} {host}")
            if said is None:
                change = self.running.discard if function == "service.stop" else self.running.add
                change(host)
        elif function == "daemon.status":
            return {"active": host in self.running}
        elif function in ("slurm_backup.swap", "slurm_backup.restore_state", "slurm_backup.unload"):
            self.done.append(f"{function.split('.')[1]} {host}")
        return said


def restore(minions, part, **how):
    keywords = {"test": False, "replace": False, **how}
    plan = plans.resolve(SCHEMA, everyone())
    return saltern_restore.Restore(minions, {}, plan, NAME, **keywords).part(part)


STOPPED = ["service.stop db1", "service.stop db2"]
STARTED = ["daemon.start db1", "daemon.start db2"]


def test_a_database_is_swapped_while_slurmdbd_is_stopped_everywhere():
    minions = Minions()
    said = restore(minions, "database", replace=True)
    assert minions.done == [*STOPPED, "swap sql1", *STARTED]
    assert said["what_it_replaced"] == "backed up as saved"


def test_what_would_be_lost_is_said_and_nothing_is_touched():
    minions = Minions()
    with pytest.raises(Refused) as refused:
        restore(minions, "database")
    assert minions.done == ["unload sql1"]
    assert "5 jobs now, 2 of them submitted" in refused.value.parts["what_stands_against_it"][0]
    assert "replace=True" in refused.value.parts["what_next"]


def test_an_empty_database_needs_no_acceptance():
    minions = Minions(**{"slurm_backup.load": {**LOADED, "present": 0, "newer": 0}})
    restore(minions, "database")
    assert "swap sql1" in minions.done


def test_a_trial_changes_nothing():
    for part in ("database", "state"):
        minions = Minions()
        said = restore(minions, part, test=True, replace=True)
        assert set(minions.done) <= {"unload sql1"}
        assert said["what_stands_against_it"]


def test_a_newer_slurms_database_is_refused_whatever_is_accepted():
    newer = {**LOADED, "row": {**ROW, "slurm": "25.05.1"}, "present": 0}
    minions = Minions(**{"slurm_backup.load": newer})
    with pytest.raises(Refused, match=r"25\.05\.1"):
        restore(minions, "database", replace=True)
    assert minions.done == ["unload sql1"]


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param({("db2", "daemon.status"): "silent"}, id="a-host-that-does-not-say"),
        pytest.param({("db2", "service.stop"): "ERROR: no"}, id="a-daemon-that-stays"),
    ],
)
def test_a_slurmdbd_that_may_still_write_stops_it(answers):
    minions = Minions()
    minions.answers.update(answers)
    with pytest.raises(Refused, match="could not be stopped on db2"):
        restore(minions, "database", replace=True)
    assert minions.done[-1] == "unload sql1"
    assert not [step for step in minions.done if step.startswith("swap")]
    assert "db1" in minions.running


def test_a_swap_that_failed_leaves_slurmdbd_running():
    minions = Minions(**{"slurm_backup.swap": "ERROR: disk full"})
    with pytest.raises(Refused, match="disk full"):
        restore(minions, "database", replace=True)
    assert minions.done == [*STOPPED, "swap sql1", *STARTED]


def test_nobody_writes_while_nobody_knows_whether_the_swap_goes_on():
    minions = Minions(**{"slurm_backup.swap": JoinFailed("salt", "sql1 fell silent")})
    with pytest.raises(Refused, match="slurmdbd stays stopped on db1, db2"):
        restore(minions, "database", replace=True)
    assert minions.done == [*STOPPED, "swap sql1"]


def test_a_state_is_put_back_with_every_slurmctld_stopped():
    minions = Minions()
    restore(minions, "state", replace=True)
    assert minions.done == [
        "service.stop ctl1", "service.stop ctl2", "restore_state ctl1",
        "daemon.start ctl1", "daemon.start ctl2",
    ]  # fmt: skip


def test_a_lost_state_needs_no_acceptance():
    minions = Minions()
    minions.running -= {"ctl1", "ctl2"}
    restore(minions, "state")
    assert "restore_state ctl1" in minions.done


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        pytest.param({}, "jobs that ended since would run again", id="slurmctld-runs"),
        pytest.param({("cpu1", "slurm_nodes.steps"): ["12.batch"]}, "cpu1 runs .* 12.batch",
                     id="a-newer-job-runs"),
        pytest.param({("gpu1", "slurm_nodes.steps"): "silent"}, "gpu1 does not answer",
                     id="a-silent-node"),
        pytest.param({("ctl2", "daemon.status"): "silent"}, "ctl2 does not answer",
                     id="a-silent-controller"),
    ],
)  # fmt: skip
def test_what_an_older_state_would_cost_is_said_first(answers, words):
    minions = Minions()
    minions.answers.update(answers)
    if answers:
        minions.running -= {"ctl1", "ctl2"}
    with pytest.raises(Refused, match=words):
        restore(minions, "state")
    assert minions.done == []


def test_the_state_is_taken_from_the_controller_that_keeps_it():
    minions = Minions()
    minions.answers[("ctl1", "slurm_backup.entries")] = {"rows": [], "beside": False}
    restore(minions, "state", replace=True)
    assert "restore_state ctl2" in minions.done


def test_a_backup_that_nobody_keeps_is_refused():
    minions = Minions(**{"slurm_backup.entries": {"rows": [], "beside": False}})
    with pytest.raises(Refused, match=f"Found no state in a backup {NAME} on ctl1, ctl2"):
        restore(minions, "state")


@pytest.mark.parametrize(
    ("part", "function"),
    [("database", "slurm_backup.load"), ("state", "slurm_backup.examine_state")],
)
def test_a_host_without_our_modules_is_told_in_its_own_words(part, function):
    minions = Minions(**{function: f"'{function}' is not available."})
    with pytest.raises(Refused, match="is not available"):
        restore(minions, part, replace=True)
    assert minions.done == []
