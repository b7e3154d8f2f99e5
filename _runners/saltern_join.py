"""The reactor's door: what it saw goes into the join queue, and nothing else happens here."""

import time

import saltern_admission

__virtualname__ = "saltern_join"


def __virtual__():
    return __virtualname__


def knock(minion_id, started=False):
    """Queue an id that showed its key or whose minion started; returns at once.

    minion_id: str, as the event has it. Nothing of an event is believed but that there was one: a
        minion can send any. The worker (``_engines/saltern_joins.py``) looks at the key itself.
    started: bool

    CLI Example:

    .. code-block:: bash

        salt-run saltern_join.knock node03 started=True
    """
    saltern_admission.book(__opts__).knock(str(minion_id), bool(started), time.time())
