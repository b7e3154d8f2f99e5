"""Who vouches for Saltern's own directory servers: the site's certificates, or ours.

Only the master uses it: the authority's key never leaves it.
"""

import datetime

from saltern import certificates


def vouch(store, plan, section):
    """Put the certificates that a host needs into its section `directory`.

    store: secret_store.Store; plan: plan.Plan; section: dict, the host's, changed here
    Raises SecretError.
    """
    if section["ca"]:  # the plan has them: its check sees to it that both stand there
        return
    now = datetime.datetime.now(datetime.timezone.utc)
    ca_key = store.get("directory_ca_key")
    name = f"Saltern of {plan.data['cluster']['name']}"
    section["ca"] = ca = store.kept(
        "directory_ca.pem",
        lambda: certificates.authority(ca_key, name[:64], now),
        lambda found: certificates.is_of(found, ca_key),
    )
    if "certificate" in section:
        key = store.get("directory_key")
        names = _names(section["servers"], plan.data["cluster"]["domain"])
        section["certificate"] = store.kept(
            "directory.pem",
            lambda: certificates.server(ca_key, ca, key, names, now),
            lambda found: certificates.fits(found, ca, key, names, now),
        )


def _names(servers, domain):
    """One certificate for all: by their whole names, and as the plan calls them."""
    return [f"{server}.{domain}" for server in servers] + list(servers)
