"""What a change of Slurm's files asks for."""

import pytest
from saltern import slurm_conf_changes as changes

BEFORE = {
    "slurm.conf": "# head\nClusterName=lab\nSlurmctldHost=a\nSlurmctldPort=6817\n"
    "StateSaveLocation=/s\n"
    "NodeName=n[1-2] CPUs=2\nPartitionName=p Nodes=n[1-2]\n",
    "cgroup.conf": "ConstrainCores=YES\n",
}


def after(old, new, name="slurm.conf"):
    return {**BEFORE, name: BEFORE[name].replace(old, new)}


CASES = [
    pytest.param(BEFORE, "NOTHING", [], id="nothing"),
    pytest.param(after("# head", "# other"), "NOTHING", [], id="comment"),
    pytest.param(
        after("SlurmctldHost=a\nSlurmctldPort=6817\n", "SlurmctldPort=6817\nSlurmctldHost=a\n"),
        "NOTHING",
        [],
        id="order of lines",
    ),
    pytest.param(after("CPUs=2", "CPUs=4"), "RECONFIGURE", ["nodename"], id="node"),
    pytest.param(after("Nodes=n[1-2]", "Nodes=n1"), "RECONFIGURE", ["partition"], id="partition"),
    pytest.param(
        after("ClusterName", "KillWait=45\nClusterName"),
        "RECONFIGURE",
        ["+ KillWait=45"],
        id="new key",
    ),
    pytest.param(
        after("YES", "NO", "cgroup.conf"),
        "RECONFIGURE",
        ["cgroup.conf: ConstrainCores=YES -> NO"],
        id="cgroup",
    ),
    pytest.param(after("6817", "6827"), "RESTART", ["6817 -> 6827"], id="port"),
    pytest.param(
        after("Host=a", "Host=a\nSlurmctldHost=b"), "RESTART", ["a b"], id="second controller"
    ),
]


@pytest.mark.parametrize(("new", "action", "words"), CASES)
def test_the_least_that_applies_it(new, action, words):
    assert changes.action(BEFORE, new).name == action
    said = "\n".join(changes.changed(BEFORE, new)).lower()
    assert all(word.lower() in said for word in words)


def test_an_unknown_former_configuration_asks_for_a_reconfigure():
    assert changes.action({}, BEFORE).name == "RECONFIGURE"
    assert changes.refused({}, BEFORE) == []


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("StateSaveLocation=/s", "StateSaveLocation=/t", "slurm:state_dir"),
        ("ClusterName=lab", "ClusterName=other", "cluster:name"),
        ("ClusterName=lab", "AuthType=auth/slurm\nClusterName=lab", "slurm:parameters:AuthType"),
    ],
    ids=["state folder", "cluster name", "authentication"],
)
def test_what_would_lose_jobs_is_refused_by_its_place_in_the_plan(old, new, where):
    found = changes.refused(BEFORE, after(old, new))
    assert [problem.where for problem in found] == [where]


NODES = "NodeName=n[1-2] CPUs=2 CoresPerSocket=2 Gres=gpu:a:2 RealMemory=9 Weight=1\n"


def nodes(text):
    return {"slurm.conf": f"ClusterName=lab\n{text}"}


@pytest.mark.parametrize(
    ("new", "found"),
    [
        (NODES, {}),
        (NODES.replace("RealMemory=9 Weight=1", "RealMemory=8 Weight=2 Feature=x"), {}),
        (
            NODES.replace("n[1-2]", "n1") + NODES.replace("n[1-2] CPUs=2", "n2 CPUs=4"),
            {"n2": "cpus 2 -> 4"},
        ),
        (
            NODES.replace("CoresPerSocket=2", "corespersocket=1"),
            dict.fromkeys(("n1", "n2"), "corespersocket 2 -> 1"),
        ),
        (
            NODES.replace("Weight=1", "CpuSpecList=0").replace(" Gres=gpu:a:2", ""),
            dict.fromkeys(("n1", "n2"), "cpuspeclist none -> 0, gres gpu:a:2 -> none"),
        ),
        ("NodeName=n1 CPUs=2 CoresPerSocket=2 Gres=gpu:a:2\n", {}),
    ],
    ids=[
        "same",
        "no hardware",
        "one of a range",
        "cores, in lower case",
        "come and gone",
        "removed",
    ],
)
def test_nodes_with_other_hardware(new, found):
    """PITFALL 19: a job on them would be requeued by slurmctld."""
    assert changes.reshaped_nodes(nodes(NODES), nodes(new)) == found
