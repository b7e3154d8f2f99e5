"""Slurm's accounting against the plan: real slurmdbd and MariaDB, real jobs."""

import contextlib
import copy
import json
import threading

import pytest
from labs import PLAN, until

SACCTMGR = "/opt/slurm/current/bin/sacctmgr"
ENFORCE = ["associations", "limits", "qos", "safe"]
TREE = {
    "qos": {
        "normal": {"description": 'The "usual" | kind'},
        "high": {"priority": 100, "preempt": ["normal"], "limits": {"max_wall": "2-12:30:00"}},
        "one": {"limits": {"max_jobs_per_user": 1}, "flags": ["DenyOnLimit"]},
        "long": {"limits": {"grp_tres": {"cpu": 10, "mem": "1536M"}}, "grace_time": 120},
    },
    "tree": {
        "Physics": {
            "description": "Dept. of Physics | Theory",
            "organization": 'Fac. "Science"',
            "fairshare": 400,
            "qos": ["normal", "long"],
            "coordinators": ["dora"],
            "accounts": {
                "plasma": {"fairshare": "parent", "limits": {"grp_wall": "30-0"}},
                "optics": {"description": "Größe 漢字 Δ", "default_qos": "normal"},
            },
        },
        # What the changes below give is given here as well: what is not given stays as it is.
        "chem": {
            "users": ["evan"],
            "qos": ["normal", "one", "high"],
            "fairshare": 100,
            "limits": {"grp_tres": None, "max_jobs": None},
            "accounts": {"bio": {}},
        },
        "few": {"fairshare": 10},
        "many": {"fairshare": 90},
    },
    "users": {
        "Alice": {"accounts": ["plasma", "optics", "chem"], "default_account": "optics"},
        "bob": {
            "accounts": {"plasma": {"fairshare": 3, "qos": ["high"], "limits": {"max_jobs": 5}}}
        },
        "carol": {"accounts": {"chem": {"partitions": {"batch": {"fairshare": 7}}}}},
        "dora": {"accounts": ["physics"], "admin_level": "operator", "wckeys": ["projx"]},
        "researcher": {"accounts": ["chem", "few", "many"], "default_account": "chem"},
    },
    "resources": {"ansys@flexlm": {"count": 50, "allowed": 40}},
}  # fmt: skip


def call(lab, words, *, check=True):
    """What a salt-call on the controller returns."""
    said = lab.attempt("mgmt01", f"salt-call --out=json {words}", timeout=600)
    assert not check or said.returncode == 0, said.stdout + said.stderr
    if "{" not in said.stdout:  # a refusal
        return said.stdout + said.stderr
    return json.loads(said.stdout[said.stdout.index("{") :])["local"]


def write(lab, section):
    """accounts.sls of the plan, and the controller's pillar with it."""
    text = json.dumps({"saltern": {"accounts": section}})
    lab._write(f"{PLAN}/accounts.sls", text)
    lab.exec("mgmt01", "salt-call saltutil.refresh_pillar wait=True")


def apply(lab, section=None, *, test=False):
    """The states of p7_identity.accounts by id, after the plan was changed."""
    if section is not None:
        write(lab, section)
    asked = " test=True" if test else ""
    states = call(lab, f"state.apply p7_identity.accounts{asked}", check=False)
    return {state["__id__"]: state for state in states.values()}


def managed(lab, section=None, *, test=False):
    """The one state of the tree, without the phases before it."""
    if section is not None:
        write(lab, section)
    asked = " test=True" if test else ""
    (state,) = call(lab, f"state.single sacctmgr.managed tree{asked}", check=False).values()
    return state


def commands(lab):
    return call(lab, "sacctmgr.plan")["commands"]


def sacctmgr(lab, words):
    return lab.exec("mgmt01", f"{SACCTMGR} -nP {words}").splitlines()


def changed(**changes):
    """The tree, with changes by key path; None removes a key."""
    tree = copy.deepcopy(TREE)
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = tree
        for key in parents:
            place = place[key]
        if value is None:
            place.pop(last)
        else:
            place[last] = value
    return tree


