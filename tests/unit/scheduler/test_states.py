"""States of phase 4: already so, dry run, changed, failed; and a second run without changes."""

from unittest.mock import Mock, create_autospec

import pytest
from salt.exceptions import CommandExecutionError
from support import load


def autospec(module, function, **behaviour):
    return create_autospec(getattr(load("modules", module), function), **behaviour)


def state(name, salt, *, test=False, states=None):
    return load("states", name, __salt__=salt, __opts__={"test": test}, __states__=states or {})


# --- daemon.current ---


def daemon(reasons, *, enabled=True, start=None, test=False):
    salt = {
        "service.available": Mock(return_value=True),
        "service.enabled": Mock(return_value=enabled),
        "service.enable": Mock(return_value=True),
        "daemon.restart_reasons": autospec("daemon", "restart_reasons", return_value=reasons),
        "daemon.start": autospec("daemon", "start", side_effect=start),
    }
    return salt, state("daemon", salt, test=test).current("slurmd", ["/unit"], 6818)


def test_daemon_that_is_current_stays():
    salt, ret = daemon([])
    assert (ret["result"], ret["changes"]) == (True, {})
    salt["daemon.start"].assert_not_called()


def test_daemon_dry_run_starts_nothing():
    salt, ret = daemon(["started before /unit changed"], test=True)
    assert ret["result"] is None
    assert ret["changes"] == {"started": "started before /unit changed"}
    salt["daemon.start"].assert_not_called()


def test_daemon_is_started_and_enabled():
    salt, ret = daemon(["does not run"], enabled=False)
    assert ret["result"] is True
    assert set(ret["changes"]) == {"started", "enabled"}
    salt["daemon.start"].assert_called_once_with("slurmd", 6818)


def test_daemon_that_fails_reports_its_words_and_no_change():
    _, ret = daemon(["does not run"], start=CommandExecutionError("port 6818 is taken"))
    assert (ret["result"], ret["changes"]) == (False, {})
    assert "port 6818" in ret["comment"]


# --- slurm_conf.managed ---


def conf(changes, *, unsound=None, test=False):
    result = None if test and changes else True
    managed = Mock(
        side_effect=lambda name, **_: {
            "result": result,
            "changes": changes.get(name, {}),
            "comment": "",
        }
    )
    salt = {
        "slurm_conf.require_sound": autospec("slurm_conf", "require_sound", side_effect=unsound),
        "slurm_conf.files": autospec(
            "slurm_conf", "files", return_value={"cgroup.conf": "a", "slurm.conf": "b"}
        ),
    }
    loaded = state("slurm_conf", salt, test=test, states={"file.managed": managed})
    return managed, loaded.managed("/etc/slurm")


DIFF = {"/etc/slurm/slurm.conf": {"diff": "-a\n+b"}}


def test_conf_that_is_as_wanted_stays():
    managed, ret = conf({})
    assert (ret["result"], ret["changes"]) == (True, {})
    assert [call.kwargs["name"] for call in managed.mock_calls] == [
        "/etc/slurm/cgroup.conf",
        "/etc/slurm/slurm.conf",
    ]


def test_conf_dry_run_predicts():
    _, ret = conf(DIFF, test=True)
    assert ret["result"] is None
    assert ret["changes"] == {"slurm.conf": {"diff": "-a\n+b"}}


def test_conf_is_written():
    _, ret = conf(DIFF)
    assert (ret["result"], list(ret["changes"])) == (True, ["slurm.conf"])


@pytest.mark.parametrize("test", [False, True])
def test_conf_that_slurm_refuses_touches_no_file(test):
    managed, ret = conf(DIFF, unsound=CommandExecutionError("slurm:parameters:X"), test=test)
    assert (ret["result"], ret["changes"]) == (False, {})
    assert "slurm:parameters:X" in ret["comment"]
    managed.assert_not_called()


# --- slurm_controller.applied ---


def applied(found_state, action="RECONFIGURE", *, fails=None, test=False, held=()):
    salt = {
        f"slurm_controller.{name}": autospec("slurm_controller", name)
        for name in ("pending", "record", "apply")
    }
    salt |= {f"node_reshape.{name}": autospec("node_reshape", name) for name in ("held", "release")}
    salt["node_reshape.held"].return_value = held
    salt["node_reshape.release"].return_value = held
    salt["slurm_controller.pending"].return_value = {
        "state": found_state,
        "action": action,
        "changes": ["slurm.conf: KillWait=30 -> 45"],
    }
    salt["slurm_controller.apply"].side_effect = fails
    return salt, state("slurm_controller", salt, test=test).applied("slurmctld")


@pytest.mark.parametrize("found", ["same", "stopped", "unrecorded"])
def test_nothing_to_apply(found):
    salt, ret = applied(found)
    assert (ret["result"], ret["changes"]) == (True, {})
    salt["slurm_controller.apply"].assert_not_called()
    assert salt["slurm_controller.record"].called is (found == "unrecorded")


def test_dry_run_says_would_reconfigure_and_notes_nothing():
    salt, ret = applied("differs", test=True)
    assert ret["result"] is None
    assert "would reconfigure" in ret["comment"]
    salt["slurm_controller.pending"].assert_called_once_with(planned=True, raised=False)
    salt["slurm_controller.apply"].assert_not_called()
    salt, ret = applied("unrecorded", test=True)
    assert ret["result"] is True
    salt["slurm_controller.record"].assert_not_called()


