"""Changes of the plan while a job runs: it lives, and what Slurm would not take is refused
beforehand."""

import pytest
from labs import until


@pytest.fixture
def running_job(lab):
    """A job that runs while the test does."""
    number = lab.job("sbatch --parsable -N2 -o /dev/null --wrap 'srun sleep 600'").strip()
    until(lambda: state(lab, number) == "RUNNING", 60, f"job {number} to run")
    yield number
    lab.job(f"scancel {number}")
    until(lambda: not state(lab, number), 60, f"job {number} to end")


def state(lab, number):
    """A job's state, empty when it is gone from the queue."""
    return lab.job(f"squeue -h -j {number} -o %T 2>/dev/null || true").strip()


def start_of(lab, number):
    return lab.job(
        f"scontrol show job {number} | grep -oE 'StartTime=[^ ]+|Restarts=[0-9]+|BatchHost=[^ ]+'"
    )


def config(lab, key):
    return lab.exec(
        "mgmt01", f"/opt/slurm/current/bin/scontrol show config | sed -n 's/^{key} *= //p'"
    ).strip()


def test_a_job_lives_through_changes_of_slurm_conf(lab, running_job):
    before = start_of(lab, running_job)
    with lab.plan({"slurm": {"parameters": {"KillWait": 45, "SlurmctldDebug": "verbose"}}}):
        changed = lab.highstate("mgmt01")["mgmt01"]
        failed = {
            name: result["comment"] for name, result in changed.items() if result["result"] is False
        }
        assert not failed
        assert config(lab, "KillWait").startswith("45")
    back = lab.highstate("mgmt01")["mgmt01"]
    assert all(result["result"] for result in back.values())
    assert config(lab, "KillWait").startswith("30")
    assert state(lab, running_job) == "RUNNING"
    assert start_of(lab, running_job) == before


ONE_CORE = {"node_types": {"small": {"cpus": 1, "cores_per_socket": 1}}}


def test_other_cores_are_refused_under_a_job_and_taken_without_one(lab, running_job):
    """slurmctld would requeue the job, whether slurmd was stopped first or not."""
    before = start_of(lab, running_job)
    with lab.plan(ONE_CORE):
        states = lab.highstate("mgmt01")["mgmt01"]
        refusal = states_comment(states)
        assert "corespersocket 2 -> 1" in refusal
        assert f"{running_job} researcher RUNNING" in refusal
        assert start_of(lab, running_job) == before
        lab.job(f"scancel {running_job}")
        until(lambda: not state(lab, running_job), 60, f"job {running_job} to end")
        until(lambda: not states_comment(lab.highstate("mgmt01")["mgmt01"]), 60, "one core taken")
        until(lambda: shape(lab) == "1 idle none", 60, "node01 with one core")
    until(lambda: not states_comment(lab.highstate("mgmt01")["mgmt01"]), 60, "both cores taken")
    until(lambda: shape(lab) == "2 idle none", 60, "node01 with both cores")
    lab.job("srun -N2 -n4 true")


def states_comment(states):
    """What failed, in words."""
    return "\n".join(found["comment"] for found in states.values() if found["result"] is False)


def shape(lab):
    """CPUs, state and reason; a star: slurmctld has just begun and not heard of the node."""
    return lab.exec("mgmt01", "/opt/slurm/current/bin/sinfo -h -n node01 -o '%c %t %E'").strip()


REFUSED = {
    "unknown key": (
        {"slurm": {"parameters": {"SlurmctldTimeoutt": 30}}},
        "slurm:parameters:SlurmctldTimeoutt",
    ),
    "bad value": (
        {"slurm": {"parameters": {"SelectTypeParameters": "CR_Nonsense"}}},
        "slurm:parameters",
    ),
    "another cluster name": ({"cluster": {"name": "other"}}, "cluster:name"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_slurm_would_refuse_is_refused_before_it_is_installed(lab, running_job, what):
    changes, where = REFUSED[what]
    before = lab.exec("mgmt01", "cat /etc/slurm/slurm.conf")
    with lab.plan(changes):
        states = lab.highstate("mgmt01")["mgmt01"]
    said = "\n".join(result["comment"] for result in states.values() if result["result"] is False)
    assert where in said
    assert "Traceback" not in said
    assert lab.exec("mgmt01", "cat /etc/slurm/slurm.conf") == before
    assert state(lab, running_job) == "RUNNING"


def test_a_broken_plan_touches_nothing(lab):
    with lab.plan({"partitions": {"batch": {"nodes": "node[01-09]"}}}):
        answer = lab.attempt("mgmt01", "salt node01 state.highstate")
        checked = lab.attempt("mgmt01", "salt-run saltern.plan")
    assert answer.returncode != 0
    assert "node[03-09], not in the plan" in answer.stdout
    assert checked.returncode != 0
    assert "node[03-09], not in the plan" in checked.stdout
    assert "Traceback" not in checked.stdout + checked.stderr


HWLOC = {"version": "2.9.0", "file": "hwloc_2.9.0.orig.tar.bz2", "sha256": "0" * 64}
TARBALLS = {
    "wrong checksum": (HWLOC, ("build:sources:hwloc", "found sha256", "refused/")),
    "not in the mirror": (
        {**HWLOC, "file": "hwloc-0.0.tar.bz2"},
        ("build:sources:hwloc", "found no file at", "hwloc-0.0.tar.bz2"),
    ),
}


@pytest.mark.parametrize("what", TARBALLS)
def test_a_tarball_that_is_not_the_plans_is_refused(lab, what):
    change, words = TARBALLS[what]
    look = "ls /opt/slurm /var/lib/saltern/artefacts; readlink /opt/slurm/current"
    before = lab.exec("mgmt01", look)
    with lab.plan({"build": {"sources": {"hwloc": change}}}):
        answer = lab.attempt("mgmt01", "salt-call slurm_build.build")
    said = answer.stdout + answer.stderr
    assert answer.returncode != 0
    assert all(word in said for word in words), said
    assert "Traceback" not in said
    assert lab.exec("mgmt01", look) == before
