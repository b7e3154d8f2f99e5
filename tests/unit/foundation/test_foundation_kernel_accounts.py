"""Kernel parameters that only rise, and accounts that keep their ids."""

import pytest
from saltern import accounts, kernel


def test_the_plan_has_the_last_word():
    wanted = kernel.wanted(
        {"net.core.somaxconn": 4096, "net.ipv4.tcp_syncookies": None, "vm.swappiness": 1}
    )
    assert wanted["net.core.somaxconn"] == "4096"
    assert wanted["vm.swappiness"] == "1"
    assert "net.ipv4.tcp_syncookies" not in wanted


RAISED = {"fs.file-max": "262144"}


@pytest.mark.parametrize(
    ("plan", "found", "written", "result"),
    [
        pytest.param(
            {}, {"fs.file-max": "9223372036854775807"}, {}, {}, id="a high one stays the kernel's"
        ),
        pytest.param({}, {"fs.file-max": "8192"}, {}, RAISED, id="a low one rises"),
        pytest.param({}, {"fs.file-max": "262144"}, RAISED, RAISED, id="and stays in the file"),
        pytest.param({}, {"fs.file-max": None}, {}, {}, id="a kernel without it"),
        pytest.param(
            {"fs.file-max": None}, {"fs.file-max": "8192"}, {}, {}, id="left to the kernel"
        ),
        pytest.param(
            {"fs.file-max": 1000000}, {"fs.file-max": "8192"}, {}, {}, id="the plan's own value"
        ),
        pytest.param(
            {},
            {"user.max_user_namespaces": "0"},
            {},
            {"user.max_user_namespaces": "65536"},
            id="namespaces off",
        ),
    ],
)
def test_raised(plan, found, written, result):
    assert kernel.raised(plan, found, written) == result


def test_what_was_written_is_read_back():
    wanted = kernel.wanted({})
    assert kernel.parameters(kernel.text(wanted)) == wanted


def test_files_of_sysctl_d():
    text = "# a comment = 1\n; another = 2\n-net.core.somaxconn=1\n net.ipv4.x = 1\t 2 \nnonsense\n"
    assert kernel.parameters(text) == {"net.core.somaxconn": "1", "net.ipv4.x": "1 2"}


@pytest.mark.parametrize(
    ("users", "groups", "words"),
    [
        pytest.param({"root": 0}, {"root": 0}, [], id="a new account"),
        pytest.param({"munge": 10010}, {"munge": 10010}, [], id="already so"),
        pytest.param(
            {"munge": 101},
            {"munge": 10010},
            ["user munge: found uid 101; expected 10010"],
            id="other uid",
        ),
        pytest.param(
            {"munge": 10010},
            {"munge": 102},
            ["group munge: found gid 102; expected 10010"],
            id="other gid",
        ),
        pytest.param(
            {"alice": 10010}, {}, ["user munge: found uid 10010 taken by alice"], id="uid taken"
        ),
        pytest.param(
            {}, {"hpc": 10010}, ["group munge: found gid 10010 taken by hpc"], id="gid taken"
        ),
        pytest.param(
            {"munge": 101, "alice": 10010},
            {"munge": 102},
            ["uid 101", "taken by alice", "gid 102"],
            id="all at once",
        ),
    ],
)
def test_conflicts(users, groups, words):
    found = accounts.conflicts("munge", 10010, 10010, users, groups)
    assert len(found) == len(words)
    for problem, word in zip(found, words, strict=True):
        assert word in str(problem)


MOUNTS = """/dev/sda1 / ext4 rw 0 0
proc /proc proc rw 0 0
/dev/sdb1 /var/with\\040blank xfs rw 0 0
/dev/sda1 /srv/bind ext4 rw 0 0
nas:/home /home nfs4 rw 0 0
tmpfs /run tmpfs rw 0 0
"""


def test_only_this_hosts_own_file_systems_are_searched_each_once():
    assert accounts.local_mounts(MOUNTS) == ["/", "/var/with blank"]


def test_owned_files_are_counted_and_some_named():
    files = [f"/data/{number}" for number in range(7)]
    said = accounts.owned("uid", 101, files, complete=True)
    assert said.startswith("uid 101 owns 7 files")
    assert said.endswith("/data/0, /data/1, /data/2, /data/3, /data/4, …")
    assert "at least 7 files" in accounts.owned("uid", 101, files, complete=False)
    assert accounts.owned("gid", 1, [], complete=True).endswith("file systems")
