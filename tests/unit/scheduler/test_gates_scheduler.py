"""The gate of phase 4 can close, and names what closed it."""

import copy

import pytest
from saltern import build_features, plan, view
from saltern.gates_scheduler import scheduler
from support import SCHEMA, example

FILES = [
    pattern.replace("*", "1").replace("v1", "v5")
    for feature in build_features.FEATURES.values()
    for pattern in feature.files
]
BINARY = "/opt/slurm/24.11.5-0123456789ab/sbin/slurmd"
UNIT = {
    "ActiveState": "active",
    "ConditionResult": "yes",
    "KillMode": "process",
    "Delegate": "yes",
    "NeedDaemonReload": "no",
    "Result": "success",
    "UnitFileState": "enabled",
}


def view_of(host):
    return view.of(plan.resolve(SCHEMA, example()), host)


def daemon(name):
    binary = BINARY.replace("slurmd", name)
    return {"active": True, "executable": binary, "binary": binary, "properties": dict(UNIT)}


def node_facts():
    return {
        "tree": {"path": "/opt/slurm/24.11.5-0123456789ab", "files": list(FILES)},
        "daemons": {"slurmd": daemon("slurmd")},
        "pings": {"error": "", "value": {"mgmt01": True}},
        "node": {
            "error": "",
            "memory_mb": 8000,
            "node": {
                "name": "node01",
                "base": "IDLE",
                "flags": [],
                "reason": "",
                "real_memory": 7600,
                "registered": True,
            },
        },
    }


def management_facts():
    return {
        **{key: node_facts()[key] for key in ("tree", "pings")},
        "daemons": {name: daemon(name) for name in ("slurmdbd", "slurmctld")},
        "slurmdbd": {"error": ""},
        "clusters": {"error": "", "value": ["lab"]},
        "room": {"path": "/state", "free": 9 << 20, "inodes": 5000, "needed": 4 << 20, "error": ""},
    }


def test_open_on_every_kind_of_host():
    assert scheduler(node_facts(), view_of("node01")) == []
    assert scheduler(management_facts(), view_of("mgmt01")) == []
    assert scheduler({"daemons": {}}, view_of("login01")) == []


def changed(facts, path, value):
    facts = copy.deepcopy(facts)
    *parents, last = path.split("/")
    place = facts
    for key in parents:
        place = place[key]
    place[last] = value
    return facts


NODE = "node/node/"
UNIT_PATH = "daemons/slurmd/properties/"
CLOSED = [
    ("tree/path", None, "no tree"),
    ("tree/files", [f for f in FILES if "pmix" not in f], "feature pmix"),
    ("tree/files", [f for f in FILES if "gpu_nvml" not in f], "feature nvml"),
    ("daemons/slurmd/active", False, "unit slurmd"),
    ("daemons/slurmd/executable", "/opt/slurm/old/sbin/slurmd", "the running program is"),
    (UNIT_PATH + "KillMode", "control-group", "KillMode"),
    (UNIT_PATH + "Delegate", "no", "Delegate"),
    (UNIT_PATH + "UnitFileState", "disabled", "enabled at boot"),
    (UNIT_PATH + "NeedDaemonReload", "yes", "daemon-reload"),
    ("pings/value", {"mgmt01": False}, "slurmctld on mgmt01"),
    ("pings/error", "no answer", "no answer"),
    ("node/node", {}, "node node01"),
    (NODE + "flags", ["INVALID_REG"], "registration is invalid"),
    (NODE + "registered", False, "never registered"),
    (NODE + "base", "DOWN", "state DOWN"),
    (NODE + "flags", ["NOT_RESPONDING"], "NOT_RESPONDING"),
    ("node/memory_mb", 7000, "7000 MiB, 600 MiB too few"),
    (NODE + "real_memory", 7000, "-600 MiB"),
]


@pytest.mark.parametrize(
    ("path", "value", "said"), CLOSED, ids=[f"{p}={v}"[:50] for p, v, _ in CLOSED]
)
def test_closed_on_a_node(path, value, said):
    found = scheduler(changed(node_facts(), path, value), view_of("node01"))
    assert said in " | ".join(str(problem) for problem in found)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("slurmdbd/error", "Connection refused", "Connection refused"),
        ("clusters/value", ["other"], "found other; expected the cluster lab"),
        ("clusters/error", "no answer", "no answer"),
        ("daemons/slurmctld/active", False, "unit slurmctld"),
        ("room/free", 4 << 20, "/state: found 4096 KiB free; expected 5120 KiB"),
        ("room/inodes", 12, "room for 12 more files"),
        ("room/error", "no answer of the file system", "no answer of the file system"),
    ],
)
def test_closed_on_a_controller(path, value, said):
    found = scheduler(changed(management_facts(), path, value), view_of("mgmt01"))
    assert said in " | ".join(str(problem) for problem in found)


def test_a_file_system_that_counts_no_files_has_room_for_them():
    facts = changed(management_facts(), "room/inodes", None)
    assert scheduler(facts, view_of("mgmt01")) == []


def test_a_failed_condition_is_a_failure_with_its_name():
    facts = changed(node_facts(), "daemons/slurmd/active", False)
    facts = changed(facts, UNIT_PATH + "ConditionResult", "no")
    assert "a condition failed" in str(scheduler(facts, view_of("node01"))[0])


@pytest.mark.parametrize("flags", [["DRAIN"], ["DRAIN", "SOME_NEW_FLAG"], ["MAINTENANCE"]], ids=str)
def test_a_persons_drain_is_no_fault(flags):
    assert scheduler(changed(node_facts(), NODE + "flags", flags), view_of("node01")) == []


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ({"error": "", "value": []}, None),
        ({"error": "", "value": ["database", "account 10.0.0.2"]}, "no database, no account 10"),
        ({"error": "MariaDB on this host does not answer", "value": None}, "does not answer"),
    ],
    ids=["whole", "bare", "silent"],
)
def test_a_host_that_only_runs_mariadb_has_its_gate(answer, words):
    found = [str(one) for one in scheduler({"daemons": {}, "mariadb": answer}, {})]
    assert len(found) == (1 if words else 0)
    assert all(words in one for one in found)
