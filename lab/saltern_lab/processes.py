"""Processes that the lab started: told apart from others by pid and start time."""

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Process:
    """A pid with the clock tick at which it started: a reused pid is another process."""

    pid: int
    started: int

    @classmethod
    def of(cls, pid: int) -> "Process | None":
        """The running process with this pid, or None."""
        fields = _stat(pid)
        return cls(pid, int(fields[19])) if fields and fields[0] not in "ZX" else None

    @classmethod
    def load(cls, data: Any) -> "Process | None":
        """From the lab's record."""
        return cls(data["pid"], data["started"]) if data else None

    def dump(self) -> dict[str, int]:
        """For the lab's record."""
        return {"pid": self.pid, "started": self.started}

    def alive(self) -> bool:
        """Whether this very process still runs."""
        return Process.of(self.pid) == self

    def end(self, sig: int = signal.SIGTERM, wait_s: float = 10) -> bool:
        """Send a signal to this very process and wait for its end."""
        if self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, sig)
        return self.gone(wait_s)

    def gone(self, wait_s: float) -> bool:
        """Wait for the end of the process, at most this long."""
        deadline = time.monotonic() + wait_s
        while self.alive():
            if time.monotonic() > deadline:
                return False
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, os.WNOHANG)
            time.sleep(0.02)
        return True


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat from the state on."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()


def children(pid: int) -> list[int]:
    """The direct children of a process."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found += [int(child) for child in task.read_text(encoding="ascii").split()]
    return found


def leader(pid: int) -> int | None:
    """The container's PID 1, a child of this nspawn process; None while it is not there yet."""
    for child in children(pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            for line in Path(f"/proc/{child}/status").read_text(encoding="utf-8").splitlines():
                if line.startswith("NSpid:") and line.split()[-1] == "1" and len(line.split()) > 2:
                    return child
    return None
