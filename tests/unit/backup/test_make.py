"""What `salt-run saltern.backup` makes, and what it says of what it could not; minions are
simulated."""

import time

import pytest
import saltern_backup
from saltern import plan as plans
from saltern.join_book import Book
from saltern.joins import JoinFailed
from saltern_lifecycle import Refused
from support import SCHEMA, everyone

MASTER = ["secrets", "register", "keys"]


class Minions:
    """Makes what it is asked for on hosts in ``good``; others raise as Salt does for nobody."""

    def __init__(self, good):
        self.good, self.kept = good, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def ask(self, names, function, *_, within):
        if not self.good:
            raise JoinFailed("salt", "the master knows none of them")
        rows = {"slurm_backup.entries": {"rows": self.kept, "beside": True}}
        answer = rows.get(function, "24.11.5-abc")
        return {name: answer for name in names if name in self.good}

    def run(self, name, function, part, backup, within, slurm):
        if name not in self.good:
            raise JoinFailed("salt", f"{name} fell silent")
        row = {"backup": backup, "part": part, "at": time.time(), "host": name, "of": slurm}
        return {**row, "bytes": 10}


@pytest.fixture
def make(tmp_path, monkeypatch):
    """A backup on a master of its own: make(good hosts), and what was kept before."""
    (tmp_path / "secrets").mkdir(mode=0o700)
    (tmp_path / "secrets/munge_key").write_text("s" * 40, encoding="ascii")
    (tmp_path / "pki/minions").mkdir(parents=True)
    (tmp_path / "pki/minions/ctl1").write_text("key", encoding="ascii")
    (tmp_path / "pki/link").symlink_to("/etc/passwd")
    Book(tmp_path / "join/register.db").admit("ctl1", "aa", "token", "me", 1.0)
    raw = everyone()
    raw["backup"] = {"folder": str(tmp_path / "backups"), "keep": 2}
    plan = plans.resolve(SCHEMA, raw)
    settings = {
        "secrets_dir": str(tmp_path / "secrets"),
        "join_file": str(tmp_path / "join/register.db"),
    }
    opts = {"ext_pillar": [{"saltern": settings}], "pki_dir": str(tmp_path / "pki")}

    def run(*good, verb=saltern_backup.run, **how):
        monkeypatch.setattr(saltern_backup, "Minions", lambda _: Minions(good))
        return verb(opts, plan, **how)

    run.master = saltern_backup.Master(opts, plan)
    return run


def test_every_part_is_made_once(make):
    said = make("ctl1", "ctl2", "db1", "sql1")
    found = [(row["part"], row["host"]) for row in said["made"]]
    assert found[:2] == [("database", "sql1"), ("state", "ctl1")]
    assert [part for part, _ in found[2:]] == MASTER


def test_the_state_comes_from_the_controller_that_answers(make):
    said = make("ctl2", "db1", "sql1")
    assert ("state", "ctl2") in [(row["part"], row["host"]) for row in said["made"]]


@pytest.mark.parametrize("good", [(), ("ctl1",)], ids=["a-new-master", "one-host-is-silent"])
def test_what_could_not_be_made_is_said_and_the_rest_is_there(make, good):
    with pytest.raises(Refused) as refused:
        make(*good)
    made = [row["part"] for row in refused.value.parts["made"]]
    assert made[-3:] == MASTER
    assert refused.value.parts["failed"][0].startswith("database: sql1: ")


def test_a_second_look_finds_nothing_due_on_the_master(make):
    make("ctl1", "db1", "sql1")
    said = make("ctl1", "db1", "sql1", due=True)
    assert [row["part"] for row in said["made"]] == ["database", "state"], (
        "simulated ones keep none"
    )


def test_the_masters_parts_hold_what_is_there_and_no_links(make):
    name = make("ctl1", "db1", "sql1")["made"][0]["backup"]
    keys = saltern_backup.unpacked(make.master.image("keys", name))
    assert keys == {"minions/ctl1": b"key"}
    secrets = saltern_backup.unpacked(make.master.image("secrets", name))
    assert secrets == {"munge_key": b"s" * 40}


def test_a_host_that_does_not_answer_is_named_in_the_overview(make):
    make("ctl1", "db1", "sql1")
    said = make("sql1", verb=saltern_backup.overview)
    assert said["no_answer"] == [
        "ctl1: no answer from its minion", "ctl2: no answer from its minion"
    ]  # fmt: skip
    assert said["not_backed_up"] == ["database: none", "state: none"]
    assert said["retcode"] == 1
