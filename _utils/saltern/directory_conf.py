"""OpenLDAP's configuration (cn=config) as entries (slapd-config(5), slapo-*(5))."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from saltern import ldif
from saltern.directory import service
from saltern.directory_entries import Entry, Present, dn_key
from saltern.problem import Problem

View = Mapping[str, Any]
Platform = Mapping[str, Any]  # the row `openldap` of the platform table

CONFIG_DN = "olcDatabase={0}config,cn=config"
MODULES_DN = "cn=module{0},cn=config"
# slapd names local root so, on its socket.
ROOT = "gidNumber=0+uidNumber=0,cn=peercred,cn=external,cn=auth"
_PREPARED = ("core", "cosine", "nis", "inetorgperson")
_OVERLAYS = ("syncprov", "memberof", "ppolicy")
# Strength that a connection needs before it may carry a password: what AES-128 has, in bits.
_STRENGTH = "128"
_SALT_FORMAT = "$6$rounds=100000$%.16s"  # SHA-512 (crypt(5)); about 50 ms a password
_MAP_BYTES = str(4 * 2**30)  # room of the database; a sparse file (slapd-mdb(5), maxsize)
_INDEXED = ("objectClass", "uid", "uidNumber", "gidNumber", "cn", "member", "memberOf")
_OF_REPLICATION = ("entryCSN", "entryUUID")

# Groups with members by name, which may be empty; OpenLDAP's own need a member, and nis.schema's
# know no names. Numbers of the arc 2.25, which anyone may take from a UUID (ITU-T X.667);
# those of sshPublicKey are OpenSSH-LPK's own.
_ARC = "2.25.201833745502934617238840196275330184716"
_SCHEMA = Entry(
    "cn=saltern,cn=schema,cn=config",
    first={
        "objectClass": ("olcSchemaConfig",),
        "cn": ("saltern",),
        "olcAttributeTypes": (
            "( 1.3.6.1.4.1.24552.500.1.1.1.13 NAME 'sshPublicKey' DESC 'OpenSSH public key'"
            " EQUALITY octetStringMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.40 )",
        ),
        "olcObjectClasses": (
            "( 1.3.6.1.4.1.24552.500.1.1.2.0 NAME 'ldapPublicKey' SUP top AUXILIARY"
            " MUST uid MAY sshPublicKey )",
            f"( {_ARC} NAME 'salternGroup' SUP top STRUCTURAL MUST ( cn $ gidNumber )"
            " MAY ( member $ description ) )",
        ),
    },
)


def bootstrap(view: View, platform: Platform) -> str:
    """The configuration of a server that has none yet, for slapadd(8): just enough to be changed
    by `settings`."""
    base = view["directory"]["base"]
    own = f'{{0}}to * by dn.base="{ROOT}" manage by * none'
    records = [
        (
            "cn=config",
            {
                "objectClass": ["olcGlobal"],
                "cn": ["config"],
                "olcPidFile": [f"{platform['run']}/slapd.pid"],
                "olcArgsFile": [f"{platform['run']}/slapd.args"],
            },
        ),
        (
            MODULES_DN,
            {
                "objectClass": ["olcModuleList"],
                "cn": ["module{0}"],
                "olcModulePath": [platform["modules"]],
                "olcModuleLoad": ["back_mdb"],
            },
        ),
        ("cn=schema,cn=config", {"objectClass": ["olcSchemaConfig"], "cn": ["schema"]}),
    ]
    schemas = [f"include: file://{platform['schemas']}/{name}.ldif" for name in _PREPARED]
    databases = [
        ("olcDatabase={-1}frontend,cn=config", "olcFrontendConfig", {}),
        (CONFIG_DN, "", {"olcAccess": [own]}),
        (
            "olcDatabase={1}mdb,cn=config",
            "olcMdbConfig",
            {
                "olcSuffix": [base],
                "olcDbDirectory": [platform["data"]],
                "olcDbMaxSize": [_MAP_BYTES],
            },
        ),
    ]
    text = [_record(dn, attributes) for dn, attributes in records]
    text += schemas
    for dn, kind, attributes in databases:
        classes = ["olcDatabaseConfig", *([kind] if kind else [])]
        name = dn.partition(",")[0].partition("=")[2]
        text.append(_record(dn, {"objectClass": classes, "olcDatabase": [name], **attributes}))
    return "\n\n".join(text) + "\n"


def _record(dn: str, attributes: Mapping[str, list[str]]) -> str:
    pairs = [ldif.line(name, value) for name, values in attributes.items() for value in values]
    return "\n".join([ldif.line("dn", dn), *pairs])


def database_dn(base: str, there: Present) -> tuple[str | None, Problem | None]:
    """The database that serves the base, wherever a distribution put it; or why there is none.

    Its number differs: {1}mdb on Debian, {2}mdb on EL.
    """
    found = [
        (dn, attributes)
        for dn, attributes in there.items()
        if "olcMdbConfig" in attributes.get("objectClass", [])
    ]
    for _, attributes in found:
        if dn_key(base) in map(dn_key, attributes.get("olcSuffix", [])):
            return f"olcDatabase={attributes['olcDatabase'][0]},cn=config", None
    if len(found) == 1:  # a package's own, which `settings` gives the plan's base if it is empty
        return f"olcDatabase={found[0][1]['olcDatabase'][0]},cn=config", None
    suffixes = ", ".join(attributes["olcSuffix"][0] for _, attributes in found) or "no database"
    return None, Problem("slapd", suffixes, f"one database, or one for {base}")


def settings(
    view: View, platform: Platform, database: str, there: Present, schemas: Mapping[str, str]
) -> Iterator[Entry]:
    """Everything that a server's configuration shall have, in the order that slapd needs.

    database: its entry, see ``database_dn``
    schemas: the text of each schema of the distribution, by name
    """
    source = view["directory"]
    yield Entry(
        MODULES_DN,
        least={"olcModuleLoad": _OVERLAYS},
        first={
            "objectClass": ("olcModuleList",),
            "cn": ("module{0}",),
            "olcModulePath": (platform["modules"],),
        },
    )
    for text in schemas.values():
        ((dn, attributes),) = ldif.parse(text)
        yield Entry(dn, first={key: tuple(values) for key, values in attributes.items()})
    yield _SCHEMA
    yield Entry(
        "cn=config",
        {
            "olcTLSCACertificateFile": (f"{platform['tls']}/ca.pem",),
            "olcTLSCertificateFile": (f"{platform['tls']}/server.pem",),
            "olcTLSCertificateKeyFile": (f"{platform['tls']}/server.key",),
            "olcTLSProtocolMin": ("3.3",),  # TLS 1.2
            "olcServerID": (str(source["number"]),),
            "olcLocalSSF": (_STRENGTH,),
            "olcSecurity": (f"simple_bind={_STRENGTH}",),
            "olcPasswordCryptSaltFormat": (_SALT_FORMAT,),
        },
    )
    # What people choose is hashed by crypt(3), as in /etc/shadow; slapd's own way is SHA-1.
    yield Entry("olcDatabase={-1}frontend,cn=config", {"olcPasswordHash": ("{CRYPT}",)})
    yield from _database(view, platform, database, there)


def wanted_schemas(there: Present) -> list[str]:
    """The distribution's schemas that this server lacks."""
    known = {dn_key(dn) for dn in there}
    return [name for name in _PREPARED if f"cn={name},cn=schema,cn=config" not in known]


