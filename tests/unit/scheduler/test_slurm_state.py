"""Several controllers have one StateSaveLocation, or the second does not start."""

import os
import subprocess

import pytest
from salt.exceptions import CommandExecutionError
from saltern import gates_shared_state, plan, view
from support import SCHEMA, example, load

TWO = {"hosts:mgmt02": {"roles": ["controller"], "address": "10.0.0.2"}}


class Controllers:
    """The module on two hosts, each with its own folder under the plan's path."""

    def __init__(self, **folders):
        self.folders = folders
        self.mine, self.sent, self.fails = {}, [], {}

    def on(self, host):
        path = str(self.folders[host])
        raw = example(**TWO, **{"slurm:state_dir": path})
        salt = {
            "saltern.view": lambda: view.of(plan.resolve(SCHEMA, raw), host),
            "mine.get": lambda name, function: {
                key: value for key, value in self.mine.items() if key == name
            },
            "mine.send": lambda name, text, mine_function: self.send(host, text),
            "cmd.run_all": lambda command, **options: self.run(host, command),
        }
        module = load("modules", "slurm_state", __salt__=salt)
        module._PAUSE_S = 0
        return module

    def send(self, host, text):
        self.sent.append(host)
        self.mine[host] = self.on(host).mark(text)

    def run(self, host, command):
        if host in self.fails:
            raise self.fails[host]
        assert command[:4] == ["setpriv", "--reuid=slurm", "--regid=slurm", "--clear-groups"]
        done = subprocess.run(command[4:], capture_output=True, text=True, check=False)
        return {"retcode": done.returncode, "stdout": done.stdout, "stderr": done.stderr}


def test_one_folder_is_one_state(tmp_path):
    both = Controllers(mgmt01=tmp_path, mgmt02=tmp_path)
    assert both.on("mgmt01").problems(0) == []  # the first one waits for nobody
    assert both.on("mgmt02").problems(0) == []
    assert both.on("mgmt01").problems(0) == []
    assert both.sent == ["mgmt01", "mgmt02"]  # young marks are not written again
    assert sorted(os.listdir(tmp_path)) == ["saltern.mgmt01", "saltern.mgmt02"]
    assert (tmp_path / "saltern.mgmt01").stat().st_mode & 0o777 == 0o600


def test_the_room_of_the_state_is_that_of_its_file_system(tmp_path):
    (tmp_path / "job_state").write_bytes(b"x" * 300)
    (tmp_path / "hash.1").mkdir()
    room = Controllers(mgmt01=tmp_path).on("mgmt01").room()
    assert (room["path"], room["needed"], room["error"]) == (str(tmp_path), 300, "")
    assert abs(room["free"] - os.statvfs(tmp_path).f_bavail * os.statvfs(tmp_path).f_frsize) < 1e9


def test_a_state_that_is_not_there_has_no_known_room(tmp_path):
    room = Controllers(mgmt01=tmp_path / "gone").on("mgmt01").room()
    assert "gone" in room["error"]


def test_two_folders_are_refused_on_both(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    both = Controllers(mgmt01=tmp_path / "a", mgmt02=tmp_path / "b")
    both.on("mgmt01").problems(0)
    assert "mark of mgmt01: found none; expected the one that" in both.on("mgmt02").problems(0)[0]
    assert "mark of mgmt02: found none" in both.on("mgmt01").problems(0)[0]


def test_a_copy_of_the_state_is_not_the_state(tmp_path):
    """A folder that was copied once, say by rsync, holds marks that are out of date."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    both = Controllers(mgmt01=tmp_path / "a", mgmt02=tmp_path / "b")
    both.on("mgmt01").problems(0)
    (tmp_path / "b" / "saltern.mgmt01").write_text((tmp_path / "a" / "saltern.mgmt01").read_text())
    assert both.on("mgmt02").problems(0) == []
    both.mine["mgmt01"]["made"] -= 2 * 3600
    both.on("mgmt01").problems(0)
    assert "mark of mgmt01: found another one" in both.on("mgmt02").problems(0)[0]


def test_the_second_does_not_start_before_the_first_left_its_mark(tmp_path):
    both = Controllers(mgmt01=tmp_path, mgmt02=tmp_path)
    assert "no mark of its own in the Salt mine" in both.on("mgmt02").problems(0)[0]


def test_a_file_system_that_hangs_is_named_and_asked_once(tmp_path):
    both = Controllers(mgmt01=tmp_path, mgmt02=tmp_path)
    both.on("mgmt01").problems(0)
    both.fails["mgmt02"] = CommandExecutionError("Timed out after 10 seconds")
    (problem,) = both.on("mgmt02").problems(0)
    assert "no answer of the file system within 10 s" in problem


def test_a_link_is_no_shared_folder(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    both = Controllers(mgmt01=tmp_path / "link", mgmt02=tmp_path / "link")
    assert "leads to" in both.on("mgmt01").problems(0)[0]


def test_one_controller_shares_with_nobody():
    raw = example()
    salt = {"saltern.view": lambda: view.of(plan.resolve(SCHEMA, raw), "mgmt01")}
    module = load("modules", "slurm_state", __salt__=salt)
    assert module.facts() is None
    assert module.problems(0) == []


def test_the_gate_says_what_it_expected():
    facts = {
        "path": "/srv/slurmctld",
        "real": "/srv/slurmctld",
        "error": "",
        "awaited": ["a"],
        "others": {"a": {"shown": "1", "read": None, "error": "Stale file handle"}},
    }
    (problem,) = gates_shared_state.shared_state(facts)
    assert str(problem) == (
        "/srv/slurmctld, the mark of a: found Stale file handle; expected the one that a wrote: "
        "two controllers with two states lose jobs -> mount one shared file system there on every "
        "controller"
    )


@pytest.mark.parametrize(("test", "result"), [(False, False), (True, None)])
def test_the_state_fails_and_changes_nothing(test, result):
    salt = {"slurm_state.problems": lambda timeout: ["two states"]}
    module = load("states", "slurm_state", __salt__=salt, __opts__={"test": test})
    ret = module.shared("/srv/slurmctld", 5)
    assert (ret["result"], ret["changes"], ret["comment"]) == (result, {}, "two states")
