"""Elastic hosts: known by a pattern, dynamic nodes in Slurm."""

import pytest
from saltern import plan, slurm_conf, view
from saltern.problem import PlanError
from support import SCHEMA, example

CLOUD = {"ids": "cloud-*", "node_type": "small", "most": 8}


def resolved(**changes):
    elastic = {"elastic": {"cloud": CLOUD}, "partitions:batch:elastic": ["cloud"]}
    return plan.resolve(SCHEMA, example(**{**elastic, **changes}))


def problems(**changes):
    with pytest.raises(PlanError) as error:
        resolved(**changes)
    return [str(problem) for problem in error.value.problems]


def test_an_id_that_fits_gets_what_a_compute_node_gets():
    of_plan = resolved()
    elastic, declared = view.of(of_plan, "cloud-7"), view.of(of_plan, "node01")
    assert elastic["roles"] == ["compute"]
    assert elastic.keys() == declared.keys()
    assert elastic["host"]["elastic"] == "cloud" and declared["host"]["elastic"] is None


def test_an_id_that_does_not_fit_gets_nothing():
    with pytest.raises(view.UnknownHost):
        view.of(resolved(), "clouds")


def test_slurm_conf_has_room_for_them_and_a_node_set():
    text = slurm_conf.files(view.of(resolved(), "mgmt01"))[-1].text
    assert "NodeSet=cloud Feature=cloud\n" in text
    assert "Nodes=node[01-02],cloud " in text
    assert "MaxNodeCount=1008\n" in text


def test_without_them_slurm_conf_says_nothing_of_them():
    text = slurm_conf.files(view.of(plan.resolve(SCHEMA, example()), "mgmt01"))[-1].text
    assert not {"NodeSet", "MaxNodeCount", "TreeWidth"} & set(text.replace("=", " ").split())


def test_a_node_registers_with_its_hardware_and_its_group():
    words = slurm_conf.dynamic(view.of(resolved(), "cloud-7")["host"]).split()
    assert "Feature=cloud" in words and "CPUs=2" in words


REFUSED = {
    "fits a declared host": ({"elastic": {"cloud": {**CLOUD, "ids": "node*"}}}, "node[01-02]"),
    "no node type": ({"elastic": {"cloud": {**CLOUD, "node_type": "big"}}}, "elastic:cloud:node_t"),
    "two patterns for one id": (
        {"elastic": {"cloud": CLOUD, "more": {**CLOUD, "ids": "cloud-x*"}}}, "elastic:more:ids",
    ),
    "a partition's name": ({"elastic": {"batch": CLOUD}}, "elastic:batch"),
    "an unknown group": ({"partitions:batch:elastic": ["fog"]}, "partitions:batch:elastic"),
    "everything": ({"elastic": {"cloud": {**CLOUD, "ids": "*"}}}, "elastic:cloud:ids"),
    "a trusted role": ({"elastic": {"cloud": {**CLOUD, "roles": ["controller"]}}}, "roles"),
    "a fingerprint of nobody": ({"join": {"fingerprints": {"gone1": "aa:" * 31 + "aa"}}}, "gone1"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    changes, words = REFUSED[case]
    assert any(words in problem for problem in problems(**changes)), problems(**changes)
