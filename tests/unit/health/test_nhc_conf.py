"""nhc.conf from a plan: what a node type becomes, and what is refused when it is rendered."""

import json
import subprocess
import sys

import pytest
from checker_file import CHECKER
from saltern import (
    gates_environment,
    health_overview,
    nhc_conf,
    nhc_match,
    plan,
    slurm_conf,
    view,
)
from saltern.drain_rules import Policy
from saltern.problem import PlanError
from support import ROOT, SCHEMA, everyone, example

MATCHES = [
    line.split("\t")[:3]
    for line in (ROOT / "tests/fixtures/nhc-match.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]


@pytest.mark.parametrize(("host", "match", "word"), MATCHES)
def test_a_match_hits_what_lbnl_nhc_hits_or_is_refused(host, match, word):
    """PITFALL 32. A form that LBNL NHC reads as something else is refused, never rendered."""
    try:
        found = nhc_match.hits(match, [host])
    except nhc_match.Unreadable:
        assert match.lstrip("!").startswith(("{", "node[")), "only ranges mislead"
    else:
        assert bool(found) == (word == "match")


REFUSED_FORMS = [
    "node[001-003]",
    "{node[001-003,007]}",
    "{rack[1-2]n[01-04]}",
    "node[001-003],node007",
    "/[/",
]


@pytest.mark.parametrize("match", REFUSED_FORMS)
def test_forms_that_mislead_are_refused(match):
    with pytest.raises(nhc_match.Unreadable):
        nhc_match.hits(match, ["node002"])


def test_checker_and_plan_read_matches_alike(health):
    hosts = [f"node{n:03d}" for n in range(12)] + ["gpu1-ib", "login01", "node9", "node10"]
    matches = ["*", "node*", "{node[001-003]}", "!{node[001-003],gpu1-ib}", "/^node0+[12]$/", "!*1"]
    matches += ["{gpu[1-3]-ib}", "node00[1-3]", "login01", "{node[9-11]}", "n?de*", "!/ib$/"]
    for match in matches:
        assert nhc_match.hits(match, hosts) == [h for h in hosts if health.matches(h, match)]


def problems(**changes):
    with pytest.raises(PlanError) as refused:
        plan.resolve(SCHEMA, example(**changes))
    return [str(problem) for problem in refused.value.problems]


PROBLEMS = [
    ({"health:lines": ["gpu* || check_hw_eth lo"]}, "health:lines:0", "which hits no node"),
    ({"health:lines": ["login01 || check_hw_eth lo"]}, "health:lines:0", "which hits no node"),
    ({"health:lines": ["node[01-02] || check_hw_eth lo"]}, "health:lines:0", "in braces"),
    ({"health:lines": ["* || check_hw_ethernet lo"]}, "health:lines:0", "check_hw_ethernet"),
    ({"health:timeout_s": 50}, "health:timeout_s", "after 60 s"),
    ({"health:check_timeout_s": 30}, "health:check_timeout_s", "less than timeout_s"),
    ({"health:provider": "lbnl"}, "health:source", "LBNL NHC's archive"),
    ({"health:lines": ["check_hw_eth lo"]}, "health:lines:0", "||"),
    ({"health:intervall_s": 3}, "health", "intervall_s"),
]


@pytest.mark.parametrize(("changes", "where", "words"), PROBLEMS, ids=str)
def test_a_plan_is_refused_where_it_is_wrong(changes, where, words):
    found = problems(**changes)
    assert any(where in one and words.replace("||", "|") in one for one in found), found


def test_a_variable_is_no_unknown_check():
    lines = ["* || export MAX_SYS_UID=999", "* || DEBUG=1", "{node[01-02]} || check_hw_eth lo"]
    plan.resolve(SCHEMA, example(**{"health:lines": lines}))


def text(raw, host):
    return nhc_conf.text(view.of(plan.resolve(SCHEMA, raw), host))


def gpu_site():
    raw = everyone()
    raw["node_types"]["dgx"] = {
        "cpus": 224,
        "sockets": 2,
        "cores_per_socket": 56,
        "threads_per_core": 2,
        "memory_mb": 2000000,
        "mounts": {
            "/home": {"type": "nfs*", "source": "store1:/home"},
            "/sw": {"read_only": True},
        },
        "nics": {"eth0": 0, "bond0": 100000},
        "ib_ports": {"mlx5_0:1": 400},
        "gpus": {
            "type": "h100",
            "count": 8,
            "driver": "550.54.15",
            "nvlinks": 18,
            "pcie_width": 16,
        },
    }
    raw["health"] = {
        "stray_processes": "fail",
        "free_space": {"/": "2%", "/tmp": "10G"},  # noqa: S108
        "lines": ["gpu* || check_file_test -r /etc/site"],
    }
    return raw


GPU_CONF = """\
# Written by Saltern from the plan; what is changed here is written over.
# Node type dgx. Matches are LBNL NHC's.
* || check_fs_mount_rw -t 'nfs*' -s 'store1:/home' -f /home
* || check_fs_mount_ro -f /sw
* || check_fs_free / 2%
* || check_fs_free /tmp 10G
* || check_hw_cpuinfo 2 112 224
* || check_hw_physmem 1945600000 1125899906842624
* || check_hw_eth bond0
* || check_eth_speed bond0 100000
* || check_hw_eth eth0
* || check_hw_ib 400 mlx5_0:1
* || check_ps_service munged
* || check_ps_service chronyd
* || check_ps_service slurmd
* || check_clock_offset 500
* || check_gpu_count 8
* || check_gpu_driver 550.54.15
* || check_gpu_memory
* || check_gpu_xid
* || check_gpu_nvlink 18
* || check_gpu_pcie 16
* || check_ps_unauth_users die
gpu* || check_file_test -r /etc/site
"""


def test_a_node_type_becomes_its_checks():
    assert text(gpu_site(), "gpu1") == GPU_CONF


def test_the_checker_reads_every_line_of_it(health):
    checks = health.configuration(text(gpu_site(), "gpu1"), "gpu1", {})
    assert len(checks) == GPU_CONF.count("||")
    assert [check.trouble for check in checks if check.trouble] == []


def test_with_lbnl_nhc_only_tells(tmp_path):
    raw = gpu_site()
    raw["health"]["provider"] = "lbnl"
    raw["health"]["source"] = {"version": "1.4.3", "file": "x.tar.xz", "sha256": "0" * 64}
    assert "* || export MARK_OFFLINE=0\n" in text(raw, "gpu1")


def test_plan_and_checker_know_the_same_checks(health):
    assert set(health.CHECKS) == nhc_conf.CHECKS


def test_no_interval_calls_nothing():
    whole = slurm_conf.files(
        view.of(plan.resolve(SCHEMA, example(**{"health:interval_s": 0})), "mgmt01")
    )
    assert "HealthCheck" not in whole[-1].text


@pytest.mark.parametrize(
    ("version", "known"), [("24.11.5", False), ("25.11.7", False), ("26.05.3", True)]
)
def test_a_time_out_only_for_a_slurm_that_knows_it(version, known):
    raw = example()
    source = {"version": version, "file": "s.tar.gz", "sha256": "0" * 64}
    raw["build"] = {"sources": {"slurm": source}}
    whole = slurm_conf.files(view.of(plan.resolve(SCHEMA, raw), "mgmt01"))[-1].text
    assert ("HealthCheckTimeout=55" in whole) == known


# --- the gate ---

CHECK = {"cause": "check_fs_free(/)", "passed": True, "finding": ""}
VIEW = {"health": {"interval_s": 300}}


def facts(interval=300, **check):
    checks = {"checks": [{**CHECK, **check}]}
    return {"checks": checks, "program": {"interval_s": interval}}


def test_the_gate_is_open_when_all_pass_and_slurm_calls_them():
    assert gates_environment.environment(facts(), VIEW) == []
    assert gates_environment.environment({}, VIEW) == [], "a host without jobs"


def test_the_gate_names_each_failing_check():
    (problem,) = gates_environment.environment(facts(passed=False, finding="1 % free"), VIEW)
    assert "check_fs_free(/)" in str(problem)
    assert "1 % free" in str(problem)


def test_the_gate_is_closed_when_slurm_does_not_call_the_checks():
    (problem,) = gates_environment.environment(facts(interval=0), VIEW)
    assert "found 0; expected 300" in str(problem)


def test_the_gate_is_closed_without_any_check():
    found = gates_environment.environment({**facts(), "checks": {"checks": []}}, VIEW)
    assert "no check for this node" in str(found[0])


# --- the table for people ---


def node(state="IDLE", owner="", reason="", causes=()):
    return {"state": state, "owner": owner, "reason": reason, "causes": list(causes), "since": ""}


def test_people_see_who_is_not_well_and_whose_the_drain_is():
    held = {"kind": "held", "name": "check_x"}
    status = {
        "n1": node(),
        "n2": node("IDLE+DRAIN", "person", "memory swap, J."),
        "n3": node(causes=[held]),
        "n4": node("DOWN+NOT_RESPONDING"),
        "n5": node("ALLOCATED"),
    }
    parts = health_overview.tables(status, ["n1", "n2", "n6"], whole=False)
    assert [row["node"] for row in parts["nodes"]] == ["n2", "n3", "n4"]
    assert parts["nodes"][0]["owner"] == "person"
    assert parts["nodes"][1]["watched"] == "held check_x"
    assert parts["summary"].startswith("5 nodes, 2 well")
    assert parts["not_in_slurm"] == "n6"
    assert len(health_overview.tables(status, [], whole=True)["nodes"]) == 5


def test_the_settings_of_the_drain_logic_hold_its_policy():
    host = view.of(plan.resolve(SCHEMA, example(**{"health:good_results": 7})), "node01")
    settings = json.loads(json.dumps(nhc_conf.settings(host, "/x/scontrol")))
    assert Policy.of(settings) == Policy(good_results=7), "the schema's defaults are the policy's"


def test_the_checker_runs_by_itself():
    said = subprocess.run(
        [sys.executable, "-I", str(CHECKER), "--list"], capture_output=True, text=True, check=True
    )
    assert set(said.stdout.split()) == nhc_conf.CHECKS
