"""Jobs of the lab's ordinary user, and what accounting has of them."""

from labs import until

TOLD = "USR1"


def asked(lab, command):
    """What a command of Slurm's says to the ordinary user; None when it does not answer, as while
    a daemon begins."""
    script = f". /etc/profile.d/slurm.sh; cd; {command}"
    said = lab.attempt("login01", script, user="researcher", timeout=180)
    return None if said.returncode else said.stdout


def state(lab, job):
    return (asked(lab, f"squeue -h --states=all --jobs={job} -o %T") or "").strip()


def runs_for(lab, job):
    """Seconds; squeue's %M is [days-][hours:]minutes:seconds."""
    minutes, seconds = lab.job(f"squeue -h --jobs={job} -o %M").strip().split(":")[-2:]
    return 60 * int(minutes) + int(seconds)


def submit(lab, options):
    said = lab.job(f"sbatch --parsable --mem=100 -n1 -o /dev/null {options}", timeout=180)
    return said.strip()


def sleeper(lab, seconds):
    """A job that ends well by itself; it runs when this returns."""
    job = submit(lab, f"--wrap='sleep {seconds}'")
    until(lambda: state(lab, job) == "RUNNING", 60, f"job {job} to run")
    return job


def endless(lab, options=""):
    """A job that runs until ``end`` tells it to end well, however long a test takes meanwhile."""
    job = submit(lab, f"{options} --time=30 --wrap='trap \"exit 0\" {TOLD}; sleep 1800 & wait'")
    until(lambda: state(lab, job) == "RUNNING", 60, f"job {job} to run")
    return job


def end(lab, job):
    """Tell an endless job to end."""
    lab.job(f"scancel --batch --signal={TOLD} {job}")


def recorded(lab, jobs):
    """What accounting has of jobs: {job: (state, restarts)}; None when it does not answer."""
    listed = ",".join(jobs)
    command = f"sacct -n -X -P --format=jobid,state,restarts --jobs={listed}"
    said = asked(lab, command)
    if said is None:
        return None
    rows = [line.split("|") for line in said.splitlines()]
    return {job: (state, restarts) for job, state, restarts in rows}


def lived(lab, *jobs):
    """Each job completed, none was started twice, and accounting says so."""
    wanted = dict.fromkeys(jobs, ("COMPLETED", "0"))
    until(lambda: recorded(lab, jobs) == wanted, 180, f"jobs {jobs} in accounting")
