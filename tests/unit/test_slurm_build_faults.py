"""A whole build and a deployment against a real mirror on loopback, and what may break in them.

Only systemd-run is simulated: it does to the stage what the real programs would.
"""

import contextlib
import errno
import functools
import hashlib
import http.server
import json
import os
import socket
import tarfile
import threading
from pathlib import Path
from unittest.mock import create_autospec

import pytest
from salt.exceptions import CommandExecutionError
from salt.modules import aptpkg, cmdmod, event, mine
from saltern import build
from saltern import plan as plans
from support import SCHEMA, example, load

FILES = ("lib/slurm/auth_munge.so", "lib/slurm/cred_munge.so", "sbin/slurmd")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving(server):
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def mirror(tmp_path):
    """A folder, served over HTTP; its address."""
    (tmp_path / "mirror").mkdir()
    handler = functools.partial(Quiet, directory=str(tmp_path / "mirror"))
    with serving(http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)) as url:
        yield url


@contextlib.contextmanager
def answering(text):
    """The address of a server that says this to whoever connects, and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer():
            with contextlib.suppress(OSError):
                connection, _ = server.accept()
                with connection:
                    connection.recv(4096)
                    connection.sendall(text)

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


class Builder:
    """What the programs of a build do, and where they stop."""

    def __init__(self):
        self.ran, self.fails_at, self.makes = [], None, FILES

    def __call__(self, cmd, **_):
        done = {"retcode": 0, "stdout": "", "stderr": "", "pid": 1}
        if cmd[0] != "systemd-run":
            return done
        put = dict(part.split("=", 2)[1:] for part in cmd if part.startswith("--property="))
        program = list(cmd[next(i for i, part in enumerate(cmd[1:], 1) if part[0] != "-") :])
        log = Path(put["StandardOutput"].removeprefix("file:"))
        stage, _, prefix = put["BindPaths"].partition(":")
        self.ran.append(" ".join(program))
        if self.fails_at and self.fails_at in self.ran[-1]:
            log.write_text("first line\ncc1: error: it broke\n", encoding="utf-8")
            return {**done, "retcode": 2}
        if program[0] == "tar" and "-czf" in program:
            with tarfile.open(log, "w:gz") as tar:
                tar.add(stage, arcname=Path(prefix).name)
        elif program[0] == "make" and put["WorkingDirectory"].endswith("/slurm"):
            for file in self.makes:
                path = Path(stage) / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("x", encoding="utf-8")
        return done


@pytest.fixture
def module(tmp_path, monkeypatch, mirror):
    """slurm_build on a builder whose folders are the test's, with a mirror that has all sources."""
    section = plans.resolve(SCHEMA, example(build={"features": ["munge"]})).data["build"]
    for name in build.ORDER:
        source = section["sources"][name]
        (tmp_path / "mirror" / source["file"]).write_text(name, encoding="utf-8")
        source["sha256"] = hashlib.sha256(name.encode()).hexdigest()
    views = {"build": section, "mirror:sources": mirror, "waits:artefact_s": 0}
    views["peers:builder"] = [{"name": "mgmt01", "address": "10.213.0.11"}]
    builder = Builder()
    have = {"gcc": "14.2", "libmunge-dev": "0.5"}
    reader = load("modules", "saltern")
    loaded = load(
        "modules",
        "slurm_build",
        __salt__={
            "saltern.view": create_autospec(reader.view, side_effect=lambda path: views[path]),
            "saltern.platform": create_autospec(
                reader.platform, return_value={"slurm_build": ["gcc"]}
            ),
            "pkg.list_pkgs": create_autospec(aptpkg.list_pkgs, side_effect=lambda: have),
            "cmd.run_all": create_autospec(cmdmod.run_all, side_effect=builder),
            "event.send": create_autospec(event.send),
            "mine.get": create_autospec(mine.get, return_value={}),
        },
        __grains__={"os": "Debian", "os_family": "Debian", "osrelease": "13", "osarch": "amd64"},
    )
    for constant in ("STORE", "SOURCES", "WORK", "LOGS"):
        monkeypatch.setattr(loaded, constant, str(tmp_path / constant.lower()))
    monkeypatch.setattr(build, "ROOT", str(tmp_path / "opt"))
    monkeypatch.setattr(build, "LINK", str(tmp_path / "opt/current"))
    monkeypatch.setattr(loaded, "_lists_known", lambda: True)
    monkeypatch.setattr(loaded.shutil, "chown", create_autospec(loaded.shutil.chown))
    loaded.views, loaded.builder, loaded.have = views, builder, have
    return loaded


