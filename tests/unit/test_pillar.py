"""The external pillar: from the raw plan to one host's view, or a refusal."""

import json
import sys

import pytest
from saltern import plan as plans
from saltern import stamp, view
from saltern.join_book import Book
from saltern.problem import PlanError
from saltern.view import UnknownHost
from support import ROOT, SCHEMA, admit, example, load

SCHEMA_FILE = str(ROOT / "pillar/schema.json")


@pytest.fixture
def pillar(monkeypatch, tmp_path):
    """The module, with a plan that the test can change: pillar.plan."""
    module = load("pillar", "saltern", __opts__=options(tmp_path))
    module.plan_of_the_test = example()
    monkeypatch.setattr(module.saltern_master, "raw_plan", lambda opts: module.plan_of_the_test)
    monkeypatch.setattr(module.saltern_master, "raw_accounts", lambda opts: module.accounts_sls)
    module.accounts_sls = {}
    return module


def options(tmp_path):
    """A master's options, and what it knows: every host of the example is admitted."""
    admit(tmp_path / "join/register.db", tmp_path / "pki", "mgmt01", "login01", "node01", "node02")
    return {
        "pki_dir": str(tmp_path / "pki"),
        "hash_type": "sha256",
        "file_roots": {"base": [str(ROOT / "salt")]},
    }


def ask(pillar, tmp_path, host, so_far=None):
    so_far = {} if so_far is None else so_far
    return pillar.ext_pillar(
        host,
        so_far,
        SCHEMA_FILE,
        str(tmp_path / "secrets"),
        str(tmp_path / "join/register.db"),
    )["saltern"]


@pytest.mark.parametrize(
    ("host", "secrets"),
    [
        ("mgmt01", {"munge_key", "slurmdbd_password", "jwt_key"}),
        ("login01", {"munge_key"}),
        ("node02", {"munge_key"}),
    ],
)
def test_secrets_by_role(pillar, tmp_path, host, secrets):
    assert ask(pillar, tmp_path, host)["secrets"].keys() == secrets


def test_a_site_s_own_secret_wins_and_none_is_made(pillar, tmp_path):
    own = "k" * 40
    pillar.plan_of_the_test = example(secrets={"munge_key": own})
    assert ask(pillar, tmp_path, "node01")["secrets"] == {"munge_key": own}
    assert not (tmp_path / "secrets").exists()


def test_nothing_is_read_from_the_minion_s_pillar(pillar, tmp_path):
    """A minion can write into it by pillar override."""
    sent = {"saltern": {"hosts": {"node01": {"roles": ["database"]}}}, "mine": 1}
    view = ask(pillar, tmp_path, "node01", sent)
    assert view["roles"] == ["compute"]
    assert sent == {"mine": 1}


def test_an_unknown_host_and_a_broken_plan_raise(pillar, tmp_path):
    with pytest.raises(UnknownHost):
        ask(pillar, tmp_path, "stranger")
    pillar.plan_of_the_test = example(clusterr={})
    with pytest.raises(PlanError):
        ask(pillar, tmp_path, "node01")


def test_an_accepted_key_is_not_yet_an_admitted_host(pillar, tmp_path):
    Book(tmp_path / "join/register.db").forget("node01", "retired", "the test", 0.0)
    with pytest.raises(pillar.NotAdmitted, match=r"salt-run saltern\.admit node01"):
        ask(pillar, tmp_path, "node01")
    assert not (tmp_path / "secrets").exists()


def test_another_key_than_the_admitted_one_gets_nothing(pillar, tmp_path):
    """Somebody deleted the key and accepted a new one with salt-key."""
    (tmp_path / "pki/minions/node01").write_text("-----BEGIN\nanother\n-----END\n")
    with pytest.raises(pillar.NotAdmitted):
        ask(pillar, tmp_path, "node01")


def test_a_masterless_host_admits_itself(pillar, tmp_path):
    """It holds the plan and the secrets' folder itself."""
    Book(tmp_path / "join/register.db").forget("node01", "retired", "the test", 0.0)
    pillar.__opts__["__role"] = "minion"
    assert ask(pillar, tmp_path, "node01")["secrets"].keys() == {"munge_key"}


def test_the_tree_s_version_is_in_the_view(pillar, tmp_path):
    assert len(ask(pillar, tmp_path, "node01")["tree"]) == 16


def test_a_changed_plan_is_seen_even_if_only_its_order_changed(pillar, tmp_path):
    hosts = {"ctl9": {"roles": ["controller"], "address": "10.213.0.99"}, **example()["hosts"]}
    for order in (hosts, dict(reversed(hosts.items()))):
        pillar.plan_of_the_test = example(hosts=order)
        peers = ask(pillar, tmp_path, "node01")["peers"]["controller"]
        assert [peer["name"] for peer in peers] == [n for n in order if n in ("ctl9", "mgmt01")]


