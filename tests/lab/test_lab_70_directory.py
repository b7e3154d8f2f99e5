"""A directory of two servers, SSSD on every Slurm host, and accounts that follow its groups: real
OpenLDAP, SSSD, OpenSSH and Slurm, on a lab of its own. Homes are simulated shared storage: a folder
of this machine.
"""

import base64
import itertools
import json
import os
import shlex
import time

import pytest
from labs import Lab, started, until

NAME = f"{os.environ.get('SALTERN_TEST_LAB', 'test')}d"
STANDING = os.environ.get("SALTERN_STANDING_DIRECTORY")
SLURM = ". /etc/profile.d/slurm.sh; "
BASE = "dc=dir,dc=saltern"
ADA, BEN = f"uid=ada,ou=people,{BASE}", f"uid=ben,ou=people,{BASE}"
PHYSICS = f"cn=physics,ou=groups,{BASE}"
ROOT = "-Q -Y EXTERNAL -H ldapi:///"
PASSWORD = "correct horse battery"  # noqa: S105 - of a user who lives as long as the lab
AWAY_S = 60  # a bound until SSSD asks the other server, or its cache


@pytest.fixture(scope="module")
def site(request):
    """The cluster of the topology `directory`, from bare hosts; ada has a password."""
    if STANDING:
        lab = Lab(STANDING)
        _give_password(lab)
        yield lab
        return
    with started(request, NAME, "directory") as lab:
        _give_password(lab)
        yield lab


def _give_password(lab):
    lab.exec("dir01", f"ldappasswd {ROOT} -s {shlex.quote(PASSWORD)} {ADA}")


def modify(lab, host, *lines):
    """A change by hand in a directory server."""
    text = "\n".join(lines)
    lab.exec(host, f"ldapmodify {ROOT} <<'END'\n{text}\nEND")


def as_client(lab, host, uri_host, what="-b " + BASE, bind=True):
    """A search as SSSD makes it."""
    who = f"-D cn=client,ou=services,{BASE} -y /etc/saltern/directory.secret" if bind else ""
    return lab.attempt(
        host,
        "LDAPTLS_CACERT=/etc/saltern/directory-ca.pem ldapsearch -LLL -x -ZZ -o ldif-wrap=no "
        f"-H ldap://{uri_host}.dir.saltern {who} {what}",
    )


# OpenSSH drops an address for a while after it failed; so each attempt comes from another one.
SOURCES = (f"127.0.{number // 200}.{number % 200 + 2}" for number in itertools.count(200))


def logs_in(lab, user, command, password=PASSWORD, key=None):
    """A login over SSH to login01, by password or by key."""
    lab.exec(
        "login01",
        f"printf '#!/bin/sh\\necho %s\\n' {shlex.quote(shlex.quote(password))} > /run/ask; "
        "chmod 700 /run/ask",
    )
    options = f"-b {next(SOURCES)} -o ConnectTimeout=20 -o NumberOfPasswordPrompts=1"
    options += " -o StrictHostKeyChecking=accept-new -o HostKeyAlias=login01 -o LogLevel=ERROR"
    how = f"-i {key} -o BatchMode=yes" if key else "-o PubkeyAuthentication=no"
    return lab.attempt(
        "login01",
        "SSH_ASKPASS_REQUIRE=force SSH_ASKPASS=/run/ask "
        f"ssh {options} {how} {user}@127.0.0.1 {shlex.quote(command)}",
        timeout=120,
    )


def run_as(lab, user, command, timeout=120):
    return lab.attempt("login01", f"{SLURM}cd /tmp; {command}", user=user, timeout=timeout)


def associations(lab, user):
    said = lab.exec(
        "mgmt01", f"{SLURM}sacctmgr -nP show assoc user={user} format=account,defaultqos"
    )
    return [line.split("|")[0] for line in said.splitlines()]


def sync(lab, *words, check=True):
    return lab.runner("saltern.sync_accounts", *words, check=check)


def people(**groups):
    """A change of the plan: the members of groups."""
    numbers = {"hpc": 31000, "physics": 31001, "physics-leads": 31002}
    return {
        "people": {
            "groups": {
                name.replace("_", "-"): {"gid": numbers[name.replace("_", "-")], "members": members}
                for name, members in groups.items()
            }
        }
    }


def test_a_second_run_changes_nothing(site):
    for host, states in site.highstate().items():
        wrong = [name for name, one in states.items() if one["changes"] or not one["result"]]
        assert not wrong, (host, [states[name] for name in wrong])


def test_users_resolve_on_every_slurm_host(site):
    for host in ("mgmt01", "login01", "node01", "node02"):
        assert "31001(physics)" in site.exec(host, "id ada")
        assert site.gate(host, "p7_identity") == []


