"""Random trees against the simulated sacctmgr: a plan leads there, then to nothing, and past
untouchables. Simulated; the real one is in tests/lab."""

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from saltern import sacctmgr_plan, sacctmgr_run
from saltern.sacctmgr_model import ROOT, Account, Policy, Resource, Tree, User, ancestors
from simulated_sacctmgr import Refused, SimulatedSacctmgr, parts

ACCOUNTS = ("a", "b", "c", "d", "e")
USERS = ("u1", "u2", "u3", "u4")
QOS = ("q1", "q2", "q3")
ALL = Policy(purge="all")

counts = st.sampled_from(["", "0", "5", "7"])
tres = st.sampled_from(["", "cpu=4", "cpu=4,mem=1536M", "gres/gpu=2,mem=10M"])
lists = st.sampled_from(["", "q1", "q1,q2", "normal,q3", "q2,q3", "normal,q1,q2,q3"])


@st.composite
def trees(draw):
    """A tree that gives everything, so that it can be compared with what comes of it."""
    chosen = draw(st.sets(st.sampled_from(ACCOUNTS)))
    accounts, effective = {}, {ROOT: {"normal"}}
    for name in draw(st.permutations(sorted(chosen))):
        parent = draw(st.sampled_from([ROOT, *accounts]))
        own = draw(limits(effective[parent]))
        effective[name] = set(own["qos"].split(",")) if own["qos"] else effective[parent]
        text = draw(st.sampled_from(["x", "dept. of y | z", ""]))
        accounts[name] = Account(parent, text, text, frozenset(), own)
    users, associations = {}, {}
    for name in USERS if accounts else ():
        mine = draw(st.lists(st.sampled_from(sorted(accounts)), unique=True, max_size=3))
        for account in mine:
            associations[account, name, ""] = draw(limits(effective[account]))
            if draw(st.booleans()):
                associations[account, name, "p1"] = draw(limits(effective[account]))
        if mine:
            level = draw(st.sampled_from(["none", "operator", "administrator"]))
            keys = draw(st.sampled_from([frozenset(), frozenset({"k1"}), frozenset({"k1", "k2"})]))
            users[name] = User(draw(st.sampled_from(mine)), level, min(keys, default=""), keys)
    if users:
        for name, account in accounts.items():
            above = {
                who
                for up in ancestors(accounts, name)
                if up in accounts
                for who in accounts[up].coordinators
            }
            who = frozenset(draw(st.sets(st.sampled_from(sorted(users))))) - above
            accounts[name] = Account(
                account.parent, account.description, account.organization, who, account.settings
            )
    qos = {name: draw(qualities()) for name in QOS}
    served = {
        ("lic", "slurmdb"): Resource(
            draw(counts.filter(bool)), "lic", "flexlm", draw(counts.filter(bool))
        )
    }
    return Tree(accounts, users, associations, qos, served if draw(st.booleans()) else {})


@st.composite
def limits(draw, inherited):
    own = draw(lists)
    usable = sorted(set(own.split(",")) if own else inherited)
    return {
        "fairshare": draw(st.sampled_from(["", "5", "parent"])),
        "grp_tres": draw(tres),
        "max_jobs": draw(counts),
        "qos": own,
        "default_qos": draw(st.sampled_from(["", *usable])),
    }


@st.composite
def qualities(draw):
    return {
        "priority": draw(st.sampled_from(["", "10", "20"])),
        "flags": draw(st.sampled_from(["", "DenyOnLimit", "DenyOnLimit,NoDecay"])),
        "preempt": draw(st.sampled_from(["", "q1", "q2,q3"])),
        "max_tres_per_user": draw(tres),
    }


def reached(tree):
    """What of a simulated tree a plan can speak of, without what is cleared."""

    def bare(values):
        return {key: value for key, value in values.items() if value}

    return (
        {
            name: (it.parent, it.description, it.organization, it.coordinators, bare(it.settings))
            for name, it in tree.accounts.items()
            if name != ROOT
        },
        {
            name: (it.default_account, it.admin_level, it.wckeys)
            for name, it in tree.users.items()
            if name != ROOT
        },
        {key: bare(it) for key, it in tree.associations.items() if key[1] != ROOT},
        {name: bare(it) for name, it in tree.qos.items() if name != "normal"},
        tree.resources,
    )


