"""What a run that was cut leaves half done in the operating system, and how it is finished."""

import os

from salt.exceptions import CommandExecutionError
from saltern import limits

__virtualname__ = "system_repair"

_DPKG_UPDATES = "/var/lib/dpkg/updates"
_DPKG_S = 600
_JOURNAL = "dpkg's journal"
_REINSTALL = ["apt-get", "install", "--yes", "--reinstall", "--no-install-recommends"]
_REINSTALL += ["--option=Dpkg::Options::=--force-confold"]


def __virtual__():
    return __virtualname__


def unfinished_packages():
    """The packages that a power cut left half installed; every later installation would be refused.

    Returns a list of str: what dpkg says of them. Always empty on systems without dpkg, since rpm's
    transactions have no such state.

    CLI Example:

    .. code-block:: bash

        salt 'node01' system_repair.unfinished_packages
    """
    if __grains__["os_family"] != "Debian":
        return []
    audit = [line for line in _run(["dpkg", "--audit"]).splitlines() if line.startswith(" ")]
    pending = os.listdir(_DPKG_UPDATES) if os.path.isdir(_DPKG_UPDATES) else []
    return [" ".join(line.split()) for line in audit] or ([_JOURNAL] if pending else [])


def finish_packages():
    """Finish the packages that were left half installed; files of a person's hand stay.

    What was unpacked is configured; what was cut while it was unpacked is installed again.
    Raises CommandExecutionError with dpkg's own words.

    CLI Example:

    .. code-block:: bash

        salt 'node01' system_repair.finish_packages
    """
    _run(["dpkg", "--configure", "--pending", "--force-confdef", "--force-confold"], _DPKG_S)
    cut = [said.split()[0] for said in unfinished_packages() if said != _JOURNAL]
    if cut:
        _run([*_REINSTALL, *cut], _DPKG_S)


def stale_limits(wanted):
    """The default limits that systemd has not read from its files yet.

    wanted: dict of str: int or "unlimited", by the names of limits.conf(5)
    Returns a dict, name: {"old": str, "new": str}.

    CLI Example:

    .. code-block:: bash

        salt 'node01' system_repair.stale_limits '{nofile: 131072}'
    """
    names = [f"--property={limits.directive(name)}" for name in wanted]
    return limits.stale(_run(["systemctl", "show", *names]), wanted)


def reload_limits():
    """Make systemd read its defaults again; services that start later get them.

    CLI Example:

    .. code-block:: bash

        salt 'node01' system_repair.reload_limits
    """
    _run(["systemctl", "daemon-reload"])


def _run(command, timeout=60):
    result = __salt__["cmd.run_all"](
        command,
        python_shell=False,
        timeout=timeout,
        ignore_retcode=True,
        output_loglevel="quiet",
        env={"DEBIAN_FRONTEND": "noninteractive"},
    )
    if result["retcode"]:
        raise CommandExecutionError(f"{command[0]}: {result['stderr'] or result['stdout']}")
    return result["stdout"]
