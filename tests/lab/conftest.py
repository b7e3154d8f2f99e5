"""One lab for all tests here, from bare hosts. Its progress goes to the terminal, because it takes
minutes; after a failure the last words of its hosts go there too, because then the lab is gone."""

import os
import subprocess

import pytest
from labs import LAB, Lab

NAME = os.environ.get("SALTERN_TEST_LAB", "test")
STANDING = os.environ.get("SALTERN_STANDING_LAB")  # a lab that is up already, for work on a test
HOSTS = ("mgmt01", "login01", "node01", "node02")
# What a failure is judged by, on each host. The journal of the daemons holds no secret (a test
# looks).
SAYS = (
    "systemctl --failed --no-legend; "
    "journalctl -b -n 40 --no-pager -o short-iso -u 'salt-*' -u 'slurm*' -u sackd -u munge "
    "-u chrony -u mariadb; "
    "tail -n 15 /var/log/slurm/*.log 2>/dev/null; "
    "tail -n 15 /var/lib/saltern/build/logs/*/* 2>/dev/null"
)


@pytest.fixture(scope="session")
def first_run(request):
    """What `make cluster` printed on a lab that did not exist before."""
    if os.geteuid() != 0:
        pytest.fail("the lab needs root")
    capture = request.config.pluginmanager.getplugin("capturemanager")
    destroy()
    try:
        with capture.global_and_fixture_disabled():
            printed = cluster()
        yield printed
        if request.session.testsfailed:
            with capture.global_and_fixture_disabled():
                tell()
    finally:
        if not os.environ.get("SALTERN_KEEP_LAB"):
            destroy()


@pytest.fixture(scope="session")
def lab(request):
    """The cluster that the first run made."""
    if STANDING:
        return Lab(STANDING)
    request.getfixturevalue("first_run")
    return Lab(NAME)


def cluster():
    """`lab/lab cluster`, line by line to the terminal; returns what it printed."""
    lines = []
    with subprocess.Popen(
        [LAB, "cluster", "--name", NAME],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as run:
        print()
        for line in run.stdout:
            print(f"  | {line}", end="", flush=True)
            lines.append(line)
    if run.returncode != 0:
        tell()
        pytest.fail("make cluster failed; see above")
    return "".join(lines)


def tell():
    """The last words of every host, to the terminal."""
    for host in HOSTS:
        said = Lab(NAME).attempt(host, SAYS, timeout=60)
        print(f"\n---- {host}: daemons and logs\n{said.stdout}{said.stderr}", flush=True)


def destroy():
    subprocess.run([LAB, "destroy", "--name", NAME], capture_output=True, check=False)
