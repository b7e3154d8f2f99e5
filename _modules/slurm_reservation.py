"""Slurm's reservations against the plan."""

import datetime
import json

from salt.exceptions import CommandExecutionError
from saltern import reservations, slurm_daemons

__virtualname__ = "slurm_reservation"
__func_alias__ = {"list_": "list"}

_ANSWER_S = 60


def __virtual__():
    return __virtualname__


def list_():
    """The reservations that slurmctld has, with their fields as scontrol names them.

    Returns a dict of dicts. Raises CommandExecutionError when slurmctld does not answer.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_reservation.list
    """
    result = _scontrol(["--oneliner", "--all", "show", "reservation"])
    if result["retcode"]:
        raise CommandExecutionError(
            f"slurmctld does not show its reservations: {result['stderr'] or result['stdout']}"
        )
    return reservations.present(result["stdout"])


def calls(wanted=None, absent=()):
    """The calls that make the reservations what the plan wants. Nothing is changed.

    wanted: dict, entries as `accounts:reservations`, instead of the plan's
    absent: list of str, names that shall not be there, with wanted
    Returns a list of lists of str.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_reservation.calls
    """
    gone = set(absent)
    if wanted is None:
        section = json.loads(__salt__["saltern.view"]("accounts:wanted"))
        wanted = section["reservations"]
        gone = set(section["absent"]["reservations"])
        there = list_()
        if section["purge"] == "all":
            gone = there.keys() - wanted.keys()
    else:
        there = list_()
    now = datetime.datetime.now()  # local, as Slurm reads the plan's times
    return list(reservations.calls(wanted, there, frozenset(gone), now))


def change(argv):
    """One call of scontrol that changes a reservation.

    argv: list of str
    Raises CommandExecutionError with Slurm's words.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_reservation.change '["delete", "ReservationName=maint"]'
    """
    result = _scontrol(argv)
    if result["retcode"]:
        words = " ".join(f"{result['stderr']} {result['stdout']}".split())
        raise CommandExecutionError(f"{reservations.text(argv)}: {words}")


def _scontrol(arguments):
    return __salt__["cmd.run_all"](
        [f"{slurm_daemons.TREE}/bin/scontrol", *arguments],
        python_shell=False,
        timeout=_ANSWER_S,
        ignore_retcode=True,
        output_loglevel="quiet",
    )
