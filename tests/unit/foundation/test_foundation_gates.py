"""The gates of phases 0 and 1: a sound host opens them, each broken thing closes them by name."""

import copy
import csv
from pathlib import Path

import pytest
from saltern import gates, gates_foundation, gates_munge, kernel
from saltern import plan as plans
from saltern import view as views
from support import SCHEMA, everyone, example

FIXTURES = Path(__file__).parents[2] / "fixtures"


def view_of(host, plan=None):
    return views.of(plans.resolve(SCHEMA, plan or example()), host)


def changed(facts, path, value):
    """The facts with one of them changed: changed(facts, ("clock", "error"), "…")."""
    result = copy.deepcopy(facts)
    place = result
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return result


def reasons(problems):
    return "\n".join(str(problem) for problem in problems)


# --- phase 0 -----------------------------------------------------------------------------------

NODE = {
    "hostname": "node01",
    "os": "Debian",
    "release": "13",
    "cpus": 2,
    "sockets": 1,
    "cores_per_socket": 2,
    "threads_per_core": 1,
    "memory_mb": 7900,
    "tmp_disk_mb": 100000,
    "gpus": 0,
    "nic_speed_mbit": 1000,
}
DECLARED = example(
    **{"node_types:small:tmp_disk_mb": 50000, "node_types:small:nic_speed_mbit": 1000}
)


def test_the_declared_host_opens_phase_0():
    assert not gates.plan(NODE, view_of("node01", DECLARED))


@pytest.mark.parametrize(
    ("fact", "value", "words"),
    [
        pytest.param(
            "hostname", "localhost", ["host name: found localhost", "expected node01"], id="name"
        ),
        pytest.param(
            "os",
            "Ubuntu",
            ["found Ubuntu 13", "expected Debian 13", "Saltern knows Debian 12"],
            id="os",
        ),
        pytest.param(
            "release",
            "12",
            ["found Debian 12", "reinstall the host, or correct `os`"],
            id="release",
        ),
        pytest.param("cpus", 1, ["small, cpus: found 1 CPUs, -1; expected 2"], id="cpus"),
        pytest.param("sockets", 2, ["small, sockets: found 2 sockets, +1"], id="sockets"),
        pytest.param("cores_per_socket", 1, ["cores_per_socket: found 1"], id="cores"),
        pytest.param("threads_per_core", 2, ["threads_per_core: found 2"], id="threads"),
        pytest.param("tmp_disk_mb", 40000, ["40000 MiB in /tmp, 10000 too few"], id="disk"),
        pytest.param("nic_speed_mbit", 100, ["found 100 Mbit/s", "expected 1000"], id="nic"),
    ],
)
def test_phase_0_names_what_differs(fact, value, words):
    said = reasons(gates.plan({**NODE, fact: value}, view_of("node01", DECLARED)))
    assert len(said.splitlines()) == 1
    for word in words:
        assert word in said


def test_memory_may_lack_its_headroom_and_no_more():
    view = view_of("node01")  # 8000 MiB, 5 % kept back
    assert not gates.plan({**NODE, "memory_mb": 7600}, view)
    said = reasons(gates.plan({**NODE, "memory_mb": 7599}, view))
    assert "found 7599 MiB, -401 against 8000 declared; expected 7600 MiB or more" in said
    assert "memory_headroom 5%" in said


def test_gpus_are_counted_where_they_are_declared():
    view = view_of("gpu1", everyone())
    host = {**NODE, "hostname": "gpu1", "cpus": 128, "memory_mb": 1000000, "gpus": 7}
    host["cores_per_socket"] = 64  # not declared, so not compared
    assert "gpus: found 7 GPUs, -1; expected 8" in reasons(gates.plan(host, view))
    assert not gates.plan({**host, "gpus": 8}, view)


def test_a_host_without_a_node_type_has_no_hardware_to_compare():
    assert not gates.plan({**NODE, "hostname": "login01", "cpus": 64}, view_of("login01"))


def test_all_differences_at_once():
    wrong = {**NODE, "hostname": "x", "release": "12", "cpus": 1, "memory_mb": 1}
    assert len(gates.plan(wrong, view_of("node01"))) == 4


# --- phase 1 -----------------------------------------------------------------------------------

