"""The door for people on the master."""

import contextlib
import logging
from pathlib import Path

import salt.utils.yaml
import saltern_master
from saltern import overview
from saltern.problem import PlanError

__virtualname__ = "saltern"


def __virtual__():
    return __virtualname__


def plan():
    """Check the whole plan, and show its hosts, roles and phases.

    Exits non-zero when the plan has problems.

    CLI Example:

    .. code-block:: bash

        salt-run saltern.plan
        salt-run saltern.plan --out=json
    """
    try:
        settings = saltern_master.settings(__opts__)
        with _quiet():
            resolved = saltern_master.resolved(__opts__, settings["schema_file"])
    except PlanError as error:
        __context__["retcode"] = 1
        return _answer(1, problems=[str(problem) for problem in error.problems])
    return _answer(0, **overview.tables(resolved, _top()))


def _answer(retcode, **parts):
    """An answer that the outputter of _output/saltern.py shows, and salt-run's exit status."""
    return {"outputter": "saltern", "retcode": retcode, **parts}


@contextlib.contextmanager
def _quiet():
    """Salt logs what it cannot render with its own traceback; the error itself is in our answer."""
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def _top():
    """The one table of roles and components; a site may have file roots of its own beside ours."""
    for root in __opts__["file_roots"]["base"]:
        path = Path(root) / "top.sls"
        if (Path(root) / "p0_plan").is_dir() and path.is_file():
            return salt.utils.yaml.safe_load(path.read_text(encoding="utf-8"))["base"]
    return {}
