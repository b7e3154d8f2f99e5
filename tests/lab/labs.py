"""The lab as tests see it: commands in hosts, changes of the plan, waits with a bound.

A lab's progress goes to the terminal, because it takes minutes; after a failure the last words of
its hosts go there too, because then the lab is gone.
"""

import contextlib
import json
import os
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from testinfra.backend.base import BaseBackend
from testinfra.host import Host

ROOT = Path(__file__).resolve().parents[2]
LAB = str(ROOT / "lab/lab")
PLAN = "/etc/saltern/plan"
# What a failure is judged by, on each host. The journal of the daemons holds no secret (a test
# looks).
SAYS = (
    "systemctl --failed --no-legend; "
    "journalctl -b -n 40 --no-pager -o short-iso -u 'salt-*' -u 'slurm*' -u sackd -u munge "
    "-u chrony -u mariadb; "
    "tail -n 15 /var/log/slurm/*.log 2>/dev/null; "
    "tail -n 15 /var/lib/saltern/build/logs/*/* 2>/dev/null"
)


class Backend(BaseBackend):
    """testinfra's way into a host of the lab."""

    NAME = "lab"

    def __init__(self, lab: str, host: str) -> None:
        super().__init__(host)
        self.lab = lab

    def run(self, command: str, *args: str, **kwargs: Any) -> Any:
        text = self.quote(command, *args)
        return self.run_local(
            f"{LAB} exec --name {self.lab} {self.hostname} -- sh -c {shlex.quote(text)}"
        )


class Lab:
    """A lab by its name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.printed = ""

    def destroy(self) -> None:
        """Away with it, whether it is there or not."""
        self._run([LAB, "destroy", "--name", self.name], timeout=300, check=False)

    def do(self, *words: str, timeout: float = 300) -> str:
        """A command of `lab/lab`."""
        verb, *rest = words
        return self._run([LAB, verb, "--name", self.name, *rest], timeout=timeout).stdout

    def exec(self, host: str, script: str, *, user: str | None = None, timeout: float = 300) -> str:
        """A shell script in a host; it has to succeed."""
        return self.attempt(host, script, user=user, timeout=timeout, check=True).stdout

    def attempt(
        self,
        host: str,
        script: str,
        *,
        user: str | None = None,
        timeout: float = 300,
        check: bool = False,
    ) -> "subprocess.CompletedProcess[str]":
        """A shell script in a host, whatever comes of it."""
        as_user = ["--user", user] if user else []
        command = [LAB, "exec", "--name", self.name, host, *as_user, "--", "sh", "-c", script]
        return self._run(command, timeout=timeout, check=check)

    def job(self, script: str, timeout: float = 120) -> str:
        """A command of the lab's ordinary user, on the login host."""
        return self.exec(
            "login01",
            f". /etc/profile.d/slurm.sh; cd; {script}",
            user="researcher",
            timeout=timeout,
        )

    def machine(self, host: str) -> Host:
        """A host for testinfra."""
        return Host(Backend(self.name, host))

    def highstate(self, target: str = "*", *, test: bool = False) -> dict[str, dict[str, Any]]:
        """`salt TARGET state.highstate`: {host: {id: result}}; after a run that goes on there, such
        as a join's."""
        asked = " test=True" if test else ""
        command = (
            f"salt --static --out=json {shlex.quote(target)} state.highstate queue=True{asked}"
        )
        said = self.attempt("mgmt01", command, timeout=900).stdout
        return {
            host: {state["__id__"]: state for state in states.values()}
            for host, states in json.loads(said[said.index("{") :]).items()
        }

    def gate(self, host: str, phase: str) -> list[str]:
        """The reasons for which a gate of a host is closed now."""
        said = self.exec(host, f"salt-call --out=json saltern_gate.{phase}")
        return json.loads(said[said.index("{") :])["local"]

    @contextlib.contextmanager
    def plan(self, changes: dict[str, Any]) -> Iterator[None]:
        """The plan with changes, while the context lasts."""
        text = yaml.safe_dump({"saltern": changes})
        before = self.exec("mgmt01", f"cat {PLAN}/plan.sls")
        after = f"{before.rstrip()}\n  - test\n"
        try:
            self._write(f"{PLAN}/test.sls", text)
            self._write(f"{PLAN}/plan.sls", after)
            self._refresh_pillar()
            yield
        finally:
            self._write(f"{PLAN}/plan.sls", before)
            self.exec("mgmt01", f"rm {PLAN}/test.sls")
            self._refresh_pillar()

    def replan(self, changes: dict[str, Any]) -> None:
        """Other changes, inside the context of `plan`."""
        self._write(f"{PLAN}/test.sls", yaml.safe_dump({"saltern": changes}))
        self._refresh_pillar()

    def runner(self, *words: str, check: bool = True) -> Any:
        """`salt-run saltern.…` as data."""
        command = shlex.join(["salt-run", "--out=json", *words])
        done = self.attempt("mgmt01", command, check=check)
        return json.loads(done.stdout[done.stdout.index("{") :])

    def address(self, number: str) -> str:
        """An address of this lab by its last number, or a range of them."""
        own = self.exec("mgmt01", "hostname -I").split()[0]
        return f"{own.rpartition('.')[0]}.{number}"

    def _refresh_pillar(self) -> None:
        """The status is not looked at: with a broken plan, minions say that their pillar has
        errors."""
        self.attempt("mgmt01", "salt --out=quiet '*' saltutil.refresh_pillar wait=True")

    def _write(self, path: str, text: str) -> None:
        self.exec("mgmt01", f"cat > {path}.new <<'END'\n{text}\nEND\nmv {path}.new {path}")

    def _run(
        self, command: list[str], timeout: float, check: bool = True
    ) -> "subprocess.CompletedProcess[str]":
        result = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert not check or result.returncode == 0, (
            f"{shlex.join(command)}\n{result.stdout}\n{result.stderr}"
        )
        return result


def until(condition: Callable[[], Any], seconds: float, what: str) -> Any:
    """Wait for something to come true; fails after a bound, naming it."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.5)


@contextlib.contextmanager
def started(request: pytest.FixtureRequest, name: str, topology: str = "first") -> Iterator[Lab]:
    """A lab that did not exist before, while the context lasts; ``printed`` is what it said."""
    if os.geteuid() != 0:
        pytest.fail("the lab needs root")
    capture = request.config.pluginmanager.getplugin("capturemanager")
    lab, failed = Lab(name), request.session.testsfailed
    lab.destroy()
    try:
        with capture.global_and_fixture_disabled():
            lab.printed = _cluster(lab, topology)
        yield lab
        if request.session.testsfailed > failed:
            with capture.global_and_fixture_disabled():
                _tell(lab)
    finally:
        if not os.environ.get("SALTERN_KEEP_LAB"):
            lab.destroy()


def _cluster(lab: Lab, topology: str) -> str:
    """`lab/lab cluster`, line by line to the terminal; returns what it printed."""
    lines = []
    with subprocess.Popen(
        [LAB, "cluster", "--name", lab.name, "--topology", topology],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as run:
        print()
        for line in run.stdout or ():
            print(f"  | {line}", end="", flush=True)
            lines.append(line)
    if run.returncode != 0:
        _tell(lab)
        pytest.fail("make cluster failed; see above")
    return "".join(lines)


def _tell(lab: Lab) -> None:
    """The last words of every host, to the terminal."""
    status = lab.do("status", "--json")
    for host in json.loads(status)["hosts"]:
        said = lab.attempt(host, SAYS, timeout=60)
        print(f"\n---- {host}: daemons and logs\n{said.stdout}{said.stderr}", flush=True)
