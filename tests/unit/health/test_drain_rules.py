"""When a node leaves service for its health, and comes back: each rule, on a simulated Slurm."""

import json
from dataclasses import replace

import pytest
from fake_slurm import Slurm
from saltern import drain_board, drain_run
from saltern.drain_record import Record, Result
from saltern.drain_rules import Policy

POLICY = Policy(good_results=3, flaps=3, settle_s=10, recheck_s=1800)
HOME, DISK = "check_fs_mount_rw(/home)", "check_fs_free(/)"
PERSON = "memory swap, J."
START = 1796130060.0


class Cluster:
    """Nodes that run their checks against one simulated Slurm, and one clock for all."""

    def __init__(self, *names, policy=POLICY, **nodes):
        self.slurm = Slurm(**dict.fromkeys(names, "IDLE"), **nodes)
        self.policy = policy
        self.clock = START
        self.records = {name: Record() for name in self.slurm.nodes}
        self.events = []
        self.waiting = None  # called once, while a node waits

    def check(self, name, *failed, passed=(HOME, DISK)):
        """One run of a node's checks, five minutes after the last."""
        results = [Result(cause, "it is bad") for cause in failed]
        results += [Result(cause) for cause in passed if cause not in failed]
        # From file to file, as on a node.
        record = Record.of(json.loads(json.dumps(self.records[name].data())))
        decision = drain_run.run(record, results, self.policy, World(self, name))
        self.clock += 300
        return decision

    def tags(self):
        return [tag for _, tag, _ in self.events]

    def state(self, name):
        return self.slurm.state(name)

    def reason(self, name):
        return self.slurm.nodes[name]["reason"]

    def comment(self, name):
        return self.slurm.nodes[name]["comment"]


class World:
    """A node's way to that Slurm."""

    def __init__(self, cluster, name):
        self.cluster, self.name = cluster, name

    def _ask(self, *words):
        said = self.cluster.slurm.scontrol(["scontrol", *words])
        if said["retcode"]:
            raise drain_run.Away(said["stderr"])
        return said["stdout"]

    def now(self):
        return self.cluster.clock

    def node(self):
        return drain_board.nodes(self._ask("show", "node", self.name, "--json"))[0]

    def board(self):
        return drain_board.nodes(self._ask("show", "nodes", "--json"))

    def closer(self, board):
        return board

    def update(self, values):
        words = [f"{key}={value}" for key, value in values.items()]
        self._ask("update", f"nodename={self.name}", *words)

    def wait(self, seconds):
        self.cluster.clock += seconds
        if self.cluster.waiting:
            called, self.cluster.waiting = self.cluster.waiting, None
            called()

    def keep(self, record):
        self.cluster.records[self.name] = record

    def tell(self, tag, data):
        self.cluster.events.append((self.name, tag, data))


def six(**changes):
    return Cluster("n1", "n2", "n3", "n4", "n5", "n6", policy=replace(POLICY, **changes))


def test_a_failure_drains_with_check_finding_and_time():
    cluster = six()
    cluster.check("n2", HOME)
    assert cluster.state("n2") == "IDLE+DRAIN"
    assert cluster.reason("n2") == f"saltern: {HOME}: it is bad @2026-12-01T13:01Z"
    assert cluster.comment("n2") == ""
    assert cluster.tags() == ["drained"]


def test_a_healthy_node_is_not_written_to():
    cluster = six()
    for _ in range(3):
        cluster.check("n1")
    assert cluster.slurm.updates == []
    assert cluster.events == []


def test_a_failure_that_stays_is_told_once():
    cluster = six()
    cluster.check("n1", HOME)
    before = len(cluster.slurm.updates)
    for _ in range(4):
        cluster.check("n1", HOME)
    assert len(cluster.slurm.updates) == before
    assert cluster.tags() == ["drained"]


def test_it_comes_back_after_n_good_results_in_a_row():
    cluster = six()
    cluster.check("n1", HOME)
    cluster.check("n1")
    cluster.check("n1")
    cluster.check("n1", HOME)  # not in a row
    cluster.check("n1")
    cluster.check("n1")
    assert cluster.state("n1") == "IDLE+DRAIN"
    cluster.check("n1")
    assert cluster.state("n1") == "IDLE"
    assert cluster.tags() == ["drained", "recovered"]


