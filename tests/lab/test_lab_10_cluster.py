"""From bare hosts to a cluster: what one `salt '*' state.highstate` made, seen from outside."""

import re

import pytest
from saltern import roles

HOSTS = ("mgmt01", "login01", "node01", "node02")
DAEMONS = {
    "mgmt01": ("munge", "chrony", "mariadb", "slurmdbd", "slurmctld", "nginx"),
    "login01": ("munge", "chrony", "sackd"),
    "node01": ("munge", "chrony", "slurmd"),
    "node02": ("munge", "chrony", "slurmd"),
}
OURS = {"slurmdbd": "mgmt01", "slurmctld": "mgmt01", "sackd": "login01", "slurmd": "node01"}


def test_make_cluster_ran_jobs_over_two_nodes(first_run):
    assert re.search(r"^\W*node01\s*$", first_run, re.MULTILINE)
    assert re.search(r"^\W*node02\s*$", first_run, re.MULTILINE)
    ranks = set(
        re.findall(r"rank ([0-3]) of 4 on (node0[12])\S*: the ranks add up to 6", first_run)
    )
    assert {rank for rank, _ in ranks} == {"0", "1", "2", "3"}
    assert {host for _, host in ranks} == {"node01", "node02"}


@pytest.mark.parametrize("host", HOSTS)
def test_daemons_run_and_start_with_the_host(lab, host):
    for name in DAEMONS[host]:
        service = lab.machine(host).service(name)
        assert service.is_running, name
        assert service.is_enabled, name


@pytest.mark.parametrize("host", HOSTS)
def test_ids_are_the_plans(lab, host):
    for name, number in (("munge", 10010), ("slurm", 10011)):
        user = lab.machine(host).user(name)
        assert (user.uid, user.gid) == (number, number)


@pytest.mark.parametrize(("path", "owner", "mode"), [
    ("/etc/munge/munge.key", "munge", 0o400),
    ("/etc/slurm/slurmdbd.conf", "slurm", 0o600),
    ("/etc/slurm/jwt_hs256.key", "slurm", 0o600),
    ("/etc/saltern/secrets", "root", 0o700),
])  # fmt: skip
def test_files_with_secrets_are_closed(lab, path, owner, mode):
    file = lab.machine("mgmt01").file(path)
    assert (file.user, file.mode) == (owner, mode)


@pytest.mark.parametrize("daemon", OURS)
def test_daemons_run_from_the_active_tree(lab, daemon):
    host = OURS[daemon]
    active = lab.exec(host, "readlink -f /opt/slurm/current").strip()
    running = lab.exec(
        host, f"readlink /proc/$(systemctl show -p MainPID --value {daemon})/exe"
    ).strip()
    assert running == f"{active}/sbin/{daemon}"


def test_nodes_hold_no_configuration_and_no_compiler(lab):
    for host in ("login01", "node01"):
        machine = lab.machine(host)
        assert not machine.file("/etc/slurm/slurm.conf").exists
        assert not machine.exists("gcc")


def test_slurmd_asks_every_controller_and_its_unit_keeps_jobs(lab):
    shown = lab.exec("node01", "systemctl show slurmd -p KillMode -p Delegate -p ExecStart")
    assert "KillMode=process" in shown
    assert "Delegate=yes" in shown
    assert "--conf-server mgmt01:6817" in shown.replace("=mgmt01", " mgmt01")


def test_mariadb_has_schedmds_values(lab):
    shown = lab.exec(
        "mgmt01",
        'mariadb -N -e "SHOW GLOBAL VARIABLES WHERE Variable_name IN '
        "('innodb_snapshot_isolation','innodb_lock_wait_timeout','innodb_buffer_pool_size')\"",
    ).split()
    values = dict(zip(shown[::2], shown[1::2], strict=True))
    assert values["innodb_snapshot_isolation"] == "OFF"
    assert values["innodb_lock_wait_timeout"] == "900"
    assert int(values["innodb_buffer_pool_size"]) == 256 * 2**20


def test_a_job_leaves_an_accounting_row(lab):
    number = lab.job("sbatch --parsable --wait -o /dev/null --wrap 'true'").strip()
    row = lab.job(f"sacct -nPX -j {number} -o user,state,cluster").strip()
    assert row == "researcher|COMPLETED|lab"


def test_second_run_changes_nothing_and_a_dry_run_predicts_nothing(lab):
    for test in (True, False):
        for host, states in lab.highstate(test=test).items():
            assert states, host
            for name, state in states.items():
                assert state["result"] is True, f"{host}: {name}: {state['comment']}"
                assert not state["changes"], f"{host}: {name}: {state['changes']}"


def test_secrets_stay_where_they_belong(lab):
    """The values themselves are looked for, in what hosts and master keep and show.

    The master keeps each minion's compiled pillar in files that only root can read; that is Salt's
    own, as closed as /etc/saltern/secrets, and left out.
    """
    cached = "/var/cache/salt/master/pillar"
    assert lab.exec("mgmt01", f"find {cached} -type f | wc -l").strip() == "4"
    assert not lab.exec("mgmt01", f"find {cached} -type f -perm /077")
    for secret, owners in roles.SECRETS.items():
        value = f"/etc/saltern/secrets/{secret}"
        places = "/var/cache/salt/master /var/log /run/log/journal /srv/saltern /etc/saltern/plan"
        script = f"grep -rlF --exclude-dir=pillar -f {value} {places} 2>/dev/null"
        found = lab.attempt("mgmt01", script).stdout
        assert not found, f"{secret} on the master: {found}"
        script = f"cat /proc/[0-9]*/cmdline 2>/dev/null | grep -cF -f {value}"
        assert lab.attempt("mgmt01", script).stdout.strip() == "0"
        if "compute" not in owners:
            text = lab.exec("mgmt01", f"cat {value}").strip()
            searched = "grep -rlF -f - /etc /var /run /opt /srv /root /tmp 2>/dev/null"
            found = lab.attempt("node01", f"printf '%s\\n' {text} | {searched}").stdout
            assert not found, f"{secret} on node01: {found}"
