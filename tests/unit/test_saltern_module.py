"""The one reader of pillar, the writer of files with secrets, and the state over it."""

import errno
import os
import socket
import stat

import pytest
from salt.exceptions import CommandExecutionError
from saltern import plan as plans
from saltern import view
from support import SCHEMA, everyone, load

PASSWORD = "a-password-of-the-test"  # noqa: S105 - made up
TEXT = "User=slurm\nPass=<secret:slurmdbd_password>\n"


@pytest.fixture
def module():
    """The module on a database host."""
    mine = view.of(plans.resolve(SCHEMA, everyone()), "db1")
    mine["secrets"] = {"slurmdbd_password": PASSWORD}
    return load(
        "modules",
        "saltern",
        __pillar__={"saltern": mine},
        __opts__={"id": "db1", "test": False},
        __salt__={
            "file.user_to_uid": lambda name: os.getuid() if name == "me" else "",
            "file.group_to_gid": lambda name: os.getgid() if name == "me" else "",
        },
    )


def test_view_gives_parts_and_never_a_secret(module):
    assert module.view("cluster:name") == "lab"
    assert "secrets" not in module.view()
    assert PASSWORD not in str(module.view())
    with pytest.raises(CommandExecutionError, match="has no 'secrets'"):
        module.view("secrets")


def test_an_unknown_path_names_the_roles(module):
    with pytest.raises(CommandExecutionError, match=r"has no 'slurm:partitions'.*database"):
        module.view("slurm:partitions")


def test_without_a_view_the_sentence_says_where_to_look():
    module = load("modules", "saltern", __pillar__={})
    with pytest.raises(CommandExecutionError, match=r"salt-run saltern\.plan"):
        module.view()


def write(module, path, **changes):
    wanted = {"text": TEXT, "user": "me", "group": "me", "mode": "0600", **changes}
    return module.secret_file(str(path), **wanted)


def test_a_file_with_a_secret_is_closed_from_its_first_byte(module, tmp_path, monkeypatch):
    seen = []
    real = os.fsync

    def look(descriptor):
        seen.append(stat.S_IMODE(os.fstat(descriptor).st_mode))
        real(descriptor)

    monkeypatch.setattr(module.os, "fsync", look)
    assert write(module, tmp_path / "conf") == {"content": "missing"}
    assert (tmp_path / "conf").read_text() == f"User=slurm\nPass={PASSWORD}\n"
    assert seen == [0o600]
    assert write(module, tmp_path / "conf") == {}
    assert [path.name for path in tmp_path.iterdir()] == ["conf"]


def test_differences_never_show_content(module, tmp_path):
    path = tmp_path / "conf"
    path.write_text("old")
    path.chmod(0o644)
    expected = {"content": "differs (hidden)", "mode": "0644 -> 0600"}
    assert write(module, path, test=True) == expected
    assert path.read_text() == "old"
    assert write(module, path) == expected
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param({"text": "<secret:munge_kez>"}, "no secret munge_kez", id="unknown secret"),
        pytest.param({"user": "nobody1"}, "no user nobody1", id="unknown user"),
    ],
)
def test_refusals_write_nothing(module, tmp_path, changes, words):
    with pytest.raises(CommandExecutionError, match=words):
        write(module, tmp_path / "conf", **changes)
    assert not list(tmp_path.iterdir())


def test_an_unknown_secret_names_the_roles(module, tmp_path):
    with pytest.raises(CommandExecutionError, match=r"db1 has no secret munge_kez.*\(database\)"):
        write(module, tmp_path / "conf", text="<secret:munge_kez>")


def test_a_dry_run_before_the_account_exists_predicts(module, tmp_path):
    differs = write(module, tmp_path / "conf", user="slurm", test=True)
    assert differs == {"content": "missing", "owner": "slurm:me, not here yet"}
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_another_owner_is_mended_and_said(module, tmp_path):
    write(module, tmp_path / "conf")
    os.chown(tmp_path / "conf", 65534, 65534)
    assert write(module, tmp_path / "conf") == {"owner": "65534:65534 -> 0:0"}
    assert (tmp_path / "conf").stat().st_uid == 0
    assert write(module, tmp_path / "conf") == {}


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
def test_the_file_belongs_to_the_account_from_the_start(module, tmp_path):
    module.__salt__["file.user_to_uid"] = lambda name: 10011
    module.__salt__["file.group_to_gid"] = lambda name: 10012
    write(module, tmp_path / "conf")
    state = (tmp_path / "conf").stat()
    assert (state.st_uid, state.st_gid) == (10011, 10012)


