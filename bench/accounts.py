"""10,000 users, 500 accounts four deep, 20 QOS: real slurmdbd and MariaDB, in the bench's lab."""

import json
import sys
import time
from typing import Any

from bench import cluster

USERS, ACCOUNTS, QOS, CHANGED, SAMPLE = 10_000, 500, 20, 100, 500
REPEATS = 3
PLAN = "/etc/saltern/plan"
TREE = "accounts: tree"

# What a state costs beside Salt's own start, and the greatest size of the process that ran it.
PEAK = """
import resource, salt.client
salt.client.Caller().cmd("sacctmgr.plan")
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def tree(users: int = USERS, changed: int = 0) -> dict[str, Any]:
    """A section `accounts`: each account has twenty users, some with limits of their own."""
    names = [f"acct{number:03d}" for number in range(ACCOUNTS)]
    entries: dict[str, Any] = {}
    for number, name in enumerate(names):
        entries[name] = {"fairshare": 1 + number % 10, "description": f"Account {number}"}
        if number >= 5:  # 5 at the top, then 20, 100, the rest
            entries[name]["parent"] = names[(number - 5) // 4]
    people: dict[str, Any] = {}
    for number in range(users):
        own: dict[str, Any] = {"limits": {"max_jobs": 100 + number % 3}} if number % 4 == 0 else {}
        if number < changed:
            own = {"fairshare": 7}
        people[f"user{number:05d}"] = {"accounts": {names[number % ACCOUNTS]: own}}
    qos = {f"qos{number:02d}": {"priority": number + 1} for number in range(QOS)}
    return {"tree": entries, "users": people, "qos": qos}


def measure() -> dict[str, float]:
    """First load, nothing to do, 100 changed users, memory; and the same by hand."""
    cluster.begin()
    _resolvable()
    _plan(tree())
    first = _state()
    quiet = sorted(_state() for _ in range(REPEATS))[REPEATS // 2]
    peak = float(_salt_python(PEAK).split()[-1])
    _plan(tree(changed=CHANGED))
    some = _state()
    by_hand, by_one = _by_hand(), _one_by_one()
    return {
        "accounts_noop_10k_s": round(quiet, 2),
        "accounts_first_load_ratio": round(first / by_hand, 2),
        "accounts_change_100_s": round(some, 2),
        "accounts_peak_mb": peak,
        # A module without a diff asks for, or adds, each object each time.
        "accounts_vs_call_per_object": round(by_one * (USERS + ACCOUNTS + QOS) / quiet, 0),
    }


def _resolvable() -> None:
    """The users exist where slurmdbd and slurmctld run. Each change of an association makes both
    look up everyone whom they do not know, and those share one slot of a hash: seconds a call."""
    lines = "".join(
        f"{name}{number:05d}:x:{start + number}:100::/:/usr/sbin/nologin\n"
        for name, start in (("user", 100_000), ("hand", 200_000))
        for number in range(USERS)
    )
    cluster.exec_("mgmt01", "grep -q ^user00000: /etc/passwd || cat >> /etc/passwd", stdin=lines)


def _plan(section: dict[str, Any]) -> None:
    text = json.dumps({"saltern": {"accounts": section}})
    cluster.exec_("mgmt01", f"cat > {PLAN}/accounts.sls", stdin=text)
    cluster.exec_("mgmt01", "salt-call saltutil.refresh_pillar wait=True")


def _state() -> float:
    """The seconds that the state itself took; fails if it did."""
    said = cluster.exec_("mgmt01", "salt-call --out=json state.apply p7_identity.accounts || true")
    states = json.loads(said[said.index("{") :])["local"]
    (state,) = (one for one in states.values() if one["__id__"] == TREE)
    if state["result"] is not True:
        raise RuntimeError(state["comment"])
    print(state["comment"].splitlines()[0], file=sys.stderr)
    return float(state["duration"]) / 1000


def _by_hand() -> float:
    """The seconds of one call that adds as many users to one account."""
    _sacctmgr("add account name=byhand cluster=lab")
    names = ",".join(f"hand{number:05d}" for number in range(USERS))
    return _sacctmgr(f"add user name={names} account=byhand cluster=lab")


def _one_by_one() -> float:
    """The seconds of one call for one object that is there already, of a sample."""
    loop = (
        f"for number in $(seq 0 {SAMPLE - 1}); do /opt/slurm/current/bin/sacctmgr -i add user "
        "name=hand$(printf %05d $number) account=byhand cluster=lab >/dev/null; done; true"
    )
    began = time.monotonic()
    cluster.exec_("mgmt01", loop)
    return (time.monotonic() - began) / SAMPLE


def _sacctmgr(words: str) -> float:
    began = time.monotonic()
    cluster.exec_("mgmt01", f"/opt/slurm/current/bin/sacctmgr -i {words} >/dev/null")
    return time.monotonic() - began


def _salt_python(script: str) -> str:
    find = "$(head -n1 $(command -v salt-call) | cut -c3-)"
    return cluster.exec_("mgmt01", f"{find} -", stdin=script)
