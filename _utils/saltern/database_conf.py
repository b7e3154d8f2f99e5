"""MariaDB for slurmdbd: its configuration file and the SQL that makes database and account."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from saltern.slurm_conf_defaults import DATABASE, DATABASE_USER

# SchedMD, "Accounting and Resource Limits", on MariaDB: log file a quarter of the pool, lock wait
# 900 s, packets of 16 MiB and more.
_LOCK_WAIT_S = 900
_PACKET_MB = 64
_LEAST_LOG_MB = 48  # MariaDB's own default is 96; smaller than 48 MiB makes the log wrap under load

ACCOUNT = f"'{DATABASE_USER}'@'localhost'"


def text(accounting: Mapping[str, Any]) -> str:
    """MariaDB's configuration; slurmdbd runs on the same host, so nobody else may connect."""
    pool = accounting["buffer_pool_mb"]
    values = {
        "bind-address": "127.0.0.1",
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


# Raises in the server when the account is missing or has another password, and prints nothing.
CHECK_ACCOUNT = f"""\
DELIMITER //
BEGIN NOT ATOMIC
  IF NOT EXISTS (
    SELECT 1 FROM mysql.user WHERE User = '{DATABASE_USER}' AND Host = 'localhost'
    AND authentication_string = PASSWORD('<secret:slurmdbd_password>')
  ) THEN
    SIGNAL SQLSTATE '45000'
      SET MESSAGE_TEXT = 'saltern: the account is missing or has another password';
  END IF;
END //
"""  # noqa: S608 - constants of this module, no user's text
ACCOUNT_DIFFERS = "saltern: the account is missing"

# What is there of the database and the rights on it; two numbers.
QUERY = (
    f"SELECT (SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = '{DATABASE}'), "  # noqa: S608
    f"(SELECT COUNT(*) FROM information_schema.SCHEMA_PRIVILEGES WHERE TABLE_SCHEMA = '{DATABASE}' "
    f"AND GRANTEE = \"{ACCOUNT}\" AND PRIVILEGE_TYPE = 'CREATE')"
)

MAKE_DATABASE = f"CREATE DATABASE IF NOT EXISTS {DATABASE};\n"
# CREATE OR REPLACE also ends rights that somebody else gave; the rights of the plan follow at once.
MAKE_ACCOUNT = (
    f"CREATE OR REPLACE USER {ACCOUNT} IDENTIFIED BY '<secret:slurmdbd_password>';\n"
    f"GRANT ALL PRIVILEGES ON {DATABASE}.* TO {ACCOUNT};\n"
)
