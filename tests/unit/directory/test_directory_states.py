"""States and the gate of the directory: already so, dry run, changed, failed."""

from unittest.mock import create_autospec

import pytest
from salt.exceptions import CommandExecutionError
from saltern import gates_identity
from support import load

WORDS = CommandExecutionError("ldapmodify: Insufficient access (50)")


def call(module, salt, function, *arguments, test=False):
    mocks = {
        f"{name.partition('.')[0]}.{name.partition('.')[2]}": create_autospec(
            getattr(load("modules", name.partition(".")[0]), name.partition(".")[2]),
            side_effect=behaviour,
        )
        for name, behaviour in salt.items()
    }
    state = load("states", module, __salt__=mocks, __opts__={"test": test})
    return getattr(state, function)("a name", *arguments), mocks


WANTED = ["add uid=ada", "change cn=phys: member"]


@pytest.mark.parametrize(
    ("function", "salt", "test", "result", "changes"),
    [
        pytest.param("populated", {"directory.changes": [[]]}, False, True, {}, id="already-so"),
        pytest.param(
            "populated", {"directory.changes": [WANTED]}, True, None, {"entries": WANTED},
            id="dry-run",
        ),
        pytest.param(
            "configured", {"directory.changes": [WANTED, []], "directory.apply": [WANTED]},
            False, True, {"configuration": WANTED}, id="changed",
        ),
        pytest.param(
            "populated", {"directory.changes": [WANTED], "directory.apply": WORDS},
            False, False, {}, id="failed",
        ),
        pytest.param(
            "configured",
            {"directory.changes": [WANTED, WANTED[1:]], "directory.apply": [WANTED]},
            False, False, {"configuration": WANTED[:1]}, id="slapd-keeps-it-otherwise",
        ),
        pytest.param("prepared", {"directory.prepared": [True]}, False, True, {}, id="prepared"),
        pytest.param(
            "prepared", {"directory.prepared": [False]}, True, None,
            {"configuration": {"old": "none", "new": "made"}}, id="prepared-dry-run",
        ),
        pytest.param(
            "prepared", {"directory.prepared": [False], "directory.prepare": [None]}, False, True,
            {"configuration": {"old": "none", "new": "made"}}, id="prepared-now",
        ),
        pytest.param("prepared", {"directory.prepared": WORDS}, False, False, {}, id="foreign"),
    ],
)  # fmt: skip
def test_a_servers_states(function, salt, test, result, changes):
    ret, mocks = call("directory", salt, function, test=test)
    assert (ret["result"], ret["changes"]) == (result, changes)
    if test:
        assert all(not mock.called for name, mock in mocks.items() if "appl" in name)
    if result is False and not changes:
        assert "Insufficient access" in ret["comment"]


MISSING = ["sss for passwd in /etc/nsswitch.conf"]


@pytest.mark.parametrize(
    ("salt", "test", "result"),
    [
        pytest.param({"sssd.missing": [[]]}, False, True, id="already-so"),
        pytest.param({"sssd.missing": [MISSING]}, True, None, id="dry-run"),
        pytest.param(
            {"sssd.missing": [MISSING, []], "sssd.enable": [None]}, False, True, id="changed"
        ),
        pytest.param(
            {"sssd.missing": [MISSING, MISSING], "sssd.enable": [None]}, False, False, id="in-vain"
        ),
        pytest.param({"sssd.missing": [MISSING], "sssd.enable": WORDS}, False, False, id="failed"),
    ],
)
def test_pam_and_nss(salt, test, result):
    ret, _ = call("sssd", salt, "enabled", test=test)
    assert ret["result"] is result
    assert bool(ret["changes"]) == (result is None or (result is True and len(salt) > 1))


@pytest.mark.parametrize(
    ("salt", "test", "result"),
    [
        pytest.param({"directory_groups.known": [True]}, False, True, id="already-so"),
        pytest.param({"directory_groups.known": [False]}, True, None, id="dry-run"),
        pytest.param(
            {"directory_groups.known": [False], "directory_groups.take": [{"groups": {"a": []}}]},
            False, True, id="changed",
        ),
        pytest.param(
            {"directory_groups.known": [False], "directory_groups.take": WORDS},
            False, False, id="failed",
        ),
    ],
)  # fmt: skip
def test_groups_are_known(salt, test, result):
    ret, _ = call("directory_groups", salt, "known", 5, test=test)
    assert ret["result"] is result


VIEW = {
    "host": {"name": "dir01"},
    "directory": {"uris": ["ldap://dir01"], "probe": {"database": "group", "name": "hpc"}},
}


def server(**changes):
    marks = {"dir01": ["m1"], "dir02": ["m1"]}
    return {"server": {"error": "", "changes": [], "marks": marks, **changes}}


def test_the_gate_is_open():
    assert gates_identity.identity(server(), VIEW) == []
    assert gates_identity.identity({"client": {"missing": [], "probe": True}}, VIEW) == []
    assert gates_identity.identity({"client": {"missing": [], "probe": None}}, VIEW) == []


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        pytest.param(server(error="no socket"), "found no socket", id="slapd-down"),
        pytest.param(server(changes=WANTED[:1]), "something to add uid=ada", id="another-setting"),
        pytest.param(
            server(marks={"dir01": ["m1"], "dir02": ["m0"]}), "dir02: found m0", id="behind"
        ),
        pytest.param(
            server(marks={"dir01": ["m1"], "dir02": "Can't contact"}), "Can't contact", id="silent"
        ),
        pytest.param({"client": {"missing": ["x"], "probe": True}}, "no x", id="not-in-pam"),
        pytest.param(
            {"client": {"missing": [], "probe": False}}, "group hpc: found nobody", id="unknown"
        ),
    ],
)
def test_the_gate_is_closed(facts, words):
    (problem,) = gates_identity.identity(facts, VIEW)
    assert words in str(problem)
