"""Execution modules of the foundation: whom they ask, how long, what they make of answers."""

import grp
import pwd
import socket
import struct
import threading
import time
from types import SimpleNamespace

import pytest
from salt.exceptions import CommandExecutionError
from saltern import kernel
from saltern import plan as plans
from saltern import view as views
from support import SCHEMA, example, load


def view_of(host, **changes):
    return views.of(plans.resolve(SCHEMA, example(**changes)), host)


# --- system_account.conflicts ---


@pytest.fixture
def accounts(monkeypatch):
    """A host with munge at uid 101; alice, at 10010, is only in a directory that lists nobody."""
    munge = SimpleNamespace(pw_name="munge", pw_uid=101)
    alice = SimpleNamespace(pw_name="alice", pw_uid=10010)
    group = SimpleNamespace(gr_name="munge", gr_gid=10010)

    def pick(table):
        def look_up(key):
            return table[key]

        return look_up

    monkeypatch.setattr(pwd, "getpwall", lambda: [munge])
    monkeypatch.setattr(pwd, "getpwnam", pick({"munge": munge, "alice": alice}))
    monkeypatch.setattr(pwd, "getpwuid", pick({101: munge, 10010: alice}))
    monkeypatch.setattr(grp, "getgrall", lambda: [group])
    monkeypatch.setattr(grp, "getgrnam", pick({"munge": group}))
    monkeypatch.setattr(grp, "getgrgid", pick({10010: group}))


@pytest.mark.parametrize(
    ("retcode", "count"),
    [
        pytest.param(1, "uid 101 owns 2 files", id="find met a folder that went away"),
        pytest.param(124, "uid 101 owns at least 2 files", id="the search took too long"),
    ],
)
def test_conflicts_names_ids_owners_and_files(accounts, retcode, count):
    commands = []

    def run(command, **_):
        commands.append(command)
        return {"retcode": retcode, "stdout": "/var/lib/munge\n/var/log/munge\n", "stderr": ""}

    module = load("modules", "system_account", __salt__={"cmd.run_all": run})
    found = module.conflicts("munge", 10010, 10010)
    assert "found uid 101; expected 10010" in found[0]
    assert "uid 10010 taken by alice" in found[1]
    assert found[2].startswith(count)
    assert len(found) == 3
    assert commands[0][:2] == ["timeout", "30"]
    assert "-xdev" in commands[0]


def test_an_account_that_is_so_searches_for_nothing(accounts):
    module = load("modules", "system_account", __salt__={})
    assert module.conflicts("munge", 101, 10010) == []


# --- saltern.platform and kernel parameters ---


def saltern(grains=None, **changes):
    pillar = {"saltern": view_of("node01", **changes)}
    dunders = {"__pillar__": pillar, **({"__grains__": grains} if grains else {})}
    return load("modules", "saltern", **dunders)


def test_the_platform_is_the_host_s_own():
    rocky = {"os": "Rocky", "os_family": "RedHat", "osmajorrelease": 9, "osrelease": "9.6"}
    assert saltern(rocky).platform()["chrony"]["service"] == "chronyd"


def test_an_unknown_system_renders_so_that_phase_0_can_refuse_it():
    arch = {"os": "Arch", "os_family": "Arch", "osrelease": "rolling"}
    assert saltern(arch).platform()["chrony"]["service"] == "chrony"


@pytest.mark.parametrize(
    ("file_max", "conf", "raised"),
    [
        pytest.param("9223372036854775807", None, None, id="high enough"),
        pytest.param("1024", None, "262144", id="too low"),
        pytest.param("262144", "fs.file-max = 262144\n", "262144", id="was raised by us"),
    ],
)
def test_file_max_only_rises(monkeypatch, file_max, conf, raised):
    module = saltern()
    texts = {"/proc/sys/fs/file-max": f"{file_max}\n", "/etc/sysctl.d/60-saltern.conf": conf}
    monkeypatch.setattr(module, "_read", texts.get)
    found = module.sysctl_parameters()
    assert found.pop("fs.file-max", None) == raised
    assert found == kernel.wanted({})


# --- the gate's clock ---


