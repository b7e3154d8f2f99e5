"""The worker of the join queue: from a key or a start, seen by the reactor, to a node that runs
jobs.

One process of the master (``_engines/saltern_joins.py``) runs it. What it has to do stands in the
book, so that it goes on after any cut.
"""

import contextlib
import fcntl
import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import saltern_admission
import saltern_master
from saltern import drain_reasons, joins, overview, stamp, view
from saltern.joins import JoinFailed
from saltern.problem import PlanError
from saltern_minions import Minions

log = logging.getLogger(__name__)

_TICK_S = 0.5
_QUESTION_S = 10  # how long a host may take for a short answer
_QUESTIONS = 200  # hosts that are asked at once
_SYNC_S = 300
_LATER_S = 10  # until a host is looked at again whose turn has not come
CAUSE = "join"  # in the reason of a drain, so that only it is lifted


def run(opts):
    """Decide on keys and work off the queue, forever, unless another process does it already."""
    register = saltern_admission.book(opts)
    with _alone(register.path):
        again = register.recover()
        if again:
            log.info("Joins that the master's end cut are queued again: %s", ", ".join(again))
        # Apart: a host that is slow to answer must not delay the decision on another one's key.
        threading.Thread(target=_forever, args=(Doorkeeper(opts),), daemon=True).start()
        _forever(Worker(opts))


def _forever(one):
    while True:
        try:
            one.tick()
        except Exception:
            log.exception("The join queue goes on after an error")
            time.sleep(_LATER_S)
        time.sleep(_TICK_S)


def _plan(opts):
    return saltern_master.resolved(opts, saltern_master.settings(opts)["schema_file"])


class Doorkeeper:
    """Decides on the keys that the reactor saw, and queues the hosts that started."""

    def __init__(self, opts):
        self.opts = opts
        self.book = saltern_admission.book(opts)
        self.swept = None
        self.sweep_s = 0

    def tick(self):
        """Look at every knock; now and then at what the reactor may have missed."""
        knocks = self.book.knocks()
        sweep = self.swept is None or time.monotonic() - self.swept > self.sweep_s
        if not (knocks or sweep):
            return
        try:
            plan = _plan(self.opts)
        except PlanError as error:
            log.error("No key is decided on: the plan has problems: %s", error.problems[0])
            time.sleep(_LATER_S)
            return
        for knock in knocks:
            decision = saltern_admission.look(self.opts, plan, knock["id"])
            if decision.outcome in ("admit", "admitted") and knock["started"]:
                self._enqueue(plan, knock["id"])
            self.book.answered(knock)
        if sweep:
            self._sweep(plan)

    def _enqueue(self, plan, name):
        """Queue a host that joins by itself."""
        host = plan.host(name)
        if host and host.roles <= frozenset(plan.data["join"]["roles"]):
            self.book.enqueue(name, time.time())

    def _sweep(self, plan):
        """Find what the reactor missed: keys that wait, and admitted hosts that never joined."""
        self.swept, self.sweep_s = time.monotonic(), plan.data["join"]["sweep_s"]
        pending = Path(self.opts["pki_dir"]) / "minions_pre"
        for key in sorted(pending.glob("[!.]*")):
            saltern_admission.look(self.opts, plan, key.name)
        queued = {row["id"] for row in self.book.queue()}
        for host in self.book.hosts():
            if host["joined_at"] is None and host["id"] not in queued:
                self._enqueue(plan, host["id"])


