"""A real master and real minions as processes: mgmt01, login01, node01 and one that the plan does not know.

The master's settings are those of etc/master.d/saltern.conf, with this repository and folders of the test in their places.
"""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import salt.client
import salt.config
import yaml
from support import ROOT, admit, example

SETTINGS = ROOT / "etc/master.d/saltern.conf"
# What node01 says of itself; a role that a minion claims must count for nothing.
BOASTS = {
    "roles": ["controller", "database"],
    "saltern": {"roles": ["database"]},
    "role": "controller",
}


class Site:
    """The folder that is /etc/saltern on a real master."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "plan").mkdir(parents=True)
        self.write(example())

    @property
    def register(self):
        """The admission register."""
        return self.folder / "lib/join/register.db"

    def admit(self, pki_dir, *names):
        """Enter hosts into the register with the keys that the master holds."""
        admit(self.register, Path(pki_dir), *names)

    def settings(self):
        """etc/master.d/saltern.conf for this folder and this repository."""
        text = SETTINGS.read_text(encoding="utf-8")
        return yaml.safe_load(
            text.replace("/srv/saltern", str(ROOT))
            .replace("/etc/saltern", str(self.folder))
            .replace("/var/lib/saltern", str(self.folder / "lib"))
        )

    def write(self, plan):
        """Replace the plan."""
        text = plan if isinstance(plan, str) else yaml.safe_dump({"saltern": plan}, sort_keys=False)
        (self.folder / "plan" / "plan.sls").write_text(text, encoding="utf-8")

    def secret(self, name):
        """What the master has made."""
        return (self.folder / "secrets" / name).read_text(encoding="ascii").strip()


@pytest.fixture(scope="package", autouse=True)
def no_help_from_the_environment():
    """Salt must find the project's Python through its own settings, not through ours."""
    kept = os.environ.pop("PYTHONPATH", None)
    yield
    if kept is not None:
        os.environ["PYTHONPATH"] = kept


@pytest.fixture(scope="package")
def site_class():
    """For tests that need a master of their own."""
    return Site


@pytest.fixture(scope="package")
def site(tmp_path_factory):
    return Site(tmp_path_factory.mktemp("site") / "saltern")


@pytest.fixture(scope="package")
def master(salt_factories, site):
    # Without the join queue: it would reject the key of stray01, and these tests are about what a
    # minion gets whose key is accepted. test_joining.py has a master with it.
    settings = site.settings()
    del settings["engines"], settings["reactor"]
    overrides = {
        **settings,
        "open_mode": False,
        "auto_accept": True,
        "fileserver_list_cache_time": 0,
        "log_level_logfile": "debug",
        "timeout": 30,
        "gather_job_timeout": 15,
        "peer": {},
    }
    factory = salt_factories.salt_master_daemon("master", overrides=overrides)
    with factory.started():
        yield factory


def _minion(master, name, **overrides):
    return master.salt_minion_daemon(
        name,
        overrides={
            "log_level_logfile": "debug",
            "acceptance_wait_time": 1,
            "random_reauth_delay": 0,
            **overrides,
        },
    )


@pytest.fixture(scope="package")
def minions(site, master, client):
    """The minions by id."""
    made = {
        "mgmt01": _minion(master, "mgmt01"),
        "login01": _minion(master, "login01"),
        "node01": _minion(master, "node01", grains=BOASTS),
        "stray01": _minion(master, "stray01"),
    }
    with contextlib.ExitStack() as stack:
        for minion in made.values():
            stack.enter_context(minion.started())
        site.admit(master.config["pki_dir"], "mgmt01", "login01", "node01")
        client.cmd("*", "saltutil.sync_all", timeout=120)
        yield made


@pytest.fixture
def plan(site, minions, client):
    """Put a plan in place and tell the minions; the example plan comes back afterwards."""

    def put(content):
        site.write(content)
        client.cmd("*", "saltutil.refresh_pillar", kwarg={"wait": True}, timeout=60)

    yield put
    put(example())


@pytest.fixture(scope="package")
def secrets(site, minions, call):
    """The values that exist once a host has asked for its pillar: {name: value}."""
    call("mgmt01", "saltutil.refresh_pillar", wait=True)
    return {name: site.secret(name) for name in ("munge_key", "slurmdbd_password", "jwt_key")}


@pytest.fixture(scope="package")
def client(master):
    """The master's own client, in this process."""
    return salt.client.LocalClient(mopts=salt.config.client_config(master.config_file))


@pytest.fixture(scope="package")
def call(client, minions):
    """Have a minion run a function; what it asks of the master it asks with its own key."""

    def run(name, function, *arguments, **keywords):
        answer = client.cmd(
            name, function, arguments, kwarg=keywords, full_return=True, timeout=60
        ).get(name)
        assert answer, f"{name} did not answer {function}"
        return SimpleNamespace(data=answer["ret"], code=answer["retcode"], text=repr(answer))

    return run


@pytest.fixture(scope="package")
def run(master):
    """Run salt-run on the master, as a person would: no options of the test's."""
    return lambda *arguments: _run("salt-run", master.config_dir, *arguments)


@pytest.fixture(scope="package")
def cli(master, minions):
    """Run salt on the master."""
    return lambda *arguments: _run("salt", master.config_dir, *arguments)


def _run(program, config_dir, *arguments):
    command = [str(Path(sys.executable).parent / program), "-c", str(config_dir), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    return SimpleNamespace(
        code=done.returncode,
        out=done.stdout,
        text=done.stdout + done.stderr,
        data=lambda: json.loads(done.stdout),
    )


@pytest.fixture
def salt_call():
    """Run salt-call with a configuration folder of its own."""
    return lambda config_dir, *arguments: _run("salt-call", config_dir, *arguments)