def stored(module):
    return sorted(path.name for path in Path(module.STORE).iterdir() if path.name != ".lock")


def full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


def offer(module, mirror, tmp_path):
    """The artefact of a finished build, as a host gets it."""
    made = module.build_artefact()
    (Path(module.STORE) / made["archive"]).rename(tmp_path / "mirror" / made["archive"])
    return {**made, "url": f"{mirror}/{made['archive']}"}


def test_builds_once_and_the_second_run_builds_nothing(module):
    made = module.build_artefact()
    assert stored(module) == [f"slurm-{made['name']}.manifest.json", made["archive"]]
    assert made["features"] == ["munge"]
    assert set(made["files"]) == set(FILES)
    ran = len(module.builder.ran)
    assert module.build_artefact() == made
    assert len(module.builder.ran) == ran
    assert module.needed() is False


def test_a_new_library_gives_a_second_artefact_beside_the_first(module):
    first = module.build_artefact()
    module.have["libmunge-dev"] = "0.6"
    assert module.plan()["why"] == ["packages:libmunge-dev: 0.5 -> 0.6"]
    second = module.build_artefact()
    assert first["name"] != second["name"]
    assert first["spec_id"] == second["spec_id"]
    assert len(stored(module)) == 4


def test_programs_run_unprivileged_and_without_network(module):
    module.build_artefact()
    calls = module.__salt__["cmd.run_all"].call_args_list
    sandboxed = [call for call in calls if call.args[0][0] == "systemd-run"]
    assert sandboxed
    for call in sandboxed:
        assert {
            "--property=User=saltern-build",
            "--property=PrivateNetwork=yes",
            "--property=NoNewPrivileges=yes",
        } <= set(call.args[0])
        assert call.kwargs["python_shell"] is False


def test_a_step_that_fails_shows_the_end_of_its_log(module):
    module.builder.fails_at = "make"
    with pytest.raises(CommandExecutionError, match=r"(?s)hwloc-make .*status 2.*it broke"):
        module.build_artefact()
    assert stored(module) == []


def test_a_tree_without_a_wanted_feature_is_no_artefact(module):
    module.builder.makes = FILES[:1]
    with pytest.raises(CommandExecutionError, match=r"feature munge.*libmunge-dev"):
        module.build_artefact()
    assert stored(module) == []


@pytest.mark.parametrize("after", ["configure", "make", "-czf"])
def test_what_a_killed_build_left_is_gone_before_the_next_step(module, after):
    """Left-overs as SIGKILL leaves them: no `finally` ran."""
    for path in ("work/hwloc/half", "stage/lib/slurm/gpu_nvml.so"):
        (Path(module.WORK) / path).parent.mkdir(parents=True)
        (Path(module.WORK) / path).write_text("", encoding="utf-8")
    Path(module.STORE).mkdir()
    name = module.plan()["name"]
    for left in (f"slurm-{name}.tar.gz.new", f"slurm-{name}.manifest.json.new"):
        (Path(module.STORE) / left).write_text("half", encoding="utf-8")
    assert module.needed() is True
    module.builder.fails_at = after
    with pytest.raises(CommandExecutionError, match="stopped at"):
        module.build_artefact()
    assert stored(module) == []
    module.builder.fails_at = None
    assert set(module.build_artefact()["files"]) == set(FILES)


@pytest.mark.parametrize("where", ["_make_tree", "_pack", "_write_json", "_wipe", "_source"])
def test_a_full_disk_is_one_sentence_and_nothing_looks_finished(module, monkeypatch, where):
    with monkeypatch.context() as patch:
        patch.setattr(module, where, full)
        with pytest.raises(CommandExecutionError, match="No space left on device") as caught:
            module.build_artefact()
    assert "\n" not in str(caught.value)
    assert module.needed() is True
    assert not list(Path(module.STORE).glob("*.manifest.json"))
    module.build_artefact()
    assert len(stored(module)) == 2


