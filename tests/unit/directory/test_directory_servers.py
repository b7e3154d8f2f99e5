"""A directory server's configuration and entries, on either family's layout."""

import json

import pytest
from saltern import directory_conf, directory_entries, directory_people, platform, sssd_conf, view
from saltern import plan as plans
from support import SCHEMA, example

BASE = "dc=lab,dc=saltern"
PEOPLE = {
    "users": {
        "ada": {"uid": 21001, "name": "Ada Quill", "mail": "ada@x.org"},
        "ben": {"uid": 21002, "gid": 31001, "name": "Ben", "shell": "/bin/zsh"},
    },
    "groups": {"phys": {"gid": 31001, "members": ["ada"]}},
    "absent": {"users": ["eve"]},
}


def site(**changes):
    plan = example(people=PEOPLE, **changes)
    plan["hosts"]["dir[01-02]"] = {"roles": ["directory"], "address": "10.213.0.[15-16]"}
    return plan


def of(host, plan=None):
    return view.of(plans.resolve(SCHEMA, plan or site()), host)


# The databases of a fresh server, as slapd shows them.
DEBIAN = {
    "olcDatabase={1}mdb,cn=config": {
        "objectClass": ["olcDatabaseConfig", "olcMdbConfig"],
        "olcDatabase": ["{1}mdb"],
        "olcSuffix": [BASE],
        "olcDbIndex": ["objectClass eq", "cn,uid eq", "uidNumber,gidNumber eq"],
    }
}
EL = {
    "olcDatabase={1}monitor,cn=config": {"objectClass": ["olcDatabaseConfig"]},
    "olcDatabase={2}mdb,cn=config": {
        "objectClass": ["olcDatabaseConfig", "olcMdbConfig"],
        "olcDatabase": ["{2}mdb"],
        "olcSuffix": ["dc=my-domain,dc=com"],
        "olcRootDN": ["cn=Manager,dc=my-domain,dc=com"],
    },
}


def there(databases):
    return {directory_entries.dn_key(dn): attributes for dn, attributes in databases.items()}


@pytest.mark.parametrize(
    ("databases", "found"),
    [
        pytest.param(DEBIAN, "olcDatabase={1}mdb,cn=config", id="Debian"),
        pytest.param(EL, "olcDatabase={2}mdb,cn=config", id="EL"),
    ],
)
def test_the_database_is_found_wherever_it_is(databases, found):
    assert directory_conf.database_dn(BASE, there(databases)) == (found, None)


def test_two_foreign_databases_are_refused():
    other = {**EL["olcDatabase={2}mdb,cn=config"], "olcDatabase": ["{3}mdb"], "olcSuffix": ["o=x"]}
    # dn_key drops slapd's numbers, so the second one needs a name of its own here.
    found = {**there(EL), "olcdatabase=mdb2,cn=config": other}
    dn, problem = directory_conf.database_dn(BASE, found)
    assert dn is None and "dc=my-domain,dc=com, o=x" in str(problem)


def settings(databases, host="dir01", system=("Debian", "13")):
    row = platform.of(*system)["openldap"]
    known = there(databases)
    dn, _ = directory_conf.database_dn(BASE, known)
    return {entry.dn: entry for entry in directory_conf.settings(of(host), row, dn, known, {})}


def test_an_empty_database_of_the_package_becomes_the_plans():
    entry = settings(EL, system=("Rocky", "9"))["olcDatabase={2}mdb,cn=config"]
    assert entry.exact["olcSuffix"] == (BASE,)
    assert entry.exact["olcRootPW"] == ()


def test_an_index_of_the_distribution_is_not_made_twice():
    entry = settings(DEBIAN)["olcDatabase={1}mdb,cn=config"]
    assert entry.least["olcDbIndex"] == (
        "member eq", "memberOf eq", "entryCSN eq", "entryUUID eq",
    )  # fmt: skip


