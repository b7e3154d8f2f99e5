"""What runs on a node, as the node itself sees it."""

import pytest
from salt.exceptions import CommandExecutionError
from support import load

LINES = "  50 slurmstepd: [12.batch]\n 500 slurmstepd: [9.0]\n   3 slurmstepd: [13.extern]\n"


def steps(monkeypatch, retcode, stdout="", stderr=""):
    said = {"retcode": retcode, "stdout": stdout, "stderr": stderr}
    module = load("modules", "slurm_nodes", __salt__={"cmd.run_all": lambda *_, **__: said})
    monkeypatch.setattr(module.time, "time", lambda: 1000.0)
    return module.steps(900.0)


def test_only_steps_that_began_since_are_told(monkeypatch):
    assert steps(monkeypatch, 0, LINES) == ["12.batch", "13.extern"]


def test_a_node_without_jobs_has_none(monkeypatch):
    assert steps(monkeypatch, 1) == []


@pytest.mark.parametrize(("retcode", "stderr"), [(127, "not found"), (1, "error: bad option")])
def test_not_knowing_is_not_none(monkeypatch, retcode, stderr):
    with pytest.raises(CommandExecutionError, match=stderr):
        steps(monkeypatch, retcode, "", stderr)