def run(slurm, wanted, policy=ALL, passes=1):
    """Carry a plan out; each call has to be accepted."""
    for _ in range(passes):
        for step in sacctmgr_plan.plan("lab", wanted, slurm.read(), policy).steps:
            slurm.call(step.argv)


def reconcile(slurm, wanted):
    """Carry a plan out as on a host, where a call may be refused that a later pass can make."""

    def call(step):
        try:
            slurm.call(step.argv)
        except Refused as refusal:
            return sacctmgr_run.Said(1, str(refusal))
        return sacctmgr_run.Said(0, "")

    def make(present):
        return sacctmgr_plan.plan("lab", wanted, present, ALL)

    report = sacctmgr_run.reconcile(slurm.read, make, call)
    assert report.complete, report


quick = settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@quick
@given(trees(), trees())
def test_simulated_plan_leads_from_any_tree_to_any_other(first, second):
    slurm = SimulatedSacctmgr()
    run(slurm, first)
    assert reached(slurm.read()) == reached(first)
    plan = sacctmgr_plan.plan("lab", second, slurm.read(), ALL)
    assume(not plan.kept)
    # wckeys of users who stay are added, never taken; those are not compared here.
    assume(
        all(
            first.users[name].wckeys <= user.wckeys
            for name, user in second.users.items()
            if name in first.users
        )
    )
    moved = any(
        account.parent != first.accounts[name].parent
        for name, account in second.accounts.items()
        if name in first.accounts
    )
    if moved:  # an account that moves away from its QOS, under users who are to go
        reconcile(slurm, second)
    else:
        run(slurm, second, passes=2)
    assert reached(slurm.read()) == reached(second)
    assert sacctmgr_plan.plan("lab", second, slurm.read(), ALL).steps == ()


@quick
@given(trees())
def test_simulated_plan_of_the_same_tree_is_empty(tree):
    slurm = SimulatedSacctmgr()
    run(slurm, tree)
    found = sacctmgr_plan.plan("lab", tree, slurm.read(), ALL)
    assert (found.steps, found.unknown, found.kept) == ((), (), ())


@quick
@given(trees(), trees(), st.sampled_from(["none", "listed", "all"]))
def test_simulated_no_command_mentions_an_untouchable(first, second, purge):
    slurm = SimulatedSacctmgr()
    run(slurm, first)
    policy = Policy(
        purge=purge, accounts=frozenset({"a"}), users=frozenset({"u1"}), qos=frozenset({"q1"})
    )
    for step in sacctmgr_plan.plan("lab", second, slurm.read(), policy).steps:
        said = parts(
            word
            for word in step.argv
            if "=" in word and not word.startswith(("cluster", "Desc", "Org"))
        )
        named = set(said.get("name", "").split(",")) | set(said.get("names", "").split(","))
        if step.argv[1] in ("account", "coordinator"):
            named_accounts = (named if step.argv[1] == "account" else set()) | set(
                said.get("account", "").split(",")
            )
            assert not named_accounts & {"a", ROOT}, step.text
        if step.argv[1] == "coordinator":
            assert not named & {"u1", ROOT}, step.text
        if step.argv[1] == "user":
            assert not named & {"u1", ROOT}, step.text
            assert not set(said.get("account", "").split(",")) & {"a", ROOT}, step.text
        if step.argv[1] == "qos":
            assert "q1" not in named, step.text


@quick
@given(trees(), trees())
def test_simulated_nothing_goes_without_purge(first, second):
    slurm = SimulatedSacctmgr()
    run(slurm, first)
    before = slurm.read()
    plan = sacctmgr_plan.plan("lab", second, before, Policy())
    assert not [
        step for step in plan.steps if step.argv[0] == "delete" and step.argv[1] != "coordinator"
    ]
    strange = {
        f"account {name}"
        for name in before.accounts
        if name not in second.accounts and name != ROOT
    }
    assert strange <= set(plan.unknown)


@pytest.mark.parametrize("purge", ["none", "listed", "all"])
def test_simulated_root_is_never_in_doubt(purge):
    plan = sacctmgr_plan.plan("lab", Tree(), SimulatedSacctmgr().read(), Policy(purge=purge))
    assert (plan.steps, plan.unknown) == ((), ())
