"""SSSD on this host: its configuration, its place in PAM and NSS, and what resolves."""

import grp
import os
import pwd

import salt.utils.files
from salt.exceptions import CommandExecutionError
from saltern import sssd_conf

__virtualname__ = "sssd"

_NSS = "/etc/nsswitch.conf"
_TIMEOUT_S = 60


def __virtual__():
    return __virtualname__


def conf_text():
    """sssd.conf, with the bind password named and not given.

    Returns str.

    CLI Example:

    .. code-block:: bash

        salt 'login01' sssd.conf_text
    """
    services = __salt__["saltern.platform"]()["sssd"]["services"]
    return sssd_conf.text(__salt__["saltern.view"](), services)


def missing():
    """What PAM and NSS lack to ask SSSD.

    Returns a list of str.

    CLI Example:

    .. code-block:: bash

        salt 'login01' sssd.missing
    """
    platform = __salt__["saltern.platform"]()["sssd"]
    found = []
    databases = [line.split() for line in _read(_NSS).splitlines()]
    for name in ("passwd:", "group:"):
        if not any(words[:1] == [name] and "sss" in words for words in databases):
            found.append(f"sss for {name.rstrip(':')} in {_NSS}")
    if platform["homes_active"] not in _read(platform["homes_file"]):
        found.append(f"{platform['homes_active']} in {platform['homes_file']}")
    return found


def enable():
    """Have the distribution's own tool let PAM and NSS ask SSSD, and make homes at first login.

    Raises CommandExecutionError with its words.

    CLI Example:

    .. code-block:: bash

        salt 'login01' sssd.enable
    """
    command = __salt__["saltern.platform"]()["sssd"]["homes"]
    result = __salt__["cmd.run_all"](
        command,
        env={"DEBIAN_FRONTEND": "noninteractive"},
        python_shell=False,
        timeout=_TIMEOUT_S,
        ignore_retcode=True,
        output_loglevel="quiet",
    )
    if result["retcode"]:
        raise CommandExecutionError(f"{command[0]}: {result['stderr'] or result['stdout']}")


def strangers(names):
    """Which of these users this host does not know.

    names: list of str
    Returns a list of str.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' sssd.strangers '["ada"]'
    """
    return [name for name in names if not _known("passwd", name)]


def facts():
    """What this host says of the directory's users, for the gate.

    Returns a dict: ``missing`` list of str, see ``missing``; ``probe`` bool, whether the name that
    the plan looks up is known; None without one.

    CLI Example:

    .. code-block:: bash

        salt 'login01' sssd.facts
    """
    probe = __salt__["saltern.view"]("directory:probe")
    known = _known(probe["database"], probe["name"]) if probe else None
    return {"missing": missing(), "probe": known}


def _known(database, name):
    try:
        if database == "group":
            grp.getgrnam(name)
        else:
            pwd.getpwnam(name)
    except KeyError:
        return False
    return True


def _read(path):
    if not os.path.exists(path):
        return ""
    with salt.utils.files.fopen(path, encoding="utf-8") as file:
        return file.read()
