"""Hosts come into the cluster by themselves, and leave it in order: real hosts, a real Slurm."""

import re
import time

import pytest
from labs import until

SCONTROL = "/opt/slurm/current/bin/scontrol"
PERSON = "memory swap, J."
JOIN_S = 240


def plan(lab, nodes="node[03-04]", numbers="[23-24]", kind="small", batch="node[01-04]"):
    return {
        "hosts": {
            nodes: {"roles": ["compute"], "address": lab.address(numbers), "node_type": kind}
        },
        "node_types": {"huge": {"cpus": 512, "memory_mb": 4000000}},
        "elastic": {"cloud": {"ids": "cloud-*", "node_type": "small", "most": 8}},
        "partitions": {"batch": {"nodes": batch, "elastic": ["cloud"]}},
        "join": {"retry_s": 600},
    }


@pytest.fixture(scope="module")
def image(lab, tmp_path_factory):
    """User-data of an image: what `salt-run saltern.token` prints."""
    path = tmp_path_factory.mktemp("image") / "join.sh"
    path.write_text(lab.exec("mgmt01", "salt-run saltern.token format=script"), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def wide(lab):
    """The cluster with room: an elastic group first, then two hosts more that do not exist."""
    narrow = plan(lab)
    narrow["hosts"], narrow["partitions"]["batch"]["nodes"] = {}, "node[01-02]"
    with lab.plan(narrow):
        assert not failed(lab.highstate("mgmt01"))
        yield lab
    assert not failed(lab.highstate("mgmt01"))


def failed(results):
    return [
        f"{host}: {name}: {state['comment']}"
        for host, states in results.items()
        for name, state in states.items()
        if state["result"] is False
    ]


def history(lab, host):
    return [
        row for row in lab.runner("saltern.joins", "last=500")["history"] if row["host"] == host
    ]


def joined(lab, host, since=0):
    return [row for row in history(lab, host)[since:] if row["what"] == "joined"]


def complete_at(lab, host):
    rows = lab.runner("saltern.joins", "hosts=True")["hosts"]
    return next(row["complete at"] for row in rows if row["host"] == host)


def queued(lab, host):
    """A host's row of the queue, None when it is not there."""
    queue = lab.runner("saltern.joins")["queue"]
    return next((row for row in queue if row["host"] == host), None) if queue != "empty" else None


def node(lab, name):
    """State and reason of a node."""
    text = lab.exec("mgmt01", f"{SCONTROL} show node {name} 2>&1 || true")
    state = re.search(r"State=(\S+)", text)
    reason = re.search(r"Reason=(.*?)(?: \[|$)", text, re.M)
    return (state[1] if state else "", reason[1] if reason else "")


def starts(lab, host, unit):
    return lab.exec(host, f"systemctl show -P ActiveEnterTimestampMonotonic {unit}").strip()


def test_a_wider_plan_touches_the_controller_only_and_holds_what_is_not_there(wide):
    lab = wide
    before = {host: starts(lab, host, "slurmd") for host in ("node01", "node02")}
    controller = starts(lab, "mgmt01", "slurmctld")
    job = lab.job("sbatch --parsable -w node01 -o /dev/null --wrap 'sleep 600'").strip()
    try:
        lab.replan(plan(lab))
        assert not failed(lab.highstate("mgmt01"))
        for name in ("node03", "node04"):
            state, reason = node(lab, name)
            assert "DRAIN" in state and reason.startswith("saltern: join: declared")
        assert lab.job("sinfo -h -N -n node[01-04] -o %N").split() == [
            "node01", "node02", "node03", "node04",
        ]  # fmt: skip
        assert {host: starts(lab, host, "slurmd") for host in before} == before
        assert starts(lab, "mgmt01", "slurmctld") == controller
        assert lab.job(f"squeue -h -j {job} -o %T").strip() == "RUNNING"
    finally:
        lab.job(f"scancel {job}")


def test_a_bare_host_runs_jobs_some_time_after_its_power_on_and_nobody_typed_anything(wide, image):
    lab = wide
    began = time.monotonic()
    lab.do("add", "node03", "--address", "23", "--first-boot", str(image))
    until(lambda: joined(lab, "node03"), JOIN_S, "node03 to join")
    print(f"node03: {time.monotonic() - began:.0f} s; {joined(lab, 'node03')[0]['detail']}")
    assert node(lab, "node03") == ("IDLE", "")
    assert lab.job("srun -w node03 hostname").strip() == "node03"
    for step in ("modules", "pillar", "controllers", "highstate", "registered", "p4_scheduler"):
        assert re.search(rf"\b{step} [0-9.]+ s", joined(lab, "node03")[0]["detail"]), step
    admitted = next(row for row in history(lab, "node03") if row["what"] == "admitted")
    assert (admitted["by"], admitted["detail"][:10]) == ("the master", "join token")
    assert not lab.machine("node03").file("/etc/salt/minion.d/saltern_join_token.conf").exists


def test_a_second_start_of_a_complete_host_is_one_question(wide):
    lab = wide
    before = len(history(lab, "node03")), complete_at(lab, "node03")
    applied = lab.machine("node03").file("/var/lib/saltern/gates.json").mtime
    lab.exec("node03", "systemctl restart salt-minion")
    until(lambda: complete_at(lab, "node03") > before[1], 60, "node03 to be asked")
    assert len(history(lab, "node03")) == before[0], "nothing was done"
    assert lab.machine("node03").file("/var/lib/saltern/gates.json").mtime == applied


def test_an_elastic_host_comes_runs_a_job_and_goes(wide, image):
    lab = wide
    controller = starts(lab, "mgmt01", "slurmctld")
    lab.do("add", "cloud-7", "--address", "77", "--first-boot", str(image))
    until(lambda: joined(lab, "cloud-7"), JOIN_S, "cloud-7 to join")
    assert lab.job("srun -w cloud-7 hostname").strip() == "cloud-7"
    assert starts(lab, "mgmt01", "slurmctld") == controller
    assert "retired" in lab.runner("saltern.retire", "cloud-7")
    assert node(lab, "cloud-7") == ("", "")
    assert "cloud-7" not in lab.exec("mgmt01", "salt-key --list=accepted")
    lab.do("power-off", "cloud-7")


def test_a_host_whose_highstate_fails_stays_held_says_why_and_joins_when_it_is_mended(wide, image):
    lab = wide
    both = plan(lab, "node03", "23")
    both["hosts"]["node04"] = {
        "roles": ["compute"], "address": lab.address("24"), "node_type": "huge",
    }  # fmt: skip
    lab.replan(both)
    assert not failed(lab.highstate("mgmt01"))
    lab.do("add", "node04", "--address", "24", "--first-boot", str(image))
    until(lambda: (queued(lab, "node04") or {}).get("tries") == 1, JOIN_S, "node04 to fail")
    until(lambda: (queued(lab, "node04") or {})["state"] == "waiting", JOIN_S, "node04 to fail")
    row = queued(lab, "node04")
    assert row["reason"].startswith("p0_plan:") and "512" in row["reason"]
    state, reason = node(lab, "node04")
    assert "DRAIN" in state and "p0_plan" in reason
    lab.replan(plan(lab))
    assert not failed(lab.highstate("mgmt01"))
    lab.runner("saltern.join", "node04")
    until(lambda: (queued(lab, "node04") or {}).get("state") == "working", 60, "its next try")
    lab.do("power-off", "node04")
    until(lambda: (queued(lab, "node04") or {})["state"] == "waiting", JOIN_S, "it to be missed")
    assert "node04 fell silent" in queued(lab, "node04")["reason"]
    lab.do("power-on", "node04")
    until(lambda: joined(lab, "node04"), JOIN_S, "node04 to join")
    assert node(lab, "node04") == ("IDLE", "")


def test_a_person_s_drain_survives_a_highstate_a_join_and_a_replace(wide):
    lab = wide
    lab.exec("mgmt01", f"{SCONTROL} update nodename=node03 state=drain reason='{PERSON}'")
    assert not failed(lab.highstate("node03"))
    assert node(lab, "node03") == ("IDLE+DRAIN", PERSON)
    before = len(history(lab, "node03"))
    lab.exec("node03", "rm /var/lib/saltern/gates.json; systemctl restart salt-minion")
    until(lambda: joined(lab, "node03", before), JOIN_S, "node03 to join again")
    assert joined(lab, "node03", before)[0]["detail"] != ""
    assert node(lab, "node03") == ("IDLE+DRAIN", PERSON)
    # Its disk is new: another key under a known name.
    lab.exec("node03", "rm -rf /etc/salt/pki/minion; systemctl restart salt-minion")
    found = until(lambda: second_key(lab, "node03"), 90, "the second key to be seen")
    finger = lab.exec("node03", "salt-call --local --out=txt key.finger").split()[-1]
    assert finger in found["reason"]
    done = lab.runner("saltern.replace", "node03", f"fingerprint={finger}")
    assert "replaced" in done
    before = len(history(lab, "node03"))
    lab.exec("node03", "systemctl restart salt-minion")
    until(lambda: joined(lab, "node03", before), JOIN_S, "node03 to join with its new key")
    assert node(lab, "node03") == ("IDLE+DRAIN", PERSON)
    lab.exec("mgmt01", f"{SCONTROL} update nodename=node03 state=undrain")


def second_key(lab, host):
    keys = lab.runner("saltern.joins")["keys_not_admitted"]
    rows = [row for row in keys if row["id"] == host] if keys != "none" else []
    return rows[0] if rows and rows[0]["outcome"] == "second key" else None


def test_retire_waits_for_jobs_and_ends_none(wide):
    lab = wide
    job = lab.job("sbatch --parsable -w node03 -o /dev/null --wrap 'sleep 600'").strip()
    until(lambda: lab.job(f"squeue -h -j {job} -o %T").strip() == "RUNNING", 60, "the job to run")
    refused = lab.runner("saltern.retire", "node03", check=False)
    assert any(line.startswith(job) for line in refused["jobs"])
    # A plan without the node is refused while the job runs there.
    lab.replan(plan(lab, "node04", "24", batch="node[01-02,04]"))
    said = "\n".join(failed(lab.highstate("mgmt01")))
    assert "node03" in said and "salt-run saltern.retire node03" in said
    assert lab.job(f"squeue -h -j {job} -o %T").strip() == "RUNNING"
    lab.job(f"scancel {job}")
    done = lab.runner("saltern.retire", "node03", "wait_s=60")
    assert "retired" in done
    assert node(lab, "node03") == ("", "")
    assert "node03" not in lab.exec("mgmt01", "salt-key --list=accepted")
    lab.do("power-off", "node03")


def test_the_last_host_leaves_with_the_plan(wide):
    lab = wide
    narrow = plan(lab)
    narrow["hosts"], narrow["partitions"]["batch"]["nodes"] = {}, "node[01-02]"
    lab.replan(narrow)
    assert "retired" in lab.runner("saltern.retire", "node04", "wait_s=60")
    lab.do("power-off", "node04")
    assert lab.job("sinfo -h -N -o %N").split() == ["node01", "node02"]
