"""The states over the artefact: four cases each, and a second run."""

import pytest
from salt.exceptions import CommandExecutionError
from support import load

NAME = "24.11.5-0123456789ab"


class Host:
    """A host on which an artefact is or is not what it should be; notes what is done to it."""

    def __init__(self, ready=False, surplus=(), fails=False):
        self.ready, self.fails, self.done = ready, fails, []
        self.surplus = list(surplus)
        self.salt = {
            "slurm_build.plan": lambda: {
                "name": NAME,
                "needed": not self.ready,
                "why": ["new gcc"],
            },
            "slurm_build.build": lambda: self.act("built"),
            "slurm_build.publish": lambda: None,
            "slurm_build.offered": self.offered,
            "slurm_build.deployed": lambda _: self.ready,
            "slurm_build.deploy": lambda _: self.act("deployed"),
            "slurm_build.surplus": lambda: self.surplus,
            "slurm_build.remove": lambda name: self.act(f"removed {name}"),
            "slurm_build.active": lambda: NAME if self.ready else "",
            "slurm_build.activate": lambda _: self.act("activated"),
        }

    def offered(self, *_):
        if self.fails:
            raise CommandExecutionError("the builder offers none")
        return {"name": NAME}

    def act(self, what):
        if self.fails:
            raise CommandExecutionError("the disk is full")
        self.done.append(what)
        self.ready = True

    def run(self, function, test=False):
        module = load("states", "slurm_build", __salt__=self.salt, __opts__={"test": test})
        given = {"timeout": 1} if function == "deployed" else {}
        return getattr(module, function)("x", **given)


FUNCTIONS = ("built", "deployed", "active")


@pytest.mark.parametrize("function", FUNCTIONS)
def test_already_so(function):
    host = Host(ready=True)
    ret = host.run(function)
    assert (ret["result"], ret["changes"], host.done) == (True, {}, [])


@pytest.mark.parametrize("function", FUNCTIONS)
def test_dry_run_predicts_and_does_nothing(function):
    host = Host()
    ret = host.run(function, test=True)
    assert (ret["result"], bool(ret["changes"]), host.done) == (None, True, [])


@pytest.mark.parametrize("function", FUNCTIONS)
def test_changed_once(function):
    host = Host()
    assert host.run(function)["changes"]
    assert host.done
    assert host.run(function)["changes"] == {}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_failed_says_why_and_claims_no_change(function):
    ret = Host(fails=True).run(function)
    assert (ret["result"], ret["changes"]) == (False, {})
    assert ret["comment"] in ("the disk is full", "the builder offers none")


def test_old_trees_go():
    host = Host(ready=True, surplus=["24.05.1-old"])
    ret = host.run("deployed")
    assert (ret["changes"], host.done) == ({"removed": ["24.05.1-old"]}, ["removed 24.05.1-old"])