def test_owner_and_mode_are_right_before_the_first_byte(module, tmp_path, monkeypatch):
    seen = []
    real = os.fdopen

    def look(descriptor, *rest):
        state = os.fstat(descriptor)
        seen.append((state.st_size, stat.S_IMODE(state.st_mode), state.st_uid))
        return real(descriptor, *rest)

    monkeypatch.setattr(module.os, "fdopen", look)
    write(module, tmp_path / "conf", mode="0440")
    assert seen == [(0, 0o440, os.getuid())]


def test_a_cut_write_keeps_the_old_file_whole(module, tmp_path, monkeypatch):
    (tmp_path / "conf").write_text("old")

    def cut(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(module.os, "replace", cut)
    with pytest.raises(KeyboardInterrupt):
        write(module, tmp_path / "conf")
    assert [path.name for path in tmp_path.iterdir()] == ["conf"]
    assert (tmp_path / "conf").read_text() == "old"


def test_a_full_disk_is_a_sentence_and_keeps_the_old_file(module, tmp_path, monkeypatch):
    (tmp_path / "conf").write_text("old")

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module.os, "fsync", full)
    with pytest.raises(CommandExecutionError, match="conf: No space left on device") as caught:
        write(module, tmp_path / "conf")
    assert PASSWORD not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["conf"]
    assert (tmp_path / "conf").read_text() == "old"


def test_a_missing_folder_is_named(module, tmp_path):
    with pytest.raises(CommandExecutionError, match=r"folder .*absent does not exist"):
        write(module, tmp_path / "absent/conf")


def test_standard_input_carries_the_secret_and_errors_mask_it(module):
    given = {}

    def run(cmd, **kwargs):
        given.update(kwargs, cmd=cmd)
        return {"retcode": 1, "stdout": "", "stderr": f"denied for {PASSWORD}"}

    module.__salt__["cmd.run_all"] = run
    with pytest.raises(CommandExecutionError) as caught:
        module.secret_stdin(["mariadb"], TEXT)
    assert PASSWORD in given["stdin"]
    assert PASSWORD not in str(caught.value) + str(given["cmd"])
    assert given["python_shell"] is False


def test_waiting_is_bounded_and_names_the_peer(module):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert module.await_port("127.0.0.1", port, 0, "slurmdbd") < 5
    with pytest.raises(
        CommandExecutionError, match=rf"slurmdbd on 127\.0\.0\.1:{port} did not answer"
    ):
        module.await_port("127.0.0.1", port, 0, "slurmdbd")


@pytest.mark.parametrize(
    ("differs", "test", "result"),
    [
        pytest.param({}, False, True, id="already so"),
        pytest.param({"content": "missing"}, True, None, id="dry run"),
        pytest.param({"content": "missing"}, False, True, id="changed"),
    ],
)
def test_the_state_reports_what_the_module_did(differs, test, result):
    asked = []

    def secret_file(*_, test):
        asked.append(test)
        return differs

    state = load(
        "states", "secret", __salt__={"saltern.secret_file": secret_file}, __opts__={"test": test}
    )
    ret = state.file("/etc/x", TEXT, "slurm", "slurm", "0600")
    assert (ret["result"], ret["changes"], asked) == (result, differs, [test])


def test_the_state_passes_a_refusal_on():
    def refuse(*_, **__):
        raise CommandExecutionError("no secret x")

    state = load("states", "secret", __salt__={"saltern.secret_file": refuse})
    ret = state.file("/etc/x", TEXT, "slurm", "slurm", "0600")
    assert (ret["result"], ret["changes"], ret["comment"]) == (False, {}, "no secret x")
