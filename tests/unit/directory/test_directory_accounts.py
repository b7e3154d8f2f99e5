"""Groups of a directory as accounts of Slurm: rules, the snapshot that is believed, who leaves."""

import pytest
from saltern import accounts_drift, sacctmgr_data, sacctmgr_plan
from saltern import directory_accounts as accounts
from saltern.directory import LAYOUTS
from saltern.sacctmgr_model import Account, Policy, Tree, User, merged

DAY = 86400


def rules(at_least=80, **groups):
    made = {
        name.replace("__", "-").replace("_STAR", "*"): {"leaving": "keep", **rule}
        for name, rule in groups.items()
    }
    return {"groups": made, "at_least": at_least}


def snapshot(**groups):
    return {"groups": {name.replace("__", "-"): list(users) for name, users in groups.items()}}


PEOPLE = """\
dn: uid=ada,ou=people,dc=x
uid: ada

dn: uid=ben,ou=people,dc=x
uid: ben
"""


@pytest.mark.parametrize(
    ("layout", "groups"),
    [
        pytest.param(
            "own",
            "dn: cn=phys,ou=groups,dc=x\ncn: phys\nmember: uid=Ada,ou=people,dc=x\n"
            "member: cn=inner,ou=groups,dc=x\n\ndn: cn=empty,ou=groups,dc=x\ncn: empty\n",
            id="members-by-name",
        ),
        pytest.param(
            "rfc2307",
            "dn: cn=phys,ou=groups,dc=x\ncn: phys\nmemberUid: ada\n\n"
            "dn: cn=empty,ou=groups,dc=x\ncn: empty\n",
            id="members-by-uid",
        ),
    ],
)
def test_answers_are_read(layout, groups):
    people, found = accounts.read(PEOPLE, groups, LAYOUTS[layout])
    assert people == ["ada", "ben"]
    assert found == {"phys": ["ada"], "empty": []}


def test_a_pattern_names_accounts_and_the_first_rule_that_fits_counts():
    section = rules(
        proj__special={"account": "vip"},
        proj___STAR={"account": "p-*", "coordinators": "leads-*"},
    )
    groups = {"proj-special": [], "proj-alpha": [], "other": []}
    found = [
        (group, account, leads) for group, account, _, leads in accounts.chosen(section, groups)
    ]
    assert found == [("proj-special", "vip", ""), ("proj-alpha", "p-alpha", "leads-alpha")]


def test_the_tree_has_members_defaults_and_coordinators():
    section = rules(
        phys={"account": "Physics", "parent": "science", "fairshare": 7, "coordinators": "leads"},
        chem={"account": "chem"},
    )
    tree = accounts.tree(section, snapshot(phys=["Ada", "ben"], chem=["ada"], leads=["ben", "zoe"]))
    assert tree.accounts["physics"] == Account(
        parent="science", coordinators=frozenset({"ben"}), settings={"fairshare": "7"}
    )
    assert tree.associations.keys() == {
        ("physics", "ada", ""), ("physics", "ben", ""), ("chem", "ada", "")
    }  # fmt: skip
    assert tree.users["ada"].default_account == "physics"


def test_the_plans_word_counts_over_the_directorys():
    plan = Tree(
        {"physics": Account(parent="root", settings={"fairshare": "1"})},
        {"ada": User(default_account="own")},
        {("own", "ada", ""): {}},
    )
    section = rules(phys={"account": "physics", "parent": "science", "fairshare": 7})
    both = merged(plan, accounts.tree(section, snapshot(phys=["ada"])))
    assert both.accounts["physics"].parent == "root"
    assert both.accounts["physics"].settings["fairshare"] == "1"
    assert both.users["ada"].default_account == "own"
    assert both.associations.keys() == {("own", "ada", ""), ("physics", "ada", "")}


def test_names_that_slurm_cannot_hold_are_told_and_left_out():
    section, found = rules(phys={"account": "phys"}), snapshot(phys=["ada", "ann lee", "x,y"])
    assert accounts.strange(found) == ["ann lee", "x,y"]
    assert accounts.tree(section, found).users.keys() == {"ada"}


TEN = [f"u{number}" for number in range(10)]


