"""LBNL NHC from its pinned archive, for sites that have it: shell scripts, nothing is compiled."""

import glob
import json
import os
import tarfile
import tempfile

import salt.utils.files
import salt.utils.hashutils
from salt.exceptions import CommandExecutionError
from saltern import nhc_conf

__virtualname__ = "nhc_lbnl"

_SOURCES = "/var/lib/saltern/nhc"
_STAMP = f"{_SOURCES}/installed.json"
_PROGRAM = "/usr/sbin/nhc"
_INSTALL_S = 300
# Where a distribution's package has them too; the scripts go beside nhc.conf.
_FLAGS = ["--prefix=/usr", "--sysconfdir=/etc", "--libexecdir=/usr/libexec"]


def __virtual__():
    return __virtualname__


def pending():
    """What must be done so that this node has the plan's LBNL NHC.

    Returns str, in words; empty when it is there.

    CLI Example:

    .. code-block:: bash

        salt 'node01' nhc_lbnl.pending
    """
    source = _source()
    try:
        with salt.utils.files.fopen(_STAMP, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        found = {}
    if found.get("sha256") == source["sha256"] and os.path.exists(_PROGRAM):
        return ""
    return f"{found.get('version', 'none')} -> {source['version']}"


def install():
    """Fetch, check and install LBNL NHC.

    Raises CommandExecutionError with what failed; a file that is not the plan's is not unpacked.

    CLI Example:

    .. code-block:: bash

        salt 'node01' nhc_lbnl.install
    """
    source = _source()
    os.makedirs(_SOURCES, mode=0o755, exist_ok=True)
    archive = _fetched(source)
    with tempfile.TemporaryDirectory(dir=_SOURCES) as folder:
        try:
            with tarfile.open(archive) as tar:
                tar.extractall(folder, filter="data")
        except (tarfile.TarError, OSError) as error:
            raise CommandExecutionError(f"{archive}: cannot be unpacked: {error}") from None
        places = glob.glob(os.path.join(folder, source["subdirectory"], "configure"))
        places += glob.glob(os.path.join(folder, "*", source["subdirectory"], "configure"))
        if not places:
            raise CommandExecutionError(f"{archive}: found no configure; expected LBNL NHC's.")
        place = os.path.dirname(places[0])
        for command in (["./configure", *_FLAGS], ["make", "install"]):
            _run(command, place)
    if not os.path.exists(_PROGRAM):
        raise CommandExecutionError(f"{archive}: make install left no {_PROGRAM}.")
    with salt.utils.files.fopen(_STAMP, "w", encoding="utf-8") as file:
        json.dump({"version": source["version"], "sha256": source["sha256"]}, file)


def _source():
    source = __salt__["saltern.view"]("health:source")
    if source is None:
        raise CommandExecutionError("health:source: found nothing; expected LBNL NHC's archive.")
    return source


def _fetched(source):
    """The archive's path, its sha256 being the plan's."""
    path = f"{_SOURCES}/{source['file']}"
    if not os.path.exists(path):
        url = nhc_conf.url(__salt__["saltern.view"]("mirror:sources"), source)
        if not url:
            raise CommandExecutionError(
                f"health:source: found no mirror and no url; expected one, or the file at {path}."
            )
        if not __salt__["cp.get_url"](url, path):
            raise CommandExecutionError(f"health:source: found no file at {url}.")
    found = salt.utils.hashutils.get_hash(path, "sha256")
    if found != source["sha256"]:
        os.replace(path, f"{path}.refused")
        raise CommandExecutionError(
            f"health:source: found sha256 {found}; expected {source['sha256']}. It lies at "
            f"{path}.refused for inspection; correct the mirror, or the plan."
        )
    return path


def _run(command, folder):
    result = __salt__["cmd.run_all"](
        command,
        cwd=folder,
        python_shell=False,
        timeout=_INSTALL_S,
        ignore_retcode=True,
        output_loglevel="quiet",
    )
    if result["retcode"]:
        said = (result["stderr"] or result["stdout"]).strip().splitlines()[-3:]
        raise CommandExecutionError(f"LBNL NHC, {' '.join(command)}: {'; '.join(said)}")