def test_nobody_reads_a_hash_and_nothing_goes_in_clear(site):
    for server in ("dir01", "dir02"):
        said = as_client(site, "mgmt01", server)
        assert f"dn: {ADA}" in said.stdout
        assert "userPassword:" not in said.stdout
        nobody = as_client(site, "mgmt01", server, bind=False)
        assert nobody.returncode != 0 and "dn:" not in nobody.stdout
        clear = site.attempt(
            "mgmt01",
            f"ldapwhoami -x -H ldap://{server}.dir.saltern -D cn=client,ou=services,{BASE} "
            "-y /etc/saltern/directory.secret",
        )
        assert "Confidentiality required" in clear.stderr
        stranger = site.attempt("mgmt01", f"ldapwhoami -x -ZZ -H ldap://{server}.dir.saltern")
        assert "certificate verify failed" in stranger.stderr


def test_a_weak_password_is_refused(site):
    said = site.attempt(
        "dir01",
        "printf %s " + shlex.quote(PASSWORD) + " > /run/old; "
        "LDAPTLS_CACERT=/etc/saltern/directory-ca.pem ldappasswd -x -ZZ "
        f"-H ldap://dir01.dir.saltern -D {ADA} -y /run/old -s short {ADA}; rm /run/old",
    )
    assert "Constraint violation" in said.stdout + said.stderr


def test_a_password_is_kept_as_a_slow_hash(site):
    said = site.exec("dir01", f"ldapsearch {ROOT} -LLL -o ldif-wrap=no -b {ADA} userPassword")
    kept = said.partition("userPassword:: ")[2].split()[0]
    assert base64.b64decode(kept).startswith(b"{CRYPT}$6$rounds=100000$")


def test_login_by_password_makes_a_home_and_submits_under_the_account(site):
    said = logs_in(site, "ada", "stat -c '%a %U' $HOME; . /etc/profile.d/slurm.sh; srun -N2 id -un")
    assert said.returncode == 0, said.stderr
    assert said.stdout.split() == ["700", "ada", "ada", "ada"]
    rows = f"{SLURM}sacct -nXP -u ada --format=account,state"
    until(
        lambda: "physics|COMPLETED" in site.exec("mgmt01", rows).splitlines(),
        60,
        "ada's job in accounting",
    )


def test_users_change_their_password_by_the_rules(site):
    def passwd(old, new):
        lines = shlex.quote(f"{old}\n{new}\n{new}\n")
        return site.attempt("login01", f"cd; printf {lines} | passwd", user="ada")

    another = f"a phrase of {time.time_ns()}"  # none that was used before
    try:
        assert passwd(PASSWORD, "short").returncode != 0
        assert passwd("not the old one", another).returncode != 0
        changed = passwd(PASSWORD, another)
        assert changed.returncode == 0, changed.stdout + changed.stderr
        assert logs_in(site, "ada", "id -un", password=another).stdout.strip() == "ada"
        assert passwd(another, PASSWORD).returncode != 0, "it may not come again"
    finally:
        _give_password(site)


def test_login_by_key_of_the_directory(site):
    site.exec("login01", "rm -f /run/ada; ssh-keygen -q -t ed25519 -N '' -f /run/ada")
    key = site.exec("login01", "cat /run/ada.pub").strip()
    refused = logs_in(site, "ada", "true", key="/run/ada")
    assert refused.returncode != 0
    with site.plan({"people": {"users": {"ada": {"ssh_keys": [key]}}}}):
        site.exec("dir01", "salt-call --retcode-passthrough state.apply p7_identity.server")
        site.exec("login01", "sss_cache -E")
        until(
            lambda: logs_in(site, "ada", "id -un", key="/run/ada").stdout.strip() == "ada",
            60,
            "ada's key",
        )


def test_only_login_hosts_let_users_in(site):
    assert site.attempt("login01", "su -s /bin/sh ada -c id").returncode == 0
    for host in ("mgmt01", "node01"):
        refused = site.attempt(host, "su -s /bin/sh ada -c id")
        assert refused.returncode != 0 and "Permission denied" in refused.stderr


def test_a_user_without_an_account_is_refused_in_words(site):
    said = run_as(site, "ben", "srun true")
    assert said.returncode != 0
    assert "Invalid account" in said.stderr
    found = site.runner("saltern.accounts")
    assert {"user": "ben", "finding": "no account", "means": "can log in, and submit nothing"} in (
        found["people"]
    )