@pytest.fixture(scope="module")
def tree(lab):
    """The tree in place and enforced; nothing of it is left afterwards."""
    plan = {
        "accounts": {"enforce": ENFORCE, "priority": {"weights": {"fairshare": 10000}}},
        "slurm": {"parameters": {"PriorityCalcPeriod": 1}},  # minutes
    }
    with lab.plan(plan):
        states = apply(lab, TREE)
        failed = {name: it["comment"] for name, it in states.items() if it["result"] is False}
        assert not failed
        yield states
        write(lab, TREE)
    managed(lab, {"purge": "all"})
    assert sacctmgr(lab, "show assoc format=account,user") == ["root|", "root|root"]
    lab.exec("mgmt01", f"rm {PLAN}/accounts.sls")
    lab.exec("mgmt01", "salt-call saltutil.refresh_pillar wait=True")
    states = lab.highstate("mgmt01")["mgmt01"]
    assert all(state["result"] for state in states.values())


@pytest.fixture
def as_before(lab, tree):
    """The tree again after a test that changed it."""
    yield
    assert managed(lab, {**TREE, "purge": "all"})["result"] is True


def test_accounts_from_nothing_then_no_command(lab, tree):
    first = tree["accounts: tree"]
    assert "sacctmgr -i add account name=physics" in first["changes"]["commands"]
    again = managed(lab)
    assert (again["result"], again["changes"]) == (True, {})
    assert lab.gate("mgmt01", "p7_identity") == []
    assert sacctmgr(
        lab, "show assoc WOPLimits where user=bob format=account,share,maxjobs,qos"
    ) == ["plasma|3|5|high"]
    assert "physics|dept. of physics | theory|fac. `science`" in sacctmgr(lab, "show account")


def test_accounts_are_enforced_after_the_tree(lab, tree):
    order = [it["__run_num__"] for name, it in tree.items() if name.startswith("accounts: ")]
    assert order == sorted(order)
    assert "AccountingStorageEnforce" in json.dumps(
        tree["accounts: enforced by slurm.conf"]["changes"]
    )
    running = lab.exec("mgmt01", "/opt/slurm/current/bin/scontrol show config")
    line = next(line for line in running.splitlines() if "AccountingStorageEnforce" in line)
    assert all(flag in line for flag in ENFORCE)


def test_accounts_dry_run_shows_the_exact_commands(lab, as_before):
    write(lab, changed(tree__chem__fairshare=12, users__evan={"accounts": ["bio"]}))
    dry = managed(lab, test=True)
    assert dry["result"] is None
    before = call(lab, "sacctmgr.dump")
    assert dry["changes"]["commands"] == "\n".join(commands(lab))
    assert call(lab, "sacctmgr.dump") == before
    wet = managed(lab)
    assert wet["changes"] == dry["changes"]


CHANGES = {
    "fairshare": changed(tree__chem__fairshare=12),
    "a limit": changed(tree__chem__limits={"grp_tres": {"cpu": 8, "mem": "10G"}, "max_jobs": 9}),
    "a limit cleared": changed(tree__Physics__accounts__plasma__limits={"grp_wall": None}),
    "one resource of a limit": changed(qos__long__limits={"grp_tres": {"cpu": 10}}),
    "a description": changed(tree__few__description="O'Neil group; 50% of = nodes, #1"),
    "a parent": changed(
        tree__chem__accounts={}, tree__few={"fairshare": 10, "accounts": {"bio": {}}}
    ),
    "a circle of parents": changed(
        tree__Physics__accounts={"optics": {"accounts": {"plasma": {}}}},
    ),
    "QOS": changed(qos__high={"priority": 5, "flags": ["NoDecay"], "preempt": ["normal", "long"]}),
    "a QOS list and the default in it": changed(
        tree__Physics__qos=["long"], tree__Physics__accounts__optics={"default_qos": "long"}
    ),
    "a default account": changed(users__Alice__default_account="chem"),
    "a user's limits": changed(users__bob__accounts={"plasma": {"qos": None, "fairshare": 9}}),
    "a partition's limits": changed(
        users__carol__accounts={"chem": {"partitions": {"batch": {"limits": {"max_jobs": 2}}}}}
    ),
    "an admin level": changed(users__dora__admin_level="none"),
    "coordinators": changed(tree__Physics__coordinators=["bob"]),
    "wckeys": changed(users__dora__wckeys=["projx", "projy"], users__dora__default_wckey="projy"),
    "licences": changed(resources={"ansys@flexlm": {"count": 60, "allowed": 30}}),
    "new users": changed(users__fred={"accounts": ["bio"]}, users__gina={"accounts": ["bio"]}),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGES)