def test_a_full_disk_while_downloading_is_not_the_mirror_s_fault(module, monkeypatch):
    monkeypatch.setattr(module.shutil, "copyfileobj", full)
    with pytest.raises(CommandExecutionError) as caught:
        module._source("hwloc")
    assert "could not be written: No space left on device" in str(caught.value)
    assert "found no file" not in str(caught.value)
    assert not list(Path(module.SOURCES).iterdir())


def test_a_source_that_the_mirror_lacks_is_named_with_its_address(module, mirror, tmp_path):
    file = module.views["build"]["sources"]["pmix"]["file"]
    (tmp_path / "mirror" / file).unlink()
    with pytest.raises(CommandExecutionError) as caught:
        module.build_artefact()
    assert str(caught.value).startswith(f"build:sources:pmix: found no file at {mirror}/{file}")
    assert "File not found" in str(caught.value)
    assert module.builder.ran == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(b"SSH-2.0-OpenSSH_9\r\n", "SSH-2.0", id="no web server"),
        pytest.param(b"HTTP/1.0 503 Busy\r\n\r\n", "Busy", id="busy"),
        pytest.param(
            b"HTTP/1.0 200 OK\r\nContent-Length: 100\r\n\r\nhalf",
            "cut 96 bytes before its end",
            id="cut",
        ),
    ],
)
def test_a_mirror_that_answers_badly_is_told_in_words(module, text, words):
    with answering(text) as url:
        module.views["mirror:sources"] = url
        with pytest.raises(CommandExecutionError, match=rf"hwloc.*{url}.*{words}"):
            module._source("hwloc")
    assert not list(Path(module.SOURCES).iterdir())


def test_a_mirror_that_is_down_is_named(module):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    module.views["mirror:sources"] = f"http://127.0.0.1:{port}"
    with pytest.raises(CommandExecutionError, match=f"127.0.0.1:{port}.*refused"):
        module._source("hwloc")


def test_a_refused_source_is_fetched_anew_when_the_mirror_is_mended(module, tmp_path):
    file = tmp_path / "mirror" / module.views["build"]["sources"]["hwloc"]["file"]
    file.write_text("evil", encoding="utf-8")
    with pytest.raises(CommandExecutionError, match="for inspection"):
        module._source("hwloc")
    assert [path.read_text() for path in (Path(module.SOURCES) / "refused").iterdir()] == ["evil"]
    file.write_text("hwloc", encoding="utf-8")
    assert Path(module._source("hwloc")).read_text() == "hwloc"


def test_deploys_the_built_tree_with_its_manifest_last(module, mirror, tmp_path, monkeypatch):
    offered = offer(module, mirror, tmp_path)
    seen = []
    real = os.rename

    def rename(old, new):
        seen.append(((Path(old) / "manifest.json").exists(), module.deployed(offered["name"])))
        real(old, new)

    monkeypatch.setattr(module.os, "rename", rename)
    module.deploy(offered)
    assert seen == [(True, False)]
    tree = tmp_path / "opt" / offered["name"]
    assert (tree / "sbin/slurmd").exists()
    told = json.loads((tree / "manifest.json").read_text())
    assert told["sha256"] == offered["sha256"]
    assert "url" not in told
    assert module.verify(str(tree)) == []


def test_verify_names_what_a_tree_lost(module, mirror, tmp_path):
    offered = offer(module, mirror, tmp_path)
    tree = tmp_path / "opt" / offered["name"]
    assert module.verify(str(tree)) == [f"{tree}: no artefact is deployed here"]
    module.deploy(offered)
    (tree / "lib/slurm/cred_munge.so").unlink()
    told = "\n".join(module.verify(str(tree)))
    assert "feature munge" in told
    assert "1 files missing, first lib/slurm/cred_munge.so" in told


