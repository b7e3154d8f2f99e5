"""Accounts with fixed ids: who has which number on this host, and what it owns."""

import grp
import pwd

import salt.utils.files
from saltern import accounts

__virtualname__ = "system_account"

# Looking for owned files may not hold a run up on a host with millions of them.
_SEARCH_S = 30
_TIMED_OUT = 124  # timeout(1)


def __virtual__():
    return __virtualname__


def conflicts(name, uid, gid):
    """Why an account cannot have the plan's ids here, with the files that its present ids own.

    name: str
    uid, gid: int
    Returns a list of str, empty when it can.

    CLI Example:

    .. code-block:: bash

        salt 'node01' system_account.conflicts munge 10010 10010
    """
    users, groups = _users(name, uid), _groups(name, gid)
    found = [str(problem) for problem in accounts.conflicts(name, uid, gid, users, groups)]
    if users.get(name, uid) != uid:
        found.append(_owned("uid", users[name]))
    if groups.get(name, gid) != gid:
        found.append(_owned("gid", groups[name]))
    return found


def _users(name, uid):
    """This host's users, and whom a directory, which need not list all, has for the two."""
    known = {entry.pw_name: entry.pw_uid for entry in pwd.getpwall()}
    for look_up, key in ((pwd.getpwnam, name), (pwd.getpwuid, uid)):
        try:
            entry = look_up(key)
        except KeyError:
            continue
        known[entry.pw_name] = entry.pw_uid
    return known


def _groups(name, gid):
    known = {entry.gr_name: entry.gr_gid for entry in grp.getgrall()}
    for look_up, key in ((grp.getgrnam, name), (grp.getgrgid, gid)):
        try:
            entry = look_up(key)
        except KeyError:
            continue
        known[entry.gr_name] = entry.gr_gid
    return known


def _owned(kind, number):
    with salt.utils.files.fopen("/proc/mounts") as file:
        points = accounts.local_mounts(file.read()) or ["/"]
    result = __salt__["cmd.run_all"](
        ["timeout", str(_SEARCH_S), "find", *points, "-xdev", f"-{kind}", str(number)],
        python_shell=False,
        timeout=2 * _SEARCH_S,
        ignore_retcode=True,
        output_loglevel="quiet",
    )
    files = sorted(set(result["stdout"].splitlines()))
    return accounts.owned(kind, number, files, complete=result["retcode"] != _TIMED_OUT)