def test_accounts_change_and_the_second_run_has_no_command(lab, as_before, what):
    state = managed(lab, CHANGES[what])
    assert state["result"] is True, state["comment"]
    assert state["changes"]
    assert commands(lab) == []


def test_accounts_reservations_follow_the_plan(lab, as_before):
    """One to come, one that has begun, one that is over."""
    names = ("coming", "begun", "over")
    days = {"coming": 3, "begun": 0, "over": -3}
    starts = {
        name: lab.exec("mgmt01", f"date -d '{days[name]} days -1 minute' +%FT%H:%M:00").strip()
        for name in names
    }
    made = {
        name: {"start": start, "duration": "08:00:00", "nodes": "node01", "accounts": ["chem"]}
        for name, start in starts.items()
    }
    states = apply(lab, {**TREE, "reservations": made})
    state = states["accounts: reservations"]
    assert state["result"] is True, state["comment"]
    shown = lab.exec("mgmt01", "/opt/slurm/current/bin/scontrol -o show reservation")
    assert [name for name in names if f"ReservationName={name} " in shown] == ["coming", "begun"]
    assert apply(lab)["accounts: reservations"]["changes"] == {}
    made["coming"]["duration"] = "04:00:00"
    changed_one = apply(lab, {**TREE, "reservations": made})["accounts: reservations"]
    assert "update ReservationName=coming Duration=04:00:00" in changed_one["changes"]["commands"]
    absent = {"reservations": ["coming", "begun"]}
    gone = apply(lab, {**TREE, "purge": "listed", "absent": absent})["accounts: reservations"]
    assert gone["result"] is True, gone["comment"]
    assert "No reservations" in lab.exec(
        "mgmt01", "/opt/slurm/current/bin/scontrol -o show reservation"
    )


def test_accounts_purge_none_reports(lab, as_before):
    lab.exec("mgmt01", f"{SACCTMGR} -i add account stray cluster=lab")
    lab.exec("mgmt01", f"{SACCTMGR} -i add user name=stray account=stray cluster=lab")
    state = managed(lab, TREE)
    assert (state["result"], state["changes"]) == (True, {})
    assert "Not in the plan: account stray" in state["comment"]


def test_accounts_purge_listed_takes_nothing_that_is_not_named(lab, as_before):
    for name in ("stray", "other"):
        lab.exec("mgmt01", f"{SACCTMGR} -i add account {name} cluster=lab")
        lab.exec("mgmt01", f"{SACCTMGR} -i add user name=u{name} account={name} cluster=lab")
    listed = {**TREE, "purge": "listed", "absent": {"accounts": ["stray"]}}
    held = managed(lab, listed)
    assert held["changes"] == {}
    assert "account stray: below it stays what is not named for removal" in held["comment"]
    listed["absent"]["associations"] = ["stray/*"]
    gone = managed(lab, listed)
    assert gone["result"] is True, gone["comment"]
    left = sacctmgr(lab, "show assoc format=account,user")
    assert not [line for line in left if "stray" in line]
    assert "other|uother" in left


