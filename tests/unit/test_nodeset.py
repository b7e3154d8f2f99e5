"""Node sets and runs: what Slurm would read back is what the plan said."""

import re
from pathlib import Path

import pytest
from ClusterShell.NodeSet import NodeSet
from hypothesis import given
from hypothesis import strategies as st
from saltern import nodeset, runs

CASES = [
    ("node[001-003,007]", ["node001", "node002", "node003", "node007"]),
    ("rack[1-2]n[01-03]", ["rack1n01", "rack1n02", "rack1n03", "rack2n01", "rack2n02", "rack2n03"]),
    ("n[098-101]", ["n098", "n099", "n100", "n101"]),
    ("n[98-101]", ["n98", "n99", "n100", "n101"]),
    ("b04-[09-10]", ["b04-09", "b04-10"]),
    ("n[1-2]-ib0", ["n1-ib0", "n2-ib0"]),
    ("login,node1", ["login", "node1"]),
]


@pytest.mark.parametrize(("expression", "names"), CASES, ids=[case[0] for case in CASES])
def test_expands(expression, names):
    assert nodeset.expand(expression) == names


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("n[3,1]", "numbers ascend"),
        ("n1,n2,n1", "n1 stands twice"),
        ("n[1-2]!n1", "the character '!'"),
    ],
)
def test_says_why(expression, words):
    with pytest.raises(nodeset.NodeSetError, match=words):
        nodeset.expand(expression)


def test_the_written_order_is_kept():
    assert nodeset.expand("z2,a[9,10],b1") == ["z2", "a9", "a10", "b1"]


@pytest.mark.parametrize("expression", ["gpu[005-001]", "n[1", "n1]", "n[1-]", "n[a-b]"])
def test_refuses(expression):
    with pytest.raises(nodeset.NodeSetError):
        nodeset.expand(expression)


def slurm_reads(text: str) -> list[str]:
    """A run as Slurm expands it: one bracket at most, width from the first number (shared/cases
    C56)."""
    match = re.fullmatch(r"(.*)\[([0-9]+)-([0-9]+)\](.*)", text)
    if not match:
        return [text]
    prefix, low, high, suffix = match.groups()
    return [f"{prefix}{number:0{len(low)}d}{suffix}" for number in range(int(low), int(high) + 1)]


@pytest.mark.parametrize(("expression", "names"), CASES, ids=[case[0] for case in CASES])
def test_runs_are_read_back_as_the_same_names(expression, names):
    made = nodeset.runs([(name, None) for name in nodeset.expand(expression)])
    assert [name for run in made for name in slurm_reads(runs.names(run))] == names
    assert [name for run in made for name, _ in runs.hosts(run)] == names


def test_runs_break_where_addresses_break():
    names = nodeset.expand("n[1-4]")
    made = nodeset.runs(
        list(zip(names, ["10.0.0.254", "10.0.0.255", "10.0.1.0", "10.0.1.9"], strict=True))
    )
    assert [(runs.names(run), runs.addresses(run)) for run in made] == [
        ("n[1-2]", "10.0.0.[254-255]"),
        ("n3", "10.0.1.0"),
        ("n4", "10.0.1.9"),
    ]


@given(st.lists(st.integers(0, 1200), min_size=1, unique=True), st.integers(1, 5))
def test_any_numbers_survive(numbers, width):
    names = [f"n{number:0{width}d}" for number in sorted(numbers)]
    made = nodeset.runs([(name, None) for name in names])
    assert [name for run in made for name in slurm_reads(runs.names(run))] == names


def test_fold_is_what_slurm_folds_to():
    rows = Path(__file__).parent.parent / "fixtures" / "slurm-folded.tsv"
    for row in rows.read_text(encoding="utf-8").splitlines():
        names, folded = row.split("\t")
        assert set(NodeSet(nodeset.fold(names.split(",")))) == set(NodeSet(folded)), row
