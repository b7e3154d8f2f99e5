"""User-data: what makes a bare host's installer or first boot bring up a minion that belongs to
us."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence

FORMATS = ("cloud-init", "kickstart", "preseed", "script")

_KEY = "/etc/salt/pki/minion/minion.pem"
_PUBLIC = "/etc/salt/pki/minion/minion.pub"
_CONF = "/etc/salt/minion.d/saltern.conf"
_TOKEN = "/etc/salt/minion.d/saltern_join_token.conf"  # noqa: S105 - a path
_PACKAGE = {
    "Debian": "apt-get install -y salt-minion",
    "Ubuntu": "apt-get install -y salt-minion",
    "RedHat": "dnf install -y salt-minion",
    "Rocky": "dnf install -y salt-minion",
}
# Before the files' own paths exist: keys and token are never readable for others, not for a moment.
_PREPARE = "umask 077; mkdir -p /etc/salt/minion.d /etc/salt/pki/minion"
_START = ("systemctl enable salt-minion", "systemctl restart salt-minion")

Files = Mapping[str, str]


def files(
    master: str,
    master_finger: str,
    *,
    minion_id: str | None = None,
    key: tuple[str, str] | None = None,
    token: tuple[str, str] | None = None,
) -> dict[str, str]:
    """The files of a minion: {path: text}.

    master: name or address; master_finger: its public key's fingerprint
    minion_id: None takes the host's own name, for images
    key: (private, public), PEM, of a preseeded minion
    token: (grain, value) of the join token, for images
    """
    conf: dict[str, object] = {"master": master, "master_finger": master_finger}
    # The plan's names are short; Salt would take a name with a domain for another id.
    conf.update({"id": minion_id} if minion_id else {"minion_id_remove_domain": True})
    found = {_CONF: _yaml(conf)}
    if key:
        found[_KEY], found[_PUBLIC] = (text.rstrip("\n") + "\n" for text in key)
    if token:
        grain, value = token
        found[_TOKEN] = _yaml({"autosign_grains": [grain], "grains": {grain: value}})
    return found


def text(form: str, written: Files, os_name: str, install: Sequence[str] | None) -> str:
    """User-data in one of FORMATS.

    written: as ``files`` gives it
    os_name: the plan's os:name; install: its join:install
    The files come first, so that a package that starts the minion when installed finds them.
    """
    commands = [*(install if install is not None else [_PACKAGE[os_name]]), *_START]
    script = _script(written, commands)
    if form == "cloud-init":
        return _cloud_init(written, commands)
    if form == "kickstart":
        return f"%post\n{script}%end\n"
    if form == "preseed":
        packed = base64.b64encode(script.encode()).decode()
        return f"d-i preseed/late_command string in-target sh -c 'echo {packed} | base64 -d | sh'\n"
    return script


def _script(written: Files, commands: Sequence[str]) -> str:
    parts = ["#!/bin/sh", "set -eu", _PREPARE]
    for path, content in written.items():
        parts.append(f"cat > {path} <<'END_OF_FILE'\n{content}END_OF_FILE")
    return "\n".join([*parts, *commands, ""])


def _cloud_init(written: Files, commands: Sequence[str]) -> str:
    """JSON strings are YAML strings too, so no text can end one early."""
    lines = ["#cloud-config", "write_files:"]
    for path, content in written.items():
        lines += [
            f"  - path: {path}",
            "    permissions: '0600'",
            f"    content: {json.dumps(content)}",
        ]
    lines.append("runcmd:")
    lines += [f"  - {json.dumps(command)}" for command in commands]
    return "\n".join([*lines, ""])


def _yaml(data: Mapping[str, object]) -> str:
    return "".join(f"{key}: {json.dumps(value)}\n" for key, value in data.items())
