"""A deployment's order, what stops it, and what it leaves on record; minions are simulated."""

import io
import json

import pytest
import saltern_deploy
import saltern_deploy_show
import saltern_master
import saltern_record
from saltern import plan as plans
from saltern.joins import JoinFailed
from saltern_lifecycle import Refused
from support import ROOT, SCHEMA, everyone

TOP = saltern_master.top({"file_roots": {"base": [str(ROOT / "salt")]}})
TREE = "0123456789abcdef"


class Cluster:
    """Simulated minions: what each phase of a host has to do, and what goes wrong."""

    def __init__(self, wanted):
        self.wanted = wanted
        self.to_do = {}  # (host, phase): states that would change
        self.closed = {}  # (host, phase): the gate's words
        self.silent = set()
        self.dying = {}  # host: the phase in which it falls silent
        self.new = set()  # hosts that have no modules yet
        self.old = set()  # hosts of an older tree
        self.stuck = set()  # (host, function) without an answer
        self.applied = []  # (phase, host), in order
        self.synced = set()

    def ask(self, names, function, *_, within, **__):
        there = [name for name in names if name not in self.silent]
        if function == "saltern.applied":
            return {name: self._applied(name) for name in there}
        assert function in ("saltutil.sync_all", "saltutil.refresh_pillar"), function
        there = [name for name in there if (name, function) not in self.stuck]
        self.synced.update(there)
        return dict.fromkeys(there, {} if function == "saltutil.sync_all" else True)

    def _applied(self, name):
        if name in self.new:
            return "'saltern.applied' is not available."
        digest = "older" if name in self.old else self.wanted.digest(name)
        return {"view": digest, "gates": dict.fromkeys(self.wanted.gates(name), digest)}

    def follow(self, calls, function, *, within, tell, test=False, queue):
        assert queue, "another run on a host is waited for"
        found = {}
        for names, arguments in calls:
            for name in names:
                found[name] = self._states(name, arguments, test)
                tell(found)
        return found

    def _states(self, name, arguments, test):
        if test and name in self.new:
            return ["Rendering SLS 'base:p4_scheduler' failed"]
        if test:
            phases = list(self.wanted.steps[name])
        else:
            (sls,) = arguments
            phases = sorted({one.partition(".")[0] for one in sls.split(",")})
            assert sls.split(",") == self.wanted.steps[name][phases[0]]
        states = {}
        for phase in phases:
            if not test:
                self.applied.append((phase, name))
                if self.dying.get(name) == phase:
                    return JoinFailed("salt", f"{name} fell silent")
            for number in range(self.to_do.get((name, phase), 0)):
                states[f"{phase} {number}"] = state(phase, None if test else True, {"a": "b"})
            words = self.closed.get((name, phase))
            result = True if not words else None if test else False
            states[phase] = {**state(phase, result, {}), "comment": words}
        return states


