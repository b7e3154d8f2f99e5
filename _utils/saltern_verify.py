"""Is the cluster what the plan says, and does it run jobs? Asked from the master."""

import functools
import sys
import time

import saltern_master
from saltern import nodeset, overview, verify
from saltern.joins import JoinFailed
from saltern_failover import Failover
from saltern_lifecycle import Refused
from saltern_minions import Minions

_PING_S = 30
_GATE_S = 120
_JOBS = "slurm_verify.jobs"


def run(opts, plan, within, failover=False):
    """The parts of `salt-run saltern.verify`.

    opts: dict, Salt's; plan: ``saltern.plan.Plan``
    within: int, seconds that the jobs have
    failover: bool, that of controllers and slurmdbd too, unless the cluster failed before
    Raises Refused when the master knows no minion.
    Returns a dict: ``summary`` str, ``checks`` list of {check, result, found, took_s}, ``retcode``.
    """
    top = saltern_master.top(opts)
    hosts = {}
    for host in plan.hosts.values():
        for phase in overview.phases(top, host.roles):
            hosts.setdefault(phase, []).append(host.name)
    try:
        rows = _rows(opts, plan, hosts, within, failover)
    except JoinFailed as error:
        raise Refused(
            problem=f"{error}. Has any host been admitted (salt-run saltern.joins)?"
        ) from None
    return {
        "checks": list(verify.in_order(rows)),
        "summary": verify.summary(rows),
        "retcode": 1 if _failed(rows) else 0,
    }


def _rows(opts, plan, hosts, within, failover):
    """hosts: those that have each phase."""
    rows, there = [], set()
    with Minions(opts) as minions:
        rows += _timed(f"{len(plan.hosts)} minions", lambda: _minions(minions, plan, there))
        for phase in sorted(hosts):
            mine = [name for name in hosts[phase] if name in there]
            ask = functools.partial(_gates, minions, phase, mine)
            rows += _timed(f"{phase} on {len(mine)} hosts", ask)
        rows += _timed("jobs on every node", lambda: _jobs(minions, plan, within))
        if failover and not _failed(rows):
            rows += _timed("failover", Failover(minions, plan).run)
    return rows


def _failed(rows):
    return any(row["result"] == verify.FAILED for row in rows)


def _minions(minions, plan, there):
    """The rows of those that do not answer; the others' names go into ``there``."""
    names = list(plan.hosts)
    there.update(minions.ask(names, "test.ping", within=_PING_S))
    return verify.silent([name for name in names if name not in there])


def _gates(minions, phase, names):
    said = minions.ask(names, f"saltern_gate.{phase}", within=_GATE_S) if names else {}
    return verify.gates(phase, names, said, nodeset.fold)


def _jobs(minions, plan, within):
    controllers = minions.controllers(plan, _GATE_S)
    if not controllers:
        words = "no controller on which slurmctld runs"
        return [{"check": "jobs", "result": verify.FAILED, "found": words}]
    try:
        said = minions.run(controllers[0], _JOBS, within, within=within + _GATE_S)
    except JoinFailed as error:
        said = str(error)
    if not isinstance(said, list):
        return [{"check": "jobs", "result": verify.FAILED, "found": str(said)}]
    return said


def _timed(what, ask):
    """Rows with the time that they took together, if they have none of their own; and a line of
    progress for whoever waits."""
    began = time.monotonic()
    rows = ask()
    took = round(time.monotonic() - began, 1)
    bad = sum(row["result"] == verify.FAILED for row in rows)
    sys.stderr.write(f"{what}: {f'{bad} failed' if bad else 'ok'}, {took} s\n")
    return [{**row, "took_s": row.get("took_s", took)} for row in rows]
