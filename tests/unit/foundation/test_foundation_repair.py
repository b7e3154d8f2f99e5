"""What a cut run left half done: found by looking, finished once, and never twice."""

import pytest
from salt.exceptions import CommandExecutionError
from saltern import limits
from support import load

SHOWN = "DefaultLimitNOFILE=524288\nDefaultLimitMEMLOCK=infinity\n"


@pytest.mark.parametrize(
    ("wanted", "result"),
    [
        pytest.param({"nofile": 524288, "memlock": "unlimited"}, {}, id="read"),
        pytest.param(
            {"nofile": 131072}, {"nofile": {"old": "524288", "new": "131072"}}, id="not read yet"
        ),
        pytest.param(
            {"core": 0}, {"core": {"old": "nothing", "new": "0"}}, id="not shown by this systemd"
        ),
    ],
)
def test_stale_limits(wanted, result):
    assert limits.stale(SHOWN, wanted) == result


AUDIT = """The following packages have been unpacked but not yet configured.
They must be configured using dpkg --configure or the configure
menu option in dselect for them to work:
 munge                authentication service
"""


def repair(audit, grains=None):
    commands = []

    def run(command, **_):
        commands.append(command[:2])
        return {"retcode": 0, "stdout": audit, "stderr": ""}

    dunders = {"__grains__": grains} if grains else {}
    return load("modules", "system_repair", __salt__={"cmd.run_all": run}, **dunders), commands


def test_half_installed_packages_are_named(monkeypatch, tmp_path):
    module, _ = repair(AUDIT)
    monkeypatch.setattr(module, "_DPKG_UPDATES", str(tmp_path))
    assert module.unfinished_packages() == ["munge authentication service"]


def test_what_was_cut_while_unpacked_is_installed_again(monkeypatch, tmp_path):
    module, commands = repair(AUDIT)
    monkeypatch.setattr(module, "_DPKG_UPDATES", str(tmp_path))
    module.finish_packages()
    assert commands == [["dpkg", "--configure"], ["dpkg", "--audit"], ["apt-get", "install"]]


def test_a_journal_of_dpkg_that_was_cut_counts(monkeypatch, tmp_path):
    module, _ = repair("")
    monkeypatch.setattr(module, "_DPKG_UPDATES", str(tmp_path))
    assert module.unfinished_packages() == []
    (tmp_path / "0001").touch()
    assert module.unfinished_packages() == ["dpkg's journal"]


def test_rpm_has_nothing_to_finish():
    module, commands = repair(AUDIT, {"os_family": "RedHat"})
    assert (module.unfinished_packages(), commands) == ([], [])


def state(answers, test=False, fails=False):
    """The state on a host that gives these answers, one a look; and what it did."""
    looks, done = iter(answers), []

    def finish():
        if fails:
            raise CommandExecutionError("dpkg: the disk is full")
        done.append("finished")

    module = load(
        "states",
        "system_repair",
        __salt__={
            "system_repair.unfinished_packages": lambda: next(looks),
            "system_repair.finish_packages": finish,
        },
        __opts__={"test": test},
    )
    return module.packages_finished("packages"), done


@pytest.mark.parametrize(
    ("answers", "test", "result", "changed", "done"),
    [
        pytest.param([[]], False, True, False, [], id="already so"),
        pytest.param([["munge"]], True, None, True, [], id="dry run"),
        pytest.param([["munge"], []], False, True, True, ["finished"], id="finished"),
        pytest.param([["munge"], ["munge"]], False, False, False, ["finished"], id="in vain"),
    ],
)
def test_packages_finished(answers, test, result, changed, done):
    ret, did = state(answers, test)
    assert (ret["result"], bool(ret["changes"]), did) == (result, changed, done)


def test_a_repair_that_fails_says_why_and_changes_nothing():
    ret, _ = state([["munge"]], fails=True)
    assert (ret["result"], ret["changes"], ret["comment"]) == (False, {}, "dpkg: the disk is full")
