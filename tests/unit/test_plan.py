"""The plan: what it refuses, all at once and in words; what it means."""

import pytest
from saltern import plan as plans
from saltern.problem import PlanError
from support import SCHEMA, everyone, example


def refused(raw):
    """The problems of a plan, as {where: text}."""
    with pytest.raises(PlanError) as caught:
        plans.resolve(SCHEMA, raw)
    return {problem.where: str(problem) for problem in caught.value.problems}


def test_example_and_every_role_are_sound():
    assert list(plans.resolve(SCHEMA, example()).hosts) == ["mgmt01", "login01", "node01", "node02"]
    assert plans.resolve(SCHEMA, everyone()).hosts["gpu1"].node_type == "dgx"


def test_defaults_come_from_the_schema_alone():
    data = plans.resolve(SCHEMA, example()).data
    assert data["foundation"]["system_accounts"]["munge"] == {"uid": 10010, "gid": 10010}
    assert data["node_types"]["small"]["memory_headroom"] == 0.05
    assert data["slurm"]["ports"]["slurmctld"] == 6817


REFUSALS = [
    pytest.param({"slurmm": {}}, "slurmm", "did you mean slurm?", id="unknown key, with the nearest"),
    pytest.param({"hosts:node[01-02]:role": []}, "hosts:node[01-02]:role", "did you mean roles?", id="unknown key, deep"),
    pytest.param({"cluster:name": None}, "cluster:name", "found nothing", id="missing key"),
    pytest.param({"waits": {"node_s": "long"}}, "waits:node_s", "a whole number", id="wrong type"),
    pytest.param({"os:release": "11"}, "os:release", "one of 12, 13 for Debian", id="unknown release"),
    pytest.param({"hosts:x1": {"roles": ["wizard"], "address": "10.0.0.1"}}, "hosts:x1:roles:0", "one of controller", id="unknown role"),
    pytest.param({"hosts:gpu[005-001]": {"roles": ["storage"], "address": "10.0.0.[1-5]"}}, "hosts:gpu[005-001]", "runs backwards", id="range backwards"),
    pytest.param({"hosts:gpu[1": {"roles": ["storage"], "address": "10.0.0.1"}}, "hosts:gpu[1", "node set", id="unbalanced bracket"),
    pytest.param({"hosts:node02": {"roles": ["storage"], "address": "10.0.0.1"}}, "hosts:node02", "which hosts:node[01-02] has too", id="host twice"),
    pytest.param({"hosts:node[01-02]:address": "10.213.0.[21-23]"}, "hosts:node[01-02]:address", "3 addresses", id="address count"),
    pytest.param({"hosts:login01:address": "10.213.0.11"}, "hosts:login01:address", "mgmt01 and login01", id="address twice"),
    pytest.param({"hosts:login01:address": "10.213.0.256"}, "hosts:login01:address", "IPv4", id="no address"),
    pytest.param({"hosts:login01:address": None}, "hosts:login01:address", "names:provider is hosts", id="address missing"),
    pytest.param({"hosts:login01:roles": ["login", "database"]}, "hosts:login01:roles", "login with database", id="users beside secrets"),
    pytest.param({"hosts:mgmt01:roles": ["database", "builder"]}, "hosts", "none with the role controller", id="no controller"),
    pytest.param({"hosts:db[2-3]": {"roles": ["database"], "address": "10.0.0.[2-3]"}}, "hosts", "3: db[2-3],mgmt01 with the role database", id="three databases"),
    pytest.param({"hosts:sql[1-2]": {"roles": ["mariadb"], "address": "10.0.0.[2-3]"}}, "hosts", "2: sql[1-2] with the role mariadb", id="two MariaDB"),
    pytest.param({"hosts:login01:roles": ["login", "mariadb"]}, "hosts:login01:roles", "login with mariadb", id="users beside the database"),
    pytest.param({"hosts:node[01-02]:node_type": None}, "hosts:node[01-02]:node_type", "key of node_types", id="no node type"),
    pytest.param({"hosts:node[01-02]:node_type": "big"}, "hosts:node[01-02]:node_type", "(small)", id="unknown node type"),
    pytest.param({"hosts:login01:node_type": "small"}, "hosts:login01:node_type", "runs no jobs", id="node type without jobs"),
    pytest.param({"node_types:small:cpus": 3}, "node_types:small:cpus", "2 = sockets", id="cpus do not add up"),
    pytest.param({"partitions:batch:nodes": "node[01-09]"}, "partitions:batch:nodes", "node[03-09], not in the plan", id="partition of unknown nodes"),
    pytest.param({"partitions:batch:nodes": "login01"}, "partitions:batch:nodes", "login01 without a role", id="partition of a login node"),
    pytest.param({"partitions:second": {"nodes": "node01", "default": True}}, "partitions", "batch, second", id="two default partitions"),
    pytest.param({"partitions:BATCH": {"nodes": "node01"}}, "partitions:BATCH", "more than case", id="partitions that differ in case"),
    pytest.param({"partitions:DEFAULT": {"nodes": "node01"}}, "partitions:DEFAULT", "another name", id="partition DEFAULT"),
    pytest.param({"foundation:users:ann": {"uid": 20001, "gid": 5000}}, "foundation:users:researcher:uid|foundation:users:ann:uid", "each uid once", id="uid twice"),
    pytest.param({"foundation:users:bob": {"uid": 1500, "gid": 10010}}, "foundation:users:bob:gid", "each gid once", id="gid twice"),
    pytest.param({"slurm": {"ports": {"slurmd": 6817}}}, "slurm:ports:slurmd|slurm:ports:slurmctld", "each port once", id="port twice"),
    pytest.param({"build": {"port": 3306}}, "build:port", "MariaDB", id="port of another daemon"),
    pytest.param({"slurm": {"parameters": {"SchedulerParameters": "a b"}}}, "slurm:parameters:SchedulerParameters", "without blanks", id="value with a blank"),
    pytest.param({"slurm": {"parameters": {"Licenses": "x\nNodeName=evil"}}}, "slurm:parameters:Licenses", "line breaks", id="value with a line break"),
    pytest.param({"slurm": {"parameters": {"Licenses": ""}}}, "slurm:parameters:Licenses", "empty value", id="empty value"),
    pytest.param({"slurm": {"parameters": {"ClusterName": "x"}}}, "slurm:parameters:ClusterName", "cluster:name", id="derived key"),
    pytest.param({"slurm": {"parameters": {"SlurmctldHost": "a,b"}}}, "slurm:parameters:SlurmctldHost", "role controller", id="SlurmctldHost by hand"),
    pytest.param({"slurm": {"parameters": {"SlurmdParameters": "enable_configless"}}}, "slurm:parameters:SlurmdParameters", "SlurmctldParameters", id="configless in the wrong key"),
    pytest.param({"slurm": {"parameters": {"Licenses": "a", "licenses": "b"}}}, "slurm:parameters:licenses", "more than case", id="keys that differ in case"),
    pytest.param({"foundation:time": {"serve": ["nobody"]}}, "foundation:time:serve", "host of the plan", id="time host unknown"),
    pytest.param({"build": {"sources": {"slurm": {"version": "1", "file": "x", "sha256": "abc"}}}}, "build:sources:slurm:sha256", "'abc'", id="checksum malformed"),
    pytest.param({"os:name": "Gentoo"}, "os:name", "one of Debian", id="unknown operating system"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "where", "words"), REFUSALS)
