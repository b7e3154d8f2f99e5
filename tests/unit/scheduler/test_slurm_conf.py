"""Slurm's files: what a plan becomes, line by line."""

import os

import pytest
from saltern import plan, slurm_conf, slurm_conf_checks, view
from support import ROOT, SCHEMA, everyone, example

GOLDEN = ROOT / "tests" / "golden"


def files_of(raw, host="mgmt01"):
    return {file.name: file for file in slurm_conf.files(view.of(plan.resolve(SCHEMA, raw), host))}


def lines_of(raw, host="mgmt01"):
    return files_of(raw, host)["slurm.conf"].text.splitlines()


def gpu_site():
    """Two kinds of GPU nodes beside plain ones, two controllers, keys of the site's own."""
    raw = everyone()
    raw["hosts"]["a[001-004,007]"] = {
        "roles": ["gpu"],
        "address": "10.0.1.[1-4,7]",
        "node_type": "old",
    }
    raw["node_types"]["old"] = {
        "cpus": 32,
        "memory_mb": 250000,
        "memory_headroom": 0.03,
        "tmp_disk_mb": 900000,
        "features": ["volta", "ib"],
        "gpus": {"type": "v100", "count": 4, "autodetect": "off", "files": "/dev/nvidia[0-3]"},
        "parameters": {"CpuSpecList": [0, 16]},
    }
    raw["partitions"]["old"] = {
        "nodes": "a[001-004,007]",
        "max_time": "7-00:00:00",
        "parameters": {"AllowAccounts": ["physics", "chem"], "OverSubscribe": False},
    }
    raw["slurm"] = {
        "parameters": {
            "slurmctldParameters": "idle_on_node_suspend",
            "ReturnToService": 2,
            "KillWait": 45,
        }
    }
    return raw


SITES = {"example": (example, "mgmt01"), "gpus": (gpu_site, "ctl1")}


@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("name", ["slurm.conf", "gres.conf", "cgroup.conf"])
def test_golden(site, name):
    make, host = SITES[site]
    text = files_of(make(), host)[name].text
    path = GOLDEN / site / name
    if os.environ.get("SALTERN_GOLDEN") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_golden_slurmdbd_names_its_secret_and_purges_nothing():
    text = slurm_conf.slurmdbd(view.of(plan.resolve(SCHEMA, example()), "mgmt01")).text
    path = GOLDEN / "example" / "slurmdbd.conf"
    if os.environ.get("SALTERN_GOLDEN") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")
    assert "StoragePass=<secret:slurmdbd_password>" in text
    assert "Purge" not in text


def test_the_plan_wins_whatever_the_case_of_its_letters():
    lines = lines_of(example(**{"slurm:parameters": {"returntoservice": 2}}))
    assert [line for line in lines if line.lower().startswith("returntoservice")] == [
        "ReturnToService=2"
    ]


def test_configless_stays_when_the_plan_adds_parameters():
    lines = lines_of(example(**{"slurm:parameters": {"SlurmctldParameters": ["cloud_dns"]}}))
    assert "SlurmctldParameters=enable_configless,cloud_dns" in lines


@pytest.mark.parametrize("value", [[], ()], ids=["list", "tuple"])
def test_an_empty_list_leaves_the_key_out(value):
    assert not any(
        line.startswith("PrologFlags")
        for line in lines_of(example(**{"slurm:parameters": {"PrologFlags": list(value)}}))
    )


@pytest.mark.parametrize(
    ("tracking", "there"), [("proctrack/cgroup", True), ("proctrack/linuxproc", False)]
)
def test_contain_only_where_cgroups_track(tracking, there):
    lines = lines_of(example(**{"slurm:parameters": {"ProctrackType": tracking}}))
    assert ("PrologFlags=Contain" in lines) is there


def test_enforcement_is_the_default_and_can_be_switched_off():
    assert "ConstrainRAMSpace=YES" in files_of(example())["cgroup.conf"].text
    off = files_of(example(**{"slurm:cgroup": {"CgroupPlugin": "disabled"}}))["cgroup.conf"].text
    assert "Constrain" not in off
    assert "CgroupPlugin=disabled" in off


def test_memory_is_declared_less_headroom_rounded_down():
    raw = example(**{"node_types:small:memory_mb": 7999, "node_types:small:memory_headroom": 0.05})
    assert any("RealMemory=7599 " in line for line in lines_of(raw))
    assert "DefMemPerCPU=3799" in lines_of(raw)


def test_a_cluster_without_nodes_still_has_a_controller():
    raw = example(**{"hosts:node[01-02]": None, "partitions": {}, "node_types": {}})
    lines = lines_of(raw)
    assert "SlurmctldHost=mgmt01(10.213.0.11)" in lines
    assert not any(line.startswith(("NodeName", "PartitionName", "DefMemPerCPU")) for line in lines)


def test_one_line_for_each_controller_and_no_backup_key():
    lines = lines_of(gpu_site(), "ctl1")
    assert [line for line in lines if "SlurmctldHost" in line] == [
        "SlurmctldHost=ctl1(10.213.0.11)",
        "SlurmctldHost=ctl2(10.213.0.12)",
    ]


def test_gres_lines_detect_or_name_files_and_always_name_nodes():
    for line in files_of(gpu_site(), "ctl1")["gres.conf"].lines:
        keys = {pair.key for pair in line.pairs}
        assert "NodeName" in keys
        assert ("AutoDetect" in keys) != ("Name" in keys)


# C56: node sets of the plan, and what Slurm must read back from the NodeName lines.
NODE_SETS = [
    "node[001-003,007]",
    "n[098-101]",
    "n[98-101]",
    "n[1-2]-ib0",
    "b04-[09-10]",
    "rack[1-2]n[01-03]",
    "n[1-3,09]",
    "n[0-2]",
    "n[00-02]",
    "gpu2,gpu02",
]


@pytest.mark.parametrize("expression", NODE_SETS)
def test_node_sets_come_back_as_the_same_hosts(expression):
    from saltern import nodeset  # noqa: PLC0415 - the master's library

    names = nodeset.expand(expression)
    raw = example(
        **{
            "hosts:node[01-02]": None,
            f"hosts:{expression}": {
                "roles": ["compute"],
                "node_type": "small",
                "address": f"10.9.0.[1-{len(names)}]",
            },
            "partitions:batch:nodes": expression,
        }
    )
    nodes = [line for line in files_of(raw)["slurm.conf"].lines if line.pairs[0].key == "NodeName"]
    read = [name for line in nodes for name in slurm_conf_checks.expanded(line.pairs[0].value)]
    assert sorted(read) == sorted(names)
    for line in nodes:
        assert line.pairs[0].value.count("[") <= 1
        assert len(slurm_conf_checks.expanded(line.pairs[1].value)) == len(
            slurm_conf_checks.expanded(line.pairs[0].value)
        )


def test_large_plans_stay_small_files():
    types = {f"t{n:02d}": {"cpus": 64, "memory_mb": 256000} for n in range(20)}
    hosts = {f"{name}n[001-500]": {"roles": ["compute"], "node_type": name} for name in types}
    raw = example(node_types=types, names={"provider": "dns"})
    del raw["hosts"]["node[01-02]"]
    raw["hosts"].update(hosts)
    raw["partitions"] = {"batch": {"nodes": ",".join(hosts), "default": True}}
    files = files_of(raw)
    assert len([x for x in files["slurm.conf"].lines if x.pairs[0].key == "NodeName"]) == 20
    assert slurm_conf_checks.problems(files.values()) == []
