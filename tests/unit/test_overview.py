"""The plan at a glance."""

import pytest
import yaml
from saltern import overview
from saltern import plan as plans
from support import ROOT, SCHEMA, everyone, example

TOP = yaml.safe_load((ROOT / "salt/top.sls").read_text(encoding="utf-8"))["base"]


def tables(plan):
    return overview.tables(plans.resolve(SCHEMA, plan), TOP)


def row(rows, key, value):
    (found,) = (one for one in rows if one[key] == value)
    return found


def test_one_row_for_each_entry_of_the_plan():
    shown = tables(example())
    assert shown["cluster"] == "lab, 4 hosts, Debian 13"
    assert row(shown["hosts"], "hosts", "node[01-02]") == {
        "hosts": "node[01-02]",
        "count": 2,
        "roles": ["compute"],
        "node_type": "small",
        "address": "10.213.0.[21-22]",
    }


def test_partitions_show_which_is_the_default():
    batch = row(tables(example())["partitions"], "partition", "batch")
    assert (batch["nodes"], batch["count"], batch["default"]) == ("node[01-02]", 2, "yes")


def test_roles_are_those_of_the_plan_and_their_phases_those_of_top():
    shown = tables(example())["roles"]
    names = [one["role"] for one in shown]
    assert names[0] == "every host"
    assert set(names[1:]) == {"controller", "database", "builder", "login", "compute"}
    assert "slurmd" in row(shown, "role", "compute")["p4_scheduler"]
    assert "slurmctld" not in row(shown, "role", "compute")["p4_scheduler"]
    assert set(names) < {one["role"] for one in tables(everyone())["roles"]}


def test_a_gate_comes_after_the_components_of_its_phase():
    for one in tables(everyone())["roles"]:
        for components in one.values():
            if isinstance(components, list) and "gate" in components:
                assert components[-1] == "gate"


def test_addresses_by_dns_are_said_so():
    plan = example(**{"names:provider": "dns", "hosts:login01:address": None})
    assert row(tables(plan)["hosts"], "hosts", "login01")["address"] == "by DNS"


@pytest.mark.parametrize("nodes", [3, 5000])
def test_a_large_entry_is_one_row(nodes):
    changes = {
        "names:provider": "dns",
        f"hosts:n[1-{nodes}]": {"roles": ["compute"], "node_type": "small"},
    }
    shown = row(tables(example(**changes))["hosts"], "hosts", f"n[1-{nodes}]")
    assert shown["count"] == nodes
