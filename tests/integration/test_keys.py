"""Keys that show themselves to a real master: what comes of each, and that the bus tells it.

The minions are real processes with real keys; each claims what its case says.
"""

import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import salt.config
import salt.utils.event
import yaml
from salt.utils.crypt import pem_finger
from saltern.join_book import Book
from support import example

HOST_S = 60


def minion_config(master, folder, minion_id, token=None):
    """A minion's configuration folder."""
    config = {
        "id": minion_id,
        "master": "127.0.0.1",
        "master_port": master.config["ret_port"],
        "publish_port": master.config["publish_port"],
        "root_dir": str(folder),
        "pki_dir": str(folder / "pki"),
        "acceptance_wait_time": 1,
        "random_reauth_delay": 0,
        "rejected_retry": True,
        "log_level_logfile": "quiet",
        "transport": master.config["transport"],
        "user": "root",
    }
    if token:
        config |= {
            "autosign_grains": ["saltern_join_token"],
            "grains": {"saltern_join_token": token},
        }
    folder.mkdir(parents=True)
    (folder / "minion").write_text(yaml.safe_dump(config), encoding="utf-8")
    return folder


@contextlib.contextmanager
def running(folder):
    """A minion process; ends it."""
    program = Path(sys.executable).parent / "salt-minion"
    with (folder / "log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen([program, "-c", str(folder)], stdout=log, stderr=log)
        try:
            yield process
        finally:
            process.terminate()
            process.wait(30)


@pytest.fixture(scope="module")
def gate(salt_factories, tmp_path_factory, site_class):
    """A master with reactor and queue, and a plan with a second controller."""
    site = site_class(tmp_path_factory.mktemp("gate") / "saltern")
    plan = example(
        **{
            "hosts:mgmt02": {"roles": ["controller"], "address": "10.213.0.13"},
            "join": {"master": "127.0.0.1"},
        }
    )
    site.write(plan)
    overrides = {
        **site.settings(),
        "open_mode": False,
        "auto_accept": False,
        "interface": "127.0.0.1",
        "user": "root",
    }
    # salt-factories accepts every key that waits; here that is the business of those under test.
    factory = salt_factories.salt_master_daemon(
        "gate_master", overrides=overrides, on_auth_event_callback=lambda *_: None
    )
    with factory.started():
        yield SimpleNamespace(site=site, master=factory, book=Book(site.register))


@pytest.fixture(scope="module")
def salt_run(gate):
    def run(*arguments):
        program = Path(sys.executable).parent / "salt-run"
        command = [program, "-c", str(gate.master.config_dir), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    return run


@pytest.fixture(scope="module")
def token(gate, salt_run):
    """The join token, as an image gets it."""
    script = salt_run("saltern.token", "format=script")
    assert script.returncode == 0, script.stderr
    conf = next(line for line in script.stdout.splitlines() if line.startswith("grains:"))
    return json.loads(conf.removeprefix("grains:"))["saltern_join_token"]


def until(condition, what):
    deadline = time.monotonic() + HOST_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {HOST_S} s for {what}"
        time.sleep(0.2)


def content(path):
    """What a file holds; a running master also removes some."""
    with contextlib.suppress(FileNotFoundError):
        return path.read_bytes() if path.is_file() else b""
    return b""


def told(event_listener, gate, tag, minion_id, since):
    """Whether the bus carried an event about an id."""
    events = event_listener.get_events([(gate.master.id, tag)], after_time=since)
    return [event for event in events if event.data.get("id") == minion_id]


CASES = {
    # id, with a token: the event, what the register and Salt's keys say in the end
    "token": ("node01", "right", "saltern/key/admitted", True, "accepted"),
    "wrong token": ("node02", "wrong", "saltern/key/waiting", False, "pending"),
    "token of a controller": ("mgmt02", "right", "saltern/key/refused", False, "rejected"),
    "token of a login node": ("login01", "right", "saltern/key/refused", False, "rejected"),
    "unknown id": ("stranger", "right", "saltern/key/refused", False, "rejected"),
    "unknown id without a token": ("stranger2", None, "saltern/key/refused", False, "pending"),
    "shell characters": ("node01;reboot", None, "saltern/key/refused", False, "pending"),
}
FOLDERS = {"accepted": "minions", "pending": "minions_pre", "rejected": "minions_rejected"}


@pytest.fixture(scope="module")
def outcomes(gate, token, tmp_path_factory, event_listener):
    """All cases at once: (folder of the minion, when it began)."""
    tokens = {"right": token, "wrong": "x" * len(token), None: None}
    since = time.time()
    folders = {}
    with contextlib.ExitStack() as stack:
        for case, (minion_id, kind, *_) in CASES.items():
            folder = tmp_path_factory.mktemp("minion") / "m"
            folders[case] = minion_config(gate.master, folder, minion_id, tokens[kind])
            stack.enter_context(running(folders[case]))
        for case, (minion_id, _, tag, *_) in CASES.items():
            until(lambda: told(event_listener, gate, tag, minion_id, since), f"{tag} of {case}")  # noqa: B023
        yield since


@pytest.mark.parametrize("case", CASES)
def test_each_key_has_its_outcome_and_an_event(gate, outcomes, event_listener, case):
    minion_id, _, tag, registered, state = CASES[case]
    assert len(told(event_listener, gate, tag, minion_id, outcomes)) == 1, "told once"
    assert bool(gate.book.host(minion_id)) is registered
    pki = Path(gate.master.config["pki_dir"])
    held = [name for name, folder in FOLDERS.items() if (pki / folder / minion_id).exists()]
    assert held == [state]


def test_every_refusal_is_in_the_table_with_its_reason(gate, outcomes, salt_run):
    shown = json.loads(salt_run("saltern.joins", "--out=json").stdout)
    keys = {row["id"]: row for row in shown["keys_not_admitted"]}
    assert keys["mgmt02"]["outcome"] == "refused"
    assert "does not admit a host of the roles controller" in keys["mgmt02"]["reason"]
    assert "salt-run saltern.admit node02" in keys["node02"]["reason"]
    assert "no host name" in keys["node01;reboot"]["reason"]
    assert "node01" not in keys


def test_an_event_with_a_path_as_its_id_touches_nothing(gate, outcomes, salt_run, event_listener):
    """Salt drops such a key before any event; a minion can still send an event of its own."""
    since = time.time()
    name = "../minions/mgmt01"
    opts = salt.config.client_config(gate.master.config_file)
    with salt.utils.event.get_master_event(opts, opts["sock_dir"], listen=False) as bus:
        bus.fire_event({"id": name}, "salt/minion/x/start")
    until(lambda: not gate.book.knocks(), "the queue to look at it")
    assert gate.book.host(name) is None
    assert not [row for row in gate.book.queue() if row["id"] == name]
    assert not told(event_listener, gate, "saltern/key/admitted", name, since)


def test_a_second_key_is_refused_told_with_both_and_taken_by_a_person(
    gate, outcomes, salt_run, event_listener, tmp_path
):
    registered = gate.book.host("node01")["fingerprint"]
    since = time.time()
    with running(minion_config(gate.master, tmp_path / "again", "node01")):
        tag = "saltern/key/second-key"
        until(lambda: told(event_listener, gate, tag, "node01", since), tag)
        new = pem_finger(path=str(tmp_path / "again/pki/minion.pub"), sum_type="sha256")
        reason = told(event_listener, gate, tag, "node01", since)[0].data["reason"]
        assert registered in reason and new in reason
        assert gate.book.host("node01")["fingerprint"] == registered
        shown = salt_run("saltern.replace", "node01")
        assert shown.returncode != 0
        assert registered in shown.stdout and new in shown.stdout
        done = salt_run("saltern.replace", "node01", f"fingerprint={new}")
        assert done.returncode == 0, done.stdout + done.stderr
    entry = gate.book.host("node01")
    assert (entry["fingerprint"], entry["proof"]) == (new, "replaced by a person")


def test_an_invited_host_is_accepted_with_its_key_and_nothing_keeps_the_private_half(
    gate, salt_run, tmp_path
):
    done = salt_run("saltern.invite", "login01", "format=script")
    assert done.returncode == 0, done.stderr
    begin, end = (f"-----{word} RSA PRIVATE KEY-----" for word in ("BEGIN", "END"))
    private = done.stdout[done.stdout.index(begin) : done.stdout.index(end) + len(end)]
    needle = private.splitlines()[7].encode()
    assert needle not in gate.site.register.read_bytes()
    for folder in (Path(gate.master.config["root_dir"]), gate.site.folder):
        for path in folder.rglob("*"):
            assert needle not in content(path), path
    assert gate.book.host("login01")["proof"] == "preseeded"
    assert salt_run("saltern.invite", "login01").returncode != 0


def test_neither_token_nor_key_is_in_what_salt_keeps(gate, outcomes, token):
    """The token stands in the autosign folder (mode 0700), in no event, log or job."""
    kept = Path(gate.master.config["root_dir"])
    found = [path for path in kept.rglob("*") if token.encode() in content(path)]
    # Salt keeps each minion's grains, of mode 0600; the token is one until the minion restarts.
    strange = [
        path
        for path in found
        if path.name != "saltern_join_token" and path.parent != kept / "cache/grains"
    ]
    assert strange == []
    assert found and all(path.stat().st_mode & 0o077 == 0 for path in found)