@pytest.mark.parametrize(
    ("now", "last", "fewer", "reason"),
    [
        pytest.param({"phys": TEN}, {}, False, None, id="the-first-look"),
        pytest.param({"phys": []}, {}, False, "nobody", id="nobody-even-at-first"),
        pytest.param({}, {}, True, "nobody", id="nobody-whoever-says-so"),
        pytest.param({"phys": TEN[:8]}, {"counts": [[0, 10]]}, False, None, id="just-enough"),
        pytest.param({"phys": TEN[:7]}, {"counts": [[0, 10]]}, False, "at least 8", id="fewer"),
        pytest.param({"phys": TEN[:1]}, {"counts": [[0, 2]]}, False, None, id="one-of-two"),
        pytest.param({"phys": TEN[:1]}, {"counts": [[0, 3]]}, False, "at least 2", id="two-of-3"),
        pytest.param({"phys": TEN[:7]}, {"counts": [[0, 10]]}, True, None, id="a-person-said-so"),
        pytest.param(
            {"phys": TEN[:7]}, {"counts": [[0, 10], [900, 8]]}, False, "at least 8",
            id="in-two-steps-within-a-day",
        ),
        pytest.param(
            {"phys": TEN[:7]}, {"counts": [[1000 - DAY - 1, 10], [900, 8]]}, False, None,
            id="yesterday-is-over",
        ),
        pytest.param(
            {"phys": TEN[:7]}, {"counts": [[1000 - 2 * DAY, 10]]}, False, "at least 8",
            id="the-last-look-counts-however-old",
        ),
        pytest.param(
            {"other": TEN}, {"groups": {"phys": TEN}, "counts": []}, False,
            "no such group in the directory any more", id="a-group-that-vanished",
        ),
    ],
)  # fmt: skip
def test_what_is_believed(now, last, fewer, reason):
    section = rules(phys={"account": "phys"}, other={"account": "other"})
    found, problems = accounts.taken(section, now, last, 1000, fewer)
    if reason is None:
        assert problems == []
        assert found["counts"][-1] == [1000, len(now["phys"])]
    else:
        assert any(reason in str(problem) for problem in problems), problems


def present(**members):
    """A tree as Slurm has it: account=[users]."""
    pairs = [(account, user) for account, users in members.items() for user in users]
    return Tree(
        {account: Account(parent="root", description="", organization="") for account in members},
        {user: User(default_account=account) for account, user in pairs},
        {(account, user, ""): {} for account, user in pairs},
        {"normal": {}},
    )


def calls(section, found, have, policy=None):
    wanted = accounts.tree(section, found)
    mine = accounts.with_leavers(policy or Policy(), section, found, wanted, have)
    return sacctmgr_plan.plan("lab", wanted, have, mine)


def test_who_left_stays_with_keep_and_goes_with_remove():
    found, have = snapshot(phys=["ada"]), present(phys=["ada", "ben"])
    keep = calls(rules(phys={"account": "phys"}), found, have)
    assert keep.steps == ()
    assert "association phys/ben" in keep.unknown
    strict = calls(rules(phys={"account": "phys", "leaving": "remove"}), found, have)
    assert [step.text for step in strict.steps] == ["sacctmgr -i delete user where name=ben"]


def test_who_left_one_group_of_two_keeps_the_other():
    section = rules(phys={"account": "phys", "leaving": "remove"}, chem={"account": "chem"})
    have = present(chem=["ben"], phys=["ada", "ben"])  # phys is his default account
    plan = calls(section, snapshot(phys=["ada"], chem=["ben"]), have)
    assert [step.text for step in plan.steps] == [
        "sacctmgr -i modify user where name=ben cluster=lab set defaultaccount=chem",
        "sacctmgr -i delete user where name=ben account=phys cluster=lab",
    ]


def test_who_left_keeps_what_a_person_gave_him_elsewhere():
    section = rules(phys={"account": "phys", "leaving": "remove"})
    have = present(local=["ben"], phys=["ada", "ben"])
    plan = calls(section, snapshot(phys=["ada"]), have)
    assert [step.text for step in plan.steps] == [
        "sacctmgr -i modify user where name=ben cluster=lab set defaultaccount=local",
        "sacctmgr -i delete user where name=ben account=phys cluster=lab",
    ]


def test_leaving_never_reaches_other_accounts_or_untouchables():
    section = rules(phys={"account": "phys", "leaving": "remove"})
    have = present(phys=["ada", "monitor"], local=["eve"])
    plan = calls(section, snapshot(phys=["ada"]), have, Policy(users=frozenset({"monitor"})))
    assert not [step.text for step in plan.steps if "delete" in step.text], plan.steps


def test_drift_names_each_person_once_a_finding():
    have, wanted = present(phys=["ada", "old"]), present(phys=["ada"])
    broken = Tree(
        have.accounts, {**have.users, "ada": User(default_account="gone")}, have.associations
    )
    rows = accounts_drift.rows(
        ["ada", "ben"],
        ["ada", "ben"],
        sacctmgr_data.of(wanted),
        sacctmgr_data.of(broken),
        ["old"],
    )
    assert [(row["user"], row["finding"]) for row in rows] == [
        ("ada", "default account gone"),
        ("ben", "no account"),
        ("old", "left"),
        ("old", "not wanted"),
    ]