def test_refuses(changes, where, words):
    problems = refused(example(**changes))
    texts = [problems[place] for place in where.split("|") if place in problems]
    assert texts, f"no problem at {where}, but {problems}"
    assert any(words in text for text in texts), texts


MORE_REFUSALS = [
    pytest.param({"hosts:login01": {"role": ["login"], "address": "10.213.0.11"}}, ["hosts:login01:role", "hosts:login01:roles"], id="a misspelt key"),
    pytest.param({"hosts:login01:roles": ["wizard"], "hosts:db2": {"roles": ["storage"], "address": "10.213.0.11"}, "partitions:batch:nodes": "node[01-09]"}, ["hosts:login01:roles:0", "hosts:db2:address", "partitions:batch:nodes"], id="three in hosts and partitions"),
    pytest.param({"hosts:login01:roles": ["wizard"], "hosts:login01:address": "10.213.0.11", "partitions:batch:nodes": "node01,login01"}, ["hosts:login01:roles:0", "hosts:login01:address"], id="no problem that only follows from another"),
    pytest.param({"hosts:mgmt01:roles": "controller"}, ["hosts:mgmt01:roles"], id="no missing controller where roles are unreadable"),
    pytest.param({"node_types:small:cpus": "two"}, ["node_types:small:cpus"], id="a node type that is there but wrong"),
    pytest.param({"partitions": {1: {"nodes": "node01"}}}, ["partitions:1"], id="a name that YAML reads as a number"),
    pytest.param({"partitions:batch:max_time": 3600}, ["partitions:batch:max_time"], id="a time that YAML reads as seconds"),
    pytest.param({"os": {"name": "Debian"}}, ["os:release"], id="half a section"),
    pytest.param({"hosts": []}, ["hosts"], id="a list for a map"),
    pytest.param({"hosts:a b": {"roles": ["storage"], "address": "10.0.0.1"}}, ["hosts:a b"], id="a blank in a name"),
    pytest.param({"hosts:node_9": {"roles": ["storage"], "address": "10.0.0.1"}}, ["hosts:node_9"], id="an underscore in a name"),
    pytest.param({"hosts:x1.lab.saltern": {"roles": ["storage"], "address": "10.0.0.1"}}, ["hosts:x1.lab.saltern"], id="a name with its domain"),
    pytest.param({"hosts:@all": {"roles": ["storage"], "address": "10.0.0.1"}}, ["hosts:@all"], id="a ClusterShell group"),
    pytest.param({"hosts:n*": {"roles": ["storage"], "address": "10.0.0.1"}}, ["hosts:n*"], id="a wildcard"),
    pytest.param({"hosts:login01:address": "@all"}, ["hosts:login01:address"], id="a group of addresses"),
    pytest.param({"hosts:n[1-3]": {"roles": ["storage"], "address": "10.0.0.[1,3,2]"}}, ["hosts:n[1-3]:address"], id="addresses that do not ascend"),
    pytest.param({"hosts:n[1-2],n1": {"roles": ["storage"], "address": "10.0.0.[1-3]"}}, ["hosts:n[1-2],n1"], id="a name twice in a set"),
    pytest.param({"hosts:Node01": {"roles": ["storage"], "address": "10.0.0.1"}}, ["hosts:Node01"], id="hosts that differ in case"),
    pytest.param({"secrets": "hunter2"}, ["secrets"], id="secrets that are no map"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "places"), MORE_REFUSALS)