def test_two_causes_are_both_kept_and_the_last_brings_the_node_back():
    cluster = six()
    cluster.check("n1", HOME)
    cluster.check("n1", HOME, DISK)
    assert HOME in cluster.reason("n1")
    assert DISK in cluster.reason("n1")
    for _ in range(3):
        cluster.check("n1", DISK)
    assert cluster.state("n1") == "IDLE+DRAIN"
    assert HOME not in cluster.reason("n1")
    assert DISK in cluster.reason("n1")
    for _ in range(3):
        cluster.check("n1")
    assert cluster.state("n1") == "IDLE"


def test_a_cause_of_another_program_is_kept_and_not_lifted_by_health():
    cluster = six()
    cluster.slurm.drained_by("n1", "saltern: join: waiting @2026-12-01T12:00Z")
    for _ in range(4):
        cluster.check("n1")
    assert "join" in cluster.reason("n1")
    cluster.check("n1", HOME)
    assert "join" in cluster.reason("n1")
    assert HOME in cluster.reason("n1")
    for _ in range(3):
        cluster.check("n1")
    assert cluster.state("n1") == "IDLE+DRAIN"
    assert "join" in cluster.reason("n1")
    assert HOME not in cluster.reason("n1")


@pytest.mark.parametrize(
    "reason",
    [PERSON, "Kill task failed", "NHC: check_fs_mount", "", "not saltern: x", "Saltern: x"],
)
def test_a_drain_without_our_mark_is_never_overwritten_or_lifted(reason):
    cluster = six()
    cluster.slurm.drained_by("n1", reason)
    for failed in ([HOME], [HOME, DISK], [], [], [], []):
        decision = cluster.check("n1", *failed)
        assert decision.left
    assert cluster.slurm.updates == []
    assert cluster.reason("n1") == reason
    assert cluster.tags() == ["left"]


def test_a_person_who_comes_while_the_node_waits_is_not_written_over():
    cluster = six()
    cluster.waiting = lambda: cluster.slurm.drained_by("n1", PERSON)
    cluster.check("n1", HOME)
    assert cluster.reason("n1") == PERSON
    for _ in range(4):
        cluster.check("n1")
    assert cluster.state("n1") == "IDLE+DRAIN"
    assert cluster.reason("n1") == PERSON


def test_a_person_who_takes_over_our_drain_owns_it():
    cluster = six()
    cluster.check("n1", HOME)
    cluster.slurm.drained_by("n1", PERSON)
    for _ in range(4):
        cluster.check("n1")
    assert cluster.state("n1") == "IDLE+DRAIN"
    assert cluster.reason("n1") == PERSON


@pytest.mark.parametrize(
    "state",
    [
        "DOWN",
        "DOWN+NOT_RESPONDING",
        "IDLE+POWERED_DOWN",
        "IDLE+MAINTENANCE",
        "IDLE+REBOOT_REQUESTED",
        "IDLE+REBOOT_ISSUED",
        "IDLE+A_NEW_FLAG",
    ],
)
def test_what_slurm_holds_is_left_to_slurm(state):
    cluster = Cluster("n2", "n3", "n4", n1=state)
    cluster.check("n1", HOME)
    cluster.check("n1", HOME)
    assert cluster.slurm.updates == []
    assert cluster.tags() == ["left"]


def test_our_drain_in_a_maintenance_reservation_is_lifted_after_it():
    cluster = six()
    cluster.check("n1", HOME)
    cluster.slurm.nodes["n1"]["state"].append("MAINTENANCE")
    for _ in range(5):
        cluster.check("n1")
    assert "DRAIN" in cluster.state("n1")
    cluster.slurm.nodes["n1"]["state"].remove("MAINTENANCE")
    cluster.check("n1")
    assert cluster.state("n1") == "IDLE"


def test_what_was_over_before_slurm_gave_the_node_back_drains_nothing():
    """A node that boots is DOWN while its checks first run."""
    cluster = six()
    cluster.slurm.nodes["n1"]["state"] = ["DOWN"]
    cluster.check("n1", HOME)
    cluster.check("n1")
    cluster.slurm.nodes["n1"]["state"] = ["IDLE"]
    cluster.check("n1")
    assert cluster.state("n1") == "IDLE"
    assert cluster.slurm.updates == []


