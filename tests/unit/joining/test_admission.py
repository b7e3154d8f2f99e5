"""Which key may become which host."""

import pytest
from saltern import admission
from saltern.admission import Keys, Known, judge

COMPUTE = frozenset({"compute"})
A, B = "aa:aa", "bb:bb"

CASES = {
    # what the master holds, what it knows: the outcome, what is done with Salt's key, the proof
    "nothing shown": (Keys(), Known(COMPUTE), "none", "", ""),
    "no proof": (Keys(pending=A), Known(COMPUTE), "waiting", "", ""),
    "named": (Keys(pending=A), Known(COMPUTE, expected=A), "admit", "accept", "fingerprint"),
    "named, a controller": (
        Keys(pending=A), Known(frozenset({"controller"}), expected=A), "admit", "accept",
        "fingerprint",
    ),
    "another is named": (Keys(pending=B), Known(COMPUTE, expected=A), "refused", "", ""),
    "another is named, with a token": (
        Keys(accepted=B), Known(COMPUTE, expected=A, token=True), "refused", "reject", "",
    ),
    "named after a rejection": (
        Keys(rejected=A), Known(COMPUTE, expected=A), "admit", "accept", "fingerprint",
    ),
    "token": (Keys(accepted=A), Known(COMPUTE, token=True), "admit", "", "join token"),
    "token, gpu": (
        Keys(accepted=A), Known(frozenset({"gpu", "compute"}), token=True), "admit", "",
        "join token",
    ),
    "accepted by hand, no token given out": (Keys(accepted=A), Known(COMPUTE), "waiting", "", ""),
    "unknown id": (Keys(pending=A), Known(None), "refused", "", ""),
    "unknown id with a token": (Keys(accepted=A), Known(None, token=True), "refused", "reject", ""),
    "rejected earlier": (Keys(rejected=A), Known(COMPUTE, token=True), "refused", "", ""),
    "registered": (Keys(accepted=A), Known(COMPUTE, registered=A), "admitted", "", ""),
    "registered, shown again": (
        Keys(pending=A), Known(COMPUTE, registered=A), "admitted", "accept", "",
    ),
    "second key": (
        Keys(accepted=A, denied=B), Known(COMPUTE, registered=A), "second key", "", "",
    ),
    "second key after the first was deleted": (
        Keys(pending=B), Known(COMPUTE, registered=A), "second key", "", "",
    ),
    "second key with a token": (
        Keys(accepted=B), Known(COMPUTE, registered=A, token=True), "second key", "reject", "",
    ),
    "second key that somebody named": (
        Keys(pending=B), Known(COMPUTE, registered=A, expected=B), "second key", "", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_outcome(case):
    keys, known, outcome, action, proof = CASES[case]
    decision = judge("node01", keys, known)
    assert (decision.outcome, decision.action, decision.proof) == (outcome, action, proof)


@pytest.mark.parametrize(
    "role", ["controller", "database", "directory", "storage", "monitoring", "builder", "login"]
)
@pytest.mark.parametrize("beside", [frozenset(), COMPUTE], ids=["alone", "with compute"])
def test_a_token_admits_no_host_that_others_trust(role, beside):
    decision = judge("mgmt01", Keys(accepted=A), Known(beside | {role}, token=True))
    assert (decision.outcome, decision.action) == ("refused", "reject")
    assert role in decision.reason


@pytest.mark.parametrize(
    "minion_id",
    ["node01;reboot", "../minions/mgmt01", "a/b", "$(id)", "node 01", "", "-n", "n" * 64, "näme"],
)
def test_what_is_no_host_name_is_refused_whatever_is_known(minion_id):
    decision = judge(minion_id, Keys(accepted=A), Known(COMPUTE, A, A, token=True))
    assert (decision.outcome, decision.action) == ("refused", "reject")


def test_a_second_key_is_shown_with_the_first():
    keys = Keys(accepted=A, denied=B)
    reason = judge("node01", keys, Known(COMPUTE, registered=A)).reason
    assert A in reason and B in reason and "salt-run saltern.replace node01" in reason


@pytest.mark.parametrize("case", [name for name, case in CASES.items() if case[2] == "waiting"])
def test_who_waits_is_told_what_to_do(case):
    keys, known, *_ = CASES[case]
    assert "salt-run saltern.admit node01" in judge("node01", keys, known).reason


def test_host_names():
    assert admission.is_host_name("node-01") and admission.is_host_name("N1")
    assert not admission.is_host_name("node01\n")
