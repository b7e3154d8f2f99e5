"""What was deployed when, by whom and from which tree: lines of JSON on the master.

A line is written when something ends, so a cut leaves what was true until then; a torn last line is
passed over.

Only the master uses it.
"""

import contextlib
import fcntl
import json
import os
from pathlib import Path

import saltern_master
from saltern_lifecycle import Refused

_KEPT = 200  # deployments


class Record:
    """The record beside the join register, for root alone."""

    def __init__(self, opts):
        self.path = Path(saltern_master.settings(opts)["join_file"]).with_name("deploys.jsonl")

    @contextlib.contextmanager
    def alone(self):
        """One deployment at a time. Raises Refused, naming the one that runs; the lock goes with
        its process."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self.path.with_suffix(".lock").open("w", encoding="ascii") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                last = self.runs()[-1:]
                who = f"{last[0]['deploy']}, of {last[0]['by']}" if last else "another one"
                raise Refused(problem=f"A deployment runs already: {who}.") from None
            yield

    def begin(self, name, about):
        """Note a new deployment; the oldest beyond 200 go.

        name: str, its time; about: dict with ``at`` (epoch, seconds), ``by``, ``tree``
        """
        kept = {run["deploy"] for run in self.runs()[-_KEPT + 1 :]}
        lines = [line for line in self._lines() if line["deploy"] in kept]
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        new = self.path.with_suffix(".new")
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path)
        self._append({"deploy": name, **about})

    def phase(self, name, phase, took_s, hosts):
        """Note a phase that ended. hosts: dict of str, what each host came to."""
        self._append({"deploy": name, "phase": phase, "took_s": took_s, "hosts": hosts})

    def end(self, name, at, said):
        """Note the end. at: float, epoch, seconds; said: str, the summary."""
        self._append({"deploy": name, "ended": at, "said": said})

    def runs(self):
        """Every deployment, the oldest first: dicts of what ``begin`` and ``end`` noted, and
        ``phases``, {phase: {"took_s": float, "hosts": {host: str}}}."""
        found = {}
        for line in self._lines():
            run = found.setdefault(line["deploy"], {"phases": {}})
            if "phase" in line:
                run["phases"][line["phase"]] = {key: line[key] for key in ("took_s", "hosts")}
            else:
                run.update(line)
        return [run for run in found.values() if "at" in run]

    def _append(self, line):
        with open(os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "w") as file:
            file.write(f"{json.dumps(line)}\n")
            file.flush()
            os.fsync(file.fileno())

    def _lines(self):
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        found = []
        for line in text.splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                found.append(json.loads(line))
        return found
