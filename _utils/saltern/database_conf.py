"""MariaDB for slurmdbd: its configuration file and the SQL that makes database and account."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from saltern.problem import Problem
from saltern.slurm_conf_defaults import DATABASE, DATABASE_USER, storage_host

# SchedMD, "Accounting and Resource Limits", on MariaDB: log file a quarter of the pool, lock wait
# 900 s, packets of 16 MiB and more.
_LOCK_WAIT_S = 900
_PACKET_MB = 64
_LEAST_LOG_MB = 48  # MariaDB's own default is 96; smaller than 48 MiB makes the log wrap under load

View = Mapping[str, Any]


def clients(view: View) -> list[str]:
    """From where slurmdbd may connect: the hosts that run one, never any host.

    view: a view of the host that runs MariaDB
    """
    own = view["host"]["name"]
    return [
        "localhost" if peer["name"] == own else peer["address"] or peer["name"]
        for peer in view["peers"]["database"]
    ]


def moves(conf: str, view: View) -> Problem | None:
    """What is wrong with sending a running slurmdbd elsewhere.

    conf: the slurmdbd.conf with which it runs
    """
    found = re.search(r"^StorageHost=(.*)$", conf, re.MULTILINE)
    wanted = storage_host(view)
    if not found or found[1] == wanted:
        return None
    return Problem(
        "hosts (the role mariadb)",
        f"MariaDB moves from {found[1]} to {wanted} while slurmdbd runs",
        "a move of its data first: accounting would start empty there",
        "stop slurmdbd, dump slurm_acct_db and load it on the new host, then run this again",
    )


def text(view: View) -> str:
    """MariaDB's configuration. With slurmdbd on the same host only, nobody else may connect."""
    pool = view["accounting"]["buffer_pool_mb"]
    alone = clients(view) == ["localhost"]
    values = {
        # A host whose address only the name server knows listens on each; accounts are for the
        # database hosts alone.
        "bind-address": "127.0.0.1" if alone else view["host"]["address"] or "0.0.0.0",  # noqa: S104
        "innodb_buffer_pool_size": f"{pool}M",
        "innodb_log_file_size": f"{max(pool // 4, _LEAST_LOG_MB)}M",
        "innodb_lock_wait_timeout": str(_LOCK_WAIT_S),
        # From 10.6.18 on, and ON by default from 11.6.2; `loose-` lets older servers ignore it.
        "loose-innodb_snapshot_isolation": "OFF",
        "max_allowed_packet": f"{_PACKET_MB}M",
    }
    lines = [f"{key} = {value}" for key, value in sorted(values.items())]
    return (
        "\n".join(["# Written by Saltern from the plan (accounting).", "[mysqld]", *lines]) + "\n"
    )


def _account(client: str) -> str:
    return f"'{DATABASE_USER}'@'{client}'"


def check_account(client: str) -> str:
    """SQL that raises in the server when the account is missing or has another password, and that
    prints nothing.

    client: one of ``clients``
    """
    return f"""\
DELIMITER //
BEGIN NOT ATOMIC
  IF NOT EXISTS (
    SELECT 1 FROM mysql.user WHERE User = '{DATABASE_USER}' AND Host = '{client}'
    AND authentication_string = PASSWORD('<secret:slurmdbd_password>')
  ) THEN
    SIGNAL SQLSTATE '45000'
      SET MESSAGE_TEXT = 'saltern: the account is missing or has another password';
  END IF;
END //
"""  # noqa: S608 - names of the plan, which its schema keeps to letters, digits, dots and dashes


ACCOUNT_DIFFERS = "saltern: the account is missing"


def query(client: str) -> str:
    """SQL that prints what is there of the database and of the account's rights; two numbers."""
    return (
        "SELECT (SELECT COUNT(*) FROM information_schema.SCHEMATA "  # noqa: S608
        f"WHERE SCHEMA_NAME = '{DATABASE}'), "
        "(SELECT COUNT(*) FROM information_schema.SCHEMA_PRIVILEGES "
        f"WHERE TABLE_SCHEMA = '{DATABASE}' "
        f"AND GRANTEE = \"{_account(client)}\" AND PRIVILEGE_TYPE = 'CREATE')"
    )


MAKE_DATABASE = f"CREATE DATABASE IF NOT EXISTS {DATABASE};\n"


def make_account(client: str) -> str:
    """SQL that makes the account; OR REPLACE also ends rights that somebody else gave."""
    account = _account(client)
    return (
        f"CREATE OR REPLACE USER {account} IDENTIFIED BY '<secret:slurmdbd_password>';\n"
        f"GRANT ALL PRIVILEGES ON {DATABASE}.* TO {account};\n"
    )
