"""Every host of a plan with every role, on every system: what Salt's compiler makes of it."""

import inspect
import json
import subprocess
from fnmatch import fnmatch

import pytest
from compiler import ROOT, SYSTEMS, Compiler, plan_os
from support import everyone, example

REQUISITES = ("require", "watch", "onchanges", "prereq", "listen", "onfail")
ORDER = ("p0_plan", "p1_foundation", "p4_scheduler", "p5_environment", "p7_identity", "service")
HOSTS = (
    *("ctl1", "ctl2", "db1", "db2", "sql1", "bld1"),
    *("login1", "cpu1", "gpu1", "store1", "mon1", "dir1"),
)
CLIENT = "directory_client_password"  # of each host that asks the directory
SECRETS = {
    "ctl1": {"munge_key", "jwt_key", CLIENT},
    "db1": {"munge_key", "jwt_key", "slurmdbd_password", CLIENT},
    "db2": {"munge_key", "jwt_key", "slurmdbd_password", CLIENT},
    "sql1": {"slurmdbd_password"},
    "bld1": set(),
    "login1": {"munge_key", CLIENT},
    "cpu1": {"munge_key", CLIENT},
    "gpu1": {"munge_key", CLIENT},
    "store1": set(),
    "mon1": set(),
    "dir1": {CLIENT, "directory_replication_password", "directory_key"},
}


@pytest.fixture(scope="module", params=SYSTEMS, ids=[name.replace(" ", "-") for name in SYSTEMS])
def system(request):
    return request.param


@pytest.fixture(scope="module")
def compiler(system, tmp_path_factory):
    return Compiler(tmp_path_factory.mktemp("render"), {**everyone(), "os": plan_os(system)})


@pytest.fixture(scope="module")
def begun():
    """The programs that our modules ran while the hosts were compiled."""
    return []


@pytest.fixture(scope="module")
def compiled(compiler, system, begun):
    """The chunks of each host, compiled once."""

    class Watched(subprocess.Popen):
        def __init__(self, args, *rest, **keywords):
            if any(frame.filename.startswith(f"{ROOT}/_modules") for frame in inspect.stack(0)):
                begun.append(args)
            super().__init__(args, *rest, **keywords)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(subprocess, "Popen", Watched)
        return {host: compiler.chunks(host, system) for host in HOSTS}


def targets(chunk, chunks):
    """The chunks that a chunk requires; fails for a requisite whose target is not there (Salt would
    not)."""
    found = []
    for kind in REQUISITES:
        for requisite in chunk.get(kind, []):
            ((state, name),) = (
                requisite.items() if isinstance(requisite, dict) else ((None, requisite),)
            )
            hits = [
                other
                for other in chunks
                if other is not chunk
                and (
                    fnmatch(other["__sls__"], name)
                    if state == "sls"
                    else name in (other["__id__"], other["name"])
                    and state in (None, "id", other["state"])
                )
            ]
            assert hits, (
                f"{chunk['__sls__']}: {chunk['__id__']!r} requires {requisite}, which is not there"
            )
            found += hits
    return found


def test_each_requisite_has_its_target(compiled):
    for chunks in compiled.values():
        for chunk in chunks:
            targets(chunk, chunks)


def test_each_phase_waits_for_the_gate_before_it(compiled):
    for host, chunks in compiled.items():
        needs = {id(chunk): targets(chunk, chunks) for chunk in chunks}

        def reaches(chunk, gate, needs=needs, seen=None):
            seen = seen if seen is not None else set()
            seen.add(id(chunk))
            return any(
                other["__id__"] == gate
                or (id(other) not in seen and reaches(other, gate, needs, seen))
                for other in needs[id(chunk)]
            )

        gates = {chunk["__id__"] for chunk in chunks}
        for chunk in chunks:
            phase = chunk["__sls__"].split(".")[0]
            # The phase before it that this host has: a controller has no phase 5, a node no 7.
            earlier = [name for name in ORDER[: ORDER.index(phase)] if f"{name}: gate" in gates]
            assert earlier or phase == ORDER[0], f"{host}: nothing before {phase}"
            for before in earlier[-1:]:
                assert reaches(chunk, f"{before}: gate"), (
                    f"{host}: {chunk['__id__']!r} does not wait for {before}"
                )


def test_names_are_explicit_and_ids_unique(compiled):
    for chunks in compiled.values():
        seen = [(chunk["state"], chunk["fun"], chunk["__id__"]) for chunk in chunks]
        assert len(seen) == len(set(seen))
        for chunk in chunks:
            component, colon, sentence = chunk["__id__"].partition(": ")
            assert colon and component and sentence, (
                f"{chunk['__sls__']}: the id {chunk['__id__']!r}"
            )
            if chunk["state"] not in ("module",):
                assert chunk["name"] != chunk["__id__"], (
                    f"{chunk['__sls__']}: {chunk['__id__']!r} has no name"
                )


