"""The door for people on the master."""

import json
from pathlib import Path

import salt.pillar
import salt.utils.yaml

from saltern import overview, plan as plans
from saltern.problem import PlanError, Problem

__virtualname__ = "saltern"


def __virtual__():
    return __virtualname__


def plan():
    """Check the whole plan, and show its hosts, roles and phases. Exits non-zero when the plan has problems.

    CLI Example:

    .. code-block:: bash

        salt-run saltern.plan
        salt-run saltern.plan --out=json
    """
    try:
        resolved = plans.resolve(_schema(), _raw_plan())
    except PlanError as error:
        __context__["retcode"] = 1
        return _answer(1, problems=[str(problem) for problem in error.problems])
    return _answer(0, **overview.tables(resolved, _top()))


def _answer(retcode, **parts):
    """An answer that the outputter of _output/saltern.py shows, and salt-run's exit status."""
    return {"outputter": "saltern", "retcode": retcode, **parts}


def _raw_plan():
    """The site's pillar as it stands in its files; the external pillar would hide what it refuses."""
    opts = {**__opts__, "ext_pillar": [], "grains": {}}
    pillar = salt.pillar.Pillar(opts, {}, "saltern-plan", "base").compile_pillar()
    errors = pillar.get("_errors", [])
    if errors:
        raise PlanError([Problem("pillar", str(error), "files that Salt can render") for error in errors])
    return pillar.get("saltern")


def _schema():
    settings = next(entry["saltern"] for entry in __opts__["ext_pillar"] if "saltern" in entry)
    return json.loads(Path(settings["schema_file"]).read_text(encoding="utf-8"))


def _top():
    path = Path(__opts__["file_roots"]["base"][0]) / "top.sls"
    return salt.utils.yaml.safe_load(path.read_text(encoding="utf-8"))["base"]
