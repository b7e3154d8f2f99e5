"""What a person asks of hosts: admit, invite, replace, retire; keys on a real disk, Salt's key
moves
simulated."""

from pathlib import Path

import pytest
import saltern_admission
import saltern_lifecycle
import simulated
from cryptography.hazmat.primitives import serialization
from saltern import plan
from saltern.join_book import Book
from saltern_lifecycle import Refused
from support import SCHEMA, example

KEY = "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n"
FOLDERS = {"accepted": "minions", "pending": "minions_pre", "denied": "minions_denied"}


class Site:
    """A master's disk: opts, register, keys."""

    def __init__(self, folder):
        self.opts = {
            "pki_dir": str(folder / "pki"),
            "hash_type": "sha256",
            "autosign_grains_dir": str(folder / "autosign"),
        }
        self.book = Book(folder / "join/register.db")
        self.events = []
        self.plan = plan.resolve(SCHEMA, example(join={"master": "salt.site.example"}))
        for name in ("minions", "minions_pre", "minions_denied", "minions_rejected"):
            (folder / "pki" / name).mkdir(parents=True)
        (folder / "pki/master.pub").write_text(KEY.format("master"))

    def show(self, name, text, state="pending"):
        """A host shows a key; returns its fingerprint."""
        path = Path(self.opts["pki_dir"]) / FOLDERS[state] / name
        path.write_text(KEY.format(text))
        return saltern_admission.fingerprint(self.opts, path)

    def move(self, opts, name, action, finger=""):
        """What Salt does with keys, simulated by renames."""
        pki = Path(self.opts["pki_dir"])
        if action == "accept":
            for folder in ("minions_pre", "minions_rejected", "minions_denied"):
                path = pki / folder / name
                if path.exists() and saltern_admission.fingerprint(opts, path) == finger:
                    path.rename(pki / "minions" / name)
        elif action == "delete":
            for path in pki.glob(f"minions*/{name}"):
                path.unlink()


@pytest.fixture
def site(tmp_path, monkeypatch):
    made = Site(tmp_path)
    monkeypatch.setattr(saltern_admission, "book", lambda opts: made.book)
    monkeypatch.setattr(saltern_admission, "move", made.move)
    monkeypatch.setattr(
        saltern_admission, "fire", lambda opts, tag, data: made.events.append((tag, data))
    )
    monkeypatch.setattr(saltern_lifecycle, "person", lambda: "jane")
    return made


def admit(site, name, finger=""):
    return saltern_lifecycle.admit(site.opts, site.plan, name, finger)


def test_admit_without_a_fingerprint_shows_the_key_and_admits_nobody(site):
    finger = site.show("node01", "one")
    with pytest.raises(Refused) as refused:
        admit(site, "node01")
    assert refused.value.parts["keys"] == [{"key": "pending", "fingerprint": finger}]
    assert site.book.hosts() == []


def test_admit_by_the_fingerprint_that_was_shown(site):
    finger = site.show("node01", "one")
    assert "admitted" in admit(site, "node01", finger.upper())
    entry = site.book.host("node01")
    assert (entry["fingerprint"], entry["proof"], entry["by"]) == (finger, "fingerprint", "jane")
    assert saltern_admission.keys(site.opts, "node01").accepted == finger
    assert site.events == [
        ("saltern/key/admitted", {"id": "node01", "proof": "fingerprint", "by": "jane"})
    ]
    assert "nothing to do" in admit(site, "node01", finger)["admitted"]


def test_admit_refuses_another_key_than_the_one_shown(site):
    site.show("node01", "one")
    with pytest.raises(Refused, match="Nothing was admitted"):
        admit(site, "node01", "aa:bb")
    assert site.book.hosts() == []


def test_admit_before_the_key_is_shown(site):
    assert "expected" in admit(site, "node01", "aa:bb")
    assert site.book.expected("node01")["fingerprint"] == "aa:bb"


@pytest.mark.parametrize("name", ["node99", "../node01", "node01;id"])
def test_nobody_is_admitted_whom_the_plan_does_not_know(site, name):
    for work in (
        lambda: admit(site, name, "aa"),
        lambda: saltern_lifecycle.invite(site.opts, site.plan, name, "script"),
    ):
        with pytest.raises(Refused, match="the plan has no host"):
            work()


def test_admit_accepted_takes_what_a_person_accepted_and_names_the_rest(site):
    finger = site.show("node01", "one", "accepted")
    site.show("node02", "two")
    with pytest.raises(Refused) as refused:
        saltern_lifecycle.admit_accepted(site.opts, site.plan, "node[01-02]")
    assert [row["result"][:8] for row in refused.value.parts["hosts"]] == ["admitted", "not admi"]
    assert site.book.host("node01")["fingerprint"] == finger
    assert site.book.host("node02") is None


def pem_in(text):
    """The private key in a script."""
    begin, end = (f"-----{word} RSA PRIVATE KEY-----\n" for word in ("BEGIN", "END"))
    return text[text.index(begin) : text.index(end) + len(end)]


def test_an_invited_host_is_admitted_and_its_private_key_is_kept_nowhere(site, tmp_path):
    text = saltern_lifecycle.invite(site.opts, site.plan, "node01", "script")
    private = pem_in(text)
    assert len(private) > 3000
    assert site.book.host("node01")["proof"] == "preseeded"
    shown = saltern_admission.keys(site.opts, "node01").accepted
    assert shown == site.book.host("node01")["fingerprint"]
    needle = private.splitlines()[5].encode()
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or needle not in path.read_bytes(), path
    with pytest.raises(Refused, match="registered already"):
        saltern_lifecycle.invite(site.opts, site.plan, "node01", "script")


