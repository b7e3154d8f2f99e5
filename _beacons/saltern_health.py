"""Takes a node's health events to the master's bus: ``saltern/health/drained`` and its like.

The drain logic runs without Salt and leaves a file an event; one is removed once Salt has taken it,
so a minion that is down loses none.
"""

import json
import os

import salt.utils.files

__virtualname__ = "saltern_health"

OUTBOX = "/var/lib/saltern/health/outbox"
_AT_ONCE = 20


def __virtual__():
    return __virtualname__


def validate(config):
    """Any configuration will do: there is nothing to configure."""
    return True, "saltern_health takes no settings."


def beacon(config):
    """The events since the last time, oldest first, each sent as ``saltern/health/<tag>``.

    Returns an empty list: what a beacon returns would get a tag of Salt's own.
    """
    for path in _waiting():
        event = _read(path)
        if event is not None:
            tag = f"saltern/health/{event.pop('tag')}"
            if __salt__["event.send"](tag, event) is False:
                break  # it waits for the next time
        os.unlink(path)
    return []


def _waiting():
    try:
        names = sorted(name for name in os.listdir(OUTBOX) if name.endswith(".json"))
    except FileNotFoundError:
        return []
    return [os.path.join(OUTBOX, name) for name in names[:_AT_ONCE]]


def _read(path):
    """An event; None for half of one."""
    try:
        with salt.utils.files.fopen(path, encoding="utf-8") as file:
            event = json.load(file)
    except ValueError:
        return None
    return event if isinstance(event, dict) and "tag" in event else None
