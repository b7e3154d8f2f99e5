"""What may be enforced when, and the gate of phase 7."""

import pytest
from saltern import enforcement, gates_identity

CASES = {
    "first installation": (["associations"], "", []),
    "raised later": (["safe", "qos"], "AccountingStorageEnforce=associations", ["associations"]),
    "lowered at once": (["associations"], "AccountingStorageEnforce=associations,limits,safe", ["associations"]),
    "off at once": ([], "AccountingStorageEnforce=safe", []),
    "kept": (["safe"], "x=1\naccountingstorageenforce=safe,limits", ["associations", "limits", "safe"]),
    "as scontrol shows none": (["safe"], "AccountingStorageEnforce = none", []),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_accounts_enforcement_is_never_raised_before_the_tree(case):
    wanted, text, allowed = CASES[case]
    assert enforcement.cautious(wanted, text) == allowed


VIEW = {"accounts": {"enforce": ["safe"]}}
RUNNING = {"error": "", "value": ["associations", "limits", "safe"]}
EQUAL = {"error": "", "value": {"commands": []}}


def test_accounts_gate_is_open():
    assert gates_identity.identity({"accounts": EQUAL, "enforced": RUNNING}, VIEW) == []
    assert gates_identity.identity({}, VIEW) == []


CLOSED = {
    "a difference": ({"accounts": {"error": "", "value": {"commands": ["x"] * 9}}}, "9 calls away"),
    "no slurmdbd": ({"accounts": {"error": "refused", "value": None}}, "refused"),
    "not enforced": ({"enforced": {"error": "", "value": []}}, "found none"),
    "no slurmctld": ({"enforced": {"error": "timed out", "value": None}}, "timed out"),
}


@pytest.mark.parametrize("case", CLOSED)
def test_accounts_gate_is_closed(case):
    facts, words = CLOSED[case]
    (problem,) = gates_identity.identity(facts, VIEW)
    assert words in str(problem)