def test_what_a_cut_run_held_is_given_back():
    _, ret = applied("same", held=["n1"])
    assert (ret["result"], ret["changes"]) == (True, {"given back": "n1"})
    salt, ret = applied("same", held=["n1"], test=True)
    assert (ret["result"], ret["changes"]) == (True, {})
    salt["node_reshape.release"].assert_not_called()


def test_a_change_is_applied_by_its_action():
    salt, ret = applied("differs", "RESTART")
    assert ret["result"] is True
    assert "KillWait=30 -> 45" in ret["changes"]["running configuration"]
    salt["slurm_controller.apply"].assert_called_once_with("RESTART")


def test_a_change_without_meaning_is_no_change():
    _, ret = applied("differs", "NOTHING")
    assert (ret["result"], ret["changes"]) == (True, {})


def test_a_refusal_is_a_failure_without_changes():
    _, ret = applied("differs", fails=CommandExecutionError("fatal: no"))
    assert (ret["result"], ret["changes"], ret["comment"]) == (False, {}, "fatal: no")


# --- slurm_cluster ---


def registered(known, *, fails=None, test=False):
    salt = {
        "slurm_cluster.clusters": autospec("slurm_cluster", "clusters", return_value=known),
        "slurm_cluster.add_cluster": autospec("slurm_cluster", "add_cluster", side_effect=fails),
    }
    if isinstance(known, Exception):
        salt["slurm_cluster.clusters"].side_effect = known
    return salt, state("slurm_cluster", salt, test=test).registered("lab")


def test_a_known_cluster_is_not_added_again():
    salt, ret = registered(["lab"])
    assert (ret["result"], ret["changes"]) == (True, {})
    salt["slurm_cluster.add_cluster"].assert_not_called()


def test_an_unknown_cluster_is_added_but_not_by_a_dry_run():
    salt, ret = registered([], test=True)
    assert (ret["result"], ret["changes"]) == (None, {"clusters": {"old": "", "new": "lab"}})
    salt["slurm_cluster.add_cluster"].assert_not_called()
    salt, ret = registered([])
    assert (ret["result"], bool(ret["changes"])) == (True, True)
    salt["slurm_cluster.add_cluster"].assert_called_once_with("lab")


@pytest.mark.parametrize(("test", "result"), [(False, False), (True, None)])
def test_a_slurmdbd_without_an_answer_is_not_an_empty_one(test, result):
    salt, ret = registered(CommandExecutionError("Connection refused"), test=test)
    assert (ret["result"], ret["changes"]) == (result, {})
    salt["slurm_cluster.add_cluster"].assert_not_called()


@pytest.mark.parametrize(
    ("function", "asks"),
    [("node_known", "await_node_known"), ("slurmdbd_answers", "await_slurmdbd")],
)
def test_waits_name_whom_and_never_change(function, asks):
    late = autospec("slurm_cluster", asks, side_effect=CommandExecutionError("mgmt01: no answer"))
    there = autospec("slurm_cluster", asks)
    run = getattr(state("slurm_cluster", {f"slurm_cluster.{asks}": there}), function)
    assert (run("x", 60)["result"], there.call_args.args) == (True, (60,))
    ret = getattr(state("slurm_cluster", {f"slurm_cluster.{asks}": late}), function)("x", 60)
    assert (ret["result"], ret["changes"]) == (False, {})
    assert "mgmt01" in ret["comment"]
    dry = getattr(state("slurm_cluster", {f"slurm_cluster.{asks}": late}, test=True), function)
    assert dry("x", 60)["result"] is None
    assert late.call_args.args == (0,)


# --- slurm_database.present ---


def database(answers, *, test=False):
    salt = {
        "slurm_database.missing": autospec("slurm_database", "missing", side_effect=answers),
        "slurm_database.make": autospec("slurm_database", "make"),
    }
    return salt, state("slurm_database", salt, test=test).present("slurmdbd")


def test_database_that_is_there_stays():
    salt, ret = database([[]])
    assert (ret["result"], ret["changes"]) == (True, {})
    salt["slurm_database.make"].assert_not_called()


def test_database_dry_run_and_real_run():
    salt, ret = database([["account"]], test=True)
    assert (ret["result"], list(ret["changes"])) == (None, ["account"])
    salt["slurm_database.make"].assert_not_called()
    salt, ret = database([["database", "account"], []])
    assert (ret["result"], list(ret["changes"])) == (True, ["database", "account"])


def test_a_database_that_would_move_fails_before_anything_is_written():
    for problems in ([], ["hosts: it moves"]):
        salt = {"slurm_database.moves": autospec("slurm_database", "moves", return_value=problems)}
        ret = state("slurm_database", salt, test=True).in_place("slurmdbd")
        assert (ret["result"], ret["changes"]) == (not problems, {})


def test_database_that_cannot_be_made_fails():
    assert database([["account"], ["account"]])[1]["result"] is False
    unreachable = CommandExecutionError("MariaDB on this host does not answer root on its socket")
    ret = database([unreachable])[1]
    assert (ret["result"], "does not answer" in ret["comment"]) == (False, True)
    assert database([unreachable], test=True)[1]["result"] is None
