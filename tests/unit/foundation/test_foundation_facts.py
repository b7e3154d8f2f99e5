"""What programs, /proc and /sys say, read into facts. Texts are real ones of a Debian 13 host."""

import struct

import pytest
from saltern import hostfacts, hostsfile, platform, sntp

MUNGE_OK = """STATUS:          Success (0)
ENCODE_HOST:     mgmt01.lab.saltern (10.213.3.11)
ENCODE_TIME:     2026-12-01 10:42:18 +0000 (1796121738)
UID:             munge (10010)
LENGTH:          0
"""


@pytest.mark.parametrize(
    ("text", "status"),
    [
        pytest.param(MUNGE_OK, "Success", id="good"),
        pytest.param(
            "STATUS:          Rewound credential (16)\n", "Rewound credential", id="rewound"
        ),
        pytest.param("unmunge: Error: Invalid credential\n", "Invalid credential", id="other key"),
        pytest.param(
            'munge: Error: Failed to access "/run/munge/munge.socket.2": No such file or directory',
            'Failed to access "/run/munge/munge.socket.2": No such file or directory',
            id="munged is down",
        ),
        pytest.param("", "no answer", id="nothing"),
    ],
)
def test_unmunge_status(text, status):
    assert hostfacts.unmunge_status(text) == status


TRACKING = (
    "0AD5030B,10.213.3.11,11,1796121336.685806602,{},119.999992371,119.999992371,"
    "0.069,-0.020,36.385,0.000078434,0.000100129,2.0,{}"
)


@pytest.mark.parametrize(
    ("text", "ahead", "synchronised"),
    [
        pytest.param(TRACKING.format("-0.000000146", "Normal"), 0.0, True, id="in step"),
        pytest.param(
            TRACKING.format("-120.000000000", "Normal"), 120.0, True, id="slewing a fast clock"
        ),
        pytest.param(
            "00000000,,0,0.0,-0.000002968,0.0,0.0,0.707,0.0,0.0,1.0,1.0,0.0,Not synchronised",
            0.0,
            False,
            id="not synchronised",
        ),
        pytest.param(
            "7F7F0101,,10,1796121184.4,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,Normal",
            0.0,
            True,
            id="a time host on its own clock",
        ),
    ],
)
def test_tracking(text, ahead, synchronised):
    found = hostfacts.tracking(text)
    assert found["ahead_s"] == pytest.approx(ahead, abs=1e-5)
    assert found["synchronised"] is synchronised


SOURCES = """^,*,mgmt01,10,6,17,2,119.999992371,119.999992371,0.000039985
^,?,dead.example,0,6,0,4294967295,0.000000000,0.000000000,0.000000000
^,x,liar.example,2,6,377,20,-86400.1,-86400.1,0.01
#,-,PPS0,0,4,377,12,0.5,0.5,0.000001
"""


def test_only_servers_that_are_heard_and_believed_count():
    assert hostfacts.source_offsets(SOURCES) == {"mgmt01": pytest.approx(119.999992)}


LIMITS = """Limit                     Soft Limit           Hard Limit           Units
Max locked memory         8388608              unlimited            bytes
Max open files            1024                 524288               files
Max realtime timeout      unlimited            unlimited            us
"""


def test_limits_are_the_soft_ones_that_programs_meet():
    assert hostfacts.limits(LIMITS) == {"memlock": "8388608", "nofile": "1024"}


@pytest.mark.parametrize(
    ("siblings", "cpus", "sockets", "cores", "threads"),
    [
        pytest.param([("0", "0"), ("0", "1")], 2, 1, 2, 1, id="one socket"),
        pytest.param(
            [("0", "0,2"), ("0", "1,3"), ("0", "0,2"), ("0", "1,3")], 4, 1, 2, 2, id="threads"
        ),
        pytest.param(
            [("0", "0"), ("0", "1"), ("1", "2"), ("1", "3")], 4, 2, 2, 1, id="two sockets"
        ),
        pytest.param(
            [("-1", "0"), ("-1", "1")], 2, 1, 2, 1, id="an ARM guest that knows no socket"
        ),
        pytest.param([], 0, 1, 0, 0, id="nothing readable"),
    ],
)
def test_topology(siblings, cpus, sockets, cores, threads):
    assert hostfacts.topology(siblings) == {
        "cpus": cpus,
        "sockets": sockets,
        "cores_per_socket": cores,
        "threads_per_core": threads,
    }