def gate(host="node01", view=None, **salt):
    view = view or view_of(host)
    return load("modules", "saltern_gate", __salt__={"saltern.view": lambda: view, **salt}), view


@pytest.fixture
def time_server(monkeypatch):
    """A time server on this machine that is 100 s behind."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        server.settimeout(5)

        def serve():
            _, client = server.recvfrom(64)
            now = time.time() - 100 + 2208988800
            stamp = struct.pack("!II", int(now), int(now % 1 * 2**32))
            server.sendto(bytes([0x24]) + bytes(31) + stamp + stamp, client)

        thread = threading.Thread(target=serve, daemon=True)
        yield SimpleNamespace(port=server.getsockname()[1], start=thread.start)
        if thread.ident:
            thread.join()


def at_home(view):
    view["peers"]["time"] = [{"name": "mgmt01", "address": "127.0.0.1"}]
    return view


def test_the_time_hosts_are_asked_now(monkeypatch, time_server):
    module, view = gate(view=at_home(view_of("node01")))
    monkeypatch.setattr(module.sntp, "PORT", time_server.port)
    time_server.start()
    found = module._asked_now(view)
    assert found == {"mgmt01, asked now": pytest.approx(100, abs=1)}


def test_a_silent_time_host_is_chronyd_s_matter(monkeypatch, time_server):
    module, view = gate(view=at_home(view_of("node01")))
    monkeypatch.setattr(module.sntp, "PORT", time_server.port)
    monkeypatch.setattr(module, "_ANSWER_S", 0.05)
    assert module._asked_now(view) == {}


def test_a_time_host_does_not_ask_itself():
    module, view = gate("mgmt01")
    assert module._asked_now(view) == {}


def test_chronyd_that_does_not_answer_is_the_error(monkeypatch):
    module, _ = gate()
    monkeypatch.setattr(module, "_rivals", list)

    def down(*_, **__):
        raise CommandExecutionError("chronyc: 506 Cannot talk to daemon")

    monkeypatch.setattr(module, "_run", down)
    assert module._chrony()["error"] == "chronyc: 506 Cannot talk to daemon"


# --- the gate's round trip ---


def test_the_round_trip_ends_at_its_bound_and_says_how_long(monkeypatch):
    module, view = gate(**{"mine.get": lambda *_: {}})
    view["waits"]["peer_munge_s"] = 0.02
    monkeypatch.setattr(module, "_PAUSE_S", 0.01)
    found = module._ask_peers(view, wait=True)
    assert found["peers"] == {"mgmt01": {"status": "no credential in the Salt mine yet"}}
    assert 0.02 <= found["waited_s"] < 1


def test_the_round_trip_ends_with_the_first_answer(monkeypatch):
    credential = {"credential": "MUNGE:x:", "made": 1.0}
    module, view = gate(**{"mine.get": lambda name, _: {name: credential}})
    monkeypatch.setattr(module, "_unmunge", lambda _: "Success")
    assert module._ask_peers(view, wait=True)["peers"] == {"mgmt01": {"status": "Success"}}


# --- whom the plan's time goes to ---


@pytest.mark.parametrize(
    ("host", "time_plan", "sources", "serves"),
    [
        pytest.param(
            "node01", {"serve": ["mgmt01"]}, ["mgmt01"], False, id="a client asks the time hosts"
        ),
        pytest.param(
            "mgmt01",
            {"serve": ["mgmt01"], "servers": ["ntp.example"]},
            ["ntp.example"],
            True,
            id="a time host asks the site",
        ),
        pytest.param(
            "node01",
            {"servers": ["ntp.example"]},
            ["ntp.example"],
            False,
            id="no time hosts: everyone asks the site",
        ),
        pytest.param(
            "mgmt01",
            {"serve": ["mgmt01", "login01"]},
            ["login01"],
            True,
            id="time hosts ask each other",
        ),
    ],
)
def test_time(host, time_plan, sources, serves):
    found = view_of(host, **{"foundation:time": time_plan})["foundation"]["time"]
    assert (found["sources"], found["serves"]) == (sources, serves)
    assert bool(found["networks"]) is serves
