"""What a plan may not say of its directory, each with its path."""

import pytest
from saltern import plan as plans
from saltern.problem import PlanError
from support import SCHEMA, example

USERS = {"ada": {"uid": 21001, "name": "Ada"}, "ben": {"uid": 21002, "name": "Ben"}}
RULE = {"phys": {"account": "phys"}}
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nx\n"


def problems(plan):
    try:
        plans.resolve(SCHEMA, plan)
    except PlanError as error:
        return [str(problem) for problem in error.problems]
    return []


def site(**changes):
    plan = example(**changes)
    plan["hosts"]["dir01"] = {"roles": ["directory"], "address": "10.213.0.15"}
    return plan


def test_a_sound_directory_is_taken():
    plan = site(
        people={"users": USERS, "groups": {"phys": {"gid": 31000, "members": ["ada"]}}},
        accounts={"tree": {"science": {}}, "directory": {"groups": {
            "phys": {"account": "phys", "parent": "science"},
            "proj-*": {"account": "p-*", "coordinators": "leads-*", "leaving": "remove"},
        }}},
    )  # fmt: skip
    assert problems(plan) == []


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        pytest.param(
            site(directory={"uris": ["ldaps://ldap.site.org"]}),
            "directory:uris: found ldaps://ldap.site.org, and the role directory on dir01",
            id="two-directories",
        ),
        pytest.param(
            example(directory={"uris": ["ldap://a.org", "ldaps://b.org"]}),
            "directory:uris: found ldap://a.org, ldaps://b.org",
            id="uris-of-two-kinds",
        ),
        pytest.param(
            example(people={"users": USERS}), "people: found users or groups", id="people-nowhere"
        ),
        pytest.param(
            site(directory={"tls": {"ca": CERTIFICATE}}),
            "directory:tls:certificate: found nothing",
            id="half-a-site-certificate",
        ),
        pytest.param(
            site(directory={"tls": {"ca": CERTIFICATE, "certificate": CERTIFICATE}}),
            "secrets:directory_key: found nothing",
            id="a-certificate-without-key",
        ),
        pytest.param(
            example(directory={"uris": ["ldaps://a.org"], "bind_dn": "cn=x,dc=a"}),
            "secrets:directory_client_password: found nothing",
            id="a-bind-dn-without-password",
        ),
        pytest.param(
            site(people={"users": {**USERS, "eve": {"uid": 21001, "name": "Eve"}}}),
            "people:users:eve:uid: found 21001, as people:users:ada",
            id="a-uid-twice",
        ),
        pytest.param(
            site(people={"users": {"munge": {"uid": 21005, "name": "M"}}}),
            "people:users:munge: found munge, as foundation:system_accounts:munge",
            id="a-system-accounts-name",
        ),
        pytest.param(
            site(people={"users": USERS, "groups": {"g": {"gid": 21001}}}),
            "people:groups:g:gid: found 21001, as people:users:ada",
            id="a-group-with-a-users-own-gid",
        ),
        pytest.param(
            site(people={"users": {"low": {"uid": 500, "name": "Low"}}}),
            "people:users:low:uid: found 500",
            id="a-system-uid",
        ),
        pytest.param(
            site(people={"users": USERS, "groups": {"g": {"gid": 31000, "members": ["zoe"]}}}),
            "people:groups:g:members: found zoe",
            id="an-unknown-member",
        ),
        pytest.param(
            site(people={"users": USERS, "absent": {"users": ["ada"]}}),
            "people:absent:users: found ada",
            id="here-and-absent",
        ),
        pytest.param(
            example(accounts={"directory": {"groups": RULE}}),
            "accounts:directory:groups: found groups",
            id="groups-without-a-directory",
        ),
        pytest.param(
            site(accounts={"directory": {"groups": {"phys": {"account": "p-*"}}}}),
            "accounts:directory:groups:phys:account: found p-*",
            id="a-star-of-nothing",
        ),
        pytest.param(
            site(accounts={"directory": {"groups": {"phys": {"account": "p", "parent": "no"}}}}),
            "accounts:directory:groups:phys:parent: found no",
            id="an-unknown-parent",
        ),
        pytest.param(
            site(accounts={"directory": {"groups": {"phys": {"account": "p", "qos": ["gone"]}}}}),
            "accounts:directory:groups:phys:qos: found gone",
            id="an-unknown-qos",
        ),
        pytest.param(
            site(
                accounts={"users": {"ada": {"accounts": ["typo"]}}, "directory": {"groups": RULE}}
            ),
            "accounts:users:ada:accounts: found typo",
            id="an-unknown-account-beside-the-groups",
        ),
        pytest.param(
            site(directory={"base": "dc=a", "user_base": "ou=people,dc=b"}),
            "directory:user_base: found ou=people,dc=b",
            id="a-base-elsewhere",
        ),
    ],
)
def test_refusals(plan, said):
    assert any(line.startswith(said) for line in problems(plan)), problems(plan)
