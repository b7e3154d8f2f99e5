"""OpenLDAP on this host: its configuration and entries, as root on its socket. No password in an
argument."""

import os
import shutil
import time

import salt.utils.files
from salt.exceptions import CommandExecutionError
from saltern import directory_conf, directory_entries, directory_people
from saltern.directory import CA_FILE, PASSWORD_FILE, service
from saltern.directory_entries import dn_key

__virtualname__ = "directory"

_TIMEOUT_S = 60
_LONG_S = 900  # ten thousand entries at once
_CONFIGURATION, _ENTRIES = "configuration", "entries"
_HASHES = {
    "client": "directory_client_password",
    "replicator": "directory_replication_password",
}
# ldapsearch's status for a base that is not there (ldap.h, LDAP_NO_SUCH_OBJECT).
_NO_SUCH_OBJECT = 32
_OTHER = "(80)"  # ldapsearch's words for LDAP_OTHER end in its number
_REOPEN_S = 20
_PAUSE_S = 0.5


def __virtual__():
    return __virtualname__


def prepared():
    """Whether slapd has a configuration with a database.

    Returns bool. Raises CommandExecutionError for one whose database is of a kind that Saltern
    does not know.

    CLI Example:

    .. code-block:: bash

        salt 'dir01' directory.prepared
    """
    folder = os.path.join(_openldap()["conf"], "cn=config")
    found = os.listdir(folder) if os.path.isdir(folder) else []
    kinds = {name.partition("}")[2] for name in found if name.startswith("olcDatabase=")}
    others = {name.removesuffix(".ldif") for name in kinds if name.endswith(".ldif")}
    if "mdb" in others:
        return True
    strange = others - {"frontend", "config", "monitor"}
    if strange:
        raise CommandExecutionError(
            f"{folder}: found the database {', '.join(sorted(strange))}; expected mdb or none -> "
            "move what it holds to a database of the kind mdb, or give the role directory to "
            "another host."
        )
    return False


def prepare():
    """Make slapd's first configuration; one that a cut run began is made anew.

    Raises CommandExecutionError with slapadd's words.

    CLI Example:

    .. code-block:: bash

        salt 'dir01' directory.prepare
    """
    if prepared():
        return
    platform = _openldap()
    shutil.rmtree(platform["conf"], ignore_errors=True)  # without a database, so without entries
    os.mkdir(platform["conf"], mode=0o750)
    shutil.chown(platform["conf"], platform["user"], platform["user"])
    text = directory_conf.bootstrap(__salt__["saltern.view"](), platform)
    command = ["runuser", "-u", platform["user"], "--", "slapadd", "-n", "0"]
    _run([*command, "-F", platform["conf"]], stdin=text)


def changes(part):
    """What differs between the plan and this server; nothing is changed.

    part: str, ``configuration`` (cn=config) or ``entries`` (what it serves)
    Returns a list of str without values. Raises CommandExecutionError when slapd does not answer.

    CLI Example:

    .. code-block:: bash

        salt 'dir01' directory.changes configuration
    """
    return [change.said for change in _changes(part)]


def apply(part):
    """Make this server what the plan says.

    part: str, as for ``changes``
    Returns a list of str, what was changed. Raises CommandExecutionError with OpenLDAP's words.

    CLI Example:

    .. code-block:: bash

        salt 'dir01' directory.apply entries
    """
    wanted = _changes(part)
    if wanted:
        text = "\n".join(change.record for change in wanted)
        command = ["ldapmodify", "-Q", "-Y", "EXTERNAL", "-H", "ldapi:///"]
        __salt__["saltern.secret_stdin"](command, text, _LONG_S)
    return [change.said for change in wanted]


