"""slurmdbd's database in MariaDB, through the server's socket as root. No secret in an argument."""

from salt.exceptions import CommandExecutionError
from saltern import database_conf

__virtualname__ = "slurm_database"

_TIMEOUT_S = 60


def __virtual__():
    return __virtualname__


def conf_text():
    """MariaDB's configuration file for slurmdbd.

    Returns str.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_database.conf_text
    """
    return database_conf.text(__salt__["saltern.view"]("accounting"))


def missing():
    """What slurmdbd lacks in the database.

    Returns a list of ``database``, ``account``; empty when it can work.
    Raises CommandExecutionError when MariaDB cannot be reached.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_database.missing
    """
    counts = _query(database_conf.QUERY).split()
    found = [] if counts[0] != "0" else ["database"]
    if counts[1] == "0" or not _password_fits():
        found.append("account")
    return found


def make(parts):
    """Make what ``missing`` names.

    parts: list of ``database``, ``account``
    Raises CommandExecutionError with MariaDB's words.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_database.make '["database", "account"]'
    """
    if "database" in parts:
        _query(database_conf.MAKE_DATABASE)
    if "account" in parts:
        __salt__["saltern.secret_stdin"](_client(), database_conf.MAKE_ACCOUNT, _TIMEOUT_S)


def _password_fits():
    try:
        __salt__["saltern.secret_stdin"](_client(), database_conf.CHECK_ACCOUNT, _TIMEOUT_S)
    except CommandExecutionError as error:
        if database_conf.ACCOUNT_DIFFERS in str(error):
            return False
        raise
    return True


def _client():
    # --no-defaults would lose the socket's path of the distribution; batch mode prints no table.
    return [
        __salt__["saltern.platform"]()["mariadb"]["client"],
        "--batch",
        "--skip-column-names",
        "--user=root",
    ]


def _query(sql):
    result = __salt__["cmd.run_all"](
        _client(),
        stdin=sql,
        python_shell=False,
        timeout=_TIMEOUT_S,
        ignore_retcode=True,
        output_loglevel="quiet",
    )
    if result["retcode"]:
        raise CommandExecutionError(
            "MariaDB on this host does not answer root on its socket: "
            f"{result['stderr'] or result['stdout']}. "
            "Look at the unit mariadb and its log."
        )
    return result["stdout"]
