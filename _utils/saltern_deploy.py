"""All phases across the cluster, one after the other, with the gates between; and how it stands.

A dry run of everything comes first. Where it finds nothing to do, nothing is done; from the first
phase that has something, each phase runs on all of its hosts before the next begins.

Only the master uses it.
"""

import functools
import time

import saltern_deploy_show
import saltern_master
from saltern import deployment, nodeset, overview, roles, stamp, view
from saltern.joins import JoinFailed
from saltern_lifecycle import Refused, person
from saltern_minions import Minions
from saltern_record import Record

RECORD = "deploys"
_PING_S = 30
_SYNC_S = 300
_CHANGED, _TO_CHANGE = "changed", "to change"


def run(opts, plan, first="", only="", test=False):
    """The parts of `salt-run saltern.deploy`.

    opts: dict, Salt's; plan: ``saltern.plan.Plan``
    first, only: str, a phase to begin at, or the only one; those before it have to be done
    test: bool, only the dry run
    Raises Refused for what a person asked wrongly, for a deployment that runs, and for a host that
    does not answer and that others need.
    """
    wanted = Wanted(opts, plan, first, only)
    record = Record(opts, RECORD)
    with record.alone(), Minions(opts) as minions, saltern_deploy_show.shown(opts) as show:
        return Deployment(minions, wanted, record, show).run(test)


def status(opts, plan, last):
    """The parts of `salt-run saltern.status`.

    last: int, deployments
    """
    wanted = Wanted(opts, plan)
    with Minions(opts) as minions:
        said = _asked(minions, list(plan.hosts), "saltern.applied")
    cells = {
        name: deployment.standing(said.get(name), wanted.gates(name), wanted.digest(name))
        for name in plan.hosts
    }
    bad = [name for name, mine in cells.items() if set(mine.values()) != {deployment.OK}]
    summary = f"{len(cells) - len(bad)} of {len(cells)} hosts are as this plan and tree say"
    runs = Record(opts, RECORD).runs()[-last:] if last > 0 else []
    return {
        "deploys": [_line(run) for run in runs],
        "hosts": deployment.table(cells, wanted.gated, nodeset.fold),
        "tree": wanted.tree,
        "summary": f"{summary}, by their last runs" + ("" if not bad else "; the rest is to do"),
        "what_next": "salt-run saltern.deploy" if bad else "",
        "retcode": 1 if bad else 0,
    }


def _line(run):
    """A row of the record."""
    phases = [note["phase"] for note in run["notes"]]
    took = f"{run['ended'] - run['at']:.0f} s" if "ended" in run else ""
    return {
        "deploy": run["run"],
        "by": run["by"],
        "tree": run["tree"],
        "phases": f"{phases[0]} to {phases[-1]}" if len(phases) > 1 else "".join(phases),
        "took": took,
        "result": run.get("said", "cut, or it runs"),
    }


def _asked(minions, names, function, within=_PING_S, **keywords):
    """The answers of those that answer; the master may know none of them yet."""
    try:
        return minions.ask(names, function, within=within, **keywords)
    except JoinFailed:
        return {}


class Wanted:
    """What the plan and the tree want of each host, and which phases a person asked for."""

    def __init__(self, opts, plan, first="", only=""):
        self.plan = plan
        self.top = saltern_master.top(opts)
        self.tree = saltern_master.tree_version(opts)
        self.steps = {
            name: overview.steps(self.top, host.roles) for name, host in plan.hosts.items()
        }
        self.phases = sorted({phase for mine in self.steps.values() for phase in mine})
        self.gated = [phase for phase in self.phases if phase in roles.PHASES]
        self.asked = self._asked(first, only)

    def _asked(self, first, only):
        if first and only:
            raise Refused(problem="Found from= and only=; expected one of them.")
        try:
            begin = deployment.phase(first or only, self.phases) if first or only else ""
        except deployment.UnknownPhase as error:
            raise Refused(problem=f"{'only' if only else 'from'}: {error}.") from None
        start = self.phases.index(begin) if begin else 0
        return self.phases[start : start + 1 if only else None]

    def gates(self, name):
        """The phases of a host that have a gate."""
        return [phase for phase in self.gated if phase in self.steps[name]]

    def digest(self, name):
        """The digest of the view that a host should have."""
        return stamp.of({**view.of(self.plan, name), "tree": self.tree})

    def is_needed(self, name):
        """Whether other hosts need this one; a node or a login node that is off stops nobody."""
        return bool(self.plan.hosts[name].roles - roles.OPEN)


