"""Who can learn a secret: the hosts whose roles need it, and nobody else by any Salt request."""

import asyncio
import contextlib

import pytest
import salt.channel.client
import salt.config
from support import ROOT

# A part of a plan in which login01 is the database. Salt merges what a minion sends as pillar override
# before external pillars run. (Of a compute node the plan's checks would refuse it: it has a node_type.)
PROMOTED = {
    "saltern": {
        "hosts": {
            "login01": {"roles": ["database"]},
            "mgmt01": {"roles": ["controller", "builder"]},
        }
    }
}
BROKEN = {"saltern": {"nonsense": 1}}


def nothing_of(secrets, text, allowed=()):
    for name, value in secrets.items():
        assert name in allowed or value not in text, f"{name} is in it: {text[:2000]}"


# --- pillar, by requests made by hand with node01's own key: what comes back is not masked ---------------------------


@pytest.fixture(scope="module")
def ask(minions):
    """What the master answers node01 when it asks for a pillar: ask(id=..., pillar_override=...)."""

    def options(name):
        opts = salt.config.minion_config(minions[name].config_file)
        return {**opts, "master_uri": f"tcp://{opts['master']}:{opts['master_port']}"}

    async def request(load, opts):
        channel = salt.channel.client.AsyncReqChannel.factory(opts)
        try:
            answer = channel.crypted_transfer_decode_dictentry(
                load, dictkey="pillar", timeout=10, tries=1
            )
            return await asyncio.wait_for(answer, timeout=20)
        finally:
            channel.close()

    def run(who="node01", as_=None, **changes):
        load = {"cmd": "_pillar", "id": who, "grains": {}, "saltenv": "base", "pillarenv": None, "pillar_override": {},
                "extra_minion_data": {}, "ver": "2", **changes}  # fmt: skip
        return asyncio.run(request(load, {**options(who), "id": as_ or who}))

    return run


def test_node01_has_its_role_s_secret_and_no_other(secrets, ask):
    assert ask()["saltern"]["secrets"] == {"munge_key": secrets["munge_key"]}


ATTEMPTS = {
    "a role by pillar override": {"pillar_override": PROMOTED},
    "a broken plan by pillar override": {"pillar_override": BROKEN},
    "a role by grains": {"grains": {"roles": ["database"], "id": "mgmt01"}},
    "another environment": {"saltenv": "prod", "pillarenv": "prod"},
    "an external pillar of its own": {"ext": {"cmd_yaml": "cat /etc/shadow"}},
    "saltern's external pillar with its own schema": {"ext": {"saltern": {"schema_file": "/dev/null", "secrets_dir": "/tmp"}}},
    "data of its own": {"extra_minion_data": {"roles": ["database"], "saltern": PROMOTED["saltern"]}},
    "a fresh cache": {"clean_cache": True},
}  # fmt: skip


@pytest.mark.parametrize("load", ATTEMPTS.values(), ids=ATTEMPTS.keys())
def test_node01_gets_no_more_by(secrets, ask, load):
    pillar = ask(**load)
    nothing_of(secrets, repr(pillar), allowed={"munge_key"})
    assert set(pillar["saltern"].get("secrets", {})) <= {"munge_key"}
    assert "mariadb" not in repr(pillar), "nothing of the raw plan either"


@pytest.mark.parametrize("override", [PROMOTED, BROKEN], ids=["promoted", "broken"])
def test_a_login_node_cannot_write_itself_a_role(secrets, ask, override):
    pillar = ask(who="login01", pillar_override=override)
    nothing_of(secrets, repr(pillar), allowed={"munge_key"})
    assert "_errors" not in pillar


@pytest.mark.parametrize("name", ["mgmt01", "saltern/plan"], ids=["the database", "the plan"])
def test_node01_cannot_ask_in_another_s_name(secrets, ask, name):
    """With node01's key and another id, in the request and in the channel; any refusal will do."""
    answers = [ask(id=name)]  # Salt's own client puts the right id back
    with contextlib.suppress(Exception, SystemExit):
        answers.append(ask(as_=name))
    for answer in answers:
        nothing_of(secrets, repr(answer), allowed={"munge_key"})
        assert "mariadb" not in repr(answer)


# --- the same and more, by Salt's functions --------------------------------------------------------------------------

REQUESTS = {
    "pillar.items": ("pillar.items", [], {"unmask": True}),
    "pillar.items with a role": ("pillar.items", [], {"pillar": PROMOTED, "unmask": True}),
    "pillar.raw": ("pillar.raw", [], {}),
    "pillar.get": ("pillar.get", ["saltern"], {"unmask": True}),
    "pillar.ext": ("pillar.ext", [{"cmd_yaml": "cat /etc/hostname"}], {}),
    "a file with it": (
        "saltern.secret_file",
        ["/tmp/none", "<secret:slurmdbd_password>", "root", "root", "0600"],
        {},
    ),
    "a program with it": ("saltern.secret_stdin", [["cat"], "<secret:slurmdbd_password>"], {}),
    "the view": ("saltern.view", [], {}),
    "the mine": ("mine.get", ["*", "pillar.items"], {}),
    "another minion": (
        "publish.publish",
        ["mgmt01", "pillar.items", "unmask=True"],
        {"timeout": 3},
    ),
    "another minion, all data": (
        "publish.full_data",
        ["mgmt01", "pillar.get", "saltern:secrets"],
        {"timeout": 3},
    ),
    "a runner": ("publish.runner", ["pillar.show_pillar", "mgmt01"], {}),
}


