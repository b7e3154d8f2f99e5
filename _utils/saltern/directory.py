"""Where users and groups come from: what the plan's section `directory` means for a host."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saltern.plan import Host, Plan

NONE = "none"  # users are local
OWN = "own"  # hosts of the plan serve it
SITE = "site"  # others serve it

# How a directory keeps users and groups, in the words of sssd-ldap(5). `member` holds names of
# entries, `memberUid` user names.
LAYOUTS: Mapping[str, Mapping[str, str]] = {
    "own": {
        "schema": "rfc2307bis",
        "user_class": "posixAccount",
        "user_name": "uid",
        "group_class": "salternGroup",
        "group_name": "cn",
        "member": "member",
    },
    "rfc2307": {
        "schema": "rfc2307",
        "user_class": "posixAccount",
        "user_name": "uid",
        "group_class": "posixGroup",
        "group_name": "cn",
        "member": "memberUid",
    },
    "rfc2307bis": {
        "schema": "rfc2307bis",
        "user_class": "posixAccount",
        "user_name": "uid",
        "group_class": "posixGroup",
        "group_name": "cn",
        "member": "member",
    },
    "ipa": {
        "schema": "ipa",
        "user_class": "posixAccount",
        "user_name": "uid",
        "group_class": "posixGroup",
        "group_name": "cn",
        "member": "member",
    },
    "ad": {
        "schema": "ad",
        "user_class": "user",
        "user_name": "sAMAccountName",
        "group_class": "group",
        "group_name": "sAMAccountName",
        "member": "member",
    },
}

CA_FILE = "/etc/saltern/directory-ca.pem"
PASSWORD_FILE = "/etc/saltern/directory.secret"  # noqa: S105 - where it stands


def kind(plan: Plan) -> str:
    """none, own or site."""
    if plan.data["directory"]["uris"]:
        return SITE
    return OWN if plan.with_role("directory") else NONE


def section(plan: Plan, host: Host) -> dict[str, Any]:
    """What a host knows of the directory; servers know how to serve it, the first one whom."""
    source = kind(plan)
    if source == NONE:
        return {"kind": NONE}
    given = plan.data["directory"]
    base = given["base"] or base_of(plan.data["cluster"]["domain"])
    servers = [each.name for each in plan.with_role("directory")] if source == OWN else []
    domain = plan.data["cluster"]["domain"]
    uris = [f"ldap://{name}.{domain}" for name in servers] or given["uris"]
    found = {
        "kind": source,
        "base": base,
        "user_base": given["user_base"] or f"ou=people,{base}",
        "group_base": given["group_base"] or f"ou=groups,{base}",
        "bind_dn": service(base, "client") if source == OWN else given["bind_dn"],
        "uris": uris,
        # A clear connection is never used: ldap:// is with StartTLS.
        "start_tls": all(uri.startswith("ldap:") for uri in uris),
        "layout": LAYOUTS["own" if source == OWN else given["layout"]],
        **{key: given[key] for key in ("login_groups", "shell", "homes", "sssd")},
        "probe": _probe(plan, source),
        "servers": servers,
    }
    if host.name in servers:
        found["number"] = servers.index(host.name) + 1
        found["writes"] = host.name == servers[0]
        found["password_policy"] = given["password_policy"]
        found["backups"] = given["backups"]
    if found.get("writes"):
        found["people"] = json.dumps(plan.data["people"], ensure_ascii=False)
    return found


def base_of(domain: str) -> str:
    """The base that a DNS domain has by custom (RFC 2247)."""
    return ",".join(f"dc={part}" for part in domain.split("."))


def service(base: str, name: str) -> str:
    """The entry of a program that binds."""
    return f"cn={name},ou=services,{base}"


def _probe(plan: Plan, source: str) -> dict[str, str] | None:
    """Whose name the gate looks up: a group that may log in, or the first user of the plan."""
    groups = plan.data["directory"]["login_groups"]
    if groups:
        return {"database": "group", "name": groups[0]}
    users = plan.data["people"]["users"] if source == OWN else {}
    return {"database": "passwd", "name": next(iter(users))} if users else None
