"""Asking minions from the master: an answer by job id, with a bound, and without Salt's guesses.

Only the master uses it.
"""

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
        job = self._publish([name], function, arguments, keywords)
        began, looked, silent = time.monotonic(), time.monotonic(), 0
        while True:
            answers = self._answers(job)
            if name in answers:
                return answers[name]
            now = time.monotonic()
            if now - began > within:
                raise JoinFailed(
                    "salt", f"{function} was not done within {within:.0f} s; it goes on"
                )
            if now - looked > _ALIVE_EVERY_S:
                found = self.ask([name], "saltutil.find_job", job, within=_ALIVE_S)
                silent = 0 if name in found else silent + 1
                looked = time.monotonic()
                if silent >= _SILENT:
                    raise JoinFailed("salt", f"{name} fell silent during {function}")
                if name in found and not found[name] and name not in self._answers(job):
                    raise JoinFailed("salt", f"{function} ended on {name} without an answer")
            time.sleep(_POLL_S)

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