def test_a_new_member_gets_an_account_and_one_who_leaves_loses_it(site):
    with site.plan(people(physics=["ada", "ben"])):
        site.exec("dir01", "salt-call --retcode-passthrough state.apply p7_identity.server")
        preview = sync(site, "test=True")
        assert any("name=ben" in call for call in preview["calls"])
        assert associations(site, "ben") == []
        assert sync(site)["summary"] == f"{len(preview['calls'])} calls made"
        assert associations(site, "ben") == ["physics"]
        assert sync(site)["summary"] == "0 calls made"
        job = site.exec(
            "login01",
            SLURM + "cd /tmp; sbatch --parsable -o /dev/null --wrap='sleep 40'",
            user="ben",
        ).strip()
        until(lambda: _state(site, job) == "RUNNING", 60, f"job {job} to run")
    # The plan has only ada in it again; ben's job runs.
    site.exec("dir01", "salt-call --retcode-passthrough state.apply p7_identity.server")
    held = sync(site)
    assert any(f"jobs {job}" in line for line in held["kept"]), held
    assert associations(site, "ben") == ["physics"]
    until(lambda: _state(site, job) == "COMPLETED", 90, f"job {job} to end")
    gone = sync(site)
    assert associations(site, "ben") == [], gone
    assert sync(site)["summary"] == "0 calls made"


def _state(lab, job):
    said = lab.exec("mgmt01", f"{SLURM}sacct -nXP --jobs={job} --format=state")
    return said.strip()


def test_coordinators_come_from_their_group(site):
    said = site.exec("mgmt01", f"{SLURM}sacctmgr -nP show account physics withcoord format=coord")
    assert said.strip() == "ada"


def test_a_directory_that_shows_nobody_or_far_fewer_changes_nothing(site):
    before = site.exec("mgmt01", f"{SLURM}sacctmgr -nP show assoc format=account,user")
    everyone = people(physics=["ada", "ben", "cleo"])
    with site.plan(everyone):
        site.exec("dir01", "salt-call --retcode-passthrough state.apply p7_identity.server")
        sync(site)
        modify(site, "dir01", f"dn: {PHYSICS}", "changetype: modify", "delete: member")
        nobody = sync(site, check=False)
        assert nobody["retcode"] == 1 and "found nobody in the groups" in nobody["problem"]
        modify(
            site,
            "dir01",
            *(f"dn: {PHYSICS}", "changetype: modify", "add: member", f"member: {ADA}"),
        )
        fewer = sync(site, check=False)
        assert "found 1 people" in fewer["problem"] and "accept_fewer=True" in fewer["problem"]
        assert set(associations(site, "cleo")) == {"physics"}
        for server in ("dir01", "dir02"):
            site.exec(server, "systemctl stop slapd")
        try:
            silent = sync(site, check=False)
            assert "is one of these servers up" in silent["problem"]
        finally:
            for server in ("dir01", "dir02"):
                site.exec(server, "systemctl start slapd")
        assert set(associations(site, "cleo")) == {"physics"}
    site.exec("dir01", "salt-call --retcode-passthrough state.apply p7_identity.server")
    until(lambda: sync(site, "accept_fewer=True", check=False)["retcode"] == 0, 60, "the directory")
    assert site.exec("mgmt01", f"{SLURM}sacctmgr -nP show assoc format=account,user") == before


def test_an_event_is_enough(site):
    modify(
        site,
        "dir01",
        *(f"dn: {PHYSICS}", "changetype: modify", "add: member", f"member: {BEN}"),
    )
    site.exec("dir01", "salt-call event.send saltern/directory/changed")
    until(lambda: associations(site, "ben") == ["physics"], 60, "ben's account")
    site.exec("dir01", "salt-call --retcode-passthrough state.apply p7_identity.server")
    sync(site, "accept_fewer=True")
    assert associations(site, "ben") == []


def test_a_setting_changed_by_hand_is_seen_and_put_right(site):
    database = site.exec(
        "dir02", f"ldapsearch {ROOT} -LLL -b cn=config '(olcSuffix=*)' dn | sed -n 's/^dn: //p'"
    ).strip()
    modify(
        site,
        "dir02",
        *(f"dn: {database}", "changetype: modify", "add: olcAccess"),
        "olcAccess: {0}to * by * read",
    )
    assert as_client(site, "mgmt01", "dir02", bind=False).stdout.count("userPassword") >= 1
    assert any("olcAccess" in reason for reason in site.gate("dir02", "p7_identity"))
    site.exec("dir02", "salt-call --retcode-passthrough state.apply p7_identity.server")
    assert "dn:" not in as_client(site, "mgmt01", "dir02", bind=False).stdout
    assert site.gate("dir02", "p7_identity") == []