def test_servers_copy_each_other_and_name_the_secret_only():
    for host, other in (("dir01", "dir02"), ("dir02", "dir01")):
        entry = settings(DEBIAN, host)["olcDatabase={1}mdb,cn=config"]
        (copy,) = entry.exact["olcSyncrepl"]
        assert f"provider=ldap://{other}.lab.saltern" in copy
        assert "credentials=<secret:directory_replication_password>" in copy
        assert entry.exact["olcMultiProvider"] == ("TRUE",)
    numbers = {
        settings(DEBIAN, host)["cn=config"].exact["olcServerID"] for host in ("dir01", "dir02")
    }
    assert numbers == {("1",), ("2",)}


def test_one_server_copies_nobody():
    plan = site()
    plan["hosts"]["dir01"] = plan["hosts"].pop("dir[01-02]") | {"address": "10.213.0.15"}
    row = platform.of("Debian", "13")["openldap"]
    known = there(DEBIAN)
    entries = directory_conf.settings(
        of("dir01", plan), row, "olcDatabase={1}mdb,cn=config", known, {}
    )
    database = next(entry for entry in entries if "olcSuffix" in entry.exact)
    assert database.exact["olcSyncrepl"] == () and database.exact["olcMultiProvider"] == ()


def test_entries_come_parents_first_and_what_is_not_given_is_the_users():
    made = list(
        directory_people.entries(of("dir01"), {"client": "{SSHA}a", "replicator": "{SSHA}b"})
    )
    names = [entry.dn for entry in made]
    assert names[0] == BASE
    assert names.index(f"ou=people,{BASE}") < names.index(f"uid=ada,ou=people,{BASE}")
    ben = next(entry for entry in made if entry.dn.startswith("uid=ben"))
    assert ben.exact == {
        "cn": ("Ben",), "sn": ("Ben",), "uidNumber": ("21002",), "gidNumber": ("31001",),
        "homeDirectory": ("/home/ben",), "loginShell": ("/bin/zsh",),
    }  # fmt: skip
    group = next(entry for entry in made if entry.dn.startswith("cn=phys"))
    assert group.exact["member"] == (f"uid=ada,ou=people,{BASE}",)
    assert directory_people.leaving(of("dir01")) == [f"uid=eve,ou=people,{BASE}"]


def test_people_go_to_the_first_server_only():
    assert "people" in of("dir01")["directory"]
    for host in ("dir02", "login01", "mgmt01", "node01"):
        assert "Quill" not in json.dumps(of(host))


@pytest.mark.parametrize(
    ("host", "access"),
    [
        pytest.param("login01", "access_provider = simple\nsimple_allow_groups = phys", id="login"),
        pytest.param("node01", "access_provider = deny", id="compute"),
        pytest.param("mgmt01", "access_provider = deny", id="controller"),
    ],
)
def test_only_login_hosts_let_users_in(host, access):
    mine = of(host, site(directory={"login_groups": ["phys"]}))
    text = sssd_conf.text({**mine, "certificates": {"ca": "made on the master"}}, "")
    assert access in text
    assert "ldap_uri = ldap://dir01.lab.saltern, ldap://dir02.lab.saltern" in text
    assert "ldap_default_authtok = <secret:directory_client_password>" in text
    assert "ldap_id_use_start_tls = true" in text and "ldap_tls_reqcert = demand" in text
    assert "\nservices = " not in text


def test_a_site_has_its_own_servers_and_the_last_word_on_sssd():
    plan = example(
        directory={
            "uris": ["ldaps://ldap.site.org"], "base": "dc=site,dc=org", "layout": "ipa",
            "sssd": {"ldap_network_timeout": 9},
        }
    )  # fmt: skip
    mine = {**of("login01", plan), "certificates": {"ca": None}}
    text = sssd_conf.text(mine, "nss, pam, ssh")
    assert "services = nss, pam, ssh" in text
    assert "ldap_schema = ipa" in text and "ldap_id_use_start_tls = false" in text
    assert "ldap_network_timeout = 9" in text
    assert "ldap_tls_cacert" not in text and "authtok" not in text


def test_without_a_directory_nobody_hears_of_one():
    assert of("login01", example())["directory"] == {"kind": "none"}
