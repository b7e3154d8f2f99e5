"""What slurmd calls, as a program: a simulated scontrol beside it, real files, real processes."""

import fcntl
import json
import os
import stat
import subprocess
import sys
from unittest.mock import Mock

import pytest
from support import ROOT, load

FILES = ROOT / "salt/p5_environment/files"

# A Slurm of one node in a file, told and asked as `scontrol` is.
SCONTROL = """#!{python}
import json, os, sys
path = {state!r}
if os.path.exists(path + ".away"):
    sys.exit("Unable to contact slurm controller (connect failure)")
node = json.load(open(path))
open(path + ".log", "a").write(" ".join(sys.argv[1:]) + "\\n")
if os.path.basename(sys.argv[0]) == "sinfo":
    crowd = json.load(open(path + ".crowd")) if os.path.exists(path + ".crowd") else {{}}
    name = sys.argv[3]
    asked = node if name == node["name"] else {{**node, "reason": "", "state": ["IDLE"], "comment": crowd.get(name, "")}}
    around = {{"configured": "all", "total": 600 if crowd else 1}}
    reason = {{"description": asked["reason"], "time": 0, "user": "root" if asked["reason"] else ""}}
    row = {{"nodes": {{"nodes": [name]}}, "node": {{"state": asked["state"]}}, "reason": reason}}
    print(json.dumps({{"sinfo": [{{**row, "comment": asked["comment"], "partition": {{"nodes": around}}}}]}}))
elif sys.argv[1:3] == ["show", "hostnames"]:
    print("\\n".join(json.load(open(path + ".crowd"))))
elif sys.argv[1] == "show":
    print(json.dumps({{"nodes": [node]}}))
else:
    values = dict(word.split("=", 1) for word in sys.argv[3:])
    if values.get("state") == "DRAIN":
        node["state"].append("DRAIN")
    if values.get("state") == "UNDRAIN":
        node["state"].remove("DRAIN")
        values["reason"] = ""
    node.update({{key: value for key, value in values.items() if key != "state"}})
    json.dump(node, open(path, "w"))
"""


class Node:
    """A node's folders, with the program pointed at them."""

    def __init__(self, tmp_path):
        self.root = tmp_path
        self.slurm = tmp_path / "slurm.json"
        self.slurm.write_text(
            json.dumps({"name": "node01", "state": ["IDLE"], "reason": "", "comment": ""})
        )
        self.file("scontrol", SCONTROL.format(python=sys.executable, state=str(self.slurm)), 0o755)
        self.file("sinfo", SCONTROL.format(python=sys.executable, state=str(self.slurm)), 0o755)
        self.settings()
        self.file("systemd-run", f'#!/bin/sh\necho "$@" >> {tmp_path}/again\n', 0o755)
        text = (FILES / "health_report.py").read_text("utf-8")
        places = {
            "LIBRARY": tmp_path / "lib",
            "SETTINGS": tmp_path / "health.json",
            "STATE": tmp_path / "state",
            "LOCK": tmp_path / "lock",
        }
        for name, place in places.items():
            old = next(line for line in text.splitlines() if line.startswith(f"{name} = "))
            text = text.replace(old, f"{name} = {str(place)!r}")
        text = text.replace("/usr/sbin/nhc", str(tmp_path / "nhc"))
        self.file("report.py", text)
        library = tmp_path / "lib"
        library.mkdir()
        checker = (FILES / "node_health.py").read_text("utf-8")
        checker = checker.replace("/etc/nhc/nhc.conf", str(tmp_path / "nhc.conf"))
        checker = checker.replace("/run/saltern/health-hung", str(tmp_path / "hung"))
        (library / "node_health.py").write_text(checker)
        os.symlink(ROOT / "_utils/saltern", library / "saltern")
        self.checks(f"check_file_test -e {tmp_path}/mark")
        self.mark = tmp_path / "mark"
        self.mark.touch()

    def file(self, name, text, mode=0o644):
        path = self.root / name
        path.write_text(text)
        path.chmod(mode)

    def settings(self, **changes):
        values = {
            "node": "node01",
            "provider": "builtin",
            "scontrol": str(self.root / "scontrol"),
            "check_timeout_s": 2,
            "timeout_s": 5,
            "settle_s": 0,
            "good_results": 2,
        }
        self.file("health.json", json.dumps({**values, **changes}))

    def checks(self, *lines):
        self.file("nhc.conf", "".join(f"* || {line}\n" for line in lines))

    def run(self, option="--verbose"):
        env = {"PATH": f"{self.root}:/usr/bin:/bin"}
        ran = subprocess.run(
            [sys.executable, "-I", str(self.root / "report.py"), option],
            capture_output=True,
            text=True,
            check=False,
            env=env,
            timeout=60,
        )
        assert "Traceback" not in ran.stderr, ran.stderr
        assert ran.returncode == 0
        return ran.stdout

    def node(self):
        return json.loads(self.slurm.read_text())

    def asked(self):
        log = self.root / "slurm.json.log"
        return log.read_text().splitlines() if log.exists() else []

    def crowd(self, **comments):
        """A cluster of 600 nodes, some with a comment."""
        names = {f"node{number:03d}": "" for number in range(600)} | {"node01": ""}
        crowd = dict(sorted({**names, **comments}.items()))
        (self.root / "slurm.json.crowd").write_text(json.dumps(crowd))

    def record(self):
        return json.loads((self.root / "state/record.json").read_text())

    def outbox(self):
        folder = self.root / "state/outbox"
        names = sorted(os.listdir(folder)) if folder.exists() else []
        return [json.loads((folder / name).read_text()) for name in names]


