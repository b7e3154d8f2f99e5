"""The progress of a deployment for whoever waits: a table that fills on a terminal, else lines.

Only the master uses it.
"""

import contextlib
import sys
import time

import salt.loader
import salt.utils.event

_EVERY_S = 1
_BUILD = "saltern/build/progress"  # what slurm_build says of each step


@contextlib.contextmanager
def shown(opts):
    """A display on standard error; a table of a terminal is gone when the context ends, for the
    answer shows it too."""
    with salt.utils.event.get_event("master", opts=opts, listen=True) as bus:
        bus.subscribe(_BUILD)
        show = Show(salt.loader.outputters(opts)["saltern"], sys.stderr, bus)
        try:
            yield show
        finally:
            show.clear()


class Show:
    """A display. output: Saltern's outputter; stream: a text stream; bus: the master's events, of
    which it tells the steps of a build; None for none"""

    def __init__(self, output, stream, bus=None):
        self.output, self.stream, self.bus = output, stream, bus
        self.is_terminal = stream.isatty()
        self.lines, self.next = 0, 0.0

    def say(self, words):
        """What begins now."""
        self.clear()
        self.stream.write(f"{words}\n")
        self.stream.flush()

    def table(self, rows):
        """The table as it is now: drawn on a terminal, at most once a second."""
        while event := self.bus and self.bus.get_event(wait=0, tag=_BUILD, no_block=True):
            self.say(f"  {event['id']} builds: {event['data']['text']}")
        if not self.is_terminal or time.monotonic() < self.next:
            return
        self.next = time.monotonic() + _EVERY_S
        text = self.output({"now": rows})
        self.clear()
        self.stream.write(f"{text}\n")
        self.stream.flush()
        self.lines = text.count("\n") + 1

    def clear(self):
        """Take the table away."""
        if self.lines:
            self.stream.write(f"\033[{self.lines}F\033[J")
            self.stream.flush()
            self.lines = 0
