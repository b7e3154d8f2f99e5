"""Slurm's files: made from the plan, judged by the deployed Slurm before anything reads them."""

import os
import shutil
import tempfile

import salt.utils.files
from salt.exceptions import CommandExecutionError
from saltern import enforcement, slurm_conf, slurm_conf_checks
from saltern.problem import listing

__virtualname__ = "slurm_conf"

_CONF = "/etc/slurm/slurm.conf"
_TREE = "/opt/slurm/current"
_PARSER_S = 30


def __virtual__():
    return __virtualname__


def files(raised=False):
    """The files of /etc/slurm on a controller, as the plan wants them.

    raised: bool, enforce all that the plan wants, since the accounts are in place; otherwise only
        what of it slurm.conf enforces already
    Returns a dict, file name: text; slurm.conf last. Raises CommandExecutionError on other hosts.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_conf.files
    """
    return {file.name: file.text for file in slurm_conf.files(_controllers_view(raised))}


def slurmdbd_text():
    """slurmdbd.conf, with a placeholder for its password.

    Returns str.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_conf.slurmdbd_text
    """
    return slurm_conf.slurmdbd(__salt__["saltern.view"]()).text


def problems(raised=False):
    """What is wrong with the files that the plan wants.

    raised: bool, as for ``files``
    First by Saltern's own checks, then by the parser of the deployed Slurm.

    Returns a list of str, each with the key's path in the plan; empty when Slurm would take them.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_conf.problems
    """
    view = _controllers_view(raised)
    wanted = slurm_conf.files(view)
    stored = f"{view['slurm']['state_dir']}/clustername"
    found = slurm_conf_checks.cluster_name(view["cluster"]["name"], _stored_name(stored), stored)
    found = found or __salt__["slurm_controller.refused"]()
    found += slurm_conf_checks.problems(wanted, _plugins())
    if not found and _parser():
        found = _judged(wanted)
    return [str(problem) for problem in found]


def require_sound(raised=False):
    """Raise CommandExecutionError with every problem of the files that the plan wants.

    raised: bool, as for ``files``

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_conf.require_sound
    """
    found = problems(raised)
    if found:
        raise CommandExecutionError(
            listing("Slurm's configuration was not installed, and nothing was changed:", found)
        )


def _controllers_view(raised=False):
    view = __salt__["saltern.view"]()
    if "controller" not in view["roles"]:
        raise CommandExecutionError(
            f"{view['host']['name']} is no controller: Slurm's configuration stands "
            "on the controllers only, and other hosts ask them for it."
        )
    if raised:
        return view
    return {**view, "enforced": enforcement.cautious(view["accounts"]["enforce"], _slurm_conf())}


def _slurm_conf():
    try:
        with salt.utils.files.fopen(_CONF, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def _parser():
    path = f"{_TREE}/bin/scontrol"
    return path if os.access(path, os.X_OK) else None


def _plugins():
    folder = f"{_TREE}/lib/slurm"
    return os.listdir(folder) if os.path.isdir(folder) else None


def _stored_name(path):
    try:
        with salt.utils.files.fopen(path, encoding="utf-8") as file:
            return slurm_conf_checks.stored_cluster_name(file.read())
    except FileNotFoundError:
        return None


def _judged(wanted):
    """Let the deployed scontrol read the files in a folder of their own; it asks no controller."""
    folder = tempfile.mkdtemp(prefix="saltern-slurm-conf.")  # mode 0700
    try:
        for file in wanted:
            with salt.utils.files.fopen(
                os.path.join(folder, file.name), "w", encoding="utf-8"
            ) as out:
                out.write(file.text)
        result = __salt__["cmd.run_all"](
            [_parser(), "show", "hostnames", "n1"],
            env={"SLURM_CONF": os.path.join(folder, "slurm.conf")},
            python_shell=False,
            timeout=_PARSER_S,
            ignore_retcode=True,
            output_loglevel="quiet",
        )
    finally:
        shutil.rmtree(folder)
    if result["retcode"] == 0:
        return []
    return slurm_conf_checks.refusals(result["stderr"] or result["stdout"], wanted)