class Deployment:
    """One deployment."""

    def __init__(self, minions, wanted, record, show):
        self.minions, self.wanted, self.record, self.show = minions, wanted, record, show
        self.within = wanted.plan.data["join"]["highstate_s"]
        self.cells = {
            name: dict.fromkeys(steps, deployment.WAITS) for name, steps in wanted.steps.items()
        }
        self.problems, self.ran = [], []
        self.there = []
        self.standings = {}

    def run(self, test):
        """The parts of the answer."""
        self._find_hosts()
        dry = self._dry_run()
        begin = deployment.first_to_do(self.wanted.phases, dry)
        self._refuse_later(begin, dry)
        older = deployment.first_older(self.wanted.phases, list(self.standings.values()))
        begin = min(filter(None, (begin, older)), default="")
        to_do = [phase for phase in self.wanted.asked if begin and phase >= begin]
        if test or not to_do:
            return self._answer("dry run: " if test else "")
        name = self.record.begin({"by": person(), "tree": self.wanted.tree})
        for phase in to_do:
            took, hosts = self._phase(phase)
            self.record.note(name, phase=phase, took_s=took, hosts=hosts)
            self.ran.append(phase)
            if self.problems:
                break
        answer = self._answer()
        self.record.end(name, answer["summary"])
        return answer

    # --- who is there ---

    def _find_hosts(self):
        """Those that answer, with this tree's modules and this plan's view."""
        names = list(self.wanted.plan.hosts)
        applied = _asked(self.minions, names, "saltern.applied")
        self.there = names
        self._leave_out([name for name in names if name not in applied])
        wanted = self.wanted
        self.standings = {
            name: deployment.standing(applied[name], wanted.gates(name), wanted.digest(name))
            for name in self.there
        }
        # A host that passed a gate with this plan and tree has both.
        stale = [
            name for name, mine in self.standings.items() if deployment.OK not in mine.values()
        ]
        if stale:
            self.show.say(f"modules and plan to {len(stale)} hosts")
            # Who runs older modules would pass gates of another tree.
            got = _asked(self.minions, stale, "saltutil.sync_all", _SYNC_S, refresh=False)
            self._leave_out([name for name in stale if not isinstance(got.get(name), dict)])
            got = _asked(self.minions, stale, "saltutil.refresh_pillar", _SYNC_S, wait=True)
            self._leave_out([name for name in stale if got.get(name) is not True])

    def _leave_out(self, names):
        """Go on without hosts that do not answer. Raises Refused if others need one, or nobody is
        left."""
        for name in names:
            self.cells[name] = dict.fromkeys(self.cells[name], deployment.SILENT)
        self.there = [name for name in self.there if name not in names]
        needed = [name for name in names if self.wanted.is_needed(name)]
        if needed or not self.there:
            raise Refused(
                problem=f"{nodeset.fold(needed or names)} does not answer, and others need it. "
                "Nothing was done.",
                what_next=["is it on, and its minion?  systemctl status salt-minion",
                           "is it admitted?  salt-run saltern.joins"],
            )  # fmt: skip

    # --- what is to do ---

    def _dry_run(self):
        """By host: what each phase has to do; None for one that is too new for a dry run."""
        names = self.there
        self.show.say(f"dry run on {len(names)} hosts")
        tell = functools.partial(self._tell, self.wanted.phases, _TO_CHANGE)
        said = self.minions.follow(
            [(names, [])], "state.highstate", within=self.within, tell=tell, test=True, queue=True
        )
        found = {}
        for name in names:
            try:
                found[name] = self._results(said[name])
            except JoinFailed:
                found[name] = None
        tell(said)
        for name in names:
            for phase, word in self.standings[name].items():
                if self.cells[name][phase] == deployment.OK:
                    self.cells[name][phase] = word
        return found

    def _refuse_later(self, begin, dry):
        """A phase stands on those before it."""
        phases = self.wanted.phases
        if begin and phases.index(begin) < phases.index(self.wanted.asked[0]):
            there = [
                name
                for name, found in dry.items()
                if deployment.first_to_do([begin], {name: found})
            ]
            raise Refused(
                phases=deployment.table(self.cells, phases, nodeset.fold),
                problem=f"{begin} has something to do on {nodeset.fold(there)}, and "
                f"{self.wanted.asked[0]} stands on it. Nothing was done.",
                what_next=f"salt-run saltern.deploy from={begin}",
            )

    # --- doing it ---

    def _phase(self, phase):
        """One phase on all of its hosts at once; hosts with the same SLS share a job. Returns the
        seconds, and what each host came to."""
        began = time.monotonic()
        groups = {}
        for name in self.there:
            if phase in self.wanted.steps[name]:
                groups.setdefault(tuple(self.wanted.steps[name][phase]), []).append(name)
        hosts = [name for names in groups.values() for name in names]
        for name in hosts:
            self.cells[name][phase] = deployment.RUNS
        self.show.say(f"{phase} on {len(hosts)} hosts")
        said = self.minions.follow(
            [(names, [",".join(sls)]) for sls, names in groups.items()],
            "state.apply",
            within=self.within,
            tell=functools.partial(self._tell, [phase], _CHANGED),
            queue=True,
        )
        for name in hosts:
            self._judge(phase, name, said[name])
        took = round(time.monotonic() - began, 1)
        now = {name: self.cells[name][phase] for name in hosts}
        self.show.say(f"{phase}: {deployment.in_words(now, nodeset.fold)}; {took} s")
        return took, now

    def _judge(self, phase, name, answer):
        """What a host came to; one that fell silent is out, unless others need it."""
        try:
            found = self._results(answer)
        except JoinFailed as error:
            silent = isinstance(answer, JoinFailed)
            self.cells[name][phase] = deployment.SILENT if silent else deployment.FAILED
            if silent:
                self.there.remove(name)
            if not silent or self.wanted.is_needed(name):
                self.problems.append(f"{name}, {phase}: {error}")
            return
        # What a phase needs of earlier ones runs with it.
        for at, result in found.items():
            self.problems += [f"{name}, {at}: {words}" for words in result.problems]

    def _results(self, answer):
        if isinstance(answer, JoinFailed):
            raise answer
        return deployment.results(answer)

    # --- telling ---

    def _tell(self, phases, verb, said):
        """Fill the table with what came so far."""
        for name, answer in said.items():
            try:
                found = self._results(answer)
            except JoinFailed:
                words = dict.fromkeys(phases, deployment.FAILED)
            else:
                words = {at: found.get(at, deployment.Result()).word(verb) for at in phases}
            self.cells[name].update({at: words[at] for at in phases if at in self.cells[name]})
        self.show.table(self._table())

    def _table(self):
        return deployment.table(self.cells, self.wanted.phases, nodeset.fold)

    def _answer(self, prefix=""):
        silent = [name for name in self.cells if name not in self.there]
        return {
            "phases": self._table(),
            "problems": self.problems,
            "summary": f"{prefix}{self._summary(silent)}",
            "what_next": "mend it, then the same command goes on" if self.problems else "",
            "retcode": 1 if self.problems or silent else 0,
        }

    def _summary(self, silent):
        out = f"; left out, because silent: {nodeset.fold(silent)}" if silent else ""
        if self.problems:
            return f"stopped at a closed gate{out}"
        words = [word for mine in self.cells.values() for word in mine.values()]
        if any(word.endswith((_TO_CHANGE, deployment.OLDER, deployment.CLOSED)) for word in words):
            return f"something is to do{out}"
        changed = any(word.endswith(_CHANGED) for word in words)
        said = "done" if changed else "nothing changed" if self.ran else "nothing was to do"
        return f"{said}, all gates are open{out}"
