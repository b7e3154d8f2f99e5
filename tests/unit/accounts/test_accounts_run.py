"""Carrying out a plan, and the states over it; against the simulated sacctmgr."""

from unittest import mock

import pytest
from salt.exceptions import CommandExecutionError
from saltern import sacctmgr_plan, sacctmgr_run
from saltern.sacctmgr_model import Absent, Account, Policy, Tree, User
from simulated_sacctmgr import Refused, SimulatedSacctmgr
from support import load

TREE = Tree(
    {"a": Account("root", settings={}), "b": Account("a", settings={})},
    {"u": User("b"), "v": User("b")},
    {("b", "u", ""): {}, ("b", "v", ""): {"max_jobs": "3"}},
)


def reconcile(slurm, wanted=TREE, policy=None, call=None, jobs=None):
    def simulated(step):
        try:
            slurm.call(step.argv)
        except Refused as refusal:
            return sacctmgr_run.Said(1, str(refusal))
        return sacctmgr_run.Said(0, "")

    def make(present):
        return sacctmgr_plan.plan("lab", wanted, present, policy or Policy(), jobs)

    return sacctmgr_run.reconcile(slurm.read, make, call or simulated)


def test_simulated_run_does_all_and_then_nothing():
    slurm = SimulatedSacctmgr()
    assert reconcile(slurm).complete
    again = reconcile(slurm)
    assert (again.done, again.left, again.failed) == ([], [], [])


def test_simulated_status_1_for_already_so_is_no_failure():
    slurm = SimulatedSacctmgr()

    def call(step):
        slurm.call(step.argv)
        return sacctmgr_run.Said(1, "Request didn't affect anything")

    report = reconcile(slurm, call=call)
    assert report.complete and report.done


def test_simulated_status_0_for_nothing_done_is_a_failure():
    report = reconcile(SimulatedSacctmgr(), call=lambda step: sacctmgr_run.Said(0, "half done"))
    assert report.failed[0]["said"] == "half done"
    assert not report.done and report.left


def test_simulated_loss_of_slurmdbd_is_reported_with_what_is_left():
    slurm = SimulatedSacctmgr()
    lost = False

    def call(step):
        nonlocal lost
        lost = step.argv[1] == "user"
        if lost:
            return sacctmgr_run.Said(1, "Connection refused")
        slurm.call(step.argv)
        return sacctmgr_run.Said(0, "")

    def read():
        if lost:
            raise sacctmgr_run.Unreadable("slurmdbd does not answer")
        return slurm.read()

    report = sacctmgr_run.reconcile(
        read, lambda present: sacctmgr_plan.plan("lab", TREE, present, Policy()), call
    )
    assert report.interrupted == "slurmdbd does not answer"
    assert [line for line in report.done if "account" in line]
    assert report.failed and report.left
    assert reconcile(slurm).complete


def test_simulated_jobs_hold_their_association_and_nothing_else():
    slurm = SimulatedSacctmgr()
    reconcile(slurm)
    slurm.jobs = {("b", "u")}
    report = reconcile(slurm, Tree(), Policy(purge="all"), jobs={("b", "u"): ["7"]})
    assert report.complete
    assert "association b/u: jobs 7; cancel them, or let them end, and run again" in report.kept
    assert ("b", "v", "") not in slurm.associations
    slurm.jobs = set()
    assert reconcile(slurm, Tree(), Policy(purge="all")).complete
    assert slurm.accounts.keys() == {"root"}


def test_simulated_drain_takes_no_new_jobs_once():
    slurm = SimulatedSacctmgr()
    reconcile(slurm)
    policy, jobs = Policy(purge="all", jobs="drain"), {("b", "u"): ["7"]}
    report = reconcile(slurm, Tree(), policy, jobs=jobs)
    assert [line for line in report.done if "MaxSubmitJobs=0" in line]
    assert reconcile(slurm, Tree(), policy, jobs=jobs).done == []


def test_simulated_listed_account_stays_with_what_is_not_named():
    slurm = SimulatedSacctmgr()
    reconcile(slurm)
    policy = Policy(purge="listed", absent=Absent(accounts=frozenset({"a"})))
    report = reconcile(slurm, Tree(), policy)
    assert report.done == []
    assert report.kept == ["account a: below it stays what is not named for removal: account b"]


def test_simulated_shared_database_loses_nothing_of_other_clusters():
    slurm = SimulatedSacctmgr()
    reconcile(slurm)
    plan = sacctmgr_plan.plan("lab", Tree(), slurm.read(), Policy(purge="all"), None, shared=True)
    assert plan.steps
    assert all("cluster=lab" in step.argv for step in plan.steps)


PLAN = {"commands": ["sacctmgr -i x"], "kept": [], "unknown": ["user z"], "refused": []}
REPORT = {
    "done": ["sacctmgr -i x"], "failed": [], "interrupted": "", "left": [],
    "kept": [], "unknown": [], "refused": [],
}  # fmt: skip
FAILED = {"command": "x", "said": "no"}
MADE = {"commands": "sacctmgr -i x"}
STATES = {
    "already so": ({**REPORT, "done": []}, False, True, {}),
    "dry run": (PLAN, True, None, MADE),
    "dry run, nothing to do": ({**PLAN, "commands": []}, True, True, {}),
    "changed": (REPORT, False, True, MADE),
    "failed": ({**REPORT, "done": [], "failed": [FAILED]}, False, False, {}),
    "cut": ({**REPORT, "interrupted": "away", "left": ["y"]}, False, False, MADE),
    "held by jobs": ({**REPORT, "kept": ["association a/u: jobs 7"]}, False, True, MADE),
}


@pytest.mark.parametrize("case", STATES)
def test_accounts_managed(case):
    found, test, result, changes = STATES[case]
    salt = {f"sacctmgr.{name}": mock.Mock(return_value=found) for name in ("plan", "apply")}
    state = load("states", "sacctmgr", __salt__=salt, __opts__={"test": test})
    ret = state.managed("x")
    assert (ret["result"], ret["changes"]) == (result, changes)
    assert salt["sacctmgr.apply"].called == (not test)
    for word in [*found["kept"], *found["unknown"]]:
        assert word in ret["comment"]


def test_accounts_managed_without_slurmdbd():
    away = mock.Mock(side_effect=CommandExecutionError("slurmdbd does not answer"))
    for test, result in ((True, None), (False, False)):
        salt = {"sacctmgr.plan": away, "sacctmgr.apply": away}
        state = load("states", "sacctmgr", __salt__=salt, __opts__={"test": test})
        ret = state.managed("x")
        assert (ret["result"], ret["comment"]) == (result, "slurmdbd does not answer")


def test_accounts_absent_that_is_held_is_no_success():
    held = {**REPORT, "done": [], "kept": ["user u: jobs 7"]}
    salt = {
        "sacctmgr.apply": mock.Mock(return_value=held),
        "sacctmgr.section": mock.Mock(return_value={}),
    }
    state = load("states", "sacctmgr", __salt__=salt)
    assert state.user_absent("u")["result"] is False
