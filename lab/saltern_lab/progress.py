"""Progress for a person: a live table on a terminal, dated lines elsewhere."""

import sys
import time
from collections.abc import Iterable

from rich.console import Console
from rich.live import Live
from rich.table import Table

from saltern_lab.events import HostProgress, HostResult, Progress

HEARTBEAT_S = 30


def clock(seconds: float) -> str:
    """1:05 for 65 seconds."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def line(host: HostProgress) -> str:
    """Where a host is, in words."""
    if host.finished:
        return "done" if not host.failed else f"done, {host.failed} failed"
    if host.note:
        return host.note
    if host.total:
        return f"{host.done}/{host.total}  {host.last}"
    return host.last or "compiling its states"


class View:
    """Shows a Progress while it is fed. Used as a context manager."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self.started = time.monotonic()
        self.console = Console(highlight=False)
        self.live = (
            Live(console=self.console, refresh_per_second=4) if sys.stdout.isatty() else None
        )
        self.shown: dict[str, str] = {}
        self.beat = time.monotonic()

    def __enter__(self) -> "View":
        if self.live:
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.update()
        if self.live:
            self.live.stop()

    def update(self) -> None:
        """Show the present state, and at once what failed."""
        for text in self.progress.failures:
            self.console.print(f"failed  {text}", style="red", markup=False, soft_wrap=True)
        self.progress.failures.clear()
        if self.live:
            self.live.update(self._table())
            return
        for name, host in self.progress.hosts.items():
            at = "done" if host.finished else host.phase
            if self.shown.get(name) != at and at:
                self.shown[name] = at
                self.beat = time.monotonic()
                self._print(f"{name:<10} {at if host.finished else f'{at}: {line(host)}'}")
        if time.monotonic() - self.beat > HEARTBEAT_S:
            self.beat = time.monotonic()
            for name, host in self.progress.hosts.items():
                if not host.finished:
                    self._print(f"{name:<10} {host.phase or '-'}: {line(host)}")

    def _print(self, text: str) -> None:
        print(
            f"{time.strftime('%H:%M:%S')}  {clock(time.monotonic() - self.started)}  {text}",
            flush=True,
        )

    def _table(self) -> Table:
        table = Table(
            title=f"state.highstate  {clock(time.monotonic() - self.started)}", title_justify="left"
        )
        table.add_column("host")
        phases = phase_names(host.seconds for host in self.progress.hosts.values())
        for phase in phases:
            table.add_column(phase, justify="right")
        table.add_column("done so far", min_width=30, overflow="ellipsis", no_wrap=True)
        for name, host in self.progress.hosts.items():
            cells = [
                clock(host.seconds[phase]) if phase in host.seconds else "" for phase in phases
            ]
            table.add_row(name, *cells, line(host))
        return table


def phase_names(times: Iterable[dict[str, float]]) -> list[str]:
    """All phases that appear, in their order (their names begin with their numbers)."""
    return sorted({phase for seconds in times for phase in seconds})


def summary(results: dict[str, HostResult]) -> Table:
    """Hosts x phases with the time of each phase's states, and how many changed something."""
    table = Table(title="hosts and phases", title_justify="left")
    table.add_column("host")
    phases = phase_names(result.seconds for result in results.values())
    for phase in phases:
        table.add_column(phase, justify="right")
    table.add_column("states", justify="right")
    table.add_column("changed", justify="right")
    for name, result in sorted(results.items()):
        cells = [
            f"{result.seconds[phase]:.1f} s" if phase in result.seconds else "-" for phase in phases
        ]
        table.add_row(name, *cells, str(result.states), str(len(result.changed)))
    return table
