"""PITFALL 25: a base and flags, in any order, style or version; the unknown is left alone."""

import pytest
from saltern import node_states

PARSED = [
    (["IDLE"], "IDLE"),
    (["DRAIN", "IDLE"], "IDLE+DRAIN"),
    ("IDLE+DRAIN", "IDLE+DRAIN"),
    ("DRAIN+IDLE", "IDLE+DRAIN"),
    ("idle*", "IDLE+NOT_RESPONDING"),
    ("IDLE*+DRAIN", "IDLE+NOT_RESPONDING+DRAIN"),
    ("drained", "IDLE+DRAIN"),
    ("draining", "ALLOCATED+DRAIN"),
    ("drained*", "IDLE+DRAIN+NOT_RESPONDING"),
    ("mixed-", "MIXED+PLANNED"),
    ("alloc", "ALLOCATED"),
    ("down~", "DOWN+POWERED_DOWN"),
    ("idle#", "IDLE+POWERING_UP"),
    ("unknown*", "UNKNOWN+NOT_RESPONDING"),
    ("maint", "UNKNOWN+MAINTENANCE"),
    ("inval", "UNKNOWN+INVALID_REG"),
    ("IDLE+DRAIN+MAINTENANCE+RESERVED", "IDLE+DRAIN+MAINTENANCE+RESERVED"),
    ("idle&", "IDLE+UNKNOWN_MARK_&"),
    ("IDLE+QUARANTINED", "IDLE+QUARANTINED"),
    ("", "UNKNOWN"),
]


@pytest.mark.parametrize(("words", "text"), PARSED, ids=str)
def test_a_state_is_a_base_and_flags(words, text):
    assert node_states.parse(words).text == text


LEFT = [
    ("DOWN", "DOWN"),
    ("DOWN+NOT_RESPONDING", "DOWN"),
    ("IDLE+POWERED_DOWN", "powered down"),
    ("idle~", "powered down"),
    ("IDLE+DRAIN+MAINTENANCE", "maintenance reservation"),
    ("MIXED+DRAIN+REBOOT_REQUESTED", "reboot"),
    ("IDLE+REBOOT_ISSUED", "rebooting"),
    ("idle@", "rebooting"),
    ("FUTURE", "not in use"),
    ("IDLE+INVALID_REG+DRAIN", "registration"),
    ("IDLE+DRAIN+QUARANTINED", "QUARANTINED"),
    ("idle&", "UNKNOWN_MARK_&"),
]


@pytest.mark.parametrize(("text", "word"), LEFT, ids=str)
def test_what_slurm_or_an_unknown_flag_holds_is_left_alone(text, word):
    assert word in node_states.hands_off(node_states.parse(text))


@pytest.mark.parametrize(
    "text",
    ["IDLE", "ALLOCATED+DRAIN", "MIXED+COMPLETING", "idle*", "IDLE+RESERVED", "unknown*"],
)
def test_a_node_in_use_is_ours_to_drain(text):
    assert node_states.hands_off(node_states.parse(text)) == ""
