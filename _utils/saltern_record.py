"""What a person's long work did when, deployments and maintenances: lines of JSON on the master.

A line is written when something ends, so a cut leaves what was true until then; a torn last line is
passed over.

Only the master uses it.
"""

import contextlib
import fcntl
import json
import os
import time
from pathlib import Path

import saltern_master
from saltern_lifecycle import Refused

_KEPT = 200  # runs


class Record:
    """A record beside the join register, for root alone.

    what: str, of what, for example ``deploys``
    """

    def __init__(self, opts, what):
        self.what = what
        self.path = Path(saltern_master.settings(opts)["join_file"]).with_name(f"{what}.jsonl")

    @contextlib.contextmanager
    def alone(self):
        """One run at a time. Raises Refused, naming the one that goes on; the lock goes with its
        process."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self.path.with_suffix(".lock").open("w", encoding="ascii") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                last = self.runs()[-1:]
                who = f"{last[0]['run']}, of {last[0]['by']}" if last else "just begun"
                raise Refused(problem=f"One of the {self.what} runs already: {who}.") from None
            yield

    def begin(self, about):
        """Note a new run; the oldest beyond 200 go.

        about: dict with ``by``, and what belongs to the work
        Returns its name, str: the time, UTC.
        """
        kept = {run["run"] for run in self.runs()[-_KEPT + 1 :]}
        at = time.time()
        name = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(at))
        while name in kept:
            name += "+"
        lines = [line for line in self._lines() if line["run"] in kept]
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        new = self.path.with_suffix(".new")
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path)
        self._append({"run": name, "at": at, **about})
        return name

    def note(self, name, **what):
        """Note a part of a run that ended. what: plain data"""
        self._append({"run": name, "note": what})

    def end(self, name, said):
        """Note the end. said: str, the summary"""
        self._append({"run": name, "ended": time.time(), "said": said})

    def runs(self):
        """Every run, the oldest first: dicts of ``run`` (its name), ``at`` and, if it came to its
        end, ``ended`` (epoch, seconds), ``said``, what ``begin`` noted, and ``notes``, a list of
        dicts."""
        found = {}
        for line in self._lines():
            run = found.setdefault(line["run"], {"notes": []})
            if "note" in line:
                run["notes"].append(line["note"])
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
        return [line for line in found if isinstance(line, dict) and "run" in line]
