"""What Slurm's parser lets through, what it refuses, and where in the plan that stands (C59)."""

import re

import pytest
from saltern import plan, slurm_conf, view
from saltern import slurm_conf_checks as checks
from saltern.slurm_conf import File, Line, Pair
from support import ROOT, SCHEMA, example

FIXTURES = ROOT / "tests" / "fixtures" / "slurm-24.11.5"
FILES = slurm_conf.files(
    view.of(plan.resolve(SCHEMA, example(**{"health:interval_s": 0})), "mgmt01")
)


def file(*lines, name="slurm.conf"):
    """A file from texts such as "NodeName=n1 CPUs=2"; each pair's origin is its key."""
    return File(
        name,
        tuple(
            Line(tuple(Pair(*pair.split("=", 1), pair.split("=")[0]) for pair in line.split("|")))
            for line in lines
        ),
    )


def test_what_the_plan_makes_is_sound():
    assert checks.problems(FILES) == []


LET_THROUGH = [
    pytest.param(["NodeName=n[1-3]", "NodeName=n2"], "n2 twice", id="duplicate node"),
    pytest.param(
        ["PartitionName=a|Default=NO", "PartitionName=A|Default=NO"],
        "not a in other letters",
        id="partitions that differ in case",
    ),
    pytest.param(
        ["PartitionName=a|Default=NO|Nodes=zzz001"], "unknown nodes: zzz001", id="unknown node"
    ),
    pytest.param(
        ["PartitionName=a|Default=YES", "PartitionName=b|Default=YES"],
        "Default=YES in a, b",
        id="two defaults",
    ),
    pytest.param(["AllowAccounts=two words"], "without blanks", id="blank in a value"),
    pytest.param(["GresTypes="], "an empty value", id="empty value"),
    pytest.param(["SlurmctldHost=a,b"], "one controller a line", id="two controllers on a line"),
    pytest.param(["TaskPlugin=task/none,task/bogus"], "task/bogus", id="plugin not in the tree"),
]


@pytest.mark.parametrize(("lines", "said"), LET_THROUGH)
def test_what_slurms_parser_lets_through_is_found(lines, said):
    found = checks.problems([file(*lines)], plugins=["task_none.so"])
    assert said in " | ".join(str(problem) for problem in found)


def test_a_key_that_cgroup_conf_does_not_have_is_found():
    found = checks.problems([file("ConstrainCoress=yes", name="cgroup.conf")])
    assert [problem.where for problem in found] == ["ConstrainCoress"]


def refusals():
    """The captured refusals: (case, exit status, text)."""
    text = (FIXTURES / "parser_refusals.txt").read_text(encoding="utf-8")
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        head, _, said = part.partition("\n")
        name, status = head.split()
        yield name, int(status), said


# One change to the example's files each, as the parser saw it; then where the message must point.
WHERE = {
    "unknown": "slurm:parameters",
    "cpus": "node_types:small",
    "sel": "slurm:parameters",
    "prolog": "slurm:parameters:PrologFlags",
    "enforce": "slurm:parameters",
    "nodekey": "hosts",
    "partkey": "partitions:batch",
    "partstate": "partitions:batch:state",
    "maxtime": "partitions:batch:max_time",
    "int": "slurm:parameters:ReturnToService",
    "user": "slurm:parameters:SlurmUser",
}
CASES = {name: said for name, status, said in refusals() if status}


@pytest.mark.parametrize("case", WHERE)
def test_a_refusal_points_into_the_plan(case):
    found = checks.refusals(CASES[case], FILES)
    assert found
    assert WHERE[case] in [problem.where for problem in found]
    assert all("Unable to process" not in problem.found for problem in found)


def test_a_key_of_the_plan_is_named_even_when_slurm_names_only_the_key():
    raw = example(**{"slurm:parameters": {"SlurmctldTimeoutt": 5}})
    files = slurm_conf.files(view.of(plan.resolve(SCHEMA, raw), "mgmt01"))
    (problem,) = checks.refusals(CASES["unknown"], files)
    assert problem.where == "slurm:parameters:SlurmctldTimeoutt"


def test_all_unknown_keys_are_told_at_once():
    raw = example(**{"slurm:parameters": {"Bogus": 1, "Other": 2}})
    files = slurm_conf.files(view.of(plan.resolve(SCHEMA, raw), "mgmt01"))
    found = checks.refusals(CASES["twokeys"], files)
    assert [p.where for p in found] == ["slurm:parameters:Bogus", "slurm:parameters:Other"]


@pytest.mark.parametrize(
    ("stored", "refused"), [(None, False), ("lab", False), ("old", True)], ids=str
)
def test_a_changed_cluster_name_is_refused_naming_both(stored, refused):
    found = checks.cluster_name("lab", stored, "/var/spool/slurmctld/clustername")
    assert bool(found) is refused
    if refused:
        assert "lab" in str(found[0])
        assert "old" in str(found[0])


@pytest.mark.parametrize("text", ["lab\n", "lab", "lab|3466", "lab|3466\n"], ids=repr)
def test_the_id_behind_the_name_is_no_part_of_it(text):
    assert checks.stored_cluster_name(text) == "lab"
