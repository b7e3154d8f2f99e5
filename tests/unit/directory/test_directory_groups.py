"""Looking at the directory, keeping what was believed, and what people read of it."""

import json
from unittest.mock import Mock

import pytest
import saltern_accounts
from salt.exceptions import CommandExecutionError
from saltern import plan as plans
from saltern.directory import LAYOUTS
from saltern.joins import JoinFailed
from saltern_lifecycle import Refused
from support import SCHEMA, example, load

PEOPLE = "dn: uid=ada,ou=people,dc=x\nuid: ada\n\ndn: uid=ben,ou=people,dc=x\nuid: ben\n"
GROUPS = "dn: cn=phys,ou=groups,dc=x\ncn: phys\nmember: uid=ada,ou=people,dc=x\n"
SOURCE = {
    "kind": "own", "uris": ["ldap://dir01"], "start_tls": True, "bind_dn": "cn=client",
    "user_base": "ou=people,dc=x", "group_base": "ou=groups,dc=x", "layout": LAYOUTS["own"],
    "login_groups": [],
}  # fmt: skip
RULES = {"groups": {"phys": {"account": "phys", "leaving": "keep"}}, "at_least": 80}
REPORT = {"done": [], "left": [], "failed": [], "kept": [], "unknown": [], "refused": []}


class World:
    """What the module sees: a directory, and Slurm's accounting."""

    def __init__(self, tmp_path, monkeypatch, source=SOURCE, **answers):
        self.said, self.commands = {"people": PEOPLE, "groups": GROUPS}, []
        self.retcode, self.rules = 0, RULES
        self.salt = {
            "saltern.view": self.view,
            "cmd.run_all": self.run,
            "sacctmgr.apply": Mock(return_value=REPORT),
            "sacctmgr.plan": Mock(
                return_value={"commands": ["x"], "kept": [], "unknown": [], "refused": []}
            ),
            "sssd.strangers": Mock(return_value=[]),
            **answers,
        }
        self.source = source
        self.module = load("modules", "directory_groups", __salt__=self.salt)
        self.kept = tmp_path / "kept.json"
        monkeypatch.setattr(self.module, "_KEPT", str(self.kept))
        monkeypatch.setattr(self.module, "_PAUSE_S", 0)

    def view(self, path):
        wanted = json.dumps({"directory": self.rules})
        found = {"directory": self.source, "certificates:ca": "PEM", "accounts:wanted": wanted}
        return found[path]

    def run(self, command, **options):
        self.commands.append((command, options))
        if self.retcode:
            return {"retcode": self.retcode, "stdout": "", "stderr": "Can't contact LDAP server"}
        kind = "people" if "ou=people,dc=x" in command else "groups"
        return {"retcode": 0, "stdout": self.said[kind], "stderr": ""}


@pytest.fixture
def world(tmp_path, monkeypatch):
    return World(tmp_path, monkeypatch)


def test_a_look_is_by_tls_with_a_password_file_and_in_pages(world):
    assert world.module.read() == {"people": ["ada", "ben"], "groups": {"phys": ["ada"]}}
    command, options = world.commands[0]
    assert "-ZZ" in command and command[command.index("-E") + 1] == "pr=1000/noprompt"
    assert command[command.index("-y") + 1] == "/etc/saltern/directory.secret"
    assert options["env"] == {"LDAPTLS_CACERT": "/etc/saltern/directory-ca.pem"}


def test_a_directory_that_is_away_is_an_error_and_the_last_look_stays(world):
    world.module.take()
    before = world.kept.read_text()
    world.retcode = 255
    with pytest.raises(CommandExecutionError, match="Can't contact LDAP server"):
        world.module.take()
    assert world.kept.read_text() == before
    assert len(world.commands) == 3  # not asked for groups without people


def test_it_is_waited_for_with_a_bound(world, monkeypatch):
    world.retcode = 255
    clock = iter(range(100))
    monkeypatch.setattr(world.module.time, "monotonic", lambda: next(clock))
    with pytest.raises(CommandExecutionError):
        world.module.take(patience=3)
    assert len(world.commands) == 3


def test_a_look_counts_for_the_groups_that_it_asked_for(world):
    assert not world.module.known()
    world.module.take()
    assert world.module.known()
    world.rules = {**RULES, "groups": {**RULES["groups"], "chem-*": {"account": "chem-*"}}}
    assert not world.module.known()


