"""Where a secret could show while a state writes it: arguments of processes, caches, logs, events, output."""

import threading
import time
from pathlib import Path

import pytest
import salt.config
import salt.utils.event

SLS = """
"slurmdbd: its secrets":
  secret.file:
    - name: {path}
    - text: |
        StorageUser=slurm
        StoragePass=<secret:slurmdbd_password>
        Key=<secret:jwt_key>
    - user: root
    - group: root
    - mode: "0600"
"""
SLOW = 'read line; sleep 1; cat >/dev/null; echo "$line" >&2; exit 3'


class Watch(threading.Thread):
    """Samples every process' arguments and environment."""

    def __init__(self):
        super().__init__(daemon=True)
        self.seen = set()
        self.samples = 0
        self.done = threading.Event()

    def run(self):
        while not self.done.is_set():
            for path in Path("/proc").glob("[0-9]*"):
                for what in ("cmdline", "environ"):
                    try:
                        self.seen.add((path / what).read_bytes())
                    except OSError:
                        continue
            self.samples += 1


@pytest.fixture(scope="module")
def written(secrets, master, minions, cli, tmp_path_factory):
    """One round of everything that handles a secret, and what was visible meanwhile."""
    path = tmp_path_factory.mktemp("host") / "slurmdbd.conf"
    opts = salt_opts(master)
    outputs = {}
    watch = Watch()
    with salt_events(opts) as bus:
        watch.start()
        (master.state_tree.base.write_path / "leaks.sls").write_text(
            SLS.format(path=path), encoding="utf-8"
        )
        state = ["mgmt01", "state.apply", "leaks"]
        outputs["predicted"] = cli("--out=json", *state, "test=True")
        existed_after_test = path.exists()
        outputs["made"] = cli("--out=json", *state)
        assert path.exists(), outputs["made"].text
        mode = path.stat().st_mode & 0o7777
        text = path.read_text(encoding="ascii")
        outputs["again"] = cli("--out=json", *state)
        path.write_text("StoragePass=old\n", encoding="ascii")
        outputs["predicted again"] = cli("--out=json", *state, "test=True")
        outputs["refused"] = cli(
            "--out=json",
            "mgmt01",
            "saltern.secret_stdin",
            f'["sh", "-c", \'{SLOW}\']',
            "text=StoragePass=<secret:slurmdbd_password>",
        )
        time.sleep(0.2)
        watch.done.set()
        watch.join()
        events = []
        while (event := bus.get_event(wait=0.05, full=True, auto_reconnect=False)) is not None:
            events.append(repr(event))
    return {"outputs": outputs, "watch": watch, "events": events, "path": path, "mode": mode, "text": text,
            "existed_after_test": existed_after_test}  # fmt: skip


def salt_opts(master):
    return salt.config.client_config(master.config_file)


def salt_events(opts):
    return salt.utils.event.get_event("master", sock_dir=opts["sock_dir"], opts=opts, listen=True)


def result(done):
    (state,) = done.data()["mgmt01"].values()
    return state


def test_the_file_is_right(written, secrets):
    assert (
        written["text"]
        == f"StorageUser=slurm\nStoragePass={secrets['slurmdbd_password']}\nKey={secrets['jwt_key']}\n"
    )
    assert written["mode"] == 0o600
    assert not written["existed_after_test"]


def test_the_state_tells_the_truth(written):
    outputs = written["outputs"]
    assert result(outputs["predicted"])["result"] is None
    assert result(outputs["predicted"])["changes"] == {"content": "missing"}
    assert result(outputs["made"])["result"] is True
    assert result(outputs["made"])["changes"] == {"content": "missing"}
    assert result(outputs["again"])["changes"] == {}
    assert result(outputs["predicted again"])["changes"] == {"content": "differs (hidden)"}


def test_not_in_output(written, secrets):
    for done in written["outputs"].values():
        for value in secrets.values():
            assert value not in done.text
    assert "<secret:slurmdbd_password>" in written["outputs"]["refused"].text, (
        "the program's own words are shown, masked"
    )


def test_not_in_arguments_or_environment(written, secrets):
    watch = written["watch"]
    assert watch.samples > 20
    assert any(b"sleep 1" in seen for seen in watch.seen), (
        "the watch did look while the program ran"
    )
    for value in secrets.values():
        assert not [seen for seen in watch.seen if value.encode() in seen]


def test_not_in_events(written, secrets):
    events = written["events"]
    assert any("secret_|-" in event for event in events), "the bus did carry the state's return"
    for value in secrets.values():
        assert not [event for event in events if value in event]


@pytest.mark.parametrize("whose", ["master", "mgmt01", "node01"])
def test_not_in_caches_or_logs(written, secrets, master, minions, whose):
    """Everything under the daemon's root: job cache, minion cache, logs at debug level."""
    daemon = master if whose == "master" else minions[whose]
    root = Path(daemon.config["root_dir"])
    files = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    assert Path(daemon.config["log_file"]) in files
    assert "[DEBUG" in Path(daemon.config["log_file"]).read_text(encoding="utf-8", errors="replace")
    found = [
        (str(path.relative_to(root)), name)
        for path in files
        for name, value in secrets.items()
        if value.encode() in path.read_bytes() and not only_the_master_reads(path, root)
    ]
    assert not found


def only_the_master_reads(path, root):
    """The master keeps each minion's pillar for targeting (minion_data_cache), in files that only root can read."""
    return "pillar" in path.relative_to(root).parts and path.stat().st_mode & 0o077 == 0