def test_files_have_owner_group_and_mode(compiled):
    for chunk in (chunk for chunks in compiled.values() for chunk in chunks):
        if (chunk["state"], chunk["fun"]) in {
            ("file", "managed"),
            ("file", "directory"),
            ("secret", "file"),
        }:
            assert {"user", "group", "mode"} <= chunk.keys(), chunk["__id__"]
            assert isinstance(chunk["mode"], str) and chunk["mode"].startswith("0"), chunk["__id__"]


def test_compiled_states_hold_no_secret(compiler, compiled, system):
    for host, chunks in compiled.items():
        text = json.dumps(chunks, default=str)
        for name, value in compiler.pillar(host, system)["saltern"]["secrets"].items():
            assert value not in text, f"{host}: the value of {name} stands in a compiled state"


@pytest.mark.parametrize("host", SECRETS)
def test_secrets_go_to_those_who_need_them(compiler, system, host):
    assert compiler.pillar(host, system)["saltern"]["secrets"].keys() == SECRETS[host]


def test_only_controllers_know_the_configuration(compiler, system):
    assert "nodes" in compiler.pillar("ctl2", system)["saltern"]["slurm"]
    assert "nodes" not in compiler.pillar("cpu1", system)["saltern"]["slurm"]
    assert "slurm" not in compiler.pillar("mon1", system)["saltern"]


def test_the_same_plan_compiles_to_the_same_states(compiler, compiled, system):
    again = compiler.chunks("ctl1", system)
    assert json.dumps(again, default=str) == json.dumps(compiled["ctl1"], default=str)


def test_compiling_runs_no_program(compiled, begun):
    """What our modules answer an SLS depends on the plan and the system, not on the host."""
    assert not begun, begun


def test_a_host_the_plan_does_not_know_gets_nothing(compiler, system):
    pillar = compiler.pillar("stranger", system)
    assert "saltern" not in pillar
    assert any("knows no host 'stranger'" in error for error in pillar["_errors"])
    with pytest.raises(AssertionError, match="stranger"):
        compiler.chunks("stranger", system)


def test_a_broken_plan_stops_every_state(tmp_path):
    broken = Compiler(tmp_path, example(**{"hosts:login01:address": "10.213.0.11"}))
    pillar = broken.pillar("node01", "Debian 13")
    assert "saltern" not in pillar
    assert any("mgmt01 and login01" in error for error in pillar["_errors"])
    with pytest.raises(AssertionError, match="no view of the plan"):
        broken.chunks("node01", "Debian 13")


def test_the_provider_lbnl_compiles_too(tmp_path):
    plan = example()
    source = {"version": "1.4.3", "file": "lbnl-nhc-1.4.3.tar.xz", "sha256": "0" * 64}
    plan["health"] = {"provider": "lbnl", "source": source}
    chunks = Compiler(tmp_path, plan).chunks("node01", "Debian 13")
    for chunk in chunks:
        targets(chunk, chunks)
    assert "nhc_lbnl" in {chunk["state"] for chunk in chunks}


def test_a_small_cluster_has_everything_on_one_host(tmp_path):
    chunks = Compiler(tmp_path, example()).chunks("mgmt01", "Debian 13")
    needs = {chunk["__id__"]: targets(chunk, chunks) for chunk in chunks}
    before = {chunk["__sls__"] for chunk in needs["slurmdbd: daemon"]}
    assert "p4_scheduler.database" in before
    assert {"slurmdbd: waits for MariaDB", "slurmdbd: another answers"}.isdisjoint(needs)


def test_a_slurmdbd_in_reserve_waits_for_mariadb_and_for_the_first(compiled):
    for host, waits in (
        ("db1", {"slurmdbd: waits for MariaDB"}),
        ("db2", {"slurmdbd: waits for MariaDB", "slurmdbd: another answers"}),
    ):
        chunks = compiled[host]
        daemon = next(chunk for chunk in chunks if chunk["__id__"] == "slurmdbd: daemon")
        before = {chunk["__id__"] for chunk in targets(daemon, chunks)}
        assert waits == before & {"slurmdbd: waits for MariaDB", "slurmdbd: another answers"}
    packages = {
        host for host in compiled if any(c["__id__"] == "database: package" for c in compiled[host])
    }
    assert packages == {"sql1"}
