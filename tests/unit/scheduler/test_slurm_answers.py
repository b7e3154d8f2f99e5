"""What real Slurm programs printed (24.11.5), as data."""

import pytest
from saltern import slurm_answers as answers
from support import ROOT

FIXTURES = ROOT / "tests" / "fixtures" / "slurm-24.11.5"


def text(name):
    return (FIXTURES / name).read_text(encoding="utf-8")


def test_a_node():
    node = answers.node(text("show_node.json"))
    assert (node["name"], node["base"], node["flags"]) == ("node01", "ALLOCATED", [])
    assert node["registered"]
    assert node["real_memory"] > 0


def test_an_unknown_node_is_empty_and_no_json_is_an_error():
    assert answers.node('{"nodes": []}') == {}
    with pytest.raises(answers.Unreadable, match="Unable to contact"):
        answers.node("slurm_load_node error: Unable to contact slurm controller")


# PITFALL 25: a base and flags, in any order, style or version.
STATES = [
    (["IDLE"], "IDLE", []),
    (["DOWN", "NOT_RESPONDING"], "DOWN", ["NOT_RESPONDING"]),
    (["DRAIN", "IDLE"], "IDLE", ["DRAIN"]),
    ("IDLE+DRAIN+SOME_NEW_FLAG", "IDLE", ["DRAIN", "SOME_NEW_FLAG"]),
    ("idle*", "IDLE", ["NOT_RESPONDING"]),
    ("down*", "DOWN", ["NOT_RESPONDING"]),
    ("mixed", "MIXED", []),
    ([], "UNKNOWN", []),
]


@pytest.mark.parametrize(("words", "base", "flags"), STATES, ids=str)
def test_states_are_a_base_and_flags(words, base, flags):
    assert answers.state(words) == (base, flags)


def test_who_answers():
    assert answers.pings(text("ping.json")) == {"mgmt01": True}
    assert answers.pings('{"pings": [{"hostname": "a", "pinged": "DOWN"}]}') == {"a": False}


def test_the_running_configuration_has_a_hash():
    config = answers.config(text("show_config.txt"))
    assert config["HASH_VAL"] == "Match"
    assert config["SlurmctldPort"] == "6817"


def test_numbers_in_both_spellings():
    assert answers.number(5) == 5
    assert answers.number({"set": True, "infinite": False, "number": 7}) == 7
    assert answers.number({"set": False, "infinite": False, "number": 7}) == 0


def test_memory_that_slurmd_sees():
    assert answers.hardware(text("slurmd_C.txt"))["RealMemory"] == "24105"


def test_properties_of_a_unit():
    assert answers.properties(text("systemctl_show.txt"))["ActiveState"] == "active"


def test_reasons_end_with_the_fatal_one():
    assert answers.reasons(text("slurmctld_refused.log")) == [
        "error: jobcomp/script JobCompLoc needs to be set",
        "fatal: Failed to initialize jobcomp plugin",
    ]


def test_only_what_was_logged_since():
    log = text("slurmctld_refused.log")
    moment = 1796124000.0  # 2026-12-01T11:20:00+00:00
    kept = answers.since(log, moment).splitlines()
    assert kept
    assert all(line.startswith("[2026-12-01T11:2") for line in kept)
    assert len(kept) < len(log.splitlines())


def test_a_message_of_several_lines_is_told_whole():
    log = (
        "[2026-12-01T11:33:20.000+00:00] error: Configured MailProg is invalid\n"
        "[2026-12-01T11:33:20.100+00:00] fatal: CLUSTER ID MISMATCH.\n"
        'slurmctld has been started with "ClusterID=99"  from the state files,\n'
        'but the DBD thinks it should be "317".\n'
        "[2026-12-01T11:33:20.200+00:00] good bye\n"
    )
    assert answers.since(log, 1796124800.0) == log.strip()
    fatal = answers.reasons(log)[-1]
    assert fatal.startswith("fatal: CLUSTER ID MISMATCH.")
    assert "ClusterID=99" in fatal
    assert "317" in fatal
    assert "good bye" not in fatal