def _database(view: View, platform: Platform, dn: str, there: Present) -> Iterator[Entry]:
    source = view["directory"]
    base = source["base"]
    several = len(source["servers"]) > 1
    unlimited = "size=unlimited time=unlimited"
    # The overlay that notes changes comes before others copy them.
    yield _overlay(dn, "syncprov", "olcSyncProvConfig", {"olcSpSessionlog": ("1000",)})
    yield Entry(
        dn,
        {
            "olcSuffix": (base,),
            "olcRootDN": (f"cn=admin,{base}",),
            "olcRootPW": (),  # root on the socket needs none, and nobody else is root
            "olcDbMaxSize": (_MAP_BYTES,),
            "olcAccess": tuple(_access(base)),
            # Others see 500 entries at most, which is slapd's own bound.
            "olcLimits": tuple(
                f'dn.exact="{who}" {unlimited}'
                for who in (ROOT, service(base, "client"), service(base, "replicator"))
            ),
            "olcSyncrepl": tuple(_copies(view, platform)),
            "olcMultiProvider": ("TRUE",) if several else (),
        },
        least={"olcDbIndex": tuple(f"{name} eq" for name in _unindexed(dn, there))},
    )
    yield _overlay(
        dn,
        "memberof",
        "olcMemberOf",
        {
            "olcMemberOfGroupOC": ("salternGroup",),
            "olcMemberOfMemberAD": ("member",),
            "olcMemberOfMemberOfAD": ("memberOf",),
            "olcMemberOfRefInt": ("TRUE",),
        },
    )
    policy = {
        "olcPPolicyDefault": (f"cn=default,ou=policies,{base}",),
        "olcPPolicyHashCleartext": ("TRUE",),
    }
    yield _overlay(dn, "ppolicy", "olcPPolicyConfig", policy)


def _overlay(dn: str, name: str, kind: str, exact: Mapping[str, tuple[str, ...]]) -> Entry:
    made = {"objectClass": ("olcOverlayConfig", kind), "olcOverlay": (name,)}
    return Entry(f"olcOverlay={name},{dn}", exact, first=made)


def _access(base: str) -> list[str]:
    """Who may see what (slapd.access(5)), in slapd's own spelling. Nobody reads a hash but the
    other servers."""
    client = f'by dn.base="{service(base, "client")}" read'
    return [
        f'to * by dn.base="{ROOT}" manage'
        f' by dn.base="{service(base, "replicator")}" read by * break',
        "to attrs=userPassword by self =xw by anonymous auth by * none",
        "to attrs=pwdHistory by * none",
        f"to attrs=sshPublicKey by self write {client} by * none",
        f"to * {client} by self read by * none",
    ]


def _copies(view: View, platform: Platform) -> Iterator[str]:
    """How this server follows each other one (slapd-config(5), olcSyncrepl)."""
    source = view["directory"]
    for number, uri in enumerate(source["uris"], 1):
        if number == source["number"]:
            continue
        yield (
            f"rid={number:03d} provider={uri} bindmethod=simple"
            f' binddn="{service(source["base"], "replicator")}"'
            " credentials=<secret:directory_replication_password>"
            f' searchbase="{source["base"]}" type=refreshAndPersist retry="5 12 30 +"'
            " timeout=3 network-timeout=3 keepalive=60:6:10 starttls=critical"
            f' tls_cacert="{platform["tls"]}/ca.pem" tls_reqcert=demand'
        )


def _unindexed(dn: str, there: Present) -> list[str]:
    """What no index covers yet: a distribution may have one for several attributes."""
    lists = there.get(dn_key(dn), {}).get("olcDbIndex", [])
    known = {name.lower() for entry in lists for name in entry.split()[0].split(",")}
    return [name for name in (*_INDEXED, *_OF_REPLICATION) if name.lower() not in known]
