"""`make cluster`: the lab up, a production site's own command, real jobs at the end."""

import contextlib
import json
import queue
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Console

from saltern_lab import hosts, jobs, lifecycle, sources, topology
from saltern_lab.errors import LabError
from saltern_lab.events import HostResult, Progress, json_documents, parse_line, result_of
from saltern_lab.master import Master
from saltern_lab.progress import View, clock, summary
from saltern_lab.record import Lab, write_json

Say = Callable[[str], None]
HIGHSTATE = ["salt", "--out=json", "*", "state.highstate"]
BUSY_S = 3600


def cluster(name: str, topology_name: str | None, wanted_subnet: str | None, say: Say) -> int:
    """From whatever is there to a cluster that ran jobs. Returns the exit status."""
    started = time.monotonic()
    times: dict[str, float] = {}
    with _timed(times, "up_s"):
        lab = lifecycle.up(name, topology_name, wanted_subnet, say)
    plan = topology.load(lab.topology)
    master = Master(lab, plan)
    with _timed(times, "push_s"):
        master.push(say)
        _fetch_sources(master, say)
        _wait_idle(lab, master, say)
    mpi = jobs.MpiBuild(lab, master)
    with _timed(times, "highstate_s"):
        say("salt '*' state.highstate")
        results = highstate(lab, master, mpi.poke)
    problems = report(results)
    if problems:
        _write_times(lab, times, started, results, ok=False)
        Console().print(
            f"\n{problems} problem(s). `make cluster` goes on from here; "
            f"`lab/lab logs HOST` and `lab/lab shell HOST` show more."
        )
        return 1
    with _timed(times, "jobs_s"):
        outputs = jobs.run_all(lab, plan, mpi, say)
    _write_times(lab, times, started, results, ok=True)
    _finish(lab, plan, results, outputs, time.monotonic() - started)
    return 0


@contextlib.contextmanager
def _timed(times: dict[str, float], key: str) -> Iterator[None]:
    began = time.monotonic()
    try:
        yield
    finally:
        times[key] = round(time.monotonic() - began, 2)


def _fetch_sources(master: Master, say: Say) -> None:
    """Fill the mirror with what the plan's build section names, as the master resolves it."""
    command = ["salt", "--out=json", "--static", master.host, "saltern.view", "build:sources"]
    answer = json_documents(master.run(command, "Asking the plan for the sources")).get(master.host)
    if not isinstance(answer, dict):
        raise LabError(f"The plan names no sources for the builder {master.host}: {answer}")
    sources.ensure(answer, say)


def _wait_idle(lab: Lab, master: Master, say: Say) -> None:
    """End what an earlier `make cluster`, cut here, still does there; wait for what others started.

    Salt refuses a second state run on a host.
    """
    ours = _read_jid(lab)
    deadline = time.monotonic() + BUSY_S
    told = False
    while True:
        command = ["salt", "--out=json", "--static", "*", "saltutil.is_running", "state.*"]
        answers = json_documents(master.run(command, "Asking what runs"))
        running = {name: jobs_ for name, jobs_ in answers.items() if jobs_}
        busy = sorted(running)
        if not busy:
            return
        if ours and any(job.get("jid") == ours for jobs_ in running.values() for job in jobs_):
            say(f"ending the earlier run that was cut and still works on {', '.join(busy)}")
            command = ["salt", "--out=json", "*", "saltutil.term_job", ours]
            master.run(command, "Ending the earlier run")
            ours = None
        if not told:
            say(f"an earlier run still works on {', '.join(busy)}: waiting for its end")
            told = True
        if time.monotonic() > deadline:
            raise LabError(f"An earlier run still works on {', '.join(busy)} after {BUSY_S} s.")
        time.sleep(2)