@pytest.fixture
def node(tmp_path):
    return Node(tmp_path)


def test_drain_and_recovery_simulated(node):
    node.mark.unlink()
    node.run()
    assert node.node()["state"] == ["IDLE", "DRAIN"]
    assert "No such file" in node.node()["reason"]
    node.mark.touch()
    node.run()
    node.run()
    assert node.node()["state"] == ["IDLE"]
    assert [event["tag"] for event in node.outbox()] == ["drained", "recovered"]


def test_a_healthy_node_asks_slurm_now_and_then_only_simulated(node):
    node.run()
    asked = len(node.asked())
    assert asked
    node.run()
    node.run()
    assert len(node.asked()) == asked
    os.utime(node.root / "state/record.json", (0, 0))
    node.run()
    assert len(node.asked()) > asked


def test_a_drain_of_ours_without_a_record_is_lifted_simulated(node):
    """A reinstalled node: its old reason must not keep it out."""
    old = "saltern: check_gone: x @2026-12-01T13:01Z"
    node.slurm.write_text(
        json.dumps({"name": "node01", "state": ["IDLE", "DRAIN"], "reason": old, "comment": ""})
    )
    node.run()
    assert node.node()["state"] == ["IDLE"]


def test_while_slurmctld_is_away_the_result_is_kept_simulated(node):
    away = node.root / "slurm.json.away"
    away.touch()
    node.mark.unlink()
    said = node.run()
    assert "kept" in said
    assert list(node.record()["open"]) == [f"check_file_test({node.root}/mark)"]
    assert "saltern-health-again" in (node.root / "again").read_text(), "delivered without a call"
    away.unlink()
    node.run()
    assert node.node()["state"] == ["IDLE", "DRAIN"]
    assert node.outbox()[0]["data"]["delivered_late"]


def test_a_node_that_slurm_holds_is_delivered_later_and_a_persons_never_simulated(node):
    node.mark.unlink()
    node.slurm.write_text(
        json.dumps({"name": "node01", "state": ["DOWN"], "reason": "Not responding", "comment": ""})
    )
    node.run()
    assert (node.root / "again").exists()
    (node.root / "again").unlink()
    node.slurm.write_text(
        json.dumps({"name": "node01", "state": ["IDLE", "DRAIN"], "reason": "J.", "comment": ""})
    )
    node.run()
    assert not (node.root / "again").exists()
    assert node.node()["reason"] == "J."


def test_a_checker_that_cannot_run_is_a_failure_simulated(node):
    (node.root / "nhc.conf").unlink()
    node.run()
    assert "check_program: cannot run: FileNotFoundError" in node.node()["reason"]


def test_files_are_roots_alone_and_whole_simulated(node):
    node.mark.unlink()
    node.run()
    for path in (node.root / "state").rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)
        assert not path.name.endswith(".new")


def test_half_a_record_is_begun_anew_simulated(node):
    node.run()
    (node.root / "state/record.json").write_text('{"open": {')
    node.mark.unlink()
    node.run()
    assert node.node()["state"] == ["IDLE", "DRAIN"]