def test_one_server_down_the_other_serves_and_they_meet_again(site):
    site.do("power-off", "dir01")
    try:
        site.exec("login01", "sss_cache -E")
        until(lambda: site.attempt("login01", "id cleo").returncode == 0, AWAY_S, "cleo by dir02")
        until(lambda: logs_in(site, "ada", "id -un").stdout.strip() == "ada", AWAY_S, "ada's login")
        assert run_as(site, "ada", "srun -N2 true").returncode == 0
        modify(
            site,
            "dir02",
            *(f"dn: {BEN}", "changetype: modify", "replace: description"),
            "description: written while dir01 was off",
        )
        assert sync(site)["summary"] == "0 calls made"
    finally:
        site.do("power-on", "dir01")
    until(
        lambda: (
            "written while" in as_client(site, "mgmt01", "dir01", f"-b {BEN} description").stdout
        ),
        120,
        "dir01 to have what dir02 wrote",
    )
    until(lambda: site.gate("dir01", "p7_identity") == [], 60, "the gate of dir01")


def test_without_any_server_jobs_of_known_users_run(site):
    job = site.exec(
        "login01", SLURM + "cd /tmp; sbatch --parsable -o /dev/null --wrap='sleep 30'", user="ada"
    ).strip()
    until(lambda: _state(site, job) == "RUNNING", 60, f"job {job} to run")
    site.do("power-off", "dir01")
    site.do("power-off", "dir02")
    try:
        until(
            lambda: logs_in(site, "ada", "id -un").stdout.strip() == "ada",
            AWAY_S,
            "ada's login from the cache",
        )
        assert run_as(site, "ada", "srun -N2 id -un").stdout.split() == ["ada", "ada"]
        # What is enforced stays enforced: Slurm does not ask the directory.
        assert run_as(site, "ben", "srun true").returncode != 0
        until(lambda: _state(site, job) == "COMPLETED", 90, f"job {job} to end")
    finally:
        site.do("power-on", "dir01")
        site.do("power-on", "dir02")
    until(lambda: site.gate("dir02", "p7_identity") == [], 120, "the gate of dir02")


def test_the_backup_restores_what_was_deleted(site):
    site.exec("dir01", "systemctl start saltern-directory-backup.service")
    kept = site.exec("dir01", "ls /var/backups/saltern-directory").split()
    assert [name.partition(".")[2] for name in kept[-2:]] == [
        "configuration.ldif",
        "entries.ldif",
    ]
    assert site.exec("dir01", "stat -c %a /var/backups/saltern-directory/*").split() == (
        ["600"] * len(kept)
    )
    site.exec("dir01", f"ldapdelete {ROOT} {ADA}")
    until(lambda: ADA not in as_client(site, "mgmt01", "dir02").stdout, 30, "ada's end on dir02")
    # The way of docs/directory.md: all servers stop, the first gets the entries, the others none.
    for server in ("dir01", "dir02"):
        site.exec(server, "systemctl stop slapd; rm -f /var/lib/ldap/*.mdb")
    site.exec(
        "dir01",
        f"runuser -u openldap -- slapadd -q -b {BASE} < /var/backups/saltern-directory/{kept[-1]}",
    )
    for server in ("dir01", "dir02"):
        site.exec(server, "systemctl start slapd")
    until(lambda: ADA in as_client(site, "mgmt01", "dir02").stdout, 60, "ada on dir02")
    until(lambda: logs_in(site, "ada", "id -un").stdout.strip() == "ada", AWAY_S, "ada's login")
    until(lambda: site.gate("dir01", "p7_identity") == [], 60, "the gate of dir01")


def test_no_secret_is_said(site):
    """The bind password and the copies' stand in no log, no job's record and no command line."""
    for secret in ("directory_client_password", "directory_replication_password"):
        value = site.exec("mgmt01", f"cat /etc/saltern/secrets/{secret}").strip()
        for host in ("mgmt01", "dir01", "dir02", "login01", "node01"):
            found = site.attempt(
                host,
                f"journalctl --no-pager | grep -c -F {value}; "
                f"grep -r -l -F {value} /var/log /var/cache/salt/master/jobs 2>/dev/null",
            )
            assert found.stdout.split() in (["0"], []), (host, found.stdout)
    mode = site.exec("login01", "stat -c '%a %U' /etc/sssd/sssd.conf /etc/saltern/directory.secret")
    assert mode.split() == ["640", "root", "600", "root"]


def test_everything_is_as_planned_at_the_end(site):
    time.sleep(1)
    for host, states in site.highstate(test=True).items():
        wrong = [name for name, one in states.items() if one["changes"] or one["result"] is False]
        assert not wrong, (host, json.dumps([states[name] for name in wrong])[:2000])
