"""Maintenance of nodes in batches, asked for by a person: drained with our mark, their jobs
awaited, worked on, looked at, and given back.

No job is ended. What Slurm says now decides each batch, and the marks of the drained nodes and a
record on the master tell where a maintenance that was cut goes on.

Only the master uses it.
"""

import sys
import time

import saltern_master
from saltern import joins, maintenance, nodeset, overview, verify
from saltern.joins import JoinFailed
from saltern.maintenance import DONE
from saltern.node_states import State
from saltern_lifecycle import Refused, person
from saltern_minions import Minions
from saltern_record import Record

CAUSE = "maintenance"  # in the drain's reason
RECORD = "maintenances"
_ASK_S = 60
_GATE_S = 180
_POLL_S = 5
_ROOM_S = 120  # a node that is given back takes some seconds until Slurm has heard of it
_PATIENCE_S = 600  # until a controller answers again: longer than a takeover


def run(opts, plan, asked, wait_s, failures, test):
    """The parts of `salt-run saltern.maintain`.

    opts: dict, Salt's; plan: ``saltern.plan.Plan``
    asked: dict of str: ``target``, ``do``, ``command``, ``most``
    wait_s: int, how long a batch's jobs are awaited
    failures: int, nodes that may fail before it stops
    test: bool, only list the batches
    Raises Refused.
    """
    nodes = _nodes(plan, asked)
    record = Record(opts, RECORD)
    with record.alone(), Minions(opts) as minions:
        slurm = Slurm(minions, plan)
        known = slurm.states()
        unknown = [name for name in nodes if name not in known or plan.host(name) is None]
        if unknown:
            raise Refused(
                problem=f"Plan and Slurm do not both have the node {nodeset.fold(unknown)}. "
                "Nothing was done."
            )
        before, done = _before(record, asked, nodes)
        work = Maintenance(opts, plan, minions, slurm, asked)
        work.results = dict.fromkeys(done, f"{DONE} in {before}")
        if test:
            return work.preview([node for node in nodes if node not in done])
        return work.run([node for node in nodes if node not in done], record, wait_s, failures)


def _nodes(plan, asked):
    """The nodes of the target: a partition's, or those of a node set."""
    target, do, command = asked["target"], asked["do"], asked["command"]
    try:
        maintenance.most(asked["most"])
        names = plan.partitions.get(target) or nodeset.expand(target)
    except (maintenance.Unclear, nodeset.NodeSetError) as error:
        raise Refused(problem=f"{error}. Nothing was done.") from None
    if do not in _ACTIONS:
        raise Refused(problem=f"do={do}: expected one of {', '.join(_ACTIONS)}.")
    if (do == "command") != bool(command):
        raise Refused(problem="command='…' belongs to do=command, and only to it.")
    return list(names)


def _before(record, asked, nodes):
    """The last maintenance, if it is this one and left nodes undone; and the nodes that it did."""
    last = (record.runs() or [{}])[-1]
    if any(last.get(key) != value for key, value in asked.items()):
        return "", []
    done = {note["node"] for note in last["notes"] if note["result"].startswith(DONE)}
    return (last["run"], sorted(done)) if done < set(nodes) else ("", [])


class Slurm:
    """What a controller says, whichever is in charge; one that takes over is waited for."""

    def __init__(self, minions, plan):
        self.minions, self.plan = minions, plan

    def ask(self, function, *arguments):
        """What a function of a controller's returns. Raises Refused when none answers in time."""
        deadline, told = time.monotonic() + _PATIENCE_S, None
        while True:
            said = "slurmctld runs on no controller"
            for name in self.minions.controllers(self.plan, _ASK_S):
                try:
                    said = self.minions.run(name, function, *arguments, within=_ASK_S)
                except JoinFailed as error:
                    said = str(error)
                if not isinstance(said, str):
                    return said
            if said != told:
                _tell(f"waits for slurmctld: {said}")
                told = said
            if time.monotonic() > deadline:
                raise Refused(
                    problem=f"{function}: {said}",
                    what_next="the same command, once Slurm answers: it goes on",
                )
            time.sleep(_POLL_S)

    def states(self):
        """{node: ``slurm_answers.node``}"""
        return self.ask("slurm_nodes.states")

    def away(self):
        """The nodes that take no jobs now."""
        return {
            name
            for name, node in self.states().items()
            if not verify.is_in_service(State(node["base"], tuple(node["flags"])))
        }

    def busy(self, nodes):
        """{node: its jobs, in words} of those that run any."""
        said = self.ask("slurm_nodes.jobs", nodes)
        jobs = {job: nodeset.expand(where) for job, where in said.items()}
        return maintenance.busy(jobs, nodes)


