"""One lab for all tests here, from bare hosts. Its progress goes to the terminal, because it takes
minutes."""

import os
import subprocess

import pytest
from labs import LAB, Lab

NAME = os.environ.get("SALTERN_TEST_LAB", "test")


@pytest.fixture(scope="session")
def first_run(request):
    """What `make cluster` printed on a lab that did not exist before."""
    if os.geteuid() != 0:
        pytest.fail("the lab needs root")
    capture = request.config.pluginmanager.getplugin("capturemanager")
    subprocess.run([LAB, "destroy", "--name", NAME], capture_output=True, check=False)
    lines = []
    with (
        capture.global_and_fixture_disabled(),
        subprocess.Popen(
            [LAB, "cluster", "--name", NAME],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as run,
    ):
        print()
        for line in run.stdout:
            print(f"  | {line}", end="", flush=True)
            lines.append(line)
    assert run.returncode == 0, "make cluster failed; see above"
    yield "".join(lines)
    if not os.environ.get("SALTERN_KEEP_LAB"):
        subprocess.run([LAB, "destroy", "--name", NAME], capture_output=True, check=False)


@pytest.fixture(scope="session")
def lab(first_run):
    """The cluster that the first run made."""
    return Lab(NAME)
