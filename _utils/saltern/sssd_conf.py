"""sssd.conf: who resolves, who may log in, and what holds while the directory is away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from saltern import directory

View = Mapping[str, Any]
Options = Mapping[str, Any]


def text(view: View, services: str) -> str:
    """The file, with the bind password named and not given.

    services: those that SSSD itself starts; empty where systemd's sockets do
    """
    domain = view["cluster"]["name"]
    own = ", ".join(["root", *view["foundation"]["system_accounts"]])
    start = {"services": services} if services else {}
    sections: list[tuple[str, Options]] = [
        ("sssd", {"domains": domain, **start}),
        ("nss", {"filter_users": own, "filter_groups": own}),
        # A cached password counts as long as the directory is away (sssd.conf(5): 0 is no bound).
        ("pam", {"offline_credentials_expiration": 0}),
        (f"domain/{domain}", {**_domain(view), **_access(view)}),
    ]
    sections[-1] = (sections[-1][0], {**sections[-1][1], **view["directory"]["sssd"]})
    return "\n".join(_section(name, options) for name, options in sections)


def _section(name: str, options: Options) -> str:
    lines = [f"{key} = {_value(value)}" for key, value in options.items()]
    return "\n".join([f"[{name}]", *lines]) + "\n"


def _value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _domain(view: View) -> Options:
    source = view["directory"]
    layout = source["layout"]
    return {
        **{f"{part}_provider": "ldap" for part in ("id", "auth", "chpass")},
        "ldap_uri": ", ".join(source["uris"]),
        "ldap_search_base": source["base"],
        "ldap_user_search_base": source["user_base"],
        "ldap_group_search_base": source["group_base"],
        "ldap_schema": layout["schema"],
        "ldap_user_object_class": layout["user_class"],
        "ldap_group_object_class": layout["group_class"],
        "ldap_user_ssh_public_key": "sshPublicKey",
        "ldap_id_use_start_tls": source["start_tls"],
        **({"ldap_tls_cacert": directory.CA_FILE} if view["certificates"]["ca"] else {}),
        "ldap_tls_reqcert": "demand",
        **(
            {
                "ldap_default_bind_dn": source["bind_dn"],
                "ldap_default_authtok": "<secret:directory_client_password>",
            }
            if source["bind_dn"]
            else {}
        ),
        # Seconds until a silent server is given up and the next one asked (sssd-ldap(5)).
        "ldap_network_timeout": 3,
        "ldap_opt_timeout": 6,
        "dns_resolver_timeout": 6,
        # Seconds until a directory that was away is asked again (sssd.conf(5)); 60 and more else.
        "offline_timeout": 5,
        "offline_timeout_max": 60,
        "offline_timeout_random_offset": 5,
        "cache_credentials": True,
        # A new key or shell counts within minutes; SSSD's own 5400 s would be an hour and a half.
        "entry_cache_timeout": 600,
        "auto_private_groups": "hybrid",
        "fallback_homedir": f"{source['homes']}/%u",
        "default_shell": source["shell"],
    }


def _access(view: View) -> Options:
    """Login hosts let users in; elsewhere they resolve, and their jobs run without asking PAM."""
    if "login" not in view["roles"]:
        return {"access_provider": "deny"}
    groups = view["directory"]["login_groups"]
    if not groups:
        return {"access_provider": "permit"}
    return {"access_provider": "simple", "simple_allow_groups": ", ".join(groups)}
