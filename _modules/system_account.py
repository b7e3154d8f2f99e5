"""Accounts with fixed ids: who has which number on this host, and what it owns."""

import grp
import pwd

from saltern import accounts

__virtualname__ = "system_account"

# Looking for owned files may not hold a run up on a host with millions of them.
_SEARCH_S = 30
_SHOWN = 5


def __virtual__():
    return __virtualname__


def conflicts(name, uid, gid):
    """Why an account cannot have the plan's ids on this host, with the files that its present ids own.

    name: str
    uid, gid: int
    Returns a list of str, empty when it can.

    CLI Example:

    .. code-block:: bash

        salt 'node01' system_account.conflicts munge 10010 10010
    """
    users = {entry.pw_name: entry.pw_uid for entry in pwd.getpwall()}
    groups = {entry.gr_name: entry.gr_gid for entry in grp.getgrall()}
    found = [str(problem) for problem in accounts.conflicts(name, uid, gid, users, groups)]
    if found and users.get(name, uid) != uid:
        found.append(_owned("uid", users[name]))
    elif found and groups.get(name, gid) != gid:
        found.append(_owned("gid", groups[name]))
    return found


def _owned(kind, number):
    result = __salt__["cmd.run_all"](
        ["find", "/", "-xdev", f"-{kind}", str(number), "-print"],
        python_shell=False,
        timeout=_SEARCH_S,
        ignore_retcode=True,
        output_loglevel="quiet",
    )
    files = result["stdout"].splitlines()
    if "Timed out" in result["stdout"] or result["retcode"] not in (0, 1):
        return f"{kind} {number} owns files, but counting them took more than {_SEARCH_S} s"
    shown = ", ".join(files[:_SHOWN])
    return f"{kind} {number} owns {len(files)} files on the root file system" + (f": {shown}" if files else "")