class Maintenance:
    """One maintenance."""

    def __init__(self, opts, plan, minions, slurm, asked):
        self.plan, self.minions, self.slurm, self.asked = plan, minions, slurm, asked
        self.top = saltern_master.top(opts)
        self.results = {}
        self.failed = 0

    def preview(self, nodes):
        """The batches, if nothing changes meanwhile."""
        away = self.slurm.away()
        found, left = maintenance.batches(nodes, self.plan.partitions, self.asked["most"], away)
        busy = self.slurm.busy(nodes)
        rows = [
            {
                "batch": number,
                "nodes": nodeset.fold(batch),
                "waits_for": sorted({job for node in batch for job in busy.get(node, [])}),
            }
            for number, batch in enumerate(found, 1)
        ]
        return {
            "batches": rows,
            "no_room": nodeset.fold(left) if left else "",
            "nodes": self._rows(),
            "summary": f"dry run: {len(nodes)} nodes, {len(rows)} batches, nothing was changed",
        }

    def run(self, nodes, record, wait_s, failures):
        """All batches. Returns the parts of the answer."""
        left = list(nodes)
        name = record.begin({"by": person(), **self.asked})
        for node in self.results:
            record.note(name, node=node, result=DONE)
        stopped = ""
        while left and not stopped:
            batch = self._next(left)
            if not batch:
                stopped = f"no room: most={self.asked['most']} of a partition are away already"
                break
            for node, said in self._batch(batch, wait_s).items():
                self.results[node] = said
                record.note(name, node=node, result=said)
            left = [node for node in left if node not in batch]
            if self.failed > failures:
                stopped = f"stopped: {self.failed} failed, failures={failures} may"
        answer = self._answer(left, stopped)
        record.end(name, answer["summary"])
        return answer

    def _next(self, left):
        """The next batch; empty when there is no room for one, for a while."""
        deadline = time.monotonic() + _ROOM_S
        while True:
            away = self.slurm.away()
            batch = maintenance.next_batch(left, self.plan.partitions, self.asked["most"], away)
            if batch or time.monotonic() > deadline:
                return batch
            _tell(f"no room yet: {nodeset.fold(sorted(away))} away")
            time.sleep(_POLL_S)

    # --- one batch ---

    def _batch(self, batch, wait_s):
        """{node: what came of it}, for each node of a batch."""
        results = {}
        there = self.minions.ask(batch, "test.ping", within=_ASK_S)
        results |= {node: "its minion does not answer" for node in batch if node not in there}
        mine = self._drained([node for node in batch if node in there], results)
        ready = self._emptied(mine, wait_s, results)
        if not ready:
            return results
        _tell(f"{nodeset.fold(ready)}: {self.asked['do']}")
        problems = _ACTIONS[self.asked["do"]](self, ready)
        well = [node for node in ready if node not in problems]
        problems |= self._unwell(well)
        for node, words in problems.items():
            self.slurm.ask("nhc.drain", [node], CAUSE, words)
            results[node] = f"failed, stays drained: {words}"
            self.failed += 1
        return results | self._given_back([node for node in ready if node not in problems])

    def _drained(self, nodes, results):
        """The nodes that carry our mark now; what others drained is theirs."""
        words = f"{self.asked['do']}, by {person()}"
        said = self.slurm.ask("nhc.drain", nodes, CAUSE, words) if nodes else {}
        results |= {node: f"left alone: {row['left']}" for node, row in said.items() if row["left"]}
        return [node for node, row in said.items() if not row["left"]]

    def _emptied(self, nodes, wait_s, results):
        """The nodes that run nothing; those that still do at the end go back into service."""
        deadline = time.monotonic() + wait_s
        told = None
        while busy := self.slurm.busy(nodes) if nodes else {}:
            words = sorted({job for jobs in busy.values() for job in jobs})
            if words != told:
                _tell(f"{nodeset.fold(list(busy))}: drained, waits for {', '.join(words)}")
                told = words
            if time.monotonic() > deadline:
                self.slurm.ask("nhc.resume", list(busy), CAUSE)
                results |= {
                    node: f"given back, still runs {', '.join(jobs)}" for node, jobs in busy.items()
                }
                break
            time.sleep(_POLL_S)
        return [node for node in nodes if node not in busy]

    def _unwell(self, nodes):
        """{node: why} of those with a gate that is closed, or that do not answer."""
        found = {}
        gates = {node: overview.phases(self.top, self.plan.host(node).roles) for node in nodes}
        for phase in sorted({phase for mine in gates.values() for phase in mine}):
            asked = [node for node in nodes if phase in gates[node] and node not in found]
            said = (
                self.minions.ask(asked, f"saltern_gate.{phase}", within=_GATE_S, wait=True)
                if asked
                else {}
            )
            for node in asked:
                if said.get(node) != []:
                    words = said.get(node) or "its minion does not answer"
                    found[node] = words if isinstance(words, str) else "; ".join(words)
        return found

    def _given_back(self, nodes):
        """{node: result} of nodes that are well."""
        said = self.slurm.ask("nhc.resume", nodes, CAUSE) if nodes else {}
        return {node: DONE if not row["left"] else f"{DONE}, {row['left']}"
                for node, row in said.items()}  # fmt: skip

    # --- what is done on a node ---

    def _highstate(self, nodes):
        within = self.plan.data["join"]["highstate_s"]
        said = self.minions.follow([(nodes, [])], "state.highstate", within=within, queue=True)
        return {node: words for node in nodes if (words := _of_states(said[node]))}

    def _command(self, nodes):
        within = self.plan.data["join"]["highstate_s"]
        calls = [(nodes, [self.asked["command"]])]
        said = self.minions.follow(calls, "cmd.run_all", within=within, python_shell=True)
        return {node: words for node in nodes if (words := _of_command(said[node]))}

    def _rows(self):
        """Nodes of the same result share a row."""
        rows = {}
        for node, said in self.results.items():
            rows.setdefault(said, []).append(node)
        return [{"nodes": nodeset.fold(names), "result": said} for said, names in rows.items()]

    def _answer(self, left, stopped):
        rest = [node for node, said in self.results.items() if not said.startswith(DONE)] + left
        done = len(self.results) - len(rest) + len(left)
        summary = f"{done} of {len(self.results) + len(left)} nodes done"
        return {
            "nodes": self._rows(),
            "not_begun": nodeset.fold(left) if left else "",
            "summary": f"{summary}; {stopped}" if stopped else summary,
            "what_next": "the same command goes on with the others" if rest else "",
            "retcode": 1 if rest else 0,
        }


_ACTIONS = {"highstate": Maintenance._highstate, "command": Maintenance._command}


def _of_states(answer):
    """Why a highstate failed; empty if it did not."""
    try:
        if isinstance(answer, JoinFailed):
            raise answer
        joins.result(answer)
    except JoinFailed as error:
        return f"{error.phase}: {error}"
    return ""


def _of_command(answer):
    """Why a command failed; empty if it did not."""
    if not isinstance(answer, dict):
        return str(answer)
    if not answer["retcode"]:
        return ""
    last = (answer["stderr"] or answer["stdout"]).strip().splitlines()[-1:]
    return f"exit status {answer['retcode']}: {''.join(last)[:200]}"


def _tell(words):
    """A line of progress."""
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()