def facts():
    """What this server says of itself and of the others, for the gate.

    Returns a dict: ``error`` str; ``changes`` list of str; ``marks`` dict of server: the marks of
    its last change by each server (contextCSN), or a str, why it did not answer.

    CLI Example:

    .. code-block:: bash

        salt 'dir01' directory.facts
    """
    source = __salt__["saltern.view"]("directory")
    try:
        found = changes(_CONFIGURATION) + (changes(_ENTRIES) if source["writes"] else [])
    except CommandExecutionError as error:
        return {"error": str(error), "changes": [], "marks": {}}
    pairs = zip(source["servers"], source["uris"])  # noqa: B905 - Python 3.9; made together
    return {"error": "", "changes": found, "marks": {name: _marks(uri) for name, uri in pairs}}


def _marks(uri):
    """Read as clients read: by name, with TLS, with the password of all clients."""
    base = __salt__["saltern.view"]("directory:base")
    command = ["ldapsearch", "-LLL", "-ZZ", "-o", "ldif-wrap=no", "-o", "nettimeout=5", "-H", uri]
    command += ["-x", "-D", service(base, "client"), "-y", PASSWORD_FILE]
    try:
        said = _run(
            [*command, "-b", base, "-s", "base", "contextCSN"], env={"LDAPTLS_CACERT": CA_FILE}
        )
    except CommandExecutionError as error:
        return str(error)
    entry = directory_entries.present(said).get(dn_key(base), {})
    return sorted(entry.get("contextCSN", []))


def _changes(part):
    view, platform = __salt__["saltern.view"](), _openldap()
    if part == _CONFIGURATION:
        there = directory_entries.present(__salt__["saltern.masked"](_search("cn=config")))
        database, problem = directory_conf.database_dn(view["directory"]["base"], there)
        if problem:
            raise CommandExecutionError(str(problem))
        schemas = {
            name: _read(os.path.join(platform["schemas"], f"{name}.ldif"))
            for name in directory_conf.wanted_schemas(there)
        }
        wanted = directory_conf.settings(view, platform, database, there, schemas)
        return directory_entries.changes(wanted, there)
    if not view["directory"].get("writes"):
        raise CommandExecutionError(
            f"The entries are written on {view['directory']['servers'][0]}, the plan's first "
            "directory host; the others copy them."
        )
    there = directory_entries.present(_search(view["directory"]["base"]))
    return [
        *directory_entries.changes(directory_people.entries(view, _hashes(view, there)), there),
        *directory_entries.removals(directory_people.leaving(view), there),
    ]


def _hashes(view, there):
    base = view["directory"]["base"]
    found = {}
    for name, secret in _HASHES.items():
        entry = there.get(dn_key(service(base, name)), {})
        present = (entry.get("userPassword") or [""])[0]
        found[name] = __salt__["saltern.secret_hash"](secret, present)
    return found


def _search(base):
    command = ["ldapsearch", "-Q", "-Y", "EXTERNAL", "-H", "ldapi:///", "-LLL"]
    deadline = time.monotonic() + _REOPEN_S
    while True:
        try:
            return _run([*command, "-o", "ldif-wrap=no", "-b", base], also=(_NO_SUCH_OBJECT,))
        except CommandExecutionError as error:
            # A changed database is opened anew; until then a search is an "internal error" (seen
            # with OpenLDAP 2.6.10).
            if _OTHER not in str(error) or time.monotonic() > deadline:
                raise
        time.sleep(_PAUSE_S)


def _openldap():
    return __salt__["saltern.platform"]()["openldap"]


def _read(path):
    with salt.utils.files.fopen(path, encoding="utf-8") as file:
        return file.read()


def _run(command, stdin=None, env=None, also=()):
    result = __salt__["cmd.run_all"](
        command,
        stdin=stdin,
        env=env,
        python_shell=False,
        timeout=_TIMEOUT_S,
        ignore_retcode=True,
        output_loglevel="quiet",
    )
    if result["retcode"] and result["retcode"] not in also:
        said = (result["stderr"] or result["stdout"]).strip()
        raise CommandExecutionError(f"{command[0]}: {' '.join(said.split())}")
    return result["stdout"]
