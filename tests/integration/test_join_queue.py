"""Hundreds of starts at once, and a master that is killed: real master, reactor and queue, simulated
hosts."""

import contextlib
import os
import signal
import time
from collections import Counter

import psutil
import pytest
import salt.client
import salt.config
import salt.utils.event
from saltern.join_book import Book
from support import ROOT, example

COUNT = 200
BATCH = 10
NAMES = [f"sim{number:03d}" for number in range(1, COUNT + 1)]
FIRST = f"sim{COUNT + 1:03d}"  # joins before the others, and is not counted


def plan():
    return example(
        **{
            f"hosts:sim[001-{COUNT + 1}]": {
                "roles": ["compute"],
                "address": f"10.99.0.[1-{COUNT + 1}]",
                "node_type": "small",
            },
            "join": {"batch": BATCH, "sweep_s": 600},
        }
    )


class Queue:
    """A master whose hosts are simulated."""

    def __init__(self, site, factory, record):
        self.site, self.factory, self.record = site, factory, record
        self.book = Book(site.register)

    def fire(self, names):
        """The start events of these hosts, as the master's event bus gets them."""
        opts = salt.config.client_config(self.factory.config_file)
        with salt.utils.event.get_master_event(opts, opts["sock_dir"], listen=False) as bus:
            for name in names:
                bus.fire_event({"id": name}, f"salt/minion/{name}/start")

    def lines(self, what):
        """The hosts of the record's lines, in order."""
        words = [line.split() for line in self.record.read_text(encoding="ascii").splitlines()]
        return [name for done, name in words if done == what and name != FIRST]

    def wait_for_reactor(self):
        """Until a start event is answered: the reactor hears no events from before it listens, and
        Salt does not say when that is."""
        deadline = time.monotonic() + 120
        while f"end {FIRST}" not in self.record.read_text(encoding="ascii"):
            assert time.monotonic() < deadline, "waited 120 s for the reactor"
            self.fire([FIRST])
            time.sleep(2)
        until(lambda: not self.book.queue() and not self.book.knocks(), 60, "an empty queue")

    def joined(self):
        return {host["id"] for host in self.book.hosts() if host["joined_at"]}

    def most_at_once(self):
        now = most = 0
        for line in self.record.read_text(encoding="ascii").splitlines():
            now += {"begin": 1, "end": -1}.get(line.split()[0], 0)
            if line.startswith("engine"):
                now = 0
            most = max(most, now)
        return most

    def kill(self):
        """Power off: every process of the master, at once."""
        top = psutil.Process(self.factory.pid)
        everyone = [top, *top.children(recursive=True)]
        for process in everyone:
            with contextlib.suppress(psutil.NoSuchProcess):
                os.kill(process.pid, signal.SIGKILL)
        psutil.wait_procs(everyone, timeout=20)
        self.factory.terminate()


def until(condition, seconds, what):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.1)


@pytest.fixture
def queue(salt_factories, tmp_path_factory, site_class):
    site = site_class(tmp_path_factory.mktemp("queue") / "saltern")
    site.write(plan())
    record = site.folder / "record"
    record.write_text("", encoding="ascii")
    settings = site.settings()
    overrides = {
        **settings,
        "engines_dirs": [str(ROOT / "tests/integration/engines")],
        "engines": [{"saltern_joins_simulated": {"record": str(record)}}],
        "auto_accept": True,
        "timeout": 30,
        "interface": "127.0.0.1",
    }
    factory = salt_factories.salt_master_daemon("queue_master", overrides=overrides)
    made = Queue(site, factory, record)
    pki = factory.config["pki_dir"]
    for name in [*NAMES, FIRST]:
        os.makedirs(f"{pki}/minions", exist_ok=True)
        key = f"{pki}/minions/{name}"
        with open(key, "w", encoding="ascii") as file:
            file.write(f"-----BEGIN PUBLIC KEY-----\n{name}\n-----END PUBLIC KEY-----\n")
    site.admit(pki, *NAMES, FIRST)
    # They joined once, long ago: only a start makes work of them.
    for name in [*NAMES, FIRST]:
        made.book.joined(name, 1.0, {})
    with factory.started():
        made.wait_for_reactor()
        yield made


def test_no_start_is_lost_none_is_done_twice_and_the_master_answers(queue, salt_factories):
    minion = queue.factory.salt_minion_daemon("mgmt01", overrides={"acceptance_wait_time": 1})
    with minion.started():
        queue.site.admit(queue.factory.config["pki_dir"], "mgmt01")
        client = salt.client.LocalClient(mopts=salt.config.client_config(queue.factory.config_file))
        began = time.monotonic()
        queue.fire(NAMES)
        assert time.monotonic() - began < 10
        pings = []
        while len(Counter(queue.lines("end"))) < COUNT:
            at = time.monotonic()
            assert client.cmd("mgmt01", "test.ping", timeout=20) == {"mgmt01": True}
            pings.append(time.monotonic() - at)
            assert at - began < 240, queue.book.queue()[:5]
        print(f"{COUNT} starts done in {time.monotonic() - began:.0f} s, slowest ping "
              f"{max(pings):.2f} s of {len(pings)}")  # fmt: skip
    until(lambda: not queue.book.queue() and not queue.book.knocks(), 30, "an empty queue")
    assert Counter(queue.lines("begin")) == dict.fromkeys(NAMES, 1)
    assert 1 < queue.most_at_once() <= BATCH


def test_the_queue_goes_on_after_the_master_was_killed(queue):
    queue.fire(NAMES)
    # Every start has reached the book: what the reactor still had in memory is not the queue's.
    until(
        lambda: len({*queue.lines("end"), *(row["id"] for row in queue.book.queue())}) == COUNT,
        240,
        "all starts to be queued",
    )
    until(lambda: [r for r in queue.book.queue() if r["state"] == "working"], 60, "some in work")
    queue.kill()
    assert len(queue.lines("end")) < COUNT
    cut = {row["id"] for row in queue.book.queue() if row["state"] == "working"}
    assert cut
    with queue.factory.started():
        until(lambda: set(queue.lines("end")) == set(NAMES), 240, "the rest")
        until(lambda: not queue.book.queue(), 30, "an empty queue")
    again = Counter(queue.lines("begin")) - Counter(NAMES)
    assert set(again) <= cut, "only what was cut is done again"
    assert queue.most_at_once() <= BATCH