def test_what_fails_still_when_slurm_gives_the_node_back_drains_it():
    cluster = six()
    cluster.slurm.nodes["n1"]["state"] = ["DOWN"]
    cluster.check("n1", HOME)
    cluster.slurm.nodes["n1"]["state"] = ["IDLE"]
    cluster.check("n1", HOME)
    assert cluster.state("n1") == "IDLE+DRAIN"


def flap(cluster, times):
    for _ in range(times):
        cluster.check("n1", HOME)
        for _ in range(3):
            cluster.check("n1")


def test_a_node_that_flaps_stays_drained_and_says_so():
    cluster = six()
    flap(cluster, 2)
    assert cluster.state("n1") == "IDLE"
    flap(cluster, 3)
    assert cluster.state("n1") == "IDLE+DRAIN"
    assert cluster.reason("n1").startswith(f"saltern: flapping {HOME}: it is bad")
    assert cluster.tags() == ["drained", "recovered", "drained", "recovered", "flapping"]


def test_a_person_ends_the_flapping():
    cluster = six()
    flap(cluster, 3)
    cluster.slurm.undrain("n1")
    cluster.check("n1")
    assert cluster.state("n1") == "IDLE"
    flap(cluster, 1)
    assert cluster.state("n1") == "IDLE", "its count began anew"


def test_an_outage_does_not_bring_a_flapping_node_back():
    cluster = six()
    flap(cluster, 3)
    outage(cluster, ["n2", "n3"])
    cluster.check("n1", HOME)
    assert cluster.state("n1") == "IDLE+DRAIN"


def test_flaps_outside_the_window_do_not_count():
    cluster = six(flap_window_s=1000)
    flap(cluster, 5)
    assert cluster.state("n1") == "IDLE"


def test_a_result_while_slurmctld_is_away_is_kept_and_delivered_later():
    cluster = six()
    cluster.slurm.answers = False
    decision = cluster.check("n1", HOME)
    assert "kept" in decision.left
    assert cluster.events == []
    cluster.slurm.answers = True
    cluster.check("n1")  # well again, but not for long enough
    assert cluster.state("n1") == "IDLE+DRAIN"
    assert cluster.reason("n1").endswith("@2026-12-01T13:01Z"), "the time of the failure"
    assert cluster.events[0][2]["delivered_late"]
    for _ in range(2):
        cluster.check("n1")
    assert cluster.state("n1") == "IDLE"


def test_an_update_that_slurmctld_did_not_take_is_made_by_the_next_run():
    cluster = six()

    def dies():
        cluster.slurm.answers = False

    cluster.waiting = dies
    cluster.check("n1", HOME)
    assert cluster.state("n1") == "IDLE"
    cluster.slurm.answers = True
    cluster.check("n1", HOME)
    assert cluster.state("n1") == "IDLE+DRAIN"
    assert cluster.tags() == ["drained"]


def outage(cluster, names, cause=HOME):
    """The same failure on many nodes at the same time: each waits while the others look."""
    names = list(names)

    def next_one():
        if names:
            cluster.waiting = next_one
            cluster.check(names.pop(0), cause)

    next_one()


def test_a_cluster_wide_failure_drains_nobody_and_raises_one_event():
    cluster = six()
    outage(cluster, ["n3", "n2", "n4"])
    assert [cluster.state(name) for name in cluster.slurm.nodes] == ["IDLE"] * 6
    assert cluster.tags() == ["widespread"]
    name, _, data = cluster.events[0]
    assert (name, data) == ("n2", {"cause": HOME, "nodes": ["n2", "n3", "n4"]})


def test_the_hold_stays_while_the_check_fails_and_ends_with_it():
    cluster = six()
    outage(cluster, ["n2", "n3", "n4"])
    written = len(cluster.slurm.updates)
    for _ in range(3):
        for name in ("n2", "n3", "n4"):
            cluster.check(name, HOME)
    assert len(cluster.slurm.updates) == written
    for _ in range(3):
        for name in ("n2", "n3", "n4"):
            cluster.check(name)
    assert [cluster.comment(name) for name in cluster.slurm.nodes] == [""] * 6
    assert [cluster.state(name) for name in cluster.slurm.nodes] == ["IDLE"] * 6
    assert cluster.tags() == ["widespread"]


