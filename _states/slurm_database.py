"""The database and the account of slurmdbd."""

from salt.exceptions import CommandExecutionError

__virtualname__ = "slurm_database"


def __virtual__():
    return __virtualname__


def present(name):
    """slurmdbd's database and account exist, with the plan's secret as password.

    name: str, for people
    """
    ret = {
        "name": name,
        "result": True,
        "changes": {},
        "comment": "Database and account are there.",
    }
    try:
        missing = __salt__["slurm_database.missing"]()
    except CommandExecutionError as error:
        # On a bare host a dry run finds no server, which a real run would have installed.
        return {**ret, "result": None if __opts__["test"] else False, "comment": str(error)}
    if not missing:
        return ret
    changes = {part: {"old": "missing or different", "new": "present (hidden)"} for part in missing}
    if __opts__["test"]:
        return {
            **ret,
            "result": None,
            "changes": changes,
            "comment": f"{', '.join(missing)} would be made.",
        }
    try:
        __salt__["slurm_database.make"](missing)
        still = __salt__["slurm_database.missing"]()
    except CommandExecutionError as error:
        return {**ret, "result": False, "comment": str(error)}
    if still:
        return {
            **ret,
            "result": False,
            "comment": f"{', '.join(still)} still missing after it was made.",
        }
    return {**ret, "changes": changes, "comment": f"{', '.join(missing)} made."}


def in_place(name):
    """A running slurmdbd stays with its MariaDB; changes nothing.

    name: str, for people
    """
    problems = __salt__["slurm_database.moves"]()
    return {
        "name": name,
        "result": not problems,
        "changes": {},
        "comment": "\n".join(problems) or "slurmdbd stays with its MariaDB.",
    }