def test_the_plan_is_resolved_once_for_many_minions(pillar, tmp_path, monkeypatch):
    """Salt loads the external pillar anew for each request."""
    ask(pillar, tmp_path, "node01")
    monkeypatch.setattr(pillar.saltern_master.plan, "resolve", None)
    ask(pillar, tmp_path, "node01")["cluster"]["name"] = "spoilt by Salt's merge"
    again = load("pillar", "saltern", __opts__=options(tmp_path))
    assert ask(again, tmp_path, "node02")["cluster"]["name"] == "lab"
    assert ask(again, tmp_path, "node02")["roles"] == ["compute"]


def test_a_missing_library_raises_where_salt_would_only_log(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "saltern_master", None)
    module = load("pillar", "saltern")
    sent = {"saltern": {"raw": "plan"}}
    with pytest.raises(RuntimeError, match=r"salt-pip install -r etc/requirements-master\.txt"):
        ask(module, tmp_path, "node01", sent)
    assert sent == {}


def test_accounts_sls_goes_to_the_reconciling_host_alone(pillar, tmp_path):
    pillar.accounts_sls = {"accounts": {"tree": {"physics": {}}}}
    asked = {host: ask(pillar, tmp_path, host) for host in ("mgmt01", "node01")}
    assert json.loads(asked["mgmt01"]["accounts"]["wanted"])["tree"] == {"physics": {}}
    assert "physics" not in json.dumps(asked["node01"])


def test_broken_accounts_sls_stops_no_other_host(pillar, tmp_path):
    pillar.accounts_sls = {"accounts": {"tree": {"physics": {"fairshare": "much"}}}}
    assert ask(pillar, tmp_path, "node01")
    with pytest.raises(PlanError, match="accounts:tree:physics:fairshare"):
        ask(pillar, tmp_path, "mgmt01")


def test_accounts_in_both_files_are_refused(pillar, tmp_path):
    pillar.plan_of_the_test = example(accounts={"tree": {"physics": {}}})
    pillar.accounts_sls = {"accounts": {"tree": {"chem": {}}}}
    with pytest.raises(PlanError, match=r"accounts:tree: found it in plan.sls and in accounts.sls"):
        ask(pillar, tmp_path, "mgmt01")


def test_people_of_accounts_sls_go_to_the_first_directory_host_alone(pillar, tmp_path):
    pillar.plan_of_the_test["hosts"]["dir[01-02]"] = {
        "roles": ["directory"],
        "address": "10.213.0.[15-16]",
    }
    pillar.accounts_sls = {"people": {"users": {"ada": {"uid": 21001, "name": "Ada Quill"}}}}
    admit(tmp_path / "join/register.db", tmp_path / "pki", "dir01", "dir02")
    assert "Quill" in ask(pillar, tmp_path, "dir01")["directory"]["people"]
    for host in ("dir02", "login01"):
        assert "Quill" not in json.dumps(ask(pillar, tmp_path, host), default=str)


def test_other_sections_do_not_stand_in_accounts_sls(pillar, tmp_path):
    pillar.accounts_sls = {"slurm": {}}
    with pytest.raises(
        PlanError, match=r"slurm: found it in accounts\.sls; expected it in plan\.sls"
    ):
        ask(pillar, tmp_path, "mgmt01")


def test_every_host_gets_the_authority_and_only_directory_hosts_its_certificate(pillar, tmp_path):
    pillar.plan_of_the_test["hosts"]["dir01"] = {"roles": ["directory"], "address": "10.213.0.15"}
    admit(tmp_path / "join/register.db", tmp_path / "pki", "dir01")
    server, client = ask(pillar, tmp_path, "dir01"), ask(pillar, tmp_path, "node01")
    assert server["certificates"]["ca"] == client["certificates"]["ca"]
    assert server["certificates"]["server"].startswith("-----BEGIN CERTIFICATE-----")
    assert "server" not in client["certificates"]
    assert "directory_key" in server["secrets"] and "directory_key" not in client["secrets"]
    assert all("directory_ca_key" not in view["secrets"] for view in (server, client))
    again = ask(pillar, tmp_path, "dir01")
    assert again["certificates"] == server["certificates"]


def test_a_minions_digest_of_its_view_is_the_one_that_the_join_queue_expects(pillar, tmp_path):
    pillar.plan_of_the_test["hosts"]["dir01"] = {"roles": ["directory"], "address": "10.213.0.15"}
    admit(tmp_path / "join/register.db", tmp_path / "pki", "dir01")
    resolved = plans.resolve(SCHEMA, pillar.plan_of_the_test)
    for host in ("dir01", "node01"):
        sent = ask(pillar, tmp_path, host)
        expected = {**view.of(resolved, host), "tree": sent["tree"]}
        assert stamp.of(sent) == stamp.of(expected)
