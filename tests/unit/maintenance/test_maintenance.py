"""Which nodes may be away together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from saltern import maintenance

NODES = [f"n{number}" for number in range(1, 11)]
BATCH = {"batch": NODES}


@pytest.mark.parametrize(
    ("text", "size", "count"),
    [("2", 10, 2), ("20", 10, 20), ("10%", 500, 50), ("10%", 9, 1), ("100%", 3, 3), ("34%", 3, 1)],
)
def test_how_many_may_be_away(text, size, count):
    assert maintenance.limit(maintenance.most(text), size) == count


@pytest.mark.parametrize("text", ["0", "-1", "0%", "101%", "ten", "1.5", "", "5 %"])
def test_what_nobody_can_mean_is_refused(text):
    with pytest.raises(maintenance.Unclear, match="expected a number of nodes"):
        maintenance.most(text)


def test_batches_of_at_most_so_many():
    found, left = maintenance.batches(NODES, BATCH, "40%", set())
    assert [len(batch) for batch in found] == [4, 4, 2]
    assert left == []


def test_nodes_of_others_that_are_away_take_room():
    assert maintenance.next_batch(["n1", "n2"], BATCH, "3", {"n9", "n10"}) == ["n1"]
    assert maintenance.next_batch(["n1", "n2"], BATCH, "2", {"n9", "n10"}) == []
    assert maintenance.batches(["n1", "n2"], BATCH, "2", {"n9", "n10"}) == ([], ["n1", "n2"])


def test_a_node_that_is_away_already_comes_first_and_costs_nothing():
    assert maintenance.next_batch(["n1", "n2", "n3"], BATCH, "1", {"n3"}) == ["n3"]


def test_each_partition_of_a_node_counts():
    partitions = {"all": NODES, "few": ["n1", "n2"]}
    assert maintenance.next_batch(NODES, partitions, "50%", set()) == ["n1", *NODES[2:6]]


def test_a_node_of_no_partition_has_no_bound():
    assert maintenance.next_batch(["x1", "x2"], BATCH, "1", set()) == ["x1", "x2"]


def test_a_job_is_told_for_each_node_that_is_to_be_empty():
    jobs = {"7 ada RUNNING": ["n1", "n2", "n3"], "8 bob RUNNING": ["n9"]}
    assert maintenance.busy(jobs, {"n1", "n2"}) == {
        "n1": ["7 ada RUNNING"],
        "n2": ["7 ada RUNNING"],
    }


@given(
    to_do=st.lists(st.sampled_from(NODES), unique=True),
    away=st.sets(st.sampled_from(NODES)),
    few=st.sets(st.sampled_from(NODES)),
    most=st.sampled_from(["1", "2", "3", "10%", "50%", "100%"]),
)
def test_a_batch_never_takes_a_healthy_node_beyond_what_may_be_away(to_do, away, few, most):
    partitions = {"all": NODES, "few": few}
    batch = maintenance.next_batch(to_do, partitions, most, away)
    new = set(batch) - away
    assert set(batch) <= set(to_do) and len(batch) == len(set(batch))
    for nodes in partitions.values():
        gone = (away | new) & set(nodes)
        assert not new & set(nodes) or len(gone) <= maintenance.limit(most, len(nodes))