MUNGE = {
    "uid": 10010,
    "wanted": {
        "/etc/munge/munge.key": "0400",
        "/etc/munge": "0700",
        "/run/munge": "0755",
        "/var/lib/munge": "0711",
        "/var/log/munge": "0700",
    },
    "paths": {
        "/etc/munge/munge.key": {"uid": 10010, "mode": 0o400, "size": 128},
        "/etc/munge": {"uid": 10010, "mode": 0o700, "size": 0},
        "/run/munge": {"uid": 10010, "mode": 0o755, "size": 0},
        "/var/lib/munge": {"uid": 10010, "mode": 0o711, "size": 0},
        "/var/log/munge": {"uid": 10010, "mode": 0o700, "size": 0},
        "/var/log/munge/munged.log": {"uid": 10010, "mode": 0o640, "size": 9},
        "/var/lib/munge/munged.seed": None,
    },
    "parents": {
        path: {"uid": 0, "mode": 0o755, "size": 0}
        for path in ("/", "/etc", "/run", "/var", "/var/lib", "/var/log")
    },
    "local": {"status": "Success"},
    "peers": {"mgmt01": {"status": "Success"}},
    "waited_s": 3.2,
}
IDS = {"uid": 10010, "gid": 10010}
FACTS = {
    "addresses": {"node01": "10.213.0.21", "mgmt01": "10.213.0.11"},
    "accounts": {
        "munge": IDS,
        "slurm": {"uid": 10011, "gid": 10011},
        "researcher": {"uid": 20001, "gid": 20001},
    },
    "limits": {
        "login": {"memlock": "unlimited", "nofile": "131072"},
        "service": {"memlock": "unlimited", "nofile": "524288"},
    },
    "sysctl": {
        **kernel.wanted({}),
        "net.ipv4.ip_local_port_range": "32768\t65535",
        "fs.file-max": "9223372036854775807",
        "user.max_user_namespaces": "94000",
        "user.max_mnt_namespaces": "94000",
        "kernel.unprivileged_userns_clone": None,
    },
    "clock": {"error": "", "synchronised": True, "offsets_s": {"mgmt01": 0.0001}, "rivals": []},
    "munge": MUNGE,
}


def test_a_sound_host_opens_phase_1():
    assert not gates_foundation.foundation(FACTS, view_of("node01"))


def test_the_gate_asks_for_its_own_name_and_the_few_servers():
    assert gates_foundation.names(view_of("node02")) == ["mgmt01", "node02"]


CLOSED = [
    pytest.param(
        ("addresses", "mgmt01"),
        None,
        ["name mgmt01: found no address; expected 10.213.0.11"],
        id="peer unknown",
    ),
    pytest.param(
        ("addresses", "mgmt01"),
        "10.9.9.9",
        ["name mgmt01: found 10.9.9.9", "/etc/hosts"],
        id="peer elsewhere",
    ),
    pytest.param(
        ("addresses", "node01"),
        "127.0.1.1",
        ["name node01: found 127.0.1.1; expected 10.213.0.21"],
        id="own name is loopback",
    ),
    pytest.param(
        ("accounts", "slurm"),
        None,
        ["user slurm: found no such user; expected uid 10011"],
        id="no user",
    ),
    pytest.param(
        ("accounts", "munge", "uid"),
        101,
        ["user munge: found uid 101; expected 10010"],
        id="other uid",
    ),
    pytest.param(
        ("accounts", "researcher", "gid"), 100, ["user researcher: found gid 100"], id="other gid"
    ),
    pytest.param(
        ("clock", "error"),
        "chronyc: 506 Cannot talk to daemon",
        ["clock: found chronyc: 506"],
        id="chronyd down",
    ),
    pytest.param(
        ("clock", "synchronised"),
        False,
        ["clock: found not synchronised; expected in step with mgmt01"],
        id="not in step",
    ),
    pytest.param(
        ("clock", "offsets_s"),
        {"mgmt01": -12.5},
        ["clock: found -12.500 s against mgmt01; expected within 0.5 s"],
        id="behind",
    ),
    pytest.param(
        ("clock", "offsets_s"),
        {"the time that chronyd knows": 0.51},
        ["clock: found +0.510 s against the time"],
        id="still slewing",
    ),
    pytest.param(
        ("clock", "rivals"),
        ["systemd-timesyncd"],
        ["clock: found systemd-timesyncd runs beside chronyd"],
        id="two daemons",
    ),
    pytest.param(
        ("limits", "login", "memlock"),
        "8388608",
        ["limit memlock of a login: found 8388608; expected unlimited"],
        id="login limit",
    ),
    pytest.param(
        ("limits", "service", "nofile"),
        "1024",
        ["limit nofile of a service: found 1024; expected 131072 or more"],
        id="service limit",
    ),
    pytest.param(
        ("limits", "login"),
        {"memlock": "unlimited"},
        ["limit nofile of a login: found nothing readable"],
        id="limit unreadable",
    ),
    pytest.param(
        ("sysctl", "net.core.somaxconn"),
        "4096",
        ["sysctl net.core.somaxconn: found 4096; expected 8192"],
        id="sysctl differs",
    ),
    pytest.param(
        ("sysctl", "net.core.somaxconn"),
        None,
        ["no such parameter", "foundation:sysctl:net.core.somaxconn to null"],
        id="sysctl lacking",
    ),
    pytest.param(
        ("sysctl", "fs.file-max"),
        "8192",
        ["sysctl fs.file-max: found 8192; expected 32832 or more"],
        id="file-max low",
    ),
    pytest.param(
        ("munge", "local", "status"),
        "Failed to access the socket",
        ["munge on this host: found Failed to access"],
        id="munged down",
    ),
]


@pytest.mark.parametrize(("path", "value", "words"), CLOSED)
def test_phase_1_names_what_is_wrong(path, value, words):
    said = reasons(gates_foundation.foundation(changed(FACTS, path, value), view_of("node01")))
    assert len(said.splitlines()) == 1
    for word in words:
        assert word in said