def highstate(lab: Lab, master: Master, tick: Callable[[], None]) -> dict[str, HostResult]:
    """Run `salt '*' state.highstate` on the master and show it; what each host came to."""
    names = master.accepted()
    progress = Progress(names)
    lines: queue.Queue[str] = queue.Queue()
    with (
        _event_lines(lab, master, lines),
        tempfile.TemporaryFile("w+") as out,
        View(progress) as view,
    ):
        command = hosts.enter(lab, master.host, HIGHSTATE)
        salt = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, text=True
        )
        try:
            while salt.poll() is None:
                _drain(lines, progress)
                _note_jid(lab, progress)
                view.update()
                tick()
                time.sleep(0.2)
        finally:
            if salt.poll() is None:
                salt.terminate()
        _drain(lines, progress)
        out.seek(0)
        answers = json_documents(out.read())
        errors = salt.stderr.read() if salt.stderr else ""
    if not answers:
        raise LabError(
            f"salt '*' state.highstate gave no answer: {errors.strip() or 'it said nothing'}"
        )
    return {name: result_of(answers.get(name)) for name in sorted({*names, *answers})}


def _note_jid(lab: Lab, progress: Progress) -> None:
    """Remember the running job, so that the next run knows it as its own."""
    if progress.jid and progress.jid != _read_jid(lab):
        write_json(lab.folder / "highstate.json", {"jid": progress.jid})


def _read_jid(lab: Lab) -> str | None:
    try:
        jid: str = json.loads((lab.folder / "highstate.json").read_text(encoding="utf-8"))["jid"]
    except (FileNotFoundError, json.JSONDecodeError, KeyError):
        return None
    return jid


def _drain(lines: "queue.Queue[str]", progress: Progress) -> None:
    with contextlib.suppress(queue.Empty):
        while True:
            event = parse_line(lines.get_nowait())
            if event:
                progress.feed(*event)


@contextlib.contextmanager
def _event_lines(lab: Lab, master: Master, lines: "queue.Queue[str]") -> Iterator[None]:
    """The master's event bus, line by line, while the context lasts."""
    command = hosts.enter(lab, master.host, ["salt-run", "state.event", "pretty=False"])
    bus = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )

    def read() -> None:
        for text in bus.stdout or ():
            lines.put(text)

    threading.Thread(target=read, daemon=True).start()
    try:
        yield
    finally:
        bus.terminate()
        bus.wait(10)


def report(results: dict[str, HostResult]) -> int:
    """Print the summary, then each failure in words; returns how many there are."""
    console = Console(highlight=False, soft_wrap=True)
    console.print(summary(results))
    count = 0
    for name, result in results.items():
        for problem in result.problems:
            count += 1
            console.print(f"[bold red]{name}[/]: ", end="")
            console.print(problem, markup=False)
        if result.waiting:
            console.print(
                f"{name}: {result.waiting} more states wait for what failed", markup=False
            )
    return count


def _write_times(
    lab: Lab, times: dict[str, float], started: float, results: dict[str, HostResult], *, ok: bool
) -> None:
    """The figures of this run, for `make bench`."""
    data: dict[str, Any] = {
        "ok": ok,
        "total_s": round(time.monotonic() - started, 2),
        **times,
        "changed": sum(len(result.changed) for result in results.values()),
        "hosts": {
            name: {phase: round(seconds, 2) for phase, seconds in result.seconds.items()}
            for name, result in results.items()
        },
    }
    write_json(lab.folder / "cluster.json", data)


def _finish(
    lab: Lab,
    plan: topology.Topology,
    results: dict[str, HostResult],
    outputs: list[tuple[str, str]],
    seconds: float,
) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for command, output in outputs:
        console.print(f"\n[bold]{plan.job_user}@{plan.login}$[/] ", end="")
        console.print(command, markup=False)
        console.print(output.rstrip(), markup=False)
    changed = sum(len(result.changed) for result in results.values())
    said = f"{changed} states changed something" if changed else "nothing had to be changed"
    console.print(f"\n{len(results)} hosts, {said}, jobs ran; {clock(seconds)} in all. Next:")
    names = sorted(results)
    named = "" if lab.name == "lab" else f" --name {lab.name}"
    commands = {
        f"lab/lab shell{named} {plan.login} --user {plan.job_user}": "try sinfo, srun, sbatch",
        f"lab/lab exec{named} {plan.master} -- salt-run saltern.plan": "the plan, checked",
        f"lab/lab power-off{named} {names[-1]}": "see what a failure looks like",
        f"lab/lab destroy{named}": "away with it; the cache stays",
    }
    width = max(map(len, commands))
    for command, meaning in commands.items():
        console.print(f"  {command:<{width}}  {meaning}", markup=False)
