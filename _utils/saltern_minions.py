"""Asking minions from the master: an answer by job id, with a bound, and without Salt's guesses.

Only the master uses it.
"""

import collections
import time

import salt.client
from salt.exceptions import SaltClientError
from saltern.joins import JoinFailed

_POLL_S = 0.25
# A busy minion answers late. One that is silent this often in a row is gone.
_ALIVE_EVERY_S = 15
_ALIVE_S = 20
_SILENT = 2


class Minions:
    """One client of the master; each thread needs its own."""

    def __init__(self, opts):
        self.client = salt.client.LocalClient(mopts=opts)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.client.destroy()

    def ask(self, names, function, *arguments, within, **keywords):
        """Have minions run a function, and wait for their answers.

        names: list of str; one that is there twice is asked once
        function: str; arguments, keywords: its own
        within: float, seconds
        Returns a dict of those that answered in time: {name: what the function returned}.
        """
        job = self._publish(names, function, arguments, keywords)
        deadline = time.monotonic() + within
        while True:
            answers = self._answers(job)
            if len(answers) >= len(set(names)) or time.monotonic() > deadline:
                return answers
            time.sleep(_POLL_S)

    def controllers(self, plan, within):
        """The controllers of a plan on which slurmctld runs now, in the plan's order."""
        names = [host.name for host in plan.with_role("controller")]
        answers = self.ask(names, "daemon.status", "slurmctld", within=within) if names else {}
        up = {name for name, said in answers.items() if isinstance(said, dict) and said["active"]}
        return [name for name in names if name in up]

    def run(self, name, function, *arguments, within, **keywords):
        """Have one minion run something long, and wait as long as it really works on it.

        Returns what the function returned. Raises JoinFailed when the minion fell silent, ended the
        job without an answer, or needed longer than ``within`` seconds.
        """
        found = self.follow([([name], arguments)], function, within=within, **keywords)[name]
        if isinstance(found, JoinFailed):
            raise found
        return found

    def follow(self, calls, function, *, within, tell=None, **keywords):
        """Have minions run something long, and wait for each as long as it really works on it.

        calls: list of (names, arguments), a job each; no name is in two of them
        tell: called with what came so far, a few times a second; None for nobody
        Returns a dict, for each name: what the function returned; or JoinFailed, when the minion
        fell silent, ended the job without an answer, or needed longer than ``within`` seconds.
        """
        jobs = {
            self._publish(names, function, arguments, keywords): names for names, arguments in calls
        }
        began = looked = time.monotonic()
        given_up, silent = {}, collections.Counter()
        while True:
            found = dict(given_up)  # who answers late has answered
            for job in jobs:
                found |= self._answers(job)
            if tell:
                tell(found)
            missing = {job: [name for name in jobs[job] if name not in found] for job in jobs}
            now = time.monotonic()
            if not any(missing.values()):
                return found
            if now - began > within:
                late = JoinFailed(
                    "salt", f"{function} was not done within {within:.0f} s; it goes on"
                )
                return {**{name: late for names in missing.values() for name in names}, **found}
            if now - looked > _ALIVE_EVERY_S:
                for job, names in missing.items():
                    given_up |= self._given_up(job, names, silent, function) if names else {}
                looked = time.monotonic()
            time.sleep(_POLL_S)

    def _given_up(self, job, names, silent, function):
        """Those who do not work on a job any more, with the reason."""
        said = self.ask(names, "saltutil.find_job", job, within=_ALIVE_S)
        answered, found = self._answers(job), {}
        for name in names:
            silent[name] = 0 if name in said else silent[name] + 1
            if silent[name] >= _SILENT:
                found[name] = JoinFailed("salt", f"{name} fell silent during {function}")
            elif name in said and not said[name] and name not in answered:
                found[name] = JoinFailed("salt", f"{function} ended on {name} without an answer")
        return found

    def _publish(self, names, function, arguments, keywords):
        try:
            job = self.client.run_job(
                names, function, arguments, tgt_type="list", kwarg=keywords or None
            )
        except SaltClientError as error:
            raise JoinFailed("salt", f"the master did not publish {function}: {error}") from None
        if not job:
            raise JoinFailed("salt", f"the master knows none of {', '.join(names)}")
        return job["jid"]

    def _answers(self, job):
        return {
            name: found.get("ret") for name, found in self.client.get_cache_returns(job).items()
        }
