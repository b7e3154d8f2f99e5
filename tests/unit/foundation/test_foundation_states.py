"""State modules of the foundation: what a dry run says, what a refusal leaves alone."""

import pytest
from salt.exceptions import CommandExecutionError
from support import load


def refuse(*_, **__):
    raise CommandExecutionError("no view of the plan")


# --- saltern.gate ---


def gate(reasons, test=False, told=None):
    asked = []

    def look(wait):
        asked.append(wait)
        if isinstance(reasons, Exception):
            raise reasons
        return reasons

    state = load(
        "states",
        "saltern",
        __salt__={
            "saltern_gate.p1_foundation": look,
            "saltern.note_gate": lambda phase, is_open: None,
            "event.send": lambda *event: told.append(event) if told is not None else None,
        },
        __opts__={"test": test},
    )
    return state.gate("p1_foundation", phase="p1_foundation"), asked


def test_an_open_gate_is_no_change():
    ret, asked = gate([])
    assert (ret["result"], ret["changes"], asked) == (True, {}, [True])


def test_a_closed_gate_fails_with_every_reason():
    ret, _ = gate(["munge: found nothing", "clock: found +9 s"])
    assert ret["result"] is False
    assert ret["comment"].splitlines()[1:] == ["- munge: found nothing", "- clock: found +9 s"]


def test_a_dry_run_looks_at_once_and_does_not_fail_for_what_a_run_may_make():
    ret, asked = gate(["munge: found nothing"], test=True)
    assert (ret["result"], ret["changes"], asked) == (None, {}, [False])


def test_a_gate_that_cannot_look_is_closed():
    ret, _ = gate(CommandExecutionError("This host has no view of the plan"))
    assert ret["result"] is False
    assert "This host has no view" in ret["comment"]


@pytest.mark.parametrize(
    ("reasons", "test", "sent"),
    [
        ([], False, [("saltern/phase", {"phase": "p1_foundation", "open": True})]),
        (["clock"], False, [("saltern/phase", {"phase": "p1_foundation", "open": False})]),
        ([], True, []),
    ],
    ids=["open", "closed", "dry run"],
)
def test_a_gate_tells_the_master_how_its_phase_ended(reasons, test, sent):
    told = []
    gate(reasons, test=test, told=told)
    assert told == sent


# --- saltern.waited ---


def waited(answer, test=False):
    asked = {}

    def await_port(host, port, timeout, what):
        asked["timeout"] = timeout
        return answer(host, port, timeout, what)

    state = load(
        "states", "saltern", __salt__={"saltern.await_port": await_port}, __opts__={"test": test}
    )
    return state.waited("x", host="mgmt01", port=6819, timeout=300, what="slurmdbd"), asked


def test_a_wait_changes_nothing():
    ret, asked = waited(lambda *_: 0.1)
    assert (ret["result"], ret["changes"], asked["timeout"]) == (True, {}, 300)


@pytest.mark.parametrize(("test", "result", "patience"), [(False, False, 300), (True, None, 0)])
def test_a_wait_that_ends_in_vain(test, result, patience):
    ret, asked = waited(refuse, test)
    assert (ret["result"], ret["changes"], asked["timeout"]) == (result, {}, patience)


def test_await_port_names_the_peer_and_the_time():
    module = load("modules", "saltern")
    with pytest.raises(CommandExecutionError, match=r"slurmdbd on 127\.0\.0\.1:1 did not answer"):
        module.await_port("127.0.0.1", 1, 0, "slurmdbd")


# --- saltern.hosts_file ---


def test_the_hosts_file_keeps_all_but_its_block():
    called = {}
    state = load(
        "states",
        "saltern",
        __salt__={"saltern.hosts_block": lambda: "10.0.0.1 a.b a"},
        __states__={"file.blockreplace": lambda **given: called.update(given) or {"result": True}},
    )
    assert state.hosts_file("/etc/hosts")["result"] is True
    assert called["prepend_if_not_found"] is True
    assert called["content"] == "10.0.0.1 a.b a"


def test_a_hosts_file_without_a_view_fails_in_words():
    state = load("states", "saltern", __salt__={"saltern.hosts_block": refuse})
    ret = state.hosts_file("/etc/hosts")
    assert (ret["result"], ret["comment"]) == (False, "no view of the plan")


# --- system_account.present ---

ARGUMENTS = {"uid": 10010, "gid": 10010, "home": "/x", "shell": "/y", "createhome": False}


def account(conflicts=(), group=True, user=True, test=False):
    """The state's return, and which of the stock states it called."""
    calls = []

    def stock(kind, result):
        def state(**given):
            calls.append((kind, given))
            changes = {kind: "made"} if result != "same" else {}
            return {
                "name": given["name"],
                "result": True if result == "same" else result,
                "changes": changes,
                "comment": kind,
            }

        return state

    def look(*_):
        if isinstance(conflicts, Exception):
            raise conflicts
        return list(conflicts)

    module = load(
        "states",
        "system_account",
        __salt__={"system_account.conflicts": look},
        __states__={"group.present": stock("group", group), "user.present": stock("user", user)},
        __opts__={"test": test},
    )
    return module.present("munge", **ARGUMENTS), [kind for kind, _ in calls]


def test_a_new_account_has_group_and_user_in_its_changes():
    ret, calls = account()
    assert (ret["result"], calls) == (True, ["group", "user"])
    assert ret["changes"] == {"group": "made", "user": "made"}


def test_an_account_that_is_so_changes_nothing():
    ret, _ = account(group="same", user="same")
    assert (ret["result"], ret["changes"]) == (True, {})


def test_a_dry_run_predicts_without_looking_for_the_group_that_is_not_there():
    ret, calls = account(group=None, user=None, test=True)
    assert (ret["result"], calls) == (None, ["group"])
    assert ret["changes"]


@pytest.mark.parametrize("test", [False, True])
def test_an_account_with_another_id_is_refused_and_left_alone(test):
    ret, calls = account(conflicts=["user munge: found uid 101", "uid 101 owns 3 files"], test=test)
    assert (ret["result"], ret["changes"], calls) == (False, {}, [])
    assert "owns 3 files" in ret["comment"]


def test_a_group_that_fails_stops_the_user():
    ret, calls = account(group=False)
    assert (ret["result"], calls) == (False, ["group"])


def test_a_search_that_fails_is_a_sentence():
    ret, _ = account(conflicts=CommandExecutionError("find: not there"))
    assert (ret["result"], ret["comment"]) == (False, "find: not there")
