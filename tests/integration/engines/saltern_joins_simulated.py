"""The engine of the join queue with simulated hosts: a real master, reactor and queue, minions that
answer at once and take half a second for a highstate.

What it does with each host goes into a file, one line each: ``begin`` or ``end``, id.
"""

import os
import threading
import time

import saltern_joins

__virtualname__ = "saltern_joins_simulated"

_HIGHSTATE_S = 0.5
_lock = threading.Lock()
_up = set()


def __virtual__():
    return __virtualname__


def start(record):
    """Work off the queue with simulated minions.

    record: str, path of the file of what was done
    """

    def write(what, name):
        with _lock, open(record, "a", encoding="ascii") as file:
            file.write(f"{what} {name}\n")

    class Minions:
        """Stands for saltern_minions.Minions."""

        def __init__(self, _opts):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def ask(self, names, function, *arguments, within, **_):
            return {name: self.answer(name, function, arguments) for name in names}

        def controllers(self, plan, within):
            return ["mgmt01"]

        def run(self, name, function, *arguments, within, **_):
            return self.answer(name, function, arguments)

        def answer(self, name, function, arguments):
            if function == "state.highstate":
                write("begin", name)
                time.sleep(_HIGHSTATE_S)
                write("end", name)
                _up.add(name)
                return {"x": {"__sls__": "p4_scheduler", "result": True, "duration": 1.0}}
            if function == "slurm_nodes.states":
                node = {"base": "IDLE", "flags": [], "reason": ""}
                return {host: node for host in arguments[0] if host in _up}
            answers = {
                "saltern.applied": {"gates": {}},
                "saltutil.sync_all": {},
                "saltutil.refresh_pillar": True,
                "state.apply": {"x": {"__sls__": "p4_scheduler", "result": True}},
            }
            return answers.get(function)

    saltern_joins.Minions = Minions
    write("engine", str(os.getpid()))
    saltern_joins.run(__opts__)