@pytest.mark.parametrize(
    ("function", "arguments", "keywords"), REQUESTS.values(), ids=REQUESTS.keys()
)
def test_node01_cannot_learn_it_by(secrets, call, function, arguments, keywords):
    answer = call("node01", function, *arguments, **keywords)
    nothing_of(secrets, answer.text, allowed={"munge_key"} if function.startswith("pillar") else ())


def test_asking_for_what_it_lacks_is_a_sentence(call):
    answer = call(
        "node01",
        "saltern.secret_file",
        "/tmp/none",
        "<secret:slurmdbd_password>",
        "root",
        "root",
        "0600",
    )
    assert (
        "node01 has no secret slurmdbd_password: its roles (compute) do not need it" in answer.data
    )
    assert "Traceback" not in answer.data


def test_the_requests_above_do_see_secrets(secrets, call):
    """They would show a leak: unmasked, node01 does see the one that it has."""
    assert secrets["munge_key"] in call("node01", "pillar.items", unmask=True).text


def test_no_role_by_its_own_grains(call):
    assert call("node01", "grains.get", "roles").data == ["controller", "database"], (
        "the minion does claim them"
    )
    assert call("node01", "saltern.view").data["roles"] == ["compute"]


# --- the file server ------------------------------------------------------------------------------------------------

PATHS = [
    "salt://../pillar/example/plan.sls",
    "salt://pillar/example/plan.sls",
    "salt://pillar/schema.json",
    "salt://_modules/../../pillar/schema.json",
    "salt://_modules/../../.git/config",
    "salt://../etc/master.d/saltern.conf",
    "salt://|../pillar/schema.json",
    "salt://%2e%2e/pillar/schema.json",
    "salt://../../../../../../../../etc/passwd",
    "salt:///etc/passwd",
    "salt://tests/support.py",
]


@pytest.mark.parametrize("path", PATHS)
def test_files_outside_the_root_are_not_served(call, path, tmp_path):
    assert not call("node01", "cp.get_file_str", path).data
    call("node01", "cp.get_file", path, str(tmp_path / "got"))
    assert not (tmp_path / "got").exists() or not (tmp_path / "got").read_bytes()


def test_secrets_are_not_served_by_path(secrets, call, site):
    for name in secrets:
        for path in (
            f"salt://{site.folder}/secrets/{name}",
            f"salt://{'../' * 12}{site.folder}/secrets/{name}",
        ):
            assert not call("node01", "cp.get_file_str", path).data


def test_the_file_server_lists_nothing_of_the_plan(call):
    listed = call("node01", "cp.list_master").data
    assert "top.sls" in listed
    assert any(path.startswith("_modules/") for path in listed), "links are followed"
    elsewhere = ("pillar", ".git", "tests", "etc", "lab", "_pillar", "_runners")
    assert not [path for path in listed if path.startswith(elsewhere)]


def test_a_file_is_served_when_it_should_be(call):
    """The refusals above mean something only if a good path is answered."""
    assert call("node01", "cp.get_file_str", "salt://top.sls").data == (
        ROOT / "salt/top.sls"
    ).read_text(encoding="utf-8")


# --- ids and folders -------------------------------------------------------------------------------------------------


def test_an_unknown_id_gets_nothing(secrets, call):
    pillar = call("stray01", "pillar.items", unmask=True)
    nothing_of(secrets, pillar.text)
    assert "saltern" not in pillar.data
    state = call("stray01", "state.apply", "p0_plan", test=True)
    assert state.code != 0
    assert "knows no host 'stray01'" in state.text


def test_the_store_is_the_master_s_alone(secrets, site):
    folder = site.folder / "secrets"
    assert folder.stat().st_mode & 0o7777 == 0o700
    assert {path.stat().st_mode & 0o7777 for path in folder.iterdir()} == {0o600}
    assert {path.name for path in folder.iterdir()} == set(secrets)


def test_a_store_that_others_can_read_is_refused(secrets, site, call):
    folder = site.folder / "secrets"
    folder.chmod(0o755)
    try:
        assert "has mode 0755" in call("mgmt01", "pillar.items", unmask=True).text
        state = call("mgmt01", "state.apply", "p0_plan", test=True)
    finally:
        folder.chmod(0o700)
        call("mgmt01", "saltutil.refresh_pillar", wait=True)
    nothing_of(secrets, state.text)
