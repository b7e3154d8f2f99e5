"""The jobs at the end of `make cluster`, run by an ordinary user from the login host.

The MPI job is real: a small static Open MPI is compiled against the PMIx and hwloc of the deployed
Slurm tree. A cluster of this phase has no MPI for its users yet (phase 5), so the lab compiles it
in a throw-away root that holds the tree and a compiler, without privileges, beside the running
highstate; it is kept in the cache by what goes in.
"""

import hashlib
import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

from saltern_lab import hosts, roots
from saltern_lab.errors import LabError
from saltern_lab.master import Master
from saltern_lab.paths import LAB_DIR, cache_dir
from saltern_lab.record import Lab, locked
from saltern_lab.topology import Topology

Say = Callable[[str], None]
PREFIX = "opt/slurm"
PACKAGES = "build-essential pkg-config libevent-dev zlib1g-dev libmunge-dev perl"
USER_ID = 65534
"""The MPI program is compiled by nobody."""


class MpiBuild:
    """The MPI program, compiled as soon as a Slurm tree is deployed, waited for at the end."""

    def __init__(self, lab: Lab, master: Master) -> None:
        self.lab = lab
        self.master = master
        self.thread: threading.Thread | None = None
        self.program: Path | None = None
        self.error: LabError | None = None

    def poke(self) -> None:
        """Start the build if a tree is deployed on the builder and it was not started yet."""
        if self.thread is None and self._tree() is not None:
            self.thread = threading.Thread(target=self._work, daemon=True)
            self.thread.start()

    def result(self) -> Path:
        """The program; waits for its build."""
        self.poke()
        if self.thread is None:
            raise LabError(
                f"{self.master.host} has no Slurm tree at /{PREFIX}/current to compile the MPI job "
                "against."
            )
        self.thread.join()
        if self.error:
            raise self.error
        assert self.program is not None
        return self.program

    def _tree(self) -> Path | None:
        """The active tree of the builder, as this machine sees it."""
        root = self.lab.disk(self.master.host) / "merged"
        link = root / PREFIX / "current"
        if not link.is_symlink():
            return None
        tree = root / PREFIX / link.readlink().name
        return tree if (tree / "lib" / "libpmix.so").exists() else None

    def _work(self) -> None:
        try:
            self.program = self._build()
        except LabError as error:
            self.error = error

    def _build(self) -> Path:
        tree = self._tree()
        tarball = next((cache_dir() / "sources").glob("openmpi_*"), None)
        if tree is None or tarball is None:
            raise LabError("The MPI job needs the deployed Slurm tree and the Open MPI source.")
        parts = [tree.name, tarball.name]
        parts += [
            (LAB_DIR / "jobs" / name).read_text("utf-8") for name in ("build_mpi.sh", "mpi_hello.c")
        ]
        key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]
        program = cache_dir() / "jobs" / f"mpi_hello-{key}"
        with locked(cache_dir(), "jobs"):
            if not program.exists():
                self._compile(tree, tarball, program)
        return program

    def _compile(self, tree: Path, tarball: Path, program: Path) -> None:
        program.parent.mkdir(parents=True, exist_ok=True)
        out = cache_dir() / "tmp" / f"jobs-{os.getpid()}"
        out.mkdir(parents=True)
        os.chown(out, USER_ID, USER_ID)
        want = roots.wanted()
        ours = roots.machine(want["suite"], want["components"])
        layers = [Path(layer) for layer in self.lab.host(self.master.host).layers]
        name = f"/{PREFIX}/{tree.name}"
        script = (
            "set -e; export DEBIAN_FRONTEND=noninteractive; "
            f"{roots.apt_install(ours, PACKAGES)}; cd /out; export HOME=/out TMPDIR=/out; "
            f"exec setpriv --reuid={USER_ID} --regid={USER_ID} --clear-groups --no-new-privs "
            f"nice -n 5 sh /jobs/build_mpi.sh /src/{tarball.name} {name} /out"
        )
        try:
            with roots.throw_away(layers) as root:
                roots.real_sources(root, ours)
                binds = [f"{out}:/out"]
                read_only = [
                    f"{LAB_DIR / 'jobs'}:/jobs",
                    f"{tarball.parent}:/src",
                    f"{tree}:{name}",
                ]
                what = "Compiling the MPI job"
                roots.inside(root, script, binds=binds, read_only=read_only, what=what)
            staged = program.with_name(f".new-{program.name}")
            shutil.copyfile(out / "mpi_hello", staged)
            staged.chmod(0o755)
            staged.replace(program)
        finally:
            shutil.rmtree(out, ignore_errors=True)


def run_all(lab: Lab, plan: Topology, mpi: MpiBuild, say: Say) -> list[tuple[str, str]]:
    """Run the jobs; each command as typed, with its output. A failure raises LabError."""
    if plan.login is None:
        raise LabError(f"The topology {plan.name} names no login host for the jobs.")
    say(f"jobs as {plan.job_user} from {plan.login}")
    outputs = [_job(lab, plan, "srun -N2 hostname")]
    if mpi.thread is None or mpi.thread.is_alive():
        say("waiting for the MPI job's compilation")
    folder = "/usr/local/lib/saltern-lab"
    _copy(lab, plan.login, mpi.result(), f"{folder}/mpi_hello")
    outputs.append(
        _job(
            lab,
            plan,
            f"srun -N2 --ntasks-per-node=2 --mpi=pmix --bcast=/tmp/mpi_hello {folder}/mpi_hello",
        )
    )
    return outputs


def _job(lab: Lab, plan: Topology, command: str) -> tuple[str, str]:
    assert plan.login is not None
    output = hosts.execute(
        lab,
        plan.login,
        ["sh", "-c", command],
        user=plan.job_user,
        what=f"The job `{command}`",
        timeout=300,
    )
    return command, output


def _copy(lab: Lab, host: str, program: Path, target: str) -> None:
    script = 'mkdir -p "${1%/*}"; cat > "$1.new"; chmod 0755 "$1.new"; mv "$1.new" "$1"'
    command = hosts.enter(lab, host, ["sh", "-ec", script, "copy", target])
    with program.open("rb") as file:
        done = subprocess.run(command, stdin=file, check=False)
    if done.returncode != 0:
        raise LabError(f"Copying the MPI job to {host} failed.")