def test_accounts_purge_all_keeps_untouchables(lab, as_before):
    for name in ("stray", "kept"):
        lab.exec("mgmt01", f"{SACCTMGR} -i add account {name} cluster=lab")
        lab.exec("mgmt01", f"{SACCTMGR} -i add user name=u{name} account={name} cluster=lab")
    state = managed(
        lab, {**TREE, "purge": "all", "untouchable": {"accounts": ["kept"], "users": ["ukept"]}}
    )
    assert state["result"] is True, state["comment"]
    left = sacctmgr(lab, "show assoc format=account,user")
    assert not [line for line in left if "stray" in line]
    assert {"kept|", "kept|ukept", "root|root"} <= set(left)


@contextlib.contextmanager
def running(lab, *options):
    """A job of the ordinary user that runs meanwhile."""
    number = lab.job(
        f"sbatch --parsable -o /dev/null {' '.join(options)} --wrap 'sleep 600'"
    ).strip()
    try:
        until(lambda: job(lab, number, "%T") == "RUNNING", 60, f"job {number} to run")
        yield number
    finally:
        lab.job(f"scancel {number}")
        until(lambda: not job(lab, number, "%T"), 60, f"job {number} to end")


def job(lab, number, form):
    return lab.job(f"squeue -h -j {number} -o '{form}' 2>/dev/null || true").strip()


@pytest.mark.parametrize("jobs", ["refuse", "drain"])
def test_accounts_with_a_running_job_stay_until_it_ends(lab, as_before, jobs):
    less = changed(tree__few=None, tree__chem__users=[])
    less["users"]["researcher"]["accounts"] = ["chem", "many"]
    less = {**less, "purge": "all", "jobs": jobs}
    with running(lab, "-A few") as number:
        state = managed(lab, less)
        assert state["result"] is True, state["comment"]
        assert f"association few/researcher: jobs {number}" in state["comment"]
        assert "account few: below it stays" in state["comment"]
        assert not sacctmgr(lab, "show assoc where user=evan format=account")  # nothing held up
        refused = lab.attempt(
            "login01", ". /etc/profile.d/slurm.sh; cd; sbatch -A few --wrap true", user="researcher"
        )
        assert (refused.returncode != 0) == (jobs == "drain"), refused.stdout + refused.stderr
        assert managed(lab)["changes"] == {}
        assert job(lab, number, "%T") == "RUNNING"
        lab.job("scancel -u researcher --state=PENDING")
    until(
        lambda: (
            managed(lab)["result"] is True and not sacctmgr(lab, "show assoc where account=few")
        ),
        60,
        "the account to go after its job",
    )
    assert commands(lab) == []


def test_accounts_without_slurmdbd_are_never_an_empty_tree(lab, tree):
    lab.exec("mgmt01", "systemctl stop slurmdbd")
    try:
        said = call(lab, "sacctmgr.plan", check=False)
        assert "slurmdbd does not answer" in said
    finally:
        lab.exec("mgmt01", "systemctl start slurmdbd; salt-call slurm_cluster.await_slurmdbd 60")
    assert commands(lab) == []


def test_accounts_cut_in_the_middle_are_finished_by_the_next_run(lab, as_before):
    more = copy.deepcopy(TREE)
    for number in range(150):  # each a call of its own, by its description
        more["tree"][f"cut{number:03d}"] = {"description": f"number {number}"}
    write(lab, more)
    said = {}
    thread = threading.Thread(target=lambda: said.update(call(lab, "sacctmgr.apply", check=False)))
    thread.start()
    until(
        lambda: sacctmgr(lab, "show account where name=cut000 format=account"),
        60,
        "the first calls",
    )
    lab.exec("mgmt01", "systemctl kill -s KILL slurmdbd")
    thread.join()
    lab.exec("mgmt01", "systemctl start slurmdbd; salt-call slurm_cluster.await_slurmdbd 60")
    assert said["interrupted"] and said["done"] and said["left"], said
    until(lambda: commands(lab), 30, "the rest of the plan")
    rest = managed(lab)
    assert rest["result"] is True, rest["comment"]
    assert commands(lab) == []


