"""Topologies are read whole, and refused whole."""

import pytest
from saltern_lab import topology
from saltern_lab.errors import LabError


def test_every_topology_of_the_repository_can_be_used():
    folder = topology.LAB_DIR / "topologies"
    assert [topology.load(path.stem).name for path in folder.glob("*.yaml")]


def test_first_has_the_hosts_of_the_first_cluster():
    first = topology.load("first")
    assert list(first.hosts) == ["mgmt01", "login01", "node01", "node02"]
    assert first.master == "mgmt01"
    assert first.binds["mgmt01"] == {"/var/lib/saltern/artefacts": "artefacts"}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(None, "needs `hosts:`", id="empty"),
        pytest.param({"hosts": {}}, "needs `hosts:`", id="no hosts"),
        pytest.param({"hosts": {"a": 11}, "host": 1}, "unknown key 'host'", id="unknown key"),
        pytest.param({"hosts": {"A_b": 11}}, "'A_b' is no host name", id="name"),
        pytest.param({"hosts": {"a": 1}}, "from 2 to 254", id="suffix low"),
        pytest.param({"hosts": {"a": True}}, "from 2 to 254", id="suffix no number"),
        pytest.param({"hosts": {"a": 11, "b": 11}}, "already a's", id="suffix twice"),
        pytest.param({"hosts": {"a": 11}, "master": "b"}, "master: 'b'", id="master"),
        pytest.param({"hosts": {"a": 11}, "binds": {"b": {}}}, "binds: 'b'", id="binds"),
        pytest.param(
            {"hosts": {"a": 11}, "shared": {"/srv": ["a", "b"]}}, "shared: /srv: 'b'", id="shared"
        ),
    ],
)
def test_broken_topology_is_a_sentence(data, words):
    with pytest.raises(LabError, match=words):
        topology.parse("t", data)


def test_all_problems_are_told_at_once():
    with pytest.raises(LabError) as caught:
        topology.parse("t", {"hosts": {"a": 11, "b": 11}, "master": "c", "x": 1})
    for words in ("already a's", "master: 'c'", "unknown key 'x'"):
        assert words in str(caught.value)


def test_unknown_topology_names_the_known_ones():
    with pytest.raises(LabError, match=r"the ones in lab/topologies are: .*first"):
        topology.load("nothing")