def test_a_dry_sync_keeps_nothing_and_changes_nothing(world):
    said = world.module.sync(test=True)
    assert said["commands"] == ["x"]
    assert not world.kept.exists()
    world.salt["sacctmgr.apply"].assert_not_called()
    looked = world.salt["sacctmgr.plan"].call_args.kwargs["groups"]
    assert looked["groups"] == {"phys": ["ada"]}


def test_a_sync_asks_for_the_new_users_only(world):
    world.module.sync()
    world.salt["sssd.strangers"].assert_called_once_with(["ada"])
    world.said["groups"] = GROUPS + "member: uid=ben,ou=people,dc=x\n"
    assert world.module.sync()["groups"] == [{"group": "phys", "account": "phys", "people": 2}]
    assert world.salt["sssd.strangers"].call_args.args == (["ben"],)


def test_what_is_not_believed_changes_nothing(world):
    world.module.sync()
    world.said["groups"] = "dn: cn=phys,ou=groups,dc=x\ncn: phys\n"
    with pytest.raises(CommandExecutionError, match="nobody in the groups"):
        world.module.sync()
    assert world.salt["sacctmgr.apply"].call_count == 1
    assert world.module.kept()["groups"] == {"phys": ["ada"]}


def test_drift_without_a_directory_looks_at_slurm_alone(tmp_path, monkeypatch):
    tree = {"associations": {"phys/ada": {}, "root/root": {}}, "users": {"ada": {}}}
    world = World(
        tmp_path,
        monkeypatch,
        {"kind": "none"},
        **{"sacctmgr.dump": lambda: tree, "sacctmgr.wanted": lambda: tree},
    )
    world.salt["sssd.strangers"].return_value = ["ada"]
    (row,) = world.module.drift()["people"]
    assert row["finding"] == "unknown to the controller"
    assert world.commands == []


class Asked:
    """The master's client, answering for the controller."""

    def __init__(self, answer):
        self.answer, self.calls = answer, []

    def __call__(self, opts):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return None

    def run(self, name, function, within, **keywords):
        self.calls.append((name, function, keywords))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def runner(monkeypatch, answer, function="sync", **words):
    asked = Asked(answer)
    monkeypatch.setattr(saltern_accounts, "Minions", asked)
    plan = example(accounts={"directory": {"groups": {"phys": {"account": "phys"}}}})
    plan["hosts"]["dir01"] = {"roles": ["directory"], "address": "10.213.0.15"}
    resolved = plans.resolve(SCHEMA, plan)
    arguments = (False, False) if function == "sync" else ()
    return getattr(saltern_accounts, function)({}, resolved, *arguments), asked


ANSWER = {"groups": [], "strange": [], "unknown_here": ["ada"], **REPORT, "done": ["a call"]}


def test_the_first_controller_is_asked(monkeypatch):
    said, asked = runner(monkeypatch, ANSWER)
    assert asked.calls[0][:2] == ("mgmt01", "directory_groups.sync")
    assert said["summary"] == "1 calls made"
    assert said["unknown_to_the_controller"] == ["ada"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param("ERROR: The directory was not believed", "not believed", id="not-believed"),
        pytest.param(JoinFailed("salt", "mgmt01 fell silent"), "fell silent", id="silent"),
        pytest.param(
            {**ANSWER, "failed": [{"command": "add x", "said": "refused"}]}, "refused", id="failed"
        ),
        pytest.param({**ANSWER, "left": ["add y"]}, "add y", id="cut"),
    ],
)
def test_a_failure_is_one(monkeypatch, answer, words):
    with pytest.raises(Refused, match=words):
        runner(monkeypatch, answer)


def test_a_plan_without_groups_asks_nobody(monkeypatch):
    asked = Asked(None)
    monkeypatch.setattr(saltern_accounts, "Minions", asked)
    said = saltern_accounts.sync({}, plans.resolve(SCHEMA, example()), False, False)
    assert "nothing to do" in said["accounts"]
    assert asked.calls == []


def test_agreement_is_said(monkeypatch):
    said, _ = runner(monkeypatch, {"people": [], "calls": [], "unknown": []}, "overview")
    assert said["summary"] == "directory, plan and Slurm agree"
