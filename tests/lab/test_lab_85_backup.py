"""Backup and restore, proven by losing what was saved while jobs run: on the lab of pairs."""

import json
import time

import pytest
from jobs import asked, end, endless, lived, recorded, runs_for, sleeper, state, submit
from labs import until

FOLDER = "/var/backups/saltern"
PARTS = {"database", "state", "secrets", "register", "keys"}
SAVED_S = 15  # slurmctld writes its state some seconds after a change
SECRETS = "/etc/saltern/secrets"
REGISTER = "/var/lib/saltern/join/register.db"


def backed_up(lab):
    """A new backup's name."""
    said = lab.runner("saltern.backup")
    assert {row["part"] for row in said["made"]} == PARTS
    return said["made"][0]["backup"]


def restore(lab, *words, check=True):
    return lab.runner("saltern.restore", *words, check=check)


def refused(lab, *words):
    """What stands against a restore."""
    said = restore(lab, *words, check=False)
    assert said["retcode"] == 1, said
    return said["what_stands_against_it"]


def answers(lab):
    return asked(lab, "sacctmgr -n show cluster") is not None


def test_a_backup_is_closed_shown_and_holds_no_secret_where_salt_keeps_answers(pair):
    name = backed_up(pair)
    shown = pair.runner("saltern.backups")
    where = {row["part"]: row["host"] for row in shown["backups"] if row["backup"] == name}
    assert where == {**dict.fromkeys(PARTS, "mgmt01"), "database": "sql01"}
    assert shown["retcode"] == 0
    for host in ("mgmt01", "sql01"):
        loose = pair.exec(host, f"find {FOLDER} -perm /077 -o ! -user root")
        assert loose == ""
    found = pair.attempt(
        "mgmt01",
        f'for s in {SECRETS}/*; do grep -rlF "$(cat $s)" /var/cache/salt/master/jobs '
        '/var/log; done; journalctl --no-pager | grep -cF "$(cat /etc/saltern/secrets/jwt_key)"',
    ).stdout
    assert found.split() == ["0"]


def test_only_what_is_due_is_made_and_the_oldest_go(pair):
    backed_up(pair)
    assert pair.runner("saltern.backup", "due=True")["summary"] == "nothing is due"
    with pair.plan({"backup": {"keep": 1}}):
        name = backed_up(pair)
        kept = pair.runner("saltern.backups")["backups"]
    assert {row["backup"] for row in kept} == {name}


def test_a_lost_database_comes_back_while_a_job_runs(pair):
    before = sleeper(pair, 1)
    lived(pair, before)
    runs = endless(pair)
    until(lambda: recorded(pair, [runs]), 60, f"job {runs} in accounting")
    name = backed_up(pair)
    pair.exec("sql01", "mariadb -e 'DROP DATABASE slurm_acct_db'")
    said = restore(pair, "database", name)
    assert said["what_it_replaced"] == "nothing was there"
    until(lambda: answers(pair), 60, "slurmdbd to answer")
    end(pair, runs)
    lived(pair, before, runs)
    lived(pair, sleeper(pair, 1))
    assert "root" in pair.job("sacctmgr -nP show assoc format=user").split()


def test_what_a_restore_would_lose_is_said_first_and_can_be_had_back(pair):
    name = backed_up(pair)
    new = sleeper(pair, 1)
    lived(pair, new)
    (words,) = refused(pair, "database", name)
    assert "1 of them submitted after the backup" in words
    said = restore(pair, "database", name, "test=True")
    assert said["what_stands_against_it"] == [words]
    lived(pair, new)
    replaced = restore(pair, "database", name, "replace=True")["what_it_replaced"]
    until(lambda: answers(pair), 60, "slurmdbd to answer")
    assert recorded(pair, [new]) == {}
    restore(pair, "database", replaced.split()[-1], "replace=True")
    until(lambda: answers(pair), 60, "slurmdbd to answer")
    lived(pair, new)
    left = pair.exec("sql01", "mariadb -Ne 'SHOW DATABASES'").split()
    assert [one for one in left if one.startswith("slurm")] == ["slurm_acct_db"]


@pytest.mark.parametrize("part", ["database", "state"])
def test_a_damaged_backup_is_refused_before_anything_is_touched(pair, part):
    name = backed_up(pair)
    host = {"database": "sql01", "state": "mgmt01"}[part]
    pair.exec(host, f"cd {FOLDER}/{name}/{part}; truncate -s -20 *.gz")
    said = restore(pair, part, name, "replace=True", check=False)
    assert "is damaged" in said["problem"]
    lived(pair, sleeper(pair, 1))
    pair.exec(host, f"rm -r {FOLDER}/{name}/{part}")


def test_a_lost_state_comes_back_with_its_jobs(pair):
    """StateSaveLocation is emptied with both controllers off; slurmd keeps its job."""
    runs = endless(pair)
    waits = submit(pair, "--hold --wrap='sleep 1'")
    until(lambda: runs_for(pair, runs) > SAVED_S, 60, "slurmctld to save its state")
    name = backed_up(pair)
    pair.exec("mgmt02", "systemctl stop slurmctld")
    pair.exec("mgmt01", "systemctl stop slurmctld; find /srv/slurmctld -mindepth 1 -delete")
    said = restore(pair, "state", name)
    assert said["what_it_replaced"] == "nothing was there"
    until(lambda: state(pair, runs) == "RUNNING", 60, f"job {runs} to be known")
    assert state(pair, waits) == "PENDING"
    pair.job(f"scontrol release {waits}")
    end(pair, runs)
    lived(pair, runs, waits)


def test_a_state_older_than_a_running_job_is_refused_with_the_jobs_name(pair):
    name = backed_up(pair)
    time.sleep(2)  # steps are told apart by the second in which they began
    runs = endless(pair)
    pair.exec("mgmt02", "systemctl stop slurmctld")
    pair.exec("mgmt01", "systemctl stop slurmctld")
    try:
        (words,) = refused(pair, "state", name)
        assert f"{runs}.batch" in words
    finally:
        pair.exec("mgmt01", "systemctl start slurmctld")
        pair.exec("mgmt02", "systemctl start slurmctld")
    end(pair, runs)
    lived(pair, runs)


def test_a_master_that_lost_its_secrets_and_register_gets_them_back(pair):
    secret = pair.exec("mgmt01", f"cat {SECRETS}/jwt_key")
    hosts = {row["host"] for row in pair.runner("saltern.joins", "hosts=True")["hosts"]}
    name = backed_up(pair)
    pair.exec("mgmt01", f"echo somebody-elses-value-of-this-key-0123456789 > {SECRETS}/jwt_key")
    (words,) = refused(pair, "secrets", name)
    assert words == "1 differ from what is there: jwt_key"
    pair.exec("mgmt01", f"rm -r {SECRETS} {REGISTER}")
    restore(pair, "register", name)
    restore(pair, "secrets", name, "replace=True")
    assert pair.exec("mgmt01", f"cat {SECRETS}/jwt_key") == secret
    assert {row["host"] for row in pair.runner("saltern.joins", "hosts=True")["hosts"]} == hosts


def test_nothing_is_left_to_do_after_all_that(pair):
    for host, states in pair.highstate().items():
        wrong = [name for name, one in states.items() if one["changes"] or not one["result"]]
        assert not wrong, f"{host}: {wrong}"
    found = pair.runner("saltern.verify")
    assert found["summary"].startswith("verified: "), json.dumps(found)[:2000]
