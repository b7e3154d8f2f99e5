"""Simulated minions: a cluster that answers what the worker asks, with faults by host."""

import threading
import time
from collections import Counter

from saltern.joins import JoinFailed

IDLE = {"base": "IDLE", "flags": [], "reason": "", "registered": True}


class Cluster:
    """What the simulated hosts are and did."""

    def __init__(self, phases=("p0_plan", "p1_foundation", "p4_scheduler")):
        self.phases = phases
        self.controller_runs = True
        self.silent = set()
        self.dying = set()  # hosts that lose power in their highstate
        self.failing = {}  # host: state comment
        self.applied = {}  # host: digest
        self.states = {}  # what slurmctld says
        self.highstates = Counter()
        self.asked = Counter()
        self.now, self.most = set(), 0
        self.twice = []
        self.told = []
        self.busy_s = 0.1
        self.lock = threading.Lock()

    def minions(self, _opts):
        return Minions(self)

    def highstate(self, name):
        with self.lock:
            if name in self.now:
                self.twice.append(name)
            self.now.add(name)
            self.most = max(self.most, len(self.now))
            self.highstates[name] += 1
        time.sleep(self.busy_s)
        with self.lock:
            self.now.discard(name)
        if name in self.failing:
            return {"x": state("p1_foundation", False, self.failing[name])}
        self.states[name] = dict(IDLE)
        return {"x": state("p4_scheduler", True, "")}


def state(sls, result, comment):
    return {
        "__sls__": sls, "__id__": "thing", "__run_num__": 1, "result": result, "duration": 5.0,
        "comment": comment,
    }  # fmt: skip


class Minions:
    """Stands for saltern_minions.Minions."""

    def __init__(self, cluster):
        self.cluster = cluster

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def ask(self, names, function, *arguments, within, **_):
        there = [name for name in names if name not in self.cluster.silent]
        with self.cluster.lock:
            self.cluster.asked.update((name, function) for name in there)
        return {name: self._answer(name, function, arguments) for name in there}

    def controllers(self, plan, within):
        names = [host.name for host in plan.with_role("controller")]
        return names if self.cluster.controller_runs else []

    def run(self, name, function, *arguments, within, **keywords):
        if name in self.cluster.silent or (
            function == "state.highstate" and name in self.cluster.dying
        ):
            raise JoinFailed("salt", f"{name} fell silent during {function}")
        return self._answer(name, function, arguments)

    def _answer(self, name, function, arguments):
        cluster = self.cluster
        if function == "saltern.applied":
            return {"gates": dict.fromkeys(cluster.phases, cluster.applied.get(name))}
        if function == "state.highstate":
            return cluster.highstate(name)
        if function == "slurm_nodes.states":
            return {n: dict(cluster.states[n]) for n in arguments[0] if n in cluster.states}
        if function == "node_join.tell_failure":
            cluster.told.append(arguments)
        answers = {
            "saltutil.sync_all": {},
            "saltutil.refresh_pillar": True,
            "state.apply": {"x": state("p4_scheduler", True, "")},
        }
        return answers.get(function)
