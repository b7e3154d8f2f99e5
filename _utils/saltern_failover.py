"""Does another controller take over, with jobs running, and does the first take control back?

A person asked for it (`salt-run saltern.verify failover=True`): slurmctld and slurmdbd of the first
hosts are stopped for a while, with a timer on the host that starts them again if this is cut.
"""

import time

from saltern import verify
from saltern.joins import JoinFailed

_ANSWER_S = 60
_POLL_S = 0.5
_SAVED_S = 12  # slurmctld writes its state some seconds after a change (FACTS, Slurm HA)
_RUN_S = 60  # until a job of ours runs on a cluster with room
_BACK_S = 90  # until the first controller is in charge again
_SPARE_S = 60  # beyond SlurmctldTimeout, until a takeover counts as failed
_HELD_S = 900  # until systemd starts a stopped daemon by itself


class _Stopped(Exception):
    """A step failed, and those after it have no meaning."""


class Failover:
    """One trial, on the minions of a plan's controllers and database hosts."""

    def __init__(self, minions, plan):
        self.minions = minions
        self.controllers = [host.name for host in plan.with_role("controller")]
        self.databases = [host.name for host in plan.with_role("database")]
        self.rows = []

    def run(self):
        """The rows of the trial; daemons run as before when it returns."""
        try:
            self._controllers()
            self._databases()
        except _Stopped:
            pass
        except JoinFailed as error:
            self._note("failover", False, str(error))
        return self.rows

    # --- slurmctld ---

    def _controllers(self):
        if len(self.controllers) < 2:
            self._stop("takeover", f"one controller ({self.controllers[0]}), so nobody takes over")
        first, *others = self.controllers
        reigns = self._ask(self.controllers, "slurm_verify.reign")
        down = [name for name in self.controllers if not reigns.get(name, {}).get("active")]
        if down or not reigns[first]["in_charge"]:
            who = f"{', '.join(down)} down" if down else f"{first} not in charge"
            self._stop("takeover", f"{who}; nothing was stopped")
        timeout = reigns[first]["timeout_s"]
        running = self._call(first, "slurm_verify.sleeper", timeout + 45)
        self._until_running(first, running)
        waiting = self._call(first, "slurm_verify.sleeper", 5, begin_s=_SAVED_S + 5)
        time.sleep(_SAVED_S)
        try:
            heir = self._takeover(first, others, timeout)
            self._under(heir, running, waiting)
        finally:
            self._release(first, "slurmctld")
        self._back(first, others, [running, waiting])

    def _until_running(self, first, job):
        if self._wait(lambda: self._state(first, job) == "RUNNING", _RUN_S) is None:
            self._call(first, "slurm_verify.take_back", [job])
            self._stop("a running job", f"job {job} found no room within {_RUN_S} s; try later")

    def _takeover(self, first, others, timeout):
        self._call(first, "slurm_verify.hold", "slurmctld", _HELD_S)
        heirs = []

        def in_charge():
            reigns = self._ask(others, "slurm_verify.reign")
            heirs[:] = [name for name in others if reigns.get(name, {}).get("in_charge")]
            return bool(heirs)

        took = self._wait(in_charge, timeout + _SPARE_S)
        if took is None:
            self._stop("takeover", f"nobody took over within {timeout + _SPARE_S} s")
        found = f"{heirs[0]} in charge after {took:.1f} s (SlurmctldTimeout is {timeout} s)"
        self._note("takeover", True, found, took)
        return heirs[0]

    def _under(self, heir, running, waiting):
        state = self._state(heir, running)
        self._note("the running job lives", state in ("RUNNING", "COMPLETED"), f"it is {state}")
        took = self._wait(lambda: self._state(heir, waiting) in ("RUNNING", "COMPLETED"), _RUN_S)
        found = "it did not start" if took is None else f"it started under {heir}"
        self._note("a waiting job starts", took is not None, found)

    def _back(self, first, others, jobs):
        took = self._wait(
            lambda: self._ask([first], "slurm_verify.reign").get(first, {}).get("in_charge"),
            _BACK_S,
        )
        found = f"after {took:.1f} s" if took is not None else f"not within {_BACK_S} s"
        self._note(f"{first} takes control back", took is not None, found, took)
        self._wait(lambda: self._finished(jobs), 300)
        restarts = {job: row["restarts"] for job, row in self._queue(first, jobs).items()}
        states = self._call(first, "slurm_verify.accounted", jobs)
        good = all(states.get(job) == "COMPLETED" for job in jobs) and not any(restarts.values())
        words = ", ".join(
            f"{job} {states.get(job, 'no row')}, {restarts.get(job, 0)} restarts" for job in jobs
        )
        self._note("both jobs in accounting", good, words)

    def _finished(self, jobs):
        first = self.controllers[0]
        states = self._call(first, "slurm_verify.accounted", jobs)
        return isinstance(states, dict) and verify.ended(states, jobs)

    # --- slurmdbd ---

    def _databases(self):
        if len(self.databases) < 2:
            row = {"check": "failover: slurmdbd in reserve", "result": verify.LEFT_OUT}
            self.rows.append({**row, "found": "the plan has one slurmdbd", "took_s": None})
            return
        first, asked = self.databases[0], self.controllers[0]
        try:
            self._call(first, "slurm_verify.hold", "slurmdbd", _HELD_S)
            took = self._wait(lambda: self._call(asked, "slurm_verify.slurmdbd_answers"), _SPARE_S)
            found = (
                f"{self.databases[1]} answers after {took:.1f} s" if took is not None else "none"
            )
            self._note("slurmdbd in reserve", took is not None, found, took)
        finally:
            self._release(first, "slurmdbd")
        took = self._wait(lambda: self._call(asked, "slurm_verify.slurmdbd_answers"), _SPARE_S)
        self._note(f"slurmdbd on {first} again", took is not None, "it answers")

    # --- asking ---

    def _ask(self, names, function, *arguments):
        said = self.minions.ask(names, function, *arguments, within=_ANSWER_S)
        return {name: answer for name, answer in said.items() if isinstance(answer, dict)}

    def _call(self, name, function, *arguments, **keywords):
        said = self.minions.ask([name], function, *arguments, within=_ANSWER_S, **keywords)
        if name not in said:
            self._stop(function, f"no answer from {name} within {_ANSWER_S} s")
        if isinstance(said[name], str) and said[name].startswith("ERROR"):
            self._stop(function, f"{name}: {said[name]}")
        return said[name]

    def _queue(self, name, jobs):
        return self._ask([name], "slurm_verify.queue", jobs).get(name, {})

    def _state(self, name, job):
        return self._queue(name, [job]).get(job, {}).get("state", "unknown")

    def _release(self, name, daemon):
        said = self.minions.ask([name], "slurm_verify.release", daemon, within=_ANSWER_S)
        if name not in said or said[name]:
            words = said.get(name, "no answer")
            found = f"{words}; systemd starts it within {_HELD_S} s by itself"
            self._note(f"{daemon} on {name} started again", False, found)

    def _wait(self, condition, within):
        """The seconds until something came true; None if it did not."""
        began = time.monotonic()
        while time.monotonic() - began < within:
            if condition():
                return time.monotonic() - began
            time.sleep(_POLL_S)
        return None

    def _note(self, check, good, found, took=None):
        result = verify.OK if good else verify.FAILED
        took_s = None if took is None else round(took, 1)
        row = {"check": f"failover: {check}", "result": result, "found": found}
        self.rows.append({**row, "took_s": took_s})

    def _stop(self, check, found):
        self._note(check, False, found)
        raise _Stopped
