"""What the plan's section `people` means as entries of Saltern's own directory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from saltern.directory import service
from saltern.directory_entries import Entry

View = Mapping[str, Any]

SERVICES = ("client", "replicator")


def entries(view: View, hashes: Mapping[str, str]) -> Iterator[Entry]:
    """Every entry that the directory shall have, those above first.

    hashes: the password hash of each of SERVICES
    """
    source = view["directory"]
    base, people = source["base"], json.loads(source["people"])
    yield _top(base, view["cluster"]["name"])
    folders = {f"ou={name},{base}" for name in ("services", "policies")}
    for dn in sorted({*folders, source["user_base"], source["group_base"]}):
        yield Entry(dn, first={"objectClass": ("organizationalUnit",), "ou": (_name(dn),)})
    for name in SERVICES:
        yield Entry(
            service(base, name),
            {"userPassword": (hashes[name],)},
            first={
                "objectClass": ("organizationalRole", "simpleSecurityObject"),
                "cn": (name,),
            },
        )
    yield _policy(base, source["password_policy"])
    for name, fields in people["users"].items():
        yield _user(source, name, fields)
    for name, fields in people["groups"].items():
        yield _group(source, name, fields)


def leaving(view: View) -> list[str]:
    """The entries that the plan names for removal."""
    source = view["directory"]
    absent = json.loads(source["people"])["absent"]
    return [
        *(_dn(source, "user", name) for name in absent["users"]),
        *(_dn(source, "group", name) for name in absent["groups"]),
    ]


def _top(base: str, organization: str) -> Entry:
    kind = base.partition("=")[0]
    classes = {
        "dc": ("dcObject", "organization"),
        "o": ("organization",),
        "ou": ("organizationalUnit",),
    }
    made: dict[str, tuple[str, ...]] = {"objectClass": classes[kind], kind: (_name(base),)}
    if kind == "dc":
        made["o"] = (organization,)
    return Entry(base, first=made)


def _name(dn: str) -> str:
    return dn.partition(",")[0].partition("=")[2]


def _dn(source: View, kind: str, name: str) -> str:
    if kind == "user":
        return f"uid={name},{source['user_base']}"
    return f"cn={name},{source['group_base']}"


def _policy(base: str, rules: Mapping[str, int]) -> Entry:
    """Attributes of slapo-ppolicy(5)."""
    return Entry(
        f"cn=default,ou=policies,{base}",
        {
            "pwdMinLength": (str(rules["min_length"]),),
            "pwdInHistory": (str(rules["history"]),),
            "pwdMaxFailure": (str(rules["failures"]),),
            "pwdLockoutDuration": (str(rules["lockout_s"]),),
            "pwdLockout": ("TRUE",),
            # 2 refuses what cannot be judged; a password that comes hashed is such a one.
            "pwdCheckQuality": ("2",),
            "pwdSafeModify": ("FALSE",),
        },
        first={
            "objectClass": ("organizationalRole", "pwdPolicy"),
            "cn": ("default",),
            "pwdAttribute": ("userPassword",),
        },
    )


def _user(source: View, name: str, fields: Mapping[str, Any]) -> Entry:
    exact: dict[str, tuple[str, ...]] = {
        "cn": (fields["name"],),
        "sn": (fields["name"].split()[-1],),
        "uidNumber": (str(fields["uid"]),),
        "gidNumber": (str(fields.get("gid", fields["uid"])),),
        "homeDirectory": (fields.get("home", f"{source['homes']}/{name}"),),
        "loginShell": (fields.get("shell", source["shell"]),),
    }
    # What the plan does not give belongs to the user, who may set it.
    if "mail" in fields:
        exact["mail"] = (fields["mail"],)
    if "ssh_keys" in fields:
        exact["sshPublicKey"] = tuple(fields["ssh_keys"])
    return Entry(
        _dn(source, "user", name),
        exact,
        least={"objectClass": ("inetOrgPerson", "posixAccount", "ldapPublicKey")},
        first={"uid": (name,)},
    )


def _group(source: View, name: str, fields: Mapping[str, Any]) -> Entry:
    exact = {
        "gidNumber": (str(fields["gid"]),),
        "member": tuple(_dn(source, "user", user) for user in fields["members"]),
    }
    if "description" in fields:
        exact["description"] = (fields["description"],)
    made = {"objectClass": ("salternGroup",), "cn": (name,)}
    return Entry(_dn(source, "group", name), exact, first=made)