def test_a_node_that_went_first_comes_back_when_others_follow():
    cluster = six()
    cluster.check("n5", HOME)
    assert cluster.state("n5") == "IDLE+DRAIN"
    outage(cluster, ["n2", "n3"])
    cluster.check("n5", HOME)
    assert cluster.state("n5") == "IDLE"
    assert cluster.comment("n5").startswith(f"saltern: held {HOME}")
    assert cluster.tags() == ["drained", "widespread", "recovered"]


def test_a_node_that_stays_ill_alone_after_an_outage_is_drained_in_the_end():
    cluster = six()
    outage(cluster, ["n2", "n3", "n4"])
    for _ in range(3):
        cluster.check("n2")
        cluster.check("n3")
    for _ in range(7):
        cluster.check("n4", HOME)
    assert cluster.state("n4") == "IDLE+DRAIN"


def test_a_share_or_less_is_no_outage():
    cluster = six(widespread_share=0.5)
    outage(cluster, ["n2", "n3", "n4"])
    assert [name for name in cluster.slurm.nodes if "DRAIN" in cluster.state(name)] == [
        "n2",
        "n3",
        "n4",
    ]


def test_few_nodes_are_no_outage_however_large_their_share():
    cluster = Cluster("n1", "n2")
    outage(cluster, ["n1", "n2"])
    assert cluster.state("n1") == "IDLE+DRAIN"
    assert cluster.state("n2") == "IDLE+DRAIN"


def test_different_failures_are_no_outage():
    cluster = six()
    outage(cluster, ["n1", "n2"])
    outage(cluster, ["n3", "n4"], DISK)
    assert sum("DRAIN" in cluster.state(name) for name in cluster.slurm.nodes) == 4


def test_nodes_that_are_not_there_are_not_in_the_share():
    away = {f"c{number}": "FUTURE" for number in range(90)}
    cluster = Cluster("n1", "n2", "n3", "n4", **away)
    outage(cluster, ["n1", "n2", "n3"])
    assert cluster.tags() == ["widespread"]


def test_a_node_with_an_outage_and_a_cause_of_its_own_is_drained_for_its_own():
    cluster = six()
    outage(cluster, ["n2", "n3", "n4"])
    cluster.check("n2", HOME, DISK)
    assert cluster.state("n2") == "IDLE+DRAIN"
    assert HOME not in cluster.reason("n2")
    for _ in range(3):
        cluster.check("n2", HOME)
    assert cluster.state("n2") == "IDLE"
    assert HOME in cluster.comment("n2")


def test_a_persons_comment_stays():
    cluster = six()
    for name in ("n2", "n3", "n4"):
        cluster.slurm.nodes[name]["comment"] = "rack 7"
    outage(cluster, ["n2", "n3", "n4"])
    assert cluster.comment("n3").startswith("rack 7 saltern: held")
    for _ in range(3):
        for name in ("n2", "n3", "n4"):
            cluster.check(name)
    assert cluster.comment("n3") == "rack 7"


def test_running_jobs_are_not_ended():
    """Only a drain is ever asked for: no DOWN, no cancel, no reboot."""
    cluster = Cluster("n2", "n3", "n4", n1="ALLOCATED")
    flap(cluster, 4)
    told = {values["state"] for _, values in cluster.slurm.updates if "state" in values}
    assert told == {"DRAIN", "UNDRAIN"}


def test_a_resume_by_hand_with_the_failure_still_there_drains_anew():
    cluster = six()
    cluster.check("n1", HOME)
    cluster.slurm.undrain("n1")
    cluster.check("n1", HOME)
    assert cluster.state("n1") == "IDLE+DRAIN"
    assert cluster.tags() == ["drained", "lifted", "drained"]


def test_a_record_of_another_format_is_begun_anew():
    assert Record.of({"format": 0, "open": {"x": 1}}) == Record()
    record = Record().seen([Result(HOME, "bad")], 3, START)
    assert Record.of(json.loads(json.dumps(record.data()))).open == record.open


def test_a_check_that_left_the_configuration_ends_its_drain():
    cluster = six()
    cluster.check("n1", HOME)
    for _ in range(3):
        cluster.check("n1", passed=(DISK,))
    assert cluster.state("n1") == "IDLE"
