"""Small pure parts of the lab."""

import os
from ipaddress import IPv4Network
from pathlib import Path

import pytest
from saltern_lab import hardware, keys, master, mirror, network, plan, record, roots, skew
from saltern_lab.errors import LabError
from saltern_lab.mirror import Archive, static_file
from saltern_lab.processes import Process

CPUINFO = "\n\n".join(
    f"processor\t: {cpu}\nphysical id\t: {cpu // 8}\ncore id\t\t: {cpu % 4}\nflags\t\t: a b"
    for cpu in range(16)
)
MEMINFO = "MemTotal:       24683520 kB\nMemFree:        1 kB\n"


def test_hardware_is_counted_as_slurm_counts():
    assert hardware.node_type(CPUINFO, MEMINFO) == {
        "cpus": 16,
        "sockets": 2,
        "cores_per_socket": 4,
        "threads_per_core": 2,
        "memory_mb": 24105,
    }


def test_hardware_without_topology_has_one_socket():
    cpus = "processor\t: 0\n\nprocessor\t: 1\n"
    found = hardware.node_type(cpus, MEMINFO)
    assert (found["cpus"], found["sockets"], found["cores_per_socket"]) == (2, 1, 2)


@pytest.mark.parametrize(
    ("address", "moved"),
    [("10.213.0.11", "10.213.4.11"), ("10.213.0.[21-22]", "10.213.4.[21-22]")],
)
def test_plan_addresses_move_into_the_labs_network(address, moved):
    assert plan.moved(address, IPv4Network("10.213.4.0/24")) == moved


def test_fingerprint_is_salts():
    crypt = pytest.importorskip("salt.utils.crypt")
    pem = "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkq\nhkiG9w0BAQ==\n-----END PUBLIC KEY-----\n"
    body = "".join(line + "\n" for line in pem.splitlines()[1:-1])
    assert keys.fingerprint(pem) == crypt.pem_finger(key=body.encode())


def test_connected_minions_are_read_from_ss():
    text = "0 0 10.213.0.11:4505 10.213.0.21:41000\n"
    text += "0 0 [::ffff:10.213.0.11]:4505 [::ffff:10.213.0.12]:5\n"
    assert master._peers(text) == {"10.213.0.21", "10.213.0.12"}


@pytest.mark.parametrize("name", ["Lab", "", "a-b", "abcdefghijk", "1a", "../x"])
def test_lab_names_fit_interfaces(name):
    with pytest.raises(LabError, match="is no name for a lab"):
        record.check_name(name)


def test_masquerade_spares_the_bridge_itself():
    lab = record.Lab("x", "first", "10.213.7.0/24")
    assert 'ip saddr 10.213.7.0/24 oifname != "slt-x" masquerade' in network.masquerade(lab)


@pytest.mark.parametrize(
    ("path", "served"),
    [
        ("/sources/a.tar.xz", "sources/a.tar.xz"),
        ("/wheels/", "wheels"),
        ("/", None),
        ("/roots/base/etc/passwd", None),
        ("/sources/../roots/x", None),
        ("/sources/.wrong-a", None),
    ],
)
def test_mirror_serves_sources_and_wheels_only(path, served):
    expected = Path("/c") / served if served else None
    assert static_file(Path("/c"), path) == expected


def test_mirror_knows_the_machines_archives_only(tmp_path):
    archive = Archive(tmp_path, {"http://a.example/debian": "https://a.example/debian"}, None)
    assert (
        archive.upstream("http://a.example/debian/pool/x.deb")
        == "https://a.example/debian/pool/x.deb"
    )
    assert archive.upstream("http://a.example/debian-evil/x") is None
    assert archive.upstream("http://a.example/debian/../secret") is None
    assert archive.file("http://b.example/x") is None


def test_kept_package_is_served_without_asking(tmp_path):
    archive = Archive(tmp_path, {"http://a.invalid/debian": "http://a.invalid/debian"}, None)
    kept = tmp_path / "a.invalid/debian/pool/x.deb"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"x")
    assert archive.file("http://a.invalid/debian/pool/x.deb") == kept


def test_http_dates_round_trip():
    assert mirror._mtime(mirror._http_date(1_700_000_000)) == 1_700_000_000


def test_pip_configuration_leaves_the_machines_folders_out():
    text = roots.pip_configuration(
        [
            "[global]\ncert = /c\n",
            "[global]\nfind-links = /w\nextra-index-url = file:///x https://i.example\n",
        ]
    )
    assert "/w" not in text
    assert "file://" not in text
    assert "https://i.example" in text
    assert "cert = /c" in text


def test_skew_names_direction():
    assert "FAKETIME=+300s" in skew.drop_in(300, "/lib/f.so")
    assert "FAKETIME=-5s" in skew.drop_in(-5, "/lib/f.so")


def test_reused_pid_is_another_process():
    mine = Process.of(os.getpid())
    assert mine is not None and mine.alive()
    assert not Process(mine.pid, mine.started + 1).alive()
