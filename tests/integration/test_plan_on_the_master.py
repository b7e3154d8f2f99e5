"""The plan on a real master: a broken one stops every state run, and salt-run says why."""

import json

import pytest
import yaml
from support import ROOT, example

BROKEN = example(
    **{
        "hosts:login01:address": "10.213.0.11",
        "partitionz": {},
        "hosts:node[01-02]:roles": ["wizard"],
    }
)
WORDS = ["partitionz", "did you mean partitions?", "hosts:login01:address", "wizard"]


def test_shows_hosts_roles_and_phases(run, minions):
    shown = run("saltern.plan")
    assert shown.code == 0, shown.text
    for word in (
        "mgmt01",
        "node[01-02]",
        "10.213.0.[21-22]",
        "controller, database, builder"[:10],
        "p4_scheduler",
        "slurmctld",
        "batch",
    ):
        assert word in shown.out
    assert "Traceback" not in shown.text


def test_json_is_data(run, minions):
    data = run("--out=json", "saltern.plan").data()
    assert [row["hosts"] for row in data["hosts"]] == ["mgmt01", "login01", "node[01-02]"]


def test_a_broken_plan_in_words_and_status(run, plan):
    plan(BROKEN)
    shown = run("saltern.plan")
    assert shown.code == 1
    assert "Traceback" not in shown.text
    for word in WORDS:
        assert word in shown.out, shown.text


def test_broken_as_json_too(run, plan):
    plan(BROKEN)
    shown = run("--out=json", "saltern.plan")
    assert shown.code == 1
    assert len(json.loads(shown.out)["problems"]) >= 3


@pytest.mark.parametrize(
    "command",
    [["state.highstate"], ["state.apply", "p0_plan"], ["state.apply", "p1_foundation"]],
    ids=" ".join,
)
def test_a_broken_plan_stops_every_state_run(cli, plan, command):
    plan(BROKEN)
    done = cli("mgmt01", *command, "test=True")
    assert done.code != 0
    for word in WORDS:
        assert word in done.text, done.text
    assert "Traceback" not in done.text


def test_a_plan_that_is_not_yaml(run, plan):
    plan("saltern: [unclosed\n")
    shown = run("saltern.plan")
    assert shown.code == 1
    assert "plan.sls" in shown.out
    assert "Traceback" not in shown.text


def test_no_plan_at_all(run, plan, cli):
    plan("# nothing yet\n")
    shown = run("saltern.plan")
    assert shown.code == 1
    assert "no plan" in shown.out
    assert "no plan" in cli("node01", "state.apply", "p0_plan", "test=True").text


def test_the_first_controller_is_the_primary_even_when_only_the_order_changes(call, plan):
    hosts = {"ctl1": {"roles": ["controller"], "address": "10.213.0.15"}, **example()["hosts"]}
    for order in (hosts, dict(reversed(hosts.items()))):
        plan(example(hosts=order))
        peers = call("node01", "saltern.view", "peers:controller").data
        assert [peer["name"] for peer in peers] == [
            name for name in order if name in ("ctl1", "mgmt01")
        ]


def test_a_site_s_own_value_replaces_the_made_one(call, plan, secrets, tmp_path):
    own = "a-site-s-own-munge-key-from-its-own-store-0123456789"
    plan(example(secrets={"munge_key": own}))
    call(
        "node01",
        "saltern.secret_file",
        str(tmp_path / "key"),
        "<secret:munge_key>",
        "root",
        "root",
        "0400",
    )
    assert (tmp_path / "key").read_text(encoding="ascii") == own


def test_the_view_is_plain_data(call):
    """Salt 3008 masks what it knows as pillar."""
    assert call("node01", "saltern.view", "cluster:name").data == "lab"
    assert call("node01", "saltern.view", "slurm:ports").data["slurmctld"] == 6817
    assert "has no 'slurm:nodes'" in call("node01", "saltern.view", "slurm:nodes").data


def test_a_masterless_host_has_the_same_view(site, tmp_path, call, salt_call, secrets):
    """salt-call --local, with the same external pillar in the minion's configuration."""
    (tmp_path / "minion.d").mkdir()
    options = {**site.settings(), "id": "node01", "file_client": "local", "root_dir": str(tmp_path)}
    options["module_dirs"] = [str(ROOT / "_modules")]
    (tmp_path / "minion").write_text(yaml.safe_dump(options), encoding="utf-8")
    done = salt_call(tmp_path, "--local", "--out=json", "saltern.view")
    assert done.code == 0, done.text
    assert done.data()["local"] == call("node01", "saltern.view").data