class Worker:
    """Works off the queue, at most the plan's batch at a time."""

    def __init__(self, opts):
        self.opts = opts
        self.book = saltern_admission.book(opts)
        self.at_work = {}
        self.controllers = threading.Lock()  # one change of the controllers at a time
        self.plan = None

    def tick(self):
        """Ask the hosts whose turn it is one short question; start those that need work."""
        self.at_work = {name: work for name, work in self.at_work.items() if work.is_alive()}
        for name in self.book.in_work():
            if name not in self.at_work:  # its thread could not even write that it failed
                self.book.wait(name, "its work was broken off", time.time() + _LATER_S)
        due = self.book.due(time.time(), _QUESTIONS)
        if not (due or self.book.next_ready(self._room())):
            return
        try:
            self.plan = _plan(self.opts)
        except PlanError as error:
            self._postpone(due, f"the plan has problems: {error.problems[0]}")
            return
        known = [row for row in due if self.plan.host(row["id"])]
        for row in due:
            if row not in known:
                self.book.drop(row["id"])
        if known:
            self._ask(known)
        for name in self.book.next_ready(self._room()):
            self._start(name)

    def _room(self):
        """How many hosts more may be in work; one, to begin with, before a plan was read."""
        return self.plan.data["join"]["batch"] - len(self.at_work) if self.plan else 1

    def _ask(self, due):
        """Which of these hosts are complete, silent, or need work."""
        names = [row["id"] for row in due]
        with Minions(self.opts) as minions:
            if not minions.controllers(self.plan, _QUESTION_S):
                # Without one each would fail alone.
                self._postpone(due, "waits for a controller on which slurmctld runs")
                return
            applied = minions.ask(names, "saltern.applied", within=_QUESTION_S)
            states = self._node_states(minions, list(applied))
        top, tree = saltern_master.top(self.opts), saltern_master.tree_version(self.opts)
        for row in due:
            name = row["id"]
            if name not in applied:
                self._silent(row)
                continue
            wanted = stamp.of({**view.of(self.plan, name), "tree": tree})
            phases = overview.phases(top, self.plan.host(name).roles)
            complete = joins.is_complete(applied[name], phases, wanted)
            if complete and _is_in_service(states.get(name)):
                self._joined(name, {}, applied_already=True)
            else:
                most = self.plan.data["join"]["batch"]
                self.book.ready(name, f"waits for its turn ({most} at a time)")

    def _node_states(self, minions, names):
        """What the first controller that answers says of these nodes; nothing if none does."""
        controllers = [host.name for host in self.plan.with_role("controller")]
        answers = minions.ask(controllers, "slurm_nodes.states", names, within=_QUESTION_S)
        said = [answers[name] for name in controllers if isinstance(answers.get(name), dict)]
        return said[0] if said else {}

    def _silent(self, row):
        """A host that does not answer is asked again later, ever less often."""
        pause = joins.pause(row["attempts"] + 1, _LATER_S, self.plan.data["join"]["retry_most_s"])
        due = time.time() + pause
        self.book.wait(row["id"], "its minion does not answer", due, tried=True)

    def _postpone(self, rows, reason):
        for row in rows:
            self.book.wait(row["id"], reason, time.time() + _LATER_S)

    def _start(self, name):
        attempt = self.book.take(name)
        if not attempt:
            return
        work = threading.Thread(target=self._work, args=(name, self.plan, attempt), daemon=True)
        self.at_work[name] = work
        work.start()

    # --- one host ---------------------------------------------------------------------------------

    def _work(self, name, plan, attempt):
        """One host, in a thread of its own; whatever happens ends in the book."""
        steps = {}
        with Minions(self.opts) as minions:
            try:
                for step, function in _STEPS:
                    self.book.step(name, step)
                    began = time.monotonic()
                    more = function(self, minions, plan, name)
                    steps[step] = round(time.monotonic() - began, 1)
                    steps.update(more or {})
                self._joined(name, steps)
            except JoinFailed as error:
                self._failed(minions, plan, name, attempt, error)
            except Exception as error:
                log.exception("The join of %s ended with an error", name)
                error = JoinFailed("master", f"{type(error).__name__}: {error}")
                self._failed(minions, plan, name, attempt, error)

    def _modules(self, minions, plan, name):
        """A bare minion has none of our modules; without them its pillar's states cannot run."""
        said = minions.run(name, "saltutil.sync_all", within=_SYNC_S, refresh=False)
        if not isinstance(said, dict):
            raise JoinFailed("modules", str(said))

    def _pillar(self, minions, plan, name):
        """In the second after its key was accepted, a minion's pillar can fail (Salt 61977)."""
        said = minions.run(name, "saltutil.refresh_pillar", within=_SYNC_S, wait=True)
        if said is not True:
            raise JoinFailed("pillar", str(said))

    def _controllers(self, minions, plan, name):
        """A declared node stands in the running configuration before its slurmd starts."""
        if plan.host(name).elastic:
            return
        with self.controllers:
            if name in self._node_states(minions, [name]):
                return
            for host in plan.with_role("controller"):
                minions.ask([host.name], "saltutil.refresh_pillar", within=_SYNC_S, wait=True)
                answer = minions.run(
                    host.name,
                    "state.apply",
                    "p4_scheduler.slurmctld",
                    within=plan.data["join"]["highstate_s"],
                    queue=True,
                )
                try:
                    joins.result(answer)
                except JoinFailed as error:
                    raise JoinFailed(
                        error.phase, f"controller {host.name}: {error.reason}"
                    ) from None

    def _highstate(self, minions, plan, name):
        answer = minions.run(
            name, "state.highstate", within=plan.data["join"]["highstate_s"], queue=True
        )
        return joins.result(answer)

    def _registered(self, minions, plan, name):
        """The node is up in Slurm, and what we drained for its join is lifted."""
        deadline = time.monotonic() + plan.data["waits"]["node_s"]
        while True:
            found = self._node_states(minions, [name]).get(name)
            if _is_up(found):
                return
            if time.monotonic() > deadline:
                said = f"{found['base']} {' '.join(found['flags'])}" if found else "unknown to it"
                raise JoinFailed("p4_scheduler", f"the controller says that the node is {said}")
            time.sleep(1)

    def _joined(self, name, steps, applied_already=False):
        self.book.joined(name, time.time(), steps)
        saltern_admission.fire(
            self.opts,
            "saltern/node/joined",
            {"id": name, "steps": steps, "nothing_to_do": applied_already},
        )

    def _failed(self, minions, plan, name, attempt, error):
        """Note it, say it, try again later; a node that is held stays so, and says why."""
        said = f"{error.phase}: {error.reason}"
        self._tell_slurm(minions, plan, name, said)
        join = plan.data["join"]
        pause = joins.pause(attempt, join["retry_s"], join["retry_most_s"])
        self.book.failed(name, said, time.time(), time.time() + pause)
        saltern_admission.fire(
            self.opts,
            "saltern/node/join-failed",
            {
                "id": name,
                "phase": error.phase,
                "reason": error.reason,
                "attempt": attempt,
                "retry_s": pause,
            },
        )

    def _tell_slurm(self, minions, plan, name, finding):
        with contextlib.suppress(JoinFailed):
            minions.ask(
                [plan.with_role("controller")[0].name],
                "node_join.tell_failure",
                name,
                " ".join(finding.split()),
                within=_QUESTION_S,
            )


_STEPS = (
    ("modules", Worker._modules),
    ("pillar", Worker._pillar),
    ("controllers", Worker._controllers),
    ("highstate", Worker._highstate),
    ("registered", Worker._registered),
)


def _is_in_service(node):
    """Whether the node is up, and not held for its join any more."""
    if not _is_up(node):
        return False
    return all(cause.name != CAUSE for cause in drain_reasons.parse(node["reason"]))


def _is_up(node):
    """Whether Slurm has the node, whatever a person or a check decided about it since."""
    if not node:
        return False
    return node["base"] in ("IDLE", "ALLOCATED", "MIXED") and "NOT_RESPONDING" not in node["flags"]


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Wait until no other process works on this book; the lock goes with the process."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (path.parent / "worker.lock").open("w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
