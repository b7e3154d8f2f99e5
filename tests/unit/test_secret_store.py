"""The master's secrets: made once, closed, never made anew."""

import errno
import multiprocessing
import os
import signal
from concurrent.futures import ProcessPoolExecutor

import pytest
from saltern import secret_store
from saltern.roles import SECRETS


def get(directory, name="munge_key"):
    return secret_store.Store(str(directory)).get(name)


@pytest.mark.parametrize("name", SECRETS)
def test_made_on_first_use_and_then_the_same(tmp_path, name):
    store = tmp_path / "secrets"
    value = get(store, name)
    assert get(store, name) == value
    assert len(value) >= secret_store.LEAST_CHARACTERS[name]
    assert (store.stat().st_mode & 0o777, (store / name).stat().st_mode & 0o777) == (0o700, 0o600)
    assert [path.name for path in store.iterdir()] == [name]


def test_many_at_once_agree(tmp_path):
    with ProcessPoolExecutor(8) as pool:
        values = list(pool.map(get, [tmp_path / "secrets"] * 32))
    assert len(set(values)) == 1


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        pytest.param(lambda store: store.chmod(0o755), "mode 0755", id="folder open"),
        pytest.param(lambda store: (store / "munge_key").chmod(0o640), "mode 0640", id="file open"),
        pytest.param(lambda store: (store / "munge_key").write_text(""), "holds 0", id="empty"),
        pytest.param(
            lambda store: (store / "munge_key").write_text("short"), "holds 5", id="cut short"
        ),
        pytest.param(
            lambda store: (store / "munge_key").write_text("x y" * 40), "blanks", id="with blanks"
        ),
    ],
)
def test_a_damaged_store_is_refused_and_left_as_it_is(tmp_path, damage, words):
    store = tmp_path / "secrets"
    get(store)
    damage(store)
    before = (store / "munge_key").read_bytes()
    with pytest.raises(secret_store.SecretError, match=words):
        get(store)
    assert (store / "munge_key").read_bytes() == before


def test_a_link_is_not_followed(tmp_path):
    store = tmp_path / "secrets"
    store.mkdir(mode=0o700)
    (tmp_path / "elsewhere").write_text("x" * 64)
    (tmp_path / "elsewhere").chmod(0o600)
    (store / "munge_key").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(secret_store.SecretError):
        get(store)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("whose", ["", "munge_key"], ids=["folder", "file"])
def test_another_owner_is_refused_in_a_sentence(tmp_path, whose):
    store = tmp_path / "secrets"
    value = get(store)
    os.chown(store / whose, 65534, -1)
    with pytest.raises(secret_store.SecretError, match=r"65534; expected .* owner 0") as told:
        get(store)
    assert value not in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("target", ["", "elsewhere"], ids=["to nothing", "to a folder"])
def test_a_link_in_the_folders_place_is_not_followed(tmp_path, target):
    if target:
        (tmp_path / target).mkdir(mode=0o700)
    (tmp_path / "secrets").symlink_to(tmp_path / (target or "nothing"))
    with pytest.raises(secret_store.SecretError):
        get(tmp_path / "secrets")
    assert not (tmp_path / "nothing").exists()


def test_a_link_to_nothing_makes_no_secret_elsewhere(tmp_path):
    store = tmp_path / "secrets"
    store.mkdir(mode=0o700)
    (store / "munge_key").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(secret_store.SecretError):
        get(store)
    assert not (tmp_path / "elsewhere").exists()


def test_a_full_disk_is_a_sentence_and_leaves_no_half_secret(tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(secret_store.os, "fsync", full)
        with pytest.raises(secret_store.SecretError, match="No space left on device"):
            get(tmp_path / "secrets")
    assert list((tmp_path / "secrets").iterdir()) == []


def test_a_file_in_the_folders_place_is_refused(tmp_path):
    (tmp_path / "secrets").write_text("")
    with pytest.raises(secret_store.SecretError):
        get(tmp_path / "secrets")


def cut(directory, step):
    """Make a secret, and die by SIGKILL in front of a step."""
    for name in ("fsync", "link", "unlink"):
        if name == step:
            module = secret_store.os if name != "unlink" else secret_store.Path
            setattr(module, name, lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
    get(directory)


@pytest.mark.parametrize("step", ["fsync", "link", "unlink"])
def test_a_kill_in_the_middle_is_finished_by_the_next(tmp_path, step):
    store = tmp_path / "secrets"
    victim = multiprocessing.get_context("fork").Process(target=cut, args=(store, step))
    victim.start()
    victim.join(20)
    assert victim.exitcode == -signal.SIGKILL
    there = (store / "munge_key").read_text() if (store / "munge_key").exists() else None
    assert there is None or len(there.strip()) == secret_store.MUNGE_KEY_CHARACTERS
    value = get(store)
    assert there is None or value == there.strip()
    assert get(store) == value


def test_what_a_cut_left_aside_does_no_harm(tmp_path):
    store = tmp_path / "secrets"
    store.mkdir(mode=0o700)
    aside = os.open(store / ".munge_key.1.abc", os.O_CREAT, 0o600)
    os.close(aside)
    assert len(get(store)) == secret_store.MUNGE_KEY_CHARACTERS