@pytest.mark.parametrize("where", ["_download", "_extract", "_write_json"])
@pytest.mark.parametrize(
    "failure",
    [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()],
    ids=["disk full", "cut"],
)
def test_a_failed_deployment_leaves_nothing(module, mirror, tmp_path, monkeypatch, where, failure):
    offered = offer(module, mirror, tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(module, where, create_autospec(getattr(module, where), side_effect=failure))
        with pytest.raises((CommandExecutionError, KeyboardInterrupt)) as caught:
            module.deploy(offered)
    assert ("No space left" in str(caught.value)) is isinstance(failure, OSError)
    assert list((tmp_path / "opt").iterdir()) == []
    module.deploy(offered)
    assert module.deployed(offered["name"])


def test_a_full_disk_before_the_download_is_one_sentence(module, mirror, tmp_path, monkeypatch):
    offered = offer(module, mirror, tmp_path)
    monkeypatch.setattr(module.os, "mkdir", full)
    with pytest.raises(CommandExecutionError, match="No space left on device"):
        module.deploy(offered)


def test_what_a_killed_deployment_left_is_replaced(module, mirror, tmp_path):
    offered = offer(module, mirror, tmp_path)
    for left in (f".new-{offered['name']}", ".new-older", offered["name"]):
        (tmp_path / "opt" / left / "lib").mkdir(parents=True)
        (tmp_path / "opt" / left / "lib/half").write_text("")
    assert not module.deployed(offered["name"])
    module.deploy(offered)
    assert [path.name for path in (tmp_path / "opt").iterdir()] == [offered["name"]]
    assert not (tmp_path / "opt" / offered["name"] / "lib/half").exists()


def tree(tmp_path, name, age):
    path = tmp_path / "opt" / name / "manifest.json"
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    os.utime(path, (age, age))


def test_the_link_is_there_at_every_moment(module, tmp_path, monkeypatch):
    for name in ("one", "two"):
        tree(tmp_path, name, 1)
    module.activate("one")
    (tmp_path / "opt/current.new").symlink_to("nowhere")  # what a cut left
    seen = []
    for call in ("unlink", "symlink", "replace"):
        real = getattr(os, call)

        def spy(*paths, real=real):
            seen.append(module.active())
            real(*paths)

        monkeypatch.setattr(module.os, call, spy)
    module.activate("two")
    assert seen == ["one"] * 3
    assert module.active() == "two"
    assert not (tmp_path / "opt/current.new").is_symlink()


def test_what_still_runs_is_not_removed(module, tmp_path, monkeypatch):
    for age, name in enumerate(("old", "runs", "spare", "now"), 1):
        tree(tmp_path, name, age)
    module.activate("now")
    module.views["build"]["keep"] = 1
    monkeypatch.setattr(module, "_running", create_autospec(module._running, return_value={"runs"}))
    assert module.surplus() == ["old"]
    for name in ("runs", "now", "spare"):
        with pytest.raises(CommandExecutionError, match=f"{name} stays"):
            module.remove(name)
    module.remove("old")
    assert not (tmp_path / "opt/old").exists()


def test_a_cut_removal_looks_unfinished(module, tmp_path, monkeypatch):
    for age, name in enumerate(("old", "now"), 1):
        tree(tmp_path, name, age)
    module.activate("now")
    module.views["build"]["keep"] = 0
    monkeypatch.setattr(
        module.shutil,
        "rmtree",
        create_autospec(module.shutil.rmtree, side_effect=KeyboardInterrupt),
    )
    with pytest.raises(KeyboardInterrupt):
        module.remove("old")
    assert not module.deployed("old")


def test_an_offer_of_another_plan_is_named(module):
    module.__salt__["mine.get"].return_value = {
        "mgmt01": {"spec_id": "other", "name": "24.05.1-old", "archive": "x"}
    }
    with pytest.raises(CommandExecutionError, match=r"another one \(24\.05\.1-old\)"):
        module.offered(0)
    mine_of = {"spec_id": build.digest(build.spec(module.views["build"])), "archive": "a.tar.gz"}
    module.__salt__["mine.get"].return_value = {"mgmt01": mine_of}
    assert module.offered(0)["url"] == "http://mgmt01:8088/a.tar.gz"