def test_gpus_by_pci_are_nvidia_display_controllers_only():
    devices = [
        ("0x10de\n", "0x030200\n"),  # a data-centre GPU
        ("0x10de\n", "0x030000\n"),  # a workstation GPU
        ("0x10de\n", "0x068000\n"),  # an NVSwitch
        ("0x1a03\n", "0x030000\n"),  # the board's own display
    ]
    assert hostfacts.pci_gpus(devices) == 2


@pytest.mark.parametrize(
    ("rate", "mbit"),
    [("400 Gb/sec (4X NDR)\n", 400000), ("2.5 Gb/sec (1X SDR)", 2500), ("", 0)],
)
def test_infiniband_rate(rate, mbit):
    assert hostfacts.infiniband_mbit(rate) == mbit


def test_memory():
    assert hostfacts.memory_mb("MemFree: 1 kB\nMemTotal:       24576000 kB\n") == 24000


# --- SNTP ---


def answer(seconds, first=0x24):
    stamp = struct.pack("!II", int(seconds) + 2208988800, int(seconds % 1 * 2**32))
    return bytes([first]) + bytes(31) + stamp + stamp


def test_a_fast_clock_is_ahead():
    assert sntp.ahead(answer(1000.25), sent=1120.0, received=1120.5) == pytest.approx(120.0)


def test_a_slow_clock_is_behind():
    assert sntp.ahead(answer(1000.5), sent=900.0, received=901.0) == pytest.approx(-100.0)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b"short", id="too short"),
        pytest.param(answer(1000, first=0x23), id="a client's packet"),
        pytest.param(answer(1000, first=0xE4), id="a server that is not synchronised"),
    ],
)
def test_no_answer_is_no_offset(text):
    assert sntp.ahead(text, 1.0, 2.0) is None


def test_the_question_is_a_client_s():
    assert len(sntp.question()) == sntp.PACKET
    assert sntp.ahead(sntp.question(), 1.0, 2.0) is None


# --- platforms ---


@pytest.mark.parametrize(
    ("os", "release", "conf", "service"),
    [
        ("Debian", "13", "/etc/chrony/chrony.conf", "chrony"),
        ("Ubuntu", "22.04", "/etc/chrony/chrony.conf", "chrony"),
        ("Rocky", "9", "/etc/chrony.conf", "chronyd"),
        ("RedHat", "10", "/etc/chrony.conf", "chronyd"),
    ],
)
def test_chrony_on_both_families(os, release, conf, service):
    row = platform.of(os, release)["chrony"]
    assert (row["conf"], row["service"]) == (conf, service)


def test_both_families_have_the_same_keys():
    debian, redhat = (platform.of(*system) for system in (("Debian", "13"), ("Rocky", "9")))
    assert debian.keys() == redhat.keys()
    for name, row in debian.items():
        if isinstance(row, dict):
            assert row.keys() == redhat[name].keys(), name


def test_no_key_of_the_table_is_a_method_of_dict():
    """In Jinja `row.keys` is the method: chronyd once got it as its key file."""
    rows = [
        platform.of("Debian", "13"),
        *(r for r in platform.of("Debian", "13").values() if isinstance(r, dict)),
    ]
    assert not {key for row in rows for key in row} & set(dir(dict))


def test_an_unknown_system_is_one_sentence_with_what_is_known():
    with pytest.raises(platform.UnknownPlatform) as caught:
        platform.of("Fedora", "43")
    assert str(caught.value).startswith(
        "Found the operating system Fedora 43; expected one of: Debian 12, 13;"
    )


@pytest.mark.parametrize(
    ("grains", "release"),
    [
        ({"os": "Debian", "osmajorrelease": 13, "osrelease": "13"}, "13"),
        ({"os": "Ubuntu", "osmajorrelease": 24, "osrelease": "24.04"}, "24.04"),
        ({"os": "Rocky", "osmajorrelease": 9, "osrelease": "9.6"}, "9"),
        ({"os": "Arch", "osrelease": "rolling"}, "rolling"),
    ],
)
def test_release_as_the_plan_spells_it(grains, release):
    assert platform.release_of(grains) == release


# --- /etc/hosts ---


def test_hosts_block_has_each_host_once_with_its_full_name_first():
    run = {
        "prefix": "node",
        "first": 8,
        "last": 10,
        "width": 2,
        "suffix": "",
        "address": "10.0.0.21",
    }
    lines = hostsfile.text([run], "lab.saltern").splitlines()
    assert lines[0] == "10.0.0.21 node08.lab.saltern node08"
    assert len(lines) == 3
