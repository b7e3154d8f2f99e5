"""What a host may know: by its roles, and small however large the cluster is."""

import json

import pytest
from saltern import overview, runs, view
from saltern import plan as plans
from support import SCHEMA, everyone, example


def of(host, plan=None):
    return view.of(plans.resolve(SCHEMA, plan or everyone()), host)


def large(nodes):
    plan = example()
    plan["hosts"]["n[0001-9999]"] = {
        "roles": ["compute"],
        "node_type": "small",
        "address": "10.[1-99].0.[1-101]",
    }
    return plan


@pytest.mark.parametrize(
    ("host", "has", "lacks"),
    [
        pytest.param("ctl1", {"slurm", "accounting", "build"}, set(), id="controller"),
        pytest.param("db1", {"slurm", "accounting"}, set(), id="database"),
        pytest.param("cpu1", {"slurm", "build"}, {"accounting"}, id="compute"),
        pytest.param("bld1", {"build", "mirror"}, {"slurm", "accounting"}, id="builder"),
        pytest.param("mon1", {"foundation"}, {"slurm", "build", "accounting"}, id="monitoring"),
    ],
)
def test_sections_by_role(host, has, lacks):
    mine = of(host)
    assert has <= mine.keys()
    assert not lacks & mine.keys()


def test_users_are_where_they_work():
    assert of("login1")["foundation"]["users"]
    assert not of("db1")["foundation"]["users"]


def test_only_declared_hosts_serve_time():
    assert of("ctl1")["foundation"]["time"]["serves"] is True
    assert of("cpu1")["foundation"]["time"]["serves"] is False
    assert of("cpu1")["foundation"]["time"]["sources"] == ["ctl1"]


def test_munge_is_tried_with_the_controllers():
    assert of("cpu1")["foundation"]["munge"]["peers"] == ["ctl1", "ctl2"]
    assert "ctl1" not in of("ctl1")["foundation"]["munge"]["peers"]


def test_a_stranger_is_told_why_he_gets_nothing():
    with pytest.raises(view.UnknownHost, match="knows no host 'stranger'"):
        of("stranger")


def test_ten_thousand_nodes_are_a_few_records():
    node = of("n0042", large(9999))
    assert len(json.dumps(node)) < 40_000
    controller = of("mgmt01", large(9999))
    assert sum(runs.count(group["run"]) for group in controller["slurm"]["nodes"]) == 10_001
    assert len(controller["slurm"]["nodes"]) < 150


def test_the_overview_counts_hosts_and_names_components():
    top = {
        "*": ["p0_plan"],
        "saltern:roles:compute": [{"match": "pillar"}, "p4_scheduler", "p4_scheduler.slurmd"],
    }
    shown = overview.tables(plans.resolve(SCHEMA, example()), top)
    assert {row["hosts"]: row["count"] for row in shown["hosts"]}["node[01-02]"] == 2
    compute = next(row for row in shown["roles"] if row["role"] == "compute")
    assert compute["p4_scheduler"] == ["slurmd", "gate"]


def test_only_database_hosts_are_told_where_mariadb_is():
    assert [peer["name"] for peer in of("db2")["peers"]["mariadb"]] == ["sql1"]
    assert [peer["name"] for peer in of("mgmt01", example())["peers"]["mariadb"]] == ["mgmt01"]
    assert "mariadb" not in of("cpu1")["peers"]
