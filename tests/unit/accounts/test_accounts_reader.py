"""What a real sacctmgr 24.11.5 printed, read into a tree; and the calls that ask for it."""

import datetime
import json

import pytest
from saltern import reservations, sacctmgr_data, sacctmgr_plan, sacctmgr_reader, sacctmgr_wanted
from saltern.sacctmgr_model import Account, Policy, Resource, User
from support import ROOT

SAID = json.loads((ROOT / "tests/fixtures/slurm-24.11.5/sacctmgr_read.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def tree():
    return sacctmgr_reader.tree("lab", SAID)


def test_accounts_own_values_are_asked_for():
    calls = sacctmgr_reader.commands("lab")
    assert "WOPLimits" in calls["associations"]
    assert all(words[-1].startswith("format=") for words in calls.values())


def test_accounts_are_read(tree):
    assert tree.accounts["physics"] == Account(
        "root",
        "dept. of physics | theory",
        "fac. `science`",
        frozenset({"dora"}),
        {"fairshare": "400", "qos": "long"},
    )
    assert tree.accounts["few"].description == "o`neil group; 50% of = nodes, #1"
    assert tree.accounts["plasma"].settings == {"fairshare": "parent", "grp_wall": "30-00:00:00"}


def test_accounts_inherited_coordinators_are_not_own_ones(tree):
    assert tree.accounts["optics"].coordinators == frozenset()


def test_accounts_inherited_limits_are_not_own_ones(tree):
    assert tree.associations["optics", "alice", ""] == {}
    assert tree.associations["plasma", "bob", ""] == {
        "fairshare": "3",
        "max_jobs": "5",
        "qos": "high",
    }


def test_accounts_partitions_are_part_of_the_key(tree):
    assert tree.associations["chem", "carol", "batch"] == {"fairshare": "7"}
    assert tree.associations["chem", "carol", ""] == {}


def test_accounts_users_qos_and_licences_are_read(tree):
    assert tree.users["dora"] == User("physics", "operator", "projx", frozenset({"projx"}))
    assert tree.users["alice"].default_account == "optics"
    assert tree.qos["normal"] == {"description": "the `usual` | kind"}
    assert tree.qos["long"]["grp_tres"] == "cpu=10,mem=1536M"
    assert tree.qos["long"]["grace_time"] == "00:02:00"
    assert tree.resources == {("ansys", "flexlm"): Resource("50", "ansys", "", "40")}


@pytest.mark.parametrize("text", ["", "chem||||1" + "|" * 19])
def test_accounts_no_answer_is_never_an_empty_tree(text):
    with pytest.raises(sacctmgr_reader.Unreadable, match="never an empty tree"):
        sacctmgr_reader.tree("lab", {**SAID, "associations": text})


def test_accounts_rows_of_another_format_are_refused():
    with pytest.raises(sacctmgr_reader.Unreadable, match="expected 24 columns"):
        sacctmgr_reader.tree("lab", {**SAID, "associations": "root||||1"})


def test_accounts_separators_in_texts_ask_for_the_organizations():
    assert sacctmgr_reader.is_ambiguous(SAID["accounts"])
    assert not sacctmgr_reader.is_ambiguous("chem||dept of it|sci\n")


def test_accounts_dump_can_be_wanted_and_then_nothing_differs(tree):
    assert sacctmgr_plan.plan("lab", tree, tree, Policy(purge="all")).steps == ()
    assert sacctmgr_data.differences(tree, tree) == {}


def test_accounts_one_object_as_a_section():
    wanted = sacctmgr_wanted.tree(
        sacctmgr_data.section("association", "chem/al/batch", {"fairshare": 3})
    )
    assert wanted.associations == {("chem", "al", "batch"): {"fairshare": "3"}}
    assert wanted.users["al"].default_account is None
    alone = sacctmgr_wanted.tree(sacctmgr_data.section("account", "chem", {"fairshare": 3}))
    assert alone.accounts["chem"].parent is None


RESERVATIONS = (
    "ReservationName=maint StartTime=2027-01-01T00:00:00 EndTime=2027-01-01T02:00:00 Duration=02:00:00 "
    "Nodes=node01 NodeCnt=1 CoreCnt=2 Features=(null) PartitionName=(null) Flags=MAINT,SPEC_NODES "
    "TRES=cpu=2 Users=root Groups=(null) Accounts=(null) Licenses=(null) State=INACTIVE"
)
MAINT = {
    "start": "2027-01-01T00:00:00",
    "duration": "120",
    "nodes": "node01",
    "users": ["root"],
    "flags": ["MAINT"],
}
CALLS = {
    "already so": ({"maint": MAINT}, frozenset(), []),
    "new": ({"x": MAINT}, frozenset(), [["create", "ReservationName=x", "StartTime=2027-01-01T00:00:00", "Duration=02:00:00", "Nodes=node01", "Users=root", "Flags=MAINT"]]),
    "changed": ({"maint": {**MAINT, "duration": "180"}}, frozenset(), [["update", "ReservationName=maint", "Duration=03:00:00"]]),
    "gone": ({}, frozenset({"maint", "other"}), [["delete", "ReservationName=maint"]]),
    "over": ({"x": {**MAINT, "start": "2026-11-30T00:00:00"}}, frozenset(), []),
    "begun, lost": ({"x": {**MAINT, "start": "2026-12-01T00:00:00"}}, frozenset(), [["create", "ReservationName=x", "StartTime=now", "EndTime=2026-12-01T02:00:00", "Nodes=node01", "Users=root", "Flags=MAINT"]]),
    "begun, longer": ({"maint": {**MAINT, "start": "2026-12-01T00:00:00"}}, frozenset(), [["update", "ReservationName=maint", "EndTime=2026-12-01T02:00:00"]]),
}  # fmt: skip
NOW = datetime.datetime(2026, 12, 1, 1, 0)


@pytest.mark.parametrize("case", CALLS)
def test_reservations(case):
    wanted, gone, calls = CALLS[case]
    assert list(reservations.calls(wanted, reservations.present(RESERVATIONS), gone, NOW)) == calls
