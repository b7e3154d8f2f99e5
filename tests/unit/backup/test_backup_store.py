"""Backups on disk: whole or not there, closed, and found out when they are damaged."""

import gzip
import os
import time

import pytest
from saltern.backup_store import BackupError, Store

NAMES = ("20261201T000000Z", "20261202T000000Z", "20261203T000000Z")
FILE = "data.gz"


def keep(store, name=NAMES[0], data=b"all of it", part="state"):
    return store.keep(name, part, {"at": 1.0}, lambda take: take(data), FILE)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "backups")


def test_what_was_kept_is_read_back_and_is_its_owners_alone(store):
    row = keep(store)
    assert b"".join(store.read(NAMES[0], "state")) == b"all of it"
    assert store.rows() == [row] == [store.check(NAMES[0], "state")]
    for path in (store.folder, *store.folder.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path


def test_the_newest_comes_first(store):
    for name in (NAMES[1], NAMES[0], NAMES[2]):
        keep(store, name)
    assert [row["backup"] for row in store.rows("state")] == list(reversed(NAMES))
    assert store.rows("database") == []


def test_one_that_fails_leaves_nothing(store):
    def write(take):
        take(b"half")
        raise RuntimeError("the dump ended")

    with pytest.raises(RuntimeError):
        store.keep(NAMES[0], "state", {}, write, FILE)
    assert list(store.folder.iterdir()) == []


def test_one_that_was_cut_is_not_shown_and_goes_after_a_day(store):
    keep(store, NAMES[1])
    cut = store.folder / NAMES[0] / ".state.4711"
    cut.mkdir(parents=True)
    assert [row["backup"] for row in store.rows()] == [NAMES[1]]
    store.prune("state", 1)
    assert cut.is_dir(), "another process may be at work on it"
    old = time.time() - 2 * 86_400
    os.utime(cut, (old, old))
    store.prune("state", 1)
    assert not cut.exists()


def test_nothing_is_written_over(store):
    keep(store)
    with pytest.raises(BackupError, match="exists already"):
        keep(store, data=b"another")
    assert b"".join(store.read(NAMES[0], "state")) == b"all of it"


def test_the_oldest_of_a_part_go_and_other_parts_stay(store):
    for name in NAMES:
        keep(store, name)
    keep(store, NAMES[0], part="secrets")
    assert store.prune("state", 2) == [NAMES[0]]
    assert [row["backup"] for row in store.rows("state")] == [NAMES[2], NAMES[1]]
    assert [row["backup"] for row in store.rows("secrets")] == [NAMES[0]]


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-9])


def another(path):
    path.write_bytes(gzip.compress(b"another"))


def no_gzip(path):
    path.write_bytes(b"no gzip at all")


@pytest.mark.parametrize("damage", [cut_short, another, no_gzip])
def test_damage_is_found_out(store, damage):
    keep(store)
    damage(store.folder / NAMES[0] / "state" / FILE)
    with pytest.raises(BackupError, match="Take another backup"):
        store.check(NAMES[0], "state")


def test_a_backup_that_is_not_there_is_answered_with_those_that_are(store):
    keep(store, NAMES[1])
    with pytest.raises(BackupError, match=f"no state in a backup {NAMES[0]}.*{NAMES[1]}"):
        store.check(NAMES[0], "state")


@pytest.mark.parametrize("name", ["../../etc", "", "20261201", "20261201T000000Z/.."])
def test_only_a_backups_name_is_a_name(store, name):
    with pytest.raises(BackupError, match="expected a name such as"):
        store.row(name, "state")


@pytest.mark.parametrize(
    ("mode", "where"), [(0o777, "backups"), (0o770, "backups"), (0o777, ".")],
    ids=["anyone-writes", "a-group-writes", "anyone-writes-above"],
)  # fmt: skip
def test_a_folder_that_others_can_write_is_refused(store, mode, where):
    keep(store)
    (store.folder.parent / where).chmod(mode)
    for use in (store.rows, lambda: store.check(NAMES[0], "state"), lambda: keep(store, NAMES[1])):
        with pytest.raises(BackupError, match="whoever can write there"):
            use()