def test_two_at_a_time_are_one_simulated(node):
    node.mark.unlink()
    with (node.root / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        node.run()
        assert node.asked() == []
    node.run()
    assert node.node()["state"] == ["IDLE", "DRAIN"]


def test_a_host_without_settings_does_nothing(node):
    (node.root / "health.json").unlink()
    assert node.run() == ""
    assert node.asked() == []


# --- a large cluster ---


def everybody(node):
    cause = f"check_file_test({node.root}/mark)"
    return {f"node{number:03d}": f"saltern: held {cause}: x" for number in range(600)}


def test_in_a_large_cluster_a_sample_is_asked_not_all_simulated(node):
    node.settings(settle_s=0, widespread_min_nodes=3, widespread_share=0.25)
    node.crowd(**everybody(node))
    node.mark.unlink()
    node.run()
    assert node.node()["state"] == ["IDLE"]
    assert node.node()["comment"].startswith("saltern: held check_file_test")
    assert "show nodes --json" not in node.asked(), "600 nodes would ask for 600 each"
    assert len([words for words in node.asked() if "--nodes node" in words]) < 40


def test_in_a_large_cluster_a_failure_of_its_own_drains_simulated(node):
    node.crowd()
    node.mark.unlink()
    node.run()
    assert node.node()["state"] == ["IDLE", "DRAIN"]
    assert "check_file_test" in node.node()["reason"]
    assert "show nodes --json" not in node.asked()


# --- LBNL NHC, simulated in the words that 1.4.3 prints ---

NHC = """#!/bin/sh
echo "$@" >> {root}/nhc.called
{script}
"""


def lbnl(node, script):
    node.settings(provider="lbnl")
    node.file("nhc", NHC.format(root=node.root, script=script), 0o755)


def test_lbnl_nhc_tells_and_we_drain_simulated(node):
    failed = "ERROR:  nhc:  Health check failed:  check_fs_mount:  /home not mounted"
    lbnl(node, f"echo '{failed}'; exit 1")
    node.run()
    assert node.node()["reason"].startswith("saltern: check_fs_mount: /home not mounted @")
    assert "MARK_OFFLINE=0" in (node.root / "nhc.called").read_text()
    lbnl(node, "exit 0")
    node.run()
    node.run()
    assert node.node()["state"] == ["IDLE"]


def test_what_lbnl_nhc_finds_is_shown_without_a_drain_simulated(node):
    failed = "ERROR:  nhc:  Health check failed:  check_hw_eth:  no eth0"
    lbnl(node, f"echo '{failed}'; exit 1")
    answer = json.loads(node.run("--check"))
    assert [check["finding"] for check in answer["checks"]] == ["no eth0"]
    lbnl(node, "exit 0")
    answer = json.loads(node.run("--check"))
    assert (answer["passed"], len(answer["checks"])) == (True, 1)
    assert node.asked() == []


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("exit 3", "nhc ended with 3"),
        ("exec sleep 60", "hung: nhc did not end"),
        ("echo 'nhc: line 7: syntax error'; exit 2", "syntax error"),
    ],
)
def test_lbnl_nhc_that_cannot_run_is_a_failure_simulated(node, script, words):
    lbnl(node, script)
    node.settings(provider="lbnl", timeout_s=1)
    node.run()
    assert words in node.node()["reason"]


def test_no_lbnl_nhc_is_a_failure_simulated(node):
    node.settings(provider="lbnl")
    node.run()
    assert "check_program: cannot run" in node.node()["reason"]


# --- the beacon ---


def beacon(tmp_path, **events):
    sent = Mock()
    module = load("beacons", "saltern_health", __salt__={"event.send": sent})
    module.OUTBOX = str(tmp_path / "outbox")
    (tmp_path / "outbox").mkdir()
    for name, text in events.items():
        (tmp_path / "outbox" / f"{name}.json").write_text(text)
    return module, sent


def test_the_beacon_sends_each_event_once(tmp_path):
    event = json.dumps({"tag": "drained", "node": "node01", "data": {"x": 1}})
    module, sent = beacon(tmp_path, a=event, b='{"tag": ')
    assert module.beacon([]) == []
    sent.assert_called_once_with("saltern/health/drained", {"node": "node01", "data": {"x": 1}})
    module.beacon([])
    assert sent.call_count == 1
    assert os.listdir(tmp_path / "outbox") == []


def test_the_beacon_of_a_node_without_events(tmp_path):
    module, sent = beacon(tmp_path)
    os.rmdir(tmp_path / "outbox")
    assert module.beacon([]) == []
    assert module.validate([])[0]
    sent.assert_not_called()


def test_an_event_stays_when_salt_does_not_take_it(tmp_path):
    module, sent = beacon(tmp_path, a='{"tag": "drained"}')
    sent.side_effect = OSError("no bus")
    with pytest.raises(OSError, match="no bus"):
        module.beacon([])
    assert os.listdir(tmp_path / "outbox") == ["a.json"]