def test_accounts_reconciles_take_turns(lab, as_before):
    write(lab, changed(tree__chem__fairshare=33, tree__few__fairshare=44))
    reports = []
    threads = [
        threading.Thread(target=lambda: reports.append(call(lab, "sacctmgr.apply")))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(bool(report["done"]) for report in reports) == [False, True]
    assert not [report for report in reports if report["failed"] or report["interrupted"]]
    held = lab.attempt(
        "mgmt01",
        "exec 9<>/run/lock/saltern-accounts.lock; flock 9; salt-call --out=json sacctmgr.apply",
        timeout=200,
    )
    assert "Another reconcile of the accounts runs" in held.stdout + held.stderr


def test_accounts_refuse_who_has_none(lab, tree):
    refused = lab.attempt(
        "login01",
        ". /etc/profile.d/slurm.sh; cd; sbatch -A physics --wrap true",
        user="researcher",
    )
    assert refused.returncode != 0
    assert "Invalid account or account/partition combination" in refused.stderr


def test_accounts_limit_of_a_qos_holds_a_job_back(lab, tree):
    with running(lab, "-A chem --qos=one"):
        second = lab.job("sbatch --parsable -A chem --qos=one -o /dev/null --wrap true").strip()
        try:
            until(
                lambda: job(lab, second, "%T %r") == "PENDING QOSMaxJobsPerUserLimit",
                60,
                "the second job to be held back",
            )
        finally:
            lab.job(f"scancel {second}")


def test_accounts_fairshare_orders_two_accounts(lab, tree):
    """Both use as much, and one has nine times the shares; without any use nobody is behind."""
    wait = "-N2 --exclusive -o /dev/null --wrap true"
    with running(lab, "-A few -N1 --exclusive"), running(lab, "-A many -N1 --exclusive"):
        until(lambda: _used_alike(lab), 240, "the use of both jobs counted")
        numbers = {
            account: lab.job(f"sbatch --parsable -A {account} {wait}").strip()
            for account in ("few", "many")
        }
        try:
            until(lambda: _ahead(lab, numbers), 240, "the account with more shares ahead")
        finally:
            lab.job(f"scancel {' '.join(numbers.values())}")


def _used_alike(lab):
    """Whether both accounts are charged, neither more than twice the other: jobs start apart."""
    said = lab.job("sshare -nPA few,many -o Account,User,RawUsage")
    rows = (line.strip().split("|") for line in said.splitlines())
    used = {account: int(use) for account, user, use in rows if not user}
    return 0 < max(used.values()) <= 2 * min(used.values())


def _ahead(lab, numbers):
    return int(job(lab, numbers["many"], "%Q")) > int(job(lab, numbers["few"], "%Q"))


def test_accounts_single_states(lab, as_before):
    words = "state.single sacctmgr.account_present single fairshare=5 parent=chem"
    first = call(lab, words)
    (state,) = first.values()
    assert "parent=chem" in state["changes"]["commands"]
    (again,) = call(lab, words).values()
    assert (again["result"], again["changes"]) == (True, {})
    (gone,) = call(lab, "state.single sacctmgr.account_absent single").values()
    assert "delete account" in gone["changes"]["commands"]
    (held,) = call(lab, "state.single sacctmgr.qos_absent high", check=False).values()
    assert held["result"] is True, held["comment"]


def test_accounts_enforcement_is_lowered_before_the_tree_and_raised_after(lab, tree):
    whole = lab.exec("mgmt01", f"cat {PLAN}/test.sls")
    try:
        less = whole.replace("- limits", "").replace("- qos", "").replace("- safe", "")
        lab._write(f"{PLAN}/test.sls", less)
        lower = apply(lab, TREE)
        assert "AccountingStorageEnforce" in json.dumps(
            lower["slurmctld: configuration"]["changes"]
        )
        assert lower["accounts: enforced by slurm.conf"]["changes"] == {}
    finally:
        lab._write(f"{PLAN}/test.sls", whole)
        higher = apply(lab, TREE)
    assert "Enforce" not in json.dumps(higher["slurmctld: configuration"]["changes"])
    assert "Enforce" in json.dumps(higher["accounts: enforced by slurm.conf"]["changes"])
    assert lab.gate("mgmt01", "p7_identity") == []