def test_the_public_half_belongs_to_the_private_one(site):
    text = saltern_lifecycle.invite(site.opts, site.plan, "node01", "script")
    key = serialization.load_pem_private_key(pem_in(text).encode(), None)
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    accepted = Path(site.opts["pki_dir"]) / "minions/node01"
    assert accepted.read_bytes() == public


def test_a_token_is_kept_made_anew_on_demand_and_named_in_the_history(site):
    first = saltern_admission.token(site.opts)
    assert saltern_admission.token(site.opts) == first
    text = saltern_lifecycle.token(site.opts, site.plan, "script", new=False)
    assert first in text and "minion.pem" not in text
    text = saltern_lifecycle.token(site.opts, site.plan, "script", new=True)
    assert first not in text
    assert first not in repr(site.book.history(10))
    assert site.book.history(1)[0]["by"] == "jane"


def replace(site, finger=""):
    return saltern_lifecycle.replace(site.opts, "node01", finger)


def test_replace_shows_both_keys_and_takes_the_named_one_only(site):
    old = site.show("node01", "old")
    admit(site, "node01", old)
    new = site.show("node01", "new", "denied")
    for finger in ("", "aa:bb"):
        with pytest.raises(Refused) as refused:
            replace(site, finger)
        assert [row["fingerprint"] for row in refused.value.parts["keys"]] == [old, new]
    assert site.book.host("node01")["fingerprint"] == old
    replace(site, new)
    assert site.book.host("node01")["proof"] == "replaced by a person"
    assert saltern_admission.keys(site.opts, "node01").accepted == new
    assert [row["id"] for row in site.book.queue()] == ["node01"]


def test_replace_needs_a_second_key(site):
    admit(site, "node01", site.show("node01", "old"))
    with pytest.raises(Refused, match="has shown no key but"):
        replace(site)
    with pytest.raises(Refused, match="not in the register"):
        saltern_lifecycle.replace(site.opts, "node02", "")


# --- retire
# ----------------------------------------------------------------------------------------


class Minions(simulated.Minions):
    """Simulated minions that also drain, list jobs and forget nodes."""

    def _answer(self, name, function, arguments):
        cluster = self.cluster
        cluster.calls.append((function, arguments))
        if function == "slurm_nodes.jobs_on":
            return cluster.jobs
        if function == "state.apply":
            cluster.states.clear()
        return super()._answer(name, function, arguments)


@pytest.fixture
def cluster(monkeypatch):
    made = simulated.Cluster()
    made.calls, made.jobs = [], []
    made.states["node02"] = dict(simulated.IDLE)
    monkeypatch.setattr(saltern_lifecycle, "Minions", lambda opts: Minions(made))
    monkeypatch.setattr(saltern_lifecycle, "_POLL_S", 0.01)
    return made


def retire(site, **changes):
    site.plan = plan.resolve(SCHEMA, example(**changes))
    return saltern_lifecycle.retire(site.opts, site.plan, "node02", 0)


GONE = {"hosts:node[01-02]": None, "partitions:batch:nodes": "node01", "hosts:node01": {
    "roles": ["compute"], "address": "10.213.0.21", "node_type": "small"}}  # fmt: skip


def test_retire_drains_first_and_ends_no_simulated_job(site, cluster):
    cluster.jobs = ["17 jane RUNNING"]
    with pytest.raises(Refused) as refused:
        retire(site, **GONE)
    assert refused.value.parts["jobs"] == ["17 jane RUNNING"]
    functions = [function for function, _ in cluster.calls]
    assert "nhc.drain" in functions
    assert not {"service.stop", "state.apply"} & set(functions)


def test_retire_of_a_host_in_the_plan_says_what_is_left_to_do(site, cluster):
    admit(site, "node02", site.show("node02", "two"))
    with pytest.raises(Refused) as refused:
        retire(site)
    assert "take node02 out of the plan (hosts:node[01-02])" in refused.value.parts["what_next"]
    assert site.book.host("node02")


def test_retire_ends_with_nothing_left(site, cluster):
    admit(site, "node02", site.show("node02", "two"))
    assert "retired" in retire(site, **GONE)
    assert site.book.host("node02") is None
    assert saltern_admission.keys(site.opts, "node02") == saltern_admission.admission.Keys()
    assert site.events[-1] == ("saltern/node/retired", {"id": "node02", "by": "jane"})
    assert site.book.history(1)[0]["what"] == "retired"


def test_retire_keeps_the_key_when_the_controller_keeps_the_node(site, cluster):
    admit(site, "node02", site.show("node02", "two"))
    cluster.failing["mgmt01"] = "x"
    states = dict(cluster.states)
    cluster.states = Stubborn(states)
    with pytest.raises(Refused, match="still has the node"):
        retire(site, **GONE)
    assert site.book.host("node02")


class Stubborn(dict):
    def clear(self):
        """slurmctld goes on knowing its nodes."""


def test_retire_does_nothing_while_nobody_can_say_what_runs_there(site, cluster):
    cluster.controller_runs = False
    with pytest.raises(Refused, match="Nothing was done"):
        retire(site, **GONE)
    assert cluster.calls == []