def test_says_all_of_it_and_no_more(changes, places):
    """Exactly these places: what follows from a problem is not told as another."""
    problems = refused(example(**changes))
    assert sorted(problems) == sorted(places), problems
    assert "hunter2" not in str(problems)


def test_numbers_that_should_be_text_are_told_to_be_quoted():
    assert "put it in quotes" in refused(example(**{"os:release": 13}))["os:release"]


def test_names_pair_with_addresses_as_written():
    """ClusterShell sorts; a reader does not."""
    hosts = {"roles": ["storage"], "address": "10.0.0.5,10.0.0.2"}
    resolved = plans.resolve(SCHEMA, example(**{"hosts:store9,store1": hosts}))
    assert resolved.hosts["store9"].address == "10.0.0.5"
    assert resolved.hosts["store1"].address == "10.0.0.2"


def test_all_problems_at_once():
    problems = refused(
        example(**{"clusterr": {}, "hosts:login01:address": "10.213.0.11", "waits": {"node_s": 0}, "foundation:users:root2": {"uid": 5, "gid": 6}})
    )  # fmt: skip
    assert {
        "clusterr",
        "hosts:login01:address",
        "waits:node_s",
        "foundation:users:root2:uid",
    } <= problems.keys()


@pytest.mark.parametrize("raw", [None, [], "text"], ids=["nothing", "a list", "a text"])
def test_no_plan_at_all_is_one_sentence(raw):
    assert list(refused(raw)) == ["saltern"]


def test_a_secret_never_stands_in_a_problem():
    problems = refused(example(**{"secrets": {"slurmdbd_password": "hunter2"}}))
    assert "hunter2" not in str(problems)


def test_no_compute_nodes_is_a_plan():
    plan = example(**{"hosts:node[01-02]": None, "partitions": {}})
    assert plans.resolve(SCHEMA, plan).partitions == {}


def test_first_controller_is_the_primary():
    resolved = plans.resolve(SCHEMA, everyone())
    assert [host.name for host in resolved.with_role("controller")] == ["ctl1", "ctl2"]
