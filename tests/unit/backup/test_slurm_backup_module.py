"""The execution module: what ends a backup or a restore before anything is kept or changed.

MariaDB's programs and systemd are simulated; the lab has the real ones.
"""

import pytest
from salt.exceptions import CommandExecutionError
from saltern.backup_store import Store
from support import load

NAME = "20261203T000000Z"
WHOLE = "echo 'CREATE TABLE t;'; echo '-- Dump completed'"


@pytest.fixture
def host(tmp_path):
    """A module on a host whose programs are scripts: host(dump=...)."""

    def make(dump=WHOLE, active=False, answers=None):
        script = tmp_path / "mariadb-dump"
        script.write_text(f"#!/bin/sh\n{dump}\n", encoding="ascii")
        script.chmod(0o755)
        asked = []
        view = {
            "host": {"name": "mgmt01"},
            "cluster": {"name": "lab"},
            "backup": {"folder": str(tmp_path / "backups"), "keep": 2},
            "slurm": {"state_dir": str(tmp_path / "state")},
            "roles": ["controller"],
        }

        def looked(path=""):
            found = view
            for key in path.split(":") if path else ():
                found = found[key]
            return found

        def query(sql, timeout):
            asked.append(sql)
            for start, said in (answers or {}).items():
                if sql.startswith(start):
                    return said
            return ""

        module = load(
            "modules",
            "slurm_backup",
            __salt__={
                "saltern.view": looked,
                "saltern.platform": lambda: {"mariadb": {"dump": str(script)}},
                "slurm_database.query": query,
                "slurm_database.here": lambda: True,
                "daemon.status": lambda name: {"active": active},
            },
        )
        return module, Store(tmp_path / "backups"), asked

    return make


def test_a_dump_is_kept_with_what_it_is_of(host):
    module, store, _ = host(answers={"SELECT TABLE": "lab_job_table\n", "SELECT COUNT": "7\t90"})
    row = module.make("database", NAME, "24.11.5")
    assert (row["of"], row["slurm"], row["host"]) == ("7 jobs of lab", "24.11.5", "mgmt01")
    assert b"".join(store.read(NAME, "database")).startswith(b"CREATE TABLE t;")


@pytest.mark.parametrize(
    ("dump", "words"),
    [
        pytest.param("echo 'CREATE TABLE t;'", "without its last line", id="cut-without-a-word"),
        pytest.param(f"{WHOLE}; echo 'Got error 2013' >&2; exit 3", "Got error 2013", id="failed"),
    ],
)
def test_a_dump_that_is_not_whole_is_not_kept(host, dump, words):
    module, store, _ = host(dump)
    with pytest.raises(CommandExecutionError, match=words):
        module.make("database", NAME)
    assert store.rows() == []


def test_as_many_are_kept_as_the_plan_says(host):
    module, store, _ = host()
    for day in (1, 2, 3):
        module.make("database", f"2026120{day}T000000Z")
    assert [row["backup"] for row in store.rows()] == ["20261203T000000Z", "20261202T000000Z"]


def test_a_part_of_another_kind_of_host_is_refused(host):
    module, _, _ = host()
    with pytest.raises(CommandExecutionError, match="Found the part 'secrets'; expected one of"):
        module.make("secrets", NAME)


def state(module, tmp_path, *files):
    """The state of a slurmctld that is this process's user."""
    module._AS_SLURM, module._PAUSE_S = [], 0
    for name in files:
        path = tmp_path / "state" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="ascii")


def test_an_empty_folder_takes_the_place_of_no_backup(host, tmp_path):
    """A mount that was lost leaves one behind."""
    module, store, _ = host()
    state(module, tmp_path, "clustername", "saltern.mgmt01")
    with pytest.raises(CommandExecutionError, match="found no job_state; expected slurmctld's"):
        module.make("state", NAME)
    assert store.rows() == []


def test_a_state_is_put_back_over_what_was_left_of_it(host, tmp_path):
    module, store, _ = host()
    state(module, tmp_path, "job_state", "hash.1/job.1/script", "saltern.mgmt01")
    module.make("state", NAME)
    (tmp_path / "state/job_state").unlink()
    (tmp_path / "state/saltern.mgmt01").write_text("a younger mark", encoding="ascii")
    state(module, tmp_path, "left_over")
    assert module.restore_state(NAME, "20261203T080000Z") == "20261203T080000Z"
    files = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert {path.name: path.read_text(encoding="ascii") for path in files} == {
        "job_state": "job_state",
        "script": "hash.1/job.1/script",
        "saltern.mgmt01": "a younger mark",
    }
    assert [row["backup"] for row in store.rows("state")] == ["20261203T080000Z", NAME]


def test_a_restore_removes_no_backup_least_of_all_its_own(host, tmp_path):
    """backup:keep is 2 here, and the one that is restored is the oldest of two."""
    module, store, _ = host()
    state(module, tmp_path, "job_state")
    for day in (1, 2):
        module.make("state", f"2026120{day}T000000Z")
    module.restore_state("20261201T000000Z", NAME)
    assert len(store.rows("state")) == 3
    module.make("state", "20261204T000000Z")
    assert [row["backup"] for row in store.rows("state")] == ["20261204T000000Z", NAME]


def test_no_state_is_put_back_under_a_running_slurmctld(host):
    module, _, _ = host(active=True)
    with pytest.raises(CommandExecutionError, match="slurmctld runs on this host"):
        module.restore_state(NAME, "20261203T080000Z")


def test_a_swap_that_fails_drops_what_was_loaded_and_says_why(host):
    module, _, asked = host("echo 'disk full' >&2; exit 2", answers={"SELECT TABLE": "a\n"})
    with pytest.raises(CommandExecutionError, match="disk full"):
        module.swap("20261203T080000Z")
    assert asked[-1].startswith("DROP DATABASE IF EXISTS slurm_acct_db_restored")
    assert not any("RENAME" in sql for sql in asked)


def test_a_swap_with_nothing_loaded_is_refused(host):
    module, _, asked = host()
    with pytest.raises(CommandExecutionError, match="has no tables"):
        module.swap("20261203T080000Z")
    assert not any("RENAME" in sql for sql in asked)
