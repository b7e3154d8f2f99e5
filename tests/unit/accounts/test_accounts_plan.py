"""The plan's section: what it means, and what is refused."""

import pytest
from saltern import plan as plans
from saltern import sacctmgr_wanted as wanted
from saltern.problem import PlanError
from saltern.sacctmgr_model import Account, Tree, User, merged
from support import SCHEMA, example

TREE = {"physics": {"qos": ["normal"], "accounts": {"optics": {}}}, "chem": {"users": ["eve"]}}


def resolve(**section):
    return plans.resolve(SCHEMA, example(accounts={"tree": TREE, **section}))


REFUSED = {
    "case": ({"tree": {"chem": {}, "CHEM": {}}}, "accounts:tree:CHEM", "each account once"),
    "case in another branch": ({"tree": {"a": {"accounts": {"X": {}}}, "x": {}}}, "accounts:tree:x", "each account once"),
    "case of users": ({"users": {"Al": {"accounts": ["chem"]}, "al": {"accounts": ["chem"]}}}, "accounts:users:al", "Al and al"),
    "unknown parent": ({"tree": {"a": {"parent": "b"}}}, "accounts:tree:a:parent", "found b"),
    "a circle": ({"tree": {"a": {"parent": "b"}, "b": {"parent": "a"}}}, "accounts:tree:a:parent", "no circle"),
    "root": ({"tree": {"Root": {}}}, "accounts:tree:Root", "never changed"),
    "unknown account": ({"users": {"al": {"accounts": ["nosuch"]}}}, "accounts:users:al:accounts", "nosuch"),
    "no account": ({"users": {"al": {}}}, "accounts:users:al", "no account"),
    "default elsewhere": ({"users": {"al": {"accounts": ["chem"], "default_account": "optics"}}}, "accounts:users:al:default_account", "optics"),
    "coordinator": ({"tree": {"a": {"coordinators": ["nobody"]}}}, "accounts:tree:a:coordinators", "nobody"),
    "unknown QOS": ({"tree": {"a": {"qos": ["gold"]}}}, "accounts (account a):qos", "gold"),
    "default QOS not in its list": ({"qos": {"gold": {}}, "tree": {"a": {"qos": ["normal"], "accounts": {"b": {"default_qos": "gold"}}}}}, "accounts (account b):default_qos", "gold"),
    "unknown partition": ({"users": {"al": {"accounts": {"chem": {"partitions": {"gpu": {}}}}}}}, "accounts:users:al:accounts:chem:partitions", "gpu"),
    "absent without purge": ({"absent": {"users": ["x"]}}, "accounts:purge", "listed"),
    "absent and there": ({"purge": "listed", "absent": {"accounts": ["Chem"]}}, "accounts:absent:accounts", "chem"),
    "untouchable and there": ({"untouchable": {"users": ["eve"]}}, "accounts:untouchable:users", "eve"),
    "reservation for nobody": ({"reservations": {"r": {"start": "2027-01-01T00:00:00", "duration": "60", "node_count": 1}}}, "accounts:reservations:r", "whom it is for"),
    "reservation of unknown nodes": ({"reservations": {"r": {"start": "2027-01-01T00:00:00", "duration": "60", "nodes": "node[01-09]", "users": ["eve"]}}}, "accounts:reservations:r:nodes", "node[03-09]"),
    "a time": ({"tree": {"a": {"limits": {"max_wall": "soon"}}}}, "accounts:tree:a:limits:max_wall", "soon"),
    "an unknown limit": ({"tree": {"a": {"limits": {"max_job": 1}}}}, "accounts:tree:a:limits:max_job", "did you mean max_jobs?"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_accounts_plan_is_refused(case):
    section, where, words = REFUSED[case]
    with pytest.raises(PlanError) as refusal:
        resolve(**section)
    said = [str(problem) for problem in refusal.value.problems]
    assert any(problem.startswith(f"{where}:") and words in problem for problem in said), said


def test_accounts_enforcement_has_one_place():
    with pytest.raises(PlanError, match="accounts:enforce"):
        plans.resolve(
            SCHEMA, example(**{"slurm:parameters": {"AccountingStorageEnforce": "limits"}})
        )


def test_accounts_names_are_in_slurms_form():
    tree = wanted.tree(
        resolve(
            tree={"Physics": {"accounts": {"Plasma": {"description": 'A "B"'}}}},
            users={"Alice": {"accounts": ["PLASMA"]}},
        ).data["accounts"]
    )
    assert tree.accounts["plasma"].parent == "physics"
    assert tree.accounts["plasma"].description == "a `b`"
    assert tree.associations.keys() == {("plasma", "alice", "")}
    assert tree.users["alice"] == User(default_account="plasma")


def test_accounts_null_clears_and_missing_leaves_alone():
    tree = wanted.tree({"tree": {"a": {"fairshare": None, "limits": {"max_jobs": None}}}})
    assert tree.accounts["a"].settings == {"fairshare": "", "max_jobs": ""}
    assert tree.accounts["a"].description is None


def test_accounts_of_a_plan_win_over_a_directorys():
    plan = Tree({"a": Account("root", settings={"fairshare": "5"})}, {"u": User("a")})
    groups = Tree(
        {"a": Account("b", "text", settings={"fairshare": "1", "max_jobs": "2"}), "b": Account()},
        {"u": User("b", "operator"), "v": User()},
        {("a", "v", ""): {}},
    )
    both = merged(plan, groups)
    assert both.accounts["a"] == Account(
        "root", "text", settings={"fairshare": "5", "max_jobs": "2"}
    )
    assert both.users == {"u": User("a", "operator"), "v": User()}
    assert both.associations == {("a", "v", ""): {}}
