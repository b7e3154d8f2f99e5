"""Running programs: one function, one error text."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from saltern_lab.errors import LabError


def run(
    command: Sequence[str | Path],
    *,
    what: str,
    timeout: float = 600,
    stdin: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> str:
    """Run a command to its end and return its standard output.

    Raises LabError with `what` was being done and the last lines that the command printed.
    """
    try:
        done = subprocess.run(
            [str(part) for part in command],
            input=stdin,
            stdin=None if stdin is not None else subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            env=env,
            cwd=cwd,
            check=False,
        )
    except FileNotFoundError:
        raise LabError(f"{what}: the program {command[0]} is not on this machine.") from None
    except subprocess.TimeoutExpired:
        raise LabError(f"{what}: {command[0]} did not end within {timeout:.0f} s.") from None
    if done.returncode != 0:
        raise LabError(f"{what} failed: {last_lines(done.stderr or done.stdout)}")
    return done.stdout


def last_lines(text: str, count: int = 8) -> str:
    """The end of a program's output, where it says why it stopped."""
    lines = [line.rstrip() for line in text.strip().splitlines() if line.strip()]
    return "\n  ".join(lines[-count:]) or "it printed nothing"
