"""Who vouches for directory servers: the site's certificates, or an authority of our own.

Only the master uses it: the authority's key never leaves it.
"""

import datetime

from saltern import certificates


def vouch(store, plan, section):
    """The certificates that a host needs of the directory.

    store: secret_store.Store; plan: plan.Plan; section: dict, the host's section `directory`
    Returns a dict: ``ca`` str, PEM, or None for what the operating system trusts; ``server`` str,
    PEM, on the directory's own servers. Raises SecretError.
    """
    given = plan.data["directory"]["tls"]
    serves = "number" in section
    if given["ca"] or section["kind"] == "site":
        # The plan's check sees to it that our own servers have both or neither.
        return {"ca": given["ca"], **({"server": given["certificate"]} if serves else {})}
    now = datetime.datetime.now(datetime.timezone.utc)
    ca_key = store.get("directory_ca_key")
    name = f"Saltern of {plan.data['cluster']['name']}"
    ca = store.kept(
        "directory_ca.pem",
        lambda: certificates.authority(ca_key, name[:64], now),
        lambda found: certificates.is_of(found, ca_key),
    )
    if not serves:
        return {"ca": ca}
    key = store.get("directory_key")
    names = _names(section["servers"], plan.data["cluster"]["domain"])
    own = store.kept(
        "directory.pem",
        lambda: certificates.server(ca_key, ca, key, names, now),
        lambda found: certificates.fits(found, ca, key, names, now),
    )
    return {"ca": ca, "server": own}


def _names(servers, domain):
    """One certificate for all: by their whole names, and as the plan calls them."""
    return [f"{server}.{domain}" for server in servers] + list(servers)
