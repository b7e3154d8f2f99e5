"""How few calls there are, and that a shared one hits nothing else."""

from saltern import sacctmgr_plan
from saltern.sacctmgr_model import Account, Policy, Tree, User

ACCOUNTS = {name: Account("root") for name in ("a", "b", "c")}


def texts(wanted, present, policy=None):
    return [
        step.text for step in sacctmgr_plan.plan("lab", wanted, present, policy or Policy()).steps
    ]


def present(*keys):
    users = {user: User(account, "none", "", frozenset()) for account, user, _ in keys}
    return Tree(ACCOUNTS, users, {key: {} for key in keys})


def wanted(keys, settings=None):
    return Tree(ACCOUNTS, {}, {key: settings or {} for key in keys})


def test_accounts_users_of_several_accounts_share_a_call():
    keys = [("a", "u", ""), ("b", "v", ""), ("c", "w", "")]
    assert texts(wanted(keys, {"max_jobs": "5"}), present(*keys)) == [
        "sacctmgr -i modify user where name=u,v,w account=a,b,c cluster=lab set MaxJobs=5"
    ]


def test_accounts_call_is_not_shared_where_it_would_hit_something_else():
    keys = [("a", "u", ""), ("b", "v", "")]
    there = present(*keys, ("a", "v", ""))
    assert texts(wanted(keys, {"max_jobs": "5"}), there) == [
        "sacctmgr -i modify user where name=u account=a cluster=lab set MaxJobs=5",
        "sacctmgr -i modify user where name=v account=b cluster=lab set MaxJobs=5",
    ]


def test_accounts_row_without_partition_is_addressed_by_an_empty_one():
    there = present(("a", "u", ""), ("a", "u", "batch"))
    assert texts(wanted([("a", "u", "")], {"max_jobs": "5"}), there) == [
        "sacctmgr -i modify user where name=u account=a cluster=lab partition= set MaxJobs=5"
    ]


def test_accounts_removal_does_not_hit_what_the_plan_adds():
    there = present(("a", "u", ""), ("b", "v", ""))
    moved = Tree(
        ACCOUNTS, {"u": User("b"), "v": User("a")}, {("b", "u", ""): {}, ("a", "v", ""): {}}
    )
    deletions = [line for line in texts(moved, there, Policy(purge="all")) if "delete" in line]
    assert deletions == [
        "sacctmgr -i delete user where name=u account=a cluster=lab",
        "sacctmgr -i delete user where name=v account=b cluster=lab",
    ]


def test_accounts_many_users_come_in_chunks():
    many = {("a", f"u{number:05d}", ""): {} for number in range(2500)}
    assert len(texts(Tree(ACCOUNTS, {}, many), Tree(ACCOUNTS))) == 3


def test_accounts_default_moves_before_it_goes():
    there = present(("a", "u", ""), ("b", "u", ""))
    there = Tree(ACCOUNTS, {"u": User("a", "none", "", frozenset())}, there.associations)
    assert texts(wanted([("b", "u", "")]), there, Policy(purge="all")) == [
        "sacctmgr -i modify user where name=u cluster=lab set defaultaccount=b",
        "sacctmgr -i delete user where name=u account=a cluster=lab",
    ]