def test_a_parameter_left_to_the_kernel_is_not_judged():
    plan = example(**{"foundation:sysctl": {"fs.file-max": None, "net.core.somaxconn": None}})
    low = changed(
        changed(FACTS, ("sysctl", "fs.file-max"), "1"), ("sysctl", "net.core.somaxconn"), None
    )
    assert not gates_foundation.foundation(low, view_of("node01", plan))


def test_with_dns_a_peer_needs_any_address_but_the_loopback():
    plan = example(names={"provider": "dns"})
    for host in plan["hosts"].values():
        host.pop("address")
    view = view_of("node01", plan)
    assert not gates_foundation.foundation(FACTS, view)
    said = reasons(
        gates_foundation.foundation(changed(FACTS, ("addresses", "mgmt01"), "127.0.1.1"), view)
    )
    assert "name mgmt01: found 127.0.1.1; expected an address that others reach" in said


def test_a_host_without_munge_is_not_asked_for_it():
    facts = {key: value for key, value in FACTS.items() if key != "munge"}
    assert not gates_foundation.foundation(facts, view_of("node01"))


# --- munge -------------------------------------------------------------------------------------

# What munged refuses, in the words of its own fixture, as facts, and what the gate then names.
REFUSED = {
    "key mode 0644": (
        ("paths", gates_munge.KEY, "mode"),
        0o644,
        f"{gates_munge.KEY}: found mode 0644",
    ),
    "key owned by root, munged runs as munge": (
        ("paths", gates_munge.KEY, "uid"),
        0,
        f"{gates_munge.KEY}: found owner 0",
    ),
    "key of 10 bytes": (
        ("paths", gates_munge.KEY, "size"),
        10,
        f"{gates_munge.KEY}: found 10 bytes",
    ),
    "log folder 0755 with another owner": (
        ("paths", "/var/log/munge", "uid"),
        1000,
        "/var/log/munge: found owner 1000",
    ),
    "/etc group-writable": (
        ("parents", "/etc", "mode"),
        0o775,
        "/etc: found mode 0775, open to others",
    ),
    "/ world-writable": (("parents", "/", "mode"), 0o757, "/: found mode 0757, open to others"),
}


def munged_refusals():
    with (FIXTURES / "munge-refusals.tsv").open(encoding="utf-8") as file:
        rows = list(csv.reader((line for line in file if not line.startswith("#")), delimiter="\t"))
    return [row[0] for row in rows]


@pytest.mark.parametrize("state", munged_refusals())
def test_whatever_munged_refuses_the_gate_names(state):
    path, value, words = REFUSED[state]
    problems = gates_munge.munge(changed(MUNGE, path, value))
    assert len(problems) == 1
    assert words in str(problems[0])
    assert "--force" not in str(problems[0])


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        pytest.param(
            ("paths", "/etc/munge", "mode"),
            0o755,
            "/etc/munge: found mode 0755; expected 0700",
            id="folder mode",
        ),
        pytest.param(
            ("paths", "/run/munge", "mode"),
            0o700,
            "/run/munge: found mode 0700; expected 0755",
            id="socket out of reach",
        ),
        pytest.param(
            ("paths", gates_munge.KEY), None, f"{gates_munge.KEY}: found nothing", id="no key"
        ),
        pytest.param(
            ("paths", "/var/log/munge/munged.log", "uid"),
            0,
            "munged.log: found owner 0",
            id="root's log",
        ),
        pytest.param(
            ("parents", "/var", "uid"),
            1000,
            "/var: found owner 1000; expected root or munge",
            id="a user's /var",
        ),
    ],
)
def test_munge_files(path, value, words):
    assert words in reasons(gates_munge.munge(changed(MUNGE, path, value)))


def test_a_sticky_parent_may_be_open_as_munged_allows():
    assert not gates_munge.munge(changed(MUNGE, ("parents", "/var", "mode"), 0o1777))


def test_a_stopped_munged_is_said_once_without_its_run_folder():
    down = changed(changed(MUNGE, ("paths", "/run/munge"), None), ("local", "status"), "down")
    down["peers"] = {}
    assert reasons(gates_munge.munge(down)).startswith("munge on this host: found down")


@pytest.mark.parametrize("status", gates_munge.SAME_KEY)
def test_a_credential_of_the_same_key_is_enough(status):
    peers = {"ctl1": {"status": "no credential in the Salt mine yet"}, "ctl2": {"status": status}}
    assert not gates_munge.munge({**MUNGE, "peers": peers})


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        pytest.param("Invalid credential", "the munge keys differ", id="other key"),
        pytest.param("Rewound credential", "set the clock", id="peer ahead"),
        pytest.param("no credential in the Salt mine yet", "waited 3 s", id="nobody yet"),
    ],
)
def test_the_round_trip_names_the_peer(status, advice):
    said = reasons(gates_munge.munge({**MUNGE, "peers": {"mgmt01": {"status": status}}}))
    assert f"found mgmt01: {status}" in said
    assert advice in said


def test_a_cluster_of_one_host_has_no_round_trip():
    assert not gates_munge.munge({**MUNGE, "peers": {}})
