"""slurmdbd's database in MariaDB, through the server's socket as root. No secret in an argument."""

import os

import salt.utils.files
from salt.exceptions import CommandExecutionError
from saltern import database_conf

__virtualname__ = "slurm_database"

_ACCOUNT = "account"
_DBD_CONF = "/etc/slurm/slurmdbd.conf"
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
    return database_conf.text(__salt__["saltern.view"]())


def here():
    """Whether this host runs MariaDB.

    Returns bool.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_database.here
    """
    view = __salt__["saltern.view"]()
    servers = view["peers"].get("mariadb", [])  # only database hosts are told
    return any(peer["name"] == view["host"]["name"] for peer in servers)


def moves():
    """Why a running slurmdbd may not be sent to the plan's MariaDB: its data would stay behind.

    Returns a list of str.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_database.moves
    """
    if not os.path.exists(_DBD_CONF) or not __salt__["daemon.status"]("slurmdbd")["active"]:
        return []
    with salt.utils.files.fopen(_DBD_CONF, encoding="utf-8") as file:
        problem = database_conf.moves(file.read(), __salt__["saltern.view"]())
    return [str(problem)] if problem else []


def missing():
    """What slurmdbd lacks in the database.

    Returns a list of str: ``database``, and ``account NAME`` for each host from which slurmdbd
    could not connect; empty when it can work.
    Raises CommandExecutionError when MariaDB cannot be reached.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_database.missing
    """
    found = []
    for client in database_conf.clients(__salt__["saltern.view"]()):
        database, rights = query(database_conf.query(client)).split()
        if database == "0":
            found.append("database")
        if rights == "0" or not _password_fits(client):
            found.append(f"{_ACCOUNT} {client}")
    return list(dict.fromkeys(found))


def make(parts):
    """Make what ``missing`` names.

    parts: list of str, as ``missing`` gives it
    Raises CommandExecutionError with MariaDB's words.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_database.make '["database", "account localhost"]'
    """
    if "database" in parts:
        query(database_conf.MAKE_DATABASE)
    for part in parts:
        kind, _, client = part.partition(" ")
        if kind == _ACCOUNT:
            sql = database_conf.make_account(client)
            __salt__["saltern.secret_stdin"](command(), sql, _TIMEOUT_S)


def _password_fits(client):
    try:
        sql = database_conf.check_account(client)
        __salt__["saltern.secret_stdin"](command(), sql, _TIMEOUT_S)
    except CommandExecutionError as error:
        if database_conf.ACCOUNT_DIFFERS in str(error):
            return False
        raise
    return True


def command(schema=""):
    """The command that gives SQL on its standard input to MariaDB here, as root on its socket.

    schema: str, a database to begin in
    Returns a list of str.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_database.command
    """
    # --no-defaults would lose the socket's path of the distribution; batch mode prints no table.
    return [
        __salt__["saltern.platform"]()["mariadb"]["client"],
        "--batch",
        "--skip-column-names",
        "--user=root",
        *([schema] if schema else []),
    ]


def query(sql, timeout=_TIMEOUT_S):
    """What MariaDB here answers to SQL that holds no secret.

    sql: str; timeout: int, seconds
    Returns str, fields apart by tabs, a line a row. Raises CommandExecutionError with its words.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' slurm_database.query 'SELECT VERSION();'
    """
    result = __salt__["cmd.run_all"](
        command(),
        stdin=sql,
        python_shell=False,
        timeout=timeout,
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