def state(phase, result, changes):
    return {
        "__sls__": phase, "__id__": f"{phase}: gate", "result": result, "changes": changes,
        "comment": "", "__run_num__": 1, "__state_ran__": True,
    }  # fmt: skip


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Options of a master, and a plan with a host for each role."""
    monkeypatch.setattr(saltern_master, "top", lambda _opts: TOP)
    monkeypatch.setattr(saltern_master, "tree_version", lambda _opts: TREE)
    monkeypatch.setattr(saltern_deploy, "person", lambda: "ada")
    settings = {"join_file": str(tmp_path / "join/register.db")}
    return {"ext_pillar": [{"saltern": settings}]}, plans.resolve(SCHEMA, everyone())


@pytest.fixture
def cluster(site, monkeypatch):
    """The simulated minions of the site."""
    simulated = Cluster(saltern_deploy.Wanted(*site))

    class Minions:
        def __init__(self, _opts):
            pass

        def __enter__(self):
            return simulated

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(saltern_deploy, "Minions", Minions)
    simulated.printed = io.StringIO()
    show = saltern_deploy_show.Show(json.dumps, simulated.printed)
    monkeypatch.setattr(saltern_deploy_show, "shown", lambda _opts: _Within(show))
    return simulated


class _Within:
    def __init__(self, what):
        self.what = what

    def __enter__(self):
        return self.what

    def __exit__(self, *_):
        pass


def runs(site):
    return saltern_record.Record(site[0], "deploys").runs()


def cell(said, host, phase):
    (found,) = (row[phase] for row in said["phases"] if host in row["hosts"].split(","))
    return found


def test_nothing_to_do_is_one_dry_run(site, cluster):
    said = saltern_deploy.run(*site)
    assert said["summary"] == "nothing was to do, all gates are open"
    assert said["retcode"] == 0
    assert cluster.applied == [] and cluster.synced == set()
    assert cell(said, "cpu1", "p4_scheduler") == "ok"
    assert cell(said, "store1", "p4_scheduler") == ""
    assert runs(site) == []


def test_every_phase_from_the_first_with_something_to_do_ends_before_the_next(site, cluster):
    cluster.to_do["ctl1", "p4_scheduler"] = 2
    said = saltern_deploy.run(*site)
    order = [phase for phase, _ in cluster.applied]
    assert order == sorted(order)
    assert set(order) == {"p4_scheduler", "p5_environment", "p7_identity", "service"}
    hosts = {name for phase, name in cluster.applied if phase == "p4_scheduler"}
    assert hosts == {n for n, mine in cluster.wanted.steps.items() if "p4_scheduler" in mine}
    assert cell(said, "ctl1", "p4_scheduler") == "2 changed"
    (run,) = runs(site)
    assert run["by"] == "ada" and run["tree"] == TREE and run["said"] == said["summary"]
    assert run["notes"][0]["phase"] == "p4_scheduler"
    assert run["notes"][0]["hosts"]["ctl1"] == "2 changed"


def test_a_closed_gate_stops_all_hosts_after_its_phase(site, cluster):
    cluster.to_do["ctl1", "p1_foundation"] = 1
    cluster.closed["cpu1", "p1_foundation"] = "The gate of p1_foundation is closed: clock"
    said = saltern_deploy.run(*site)
    assert {phase for phase, _ in cluster.applied} == {"p1_foundation"}
    assert said["retcode"] == 1
    assert said["problems"] == ["cpu1, p1_foundation: The gate of p1_foundation is closed: clock"]
    assert said["summary"] == "stopped at a closed gate"
    assert cell(said, "cpu1", "p1_foundation") == "closed"
    assert cell(said, "login1", "p1_foundation") == "ok"
    cluster.closed.clear()
    assert saltern_deploy.run(*site)["retcode"] == 0
    assert {phase for phase, _ in cluster.applied} >= {"p7_identity"}


def test_a_new_host_is_deployed_from_the_first_phase_on(site, cluster):
    cluster.new = {"cpu1"}
    saltern_deploy.run(*site)
    assert cluster.synced == {"cpu1"}
    assert {phase for phase, name in cluster.applied if name == "login1"} >= {
        "p0_plan",
        "service",
    } - {"service"}


def test_hosts_of_an_older_tree_get_its_modules_first(site, cluster):
    cluster.old = {"cpu1", "gpu1"}
    assert cell(saltern_deploy.run(*site, test=True), "cpu1", "p0_plan") == "older"
    saltern_deploy.run(*site)
    assert cluster.synced == {"cpu1", "gpu1"}
    assert cluster.applied[0][0] == "p0_plan", "a dry run alone does not prove it"


@pytest.mark.parametrize("function", ["saltutil.sync_all", "saltutil.refresh_pillar"])
def test_who_did_not_get_this_tree_or_plan_is_left_out(site, cluster, function):
    cluster.old, cluster.stuck = {"cpu1", "gpu1"}, {("cpu1", function)}
    said = saltern_deploy.run(*site)
    assert said["summary"].endswith("left out, because silent: cpu1")
    assert "cpu1" not in {name for _, name in cluster.applied}
    assert "gpu1" in {name for _, name in cluster.applied}


def test_a_dry_run_changes_nothing(site, cluster):
    cluster.to_do["ctl1", "p4_scheduler"] = 1
    said = saltern_deploy.run(*site, test=True)
    assert cluster.applied == [] and runs(site) == []
    assert said["summary"] == "dry run: something is to do"
    assert cell(said, "ctl1", "p4_scheduler") == "1 to change"


def test_a_silent_node_is_left_out_and_said(site, cluster):
    cluster.silent = {"cpu1"}
    cluster.to_do["ctl1", "p4_scheduler"] = 1
    said = saltern_deploy.run(*site)
    assert said["retcode"] == 1
    assert said["summary"].endswith("left out, because silent: cpu1")
    assert cell(said, "cpu1", "p4_scheduler") == "silent"
    assert ("p7_identity", "gpu1") in cluster.applied


def test_a_silent_host_that_others_need_stops_it_before_anything(site, cluster):
    cluster.silent = {"ctl2", "cpu1"}
    with pytest.raises(Refused, match="ctl2 does not answer"):
        saltern_deploy.run(*site)
    assert cluster.applied == []


@pytest.mark.parametrize(("host", "goes_on"), [("cpu1", True), ("ctl1", False)])
def test_a_host_that_falls_silent_on_the_way(site, cluster, host, goes_on):
    cluster.to_do["ctl1", "p1_foundation"] = 1
    cluster.dying[host] = "p1_foundation"
    said = saltern_deploy.run(*site)
    assert said["retcode"] == 1
    assert ("p7_identity" in {phase for phase, _ in cluster.applied}) == goes_on
    assert (host, "p4_scheduler") not in {(name, phase) for phase, name in cluster.applied}
    assert cell(said, host, "p1_foundation") == "silent"


@pytest.mark.parametrize(
    ("asked", "phases"),
    [
        ({"only": "p5"}, {"p5_environment"}),
        ({"first": "5"}, {"p5_environment", "p7_identity", "service"}),
    ],
)
def test_a_part_that_a_person_asked_for(site, cluster, asked, phases):
    cluster.to_do["cpu1", "p5_environment"] = 1
    saltern_deploy.run(*site, **asked)
    assert {phase for phase, _ in cluster.applied} == phases


def test_a_part_does_not_stand_on_what_is_not_done(site, cluster):
    cluster.to_do["cpu1", "p1_foundation"] = 1
    with pytest.raises(Refused, match="p1_foundation has something to do on cpu1") as refused:
        saltern_deploy.run(*site, first="p5")
    assert refused.value.parts["what_next"].endswith("from=p1_foundation")
    assert cluster.applied == []


def test_only_a_phase_that_has_nothing_to_do_does_nothing(site, cluster):
    cluster.to_do["cpu1", "p7_identity"] = 1
    said = saltern_deploy.run(*site, only="p1")
    assert cluster.applied == []
    assert cell(said, "cpu1", "p7_identity") == "1 to change"
    assert said["summary"] == "something is to do"


@pytest.mark.parametrize("asked", [{"only": "p9"}, {"first": "p4", "only": "p5"}])
def test_what_nobody_can_ask_is_refused(site, cluster, asked):
    with pytest.raises(Refused, match="expected"):
        saltern_deploy.run(*site, **asked)


def test_one_deployment_at_a_time(site, cluster):
    with (
        saltern_record.Record(site[0], "deploys").alone(),
        pytest.raises(Refused, match="runs alre"),
    ):
        saltern_deploy.run(*site)


def test_a_cut_is_seen_in_the_record_and_a_torn_line_is_passed_over(site, cluster):
    record = saltern_record.Record(site[0], "deploys")
    with record.alone():
        name = record.begin({"by": "ada", "tree": TREE})
        record.note(name, phase="p1_foundation", took_s=2.0, hosts={"cpu1": "ok"})
    with record.path.open("a") as file:
        file.write(f'{{"of": "another tool"}}\n{{"run": "{name}", "ended": 3')
    said = saltern_deploy.status(*site, last=5)
    (row,) = said["deploys"]
    assert row["result"] == "cut, or it runs" and row["phases"] == "p1_foundation"
    with record.alone():
        second = record.begin({"by": "ada", "tree": TREE})
    assert [run["run"] for run in record.runs()] == [name, second]
    assert record.path.stat().st_mode & 0o777 == 0o600


def test_the_record_keeps_the_last_ones(site, monkeypatch):
    monkeypatch.setattr(saltern_record, "_KEPT", 3)
    record = saltern_record.Record(site[0], "deploys")
    with record.alone():
        for number in range(5):
            record.note(record.begin({"by": "ada", "tree": TREE}), number=number)
    assert [run["notes"] for run in record.runs()] == [[{"number": n}] for n in (2, 3, 4)]


def test_status_tells_hosts_that_are_not_as_plan_and_tree_say(site, cluster):
    assert saltern_deploy.status(*site, last=5)["retcode"] == 0
    cluster.old, cluster.silent = {"cpu1"}, {"gpu1"}
    said = saltern_deploy.status(*site, last=5)
    rows = {row["hosts"]: row["p4_scheduler"] for row in said["hosts"]}
    assert rows["cpu1"] == "older" and rows["gpu1"] == "silent"
    assert said["summary"].startswith(f"{len(site[1].hosts) - 2} of {len(site[1].hosts)} hosts")
    assert said["retcode"] == 1


def test_progress_is_a_line_for_each_phase_where_nobody_can_see_a_table(site, cluster):
    cluster.to_do["cpu1", "p7_identity"] = 1
    saltern_deploy.run(*site)
    lines = cluster.printed.getvalue().splitlines()
    assert lines[0].startswith("dry run on ")
    assert any(line.startswith("p7_identity: ") and "1 changed on cpu1" in line for line in lines)


def test_a_table_on_a_terminal_is_taken_away_before_the_next():
    class Terminal(io.StringIO):
        def fileno(self):
            return 0

    show = saltern_deploy_show.Show(lambda data: "a\nb", Terminal())
    show.is_terminal = True
    show.table([])
    show.clear()
    assert show.stream.getvalue() == "a\nb\n\033[2F\033[J"
