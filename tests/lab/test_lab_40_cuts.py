"""Cuts: a run that was killed, a host that lost its power. The next run finishes what was begun."""

from jobs import end, endless, lived, state, submit
from labs import until

STATE = "/var/spool/slurmctld"


def idle(lab, node):
    return lab.job(f"sinfo -h -n {node} -o %T").strip() == "idle"


def test_a_run_that_was_killed_is_finished_by_the_next(lab):
    """node02 loses its tree and units; the run that brings them back is killed while it unpacks or
    starts."""
    lab.exec(
        "node02",
        "systemctl disable --now slurmd; rm -rf /opt/slurm/* /etc/systemd/system/slurmd.service",
    )
    lab.exec(
        "node02",
        "salt-call --out=quiet state.highstate & run=$!; "
        'for i in $(seq 1200); do [ -z "$(ls -A /opt/slurm)" ] || break; sleep 0.05; done; '
        "kill -9 $run; wait $run; true",
    )
    assert not lab.machine("node02").service("slurmd").is_running
    states = lab.highstate("node02")["node02"]
    assert all(state["result"] for state in states.values()), states
    until(lambda: idle(lab, "node02"), 60, "node02 to be idle")
    assert lab.job("srun -N2 hostname | sort").split() == ["node01", "node02"]
    assert not lab.exec("node02", "ls -A /opt/slurm | grep '^[.]' || true").strip()


def test_a_node_comes_back_after_a_power_cut(lab):
    lab.do("power-off", "node01")
    lab.do("power-on", "node01")
    until(
        lambda: lab.attempt("node01", "systemctl is-active slurmd").stdout.strip() == "active",
        90,
        "slurmd on node01",
    )
    until(lambda: idle(lab, "node01"), 120, "node01 to be idle")
    assert lab.job("srun -w node01 hostname").strip() == "node01"


def test_the_gates_are_open_at_the_end(lab):
    for host in ("mgmt01", "login01", "node01", "node02"):
        for phase in ("p0_plan", "p1_foundation", "p4_scheduler"):
            assert lab.gate(host, phase) == [], f"{host} {phase}"


def test_a_full_disk_under_the_state_loses_no_job_and_closes_the_gate(lab):
    """StateSaveLocation moves to a small file system, which is filled under a running job."""
    runs = endless(lab)
    move = (
        "set -e; systemctl stop slurmctld; rm -rf /run/state; cp -a {old} /run/state; {mount}; "
        "cp -a /run/state/. {new}; systemctl start slurmctld"
    )
    mount = f"mount -t tmpfs -o size=2m,mode=0700,uid=slurm,gid=slurm none {STATE}"
    lab.exec("mgmt01", move.format(old=STATE, mount=mount, new=STATE))
    try:
        assert lab.gate("mgmt01", "p4_scheduler") == []
        lab.attempt("mgmt01", f"dd if=/dev/zero of={STATE}/filler bs=4k 2>/dev/null")
        (words,) = lab.gate("mgmt01", "p4_scheduler")
        assert words.startswith(f"{STATE}: found 0 KiB free; expected "), words
        refused = lab.attempt(
            "login01",
            ". /etc/profile.d/slurm.sh; cd; sbatch --mem=10 -n1 --wrap=true",
            user="researcher",
        )
        assert refused.returncode, "a job that cannot be saved is not taken"
        assert state(lab, runs) == "RUNNING"
        lab.exec("mgmt01", f"rm {STATE}/filler")
        assert lab.gate("mgmt01", "p4_scheduler") == []
        new = submit(lab, "--wrap='sleep 1'")
    finally:
        lab.exec("mgmt01", move.format(old=STATE, mount=f"umount {STATE}", new=STATE))
    end(lab, runs)
    lived(lab, runs, new)
