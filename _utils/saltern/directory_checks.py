"""What the plan's directory, its people and its groups' accounts must be beyond the schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from saltern.problem import Problem
from saltern.sacctmgr_model import ROOT
from saltern.sacctmgr_wanted import flat, lower

if TYPE_CHECKING:
    from saltern.plan import Host

Found = Iterator[Problem]
Data = Mapping[str, Any]


def check(data: Data, hosts: Mapping[str, Host], partitions: Data) -> Found:
    """Everything that is wrong with `directory`, `people` and `accounts:directory`."""
    servers = [host.name for host in hosts.values() if "directory" in host.roles]
    yield from _source(data, servers)
    yield from _bases(data["directory"])
    yield from _people(data)
    yield from _members(data["people"])
    yield from _rules(data, bool(servers or data["directory"]["uris"]))


def _source(data: Data, servers: list[str]) -> Found:
    given, people = data["directory"], data["people"]
    uris, tls = given["uris"], given["tls"]
    if uris and servers:
        found = f"{', '.join(uris)}, and the role directory on {', '.join(servers)}"
        yield Problem("directory:uris", found, "one of both")
    if len({uri.partition(":")[0] for uri in uris}) > 1:
        yield Problem("directory:uris", ", ".join(uris), "all ldap:// (StartTLS) or all ldaps://")
    if not servers and (people["users"] or people["groups"]):
        yield Problem(
            "people", "users or groups", "none without a host that has the role directory",
            "a site's own directory has its own users; local ones stand in foundation:users",
        )  # fmt: skip
    if servers and (tls["ca"] is None) != (tls["certificate"] is None):
        one, other = ("certificate", "ca") if tls["ca"] is None else ("ca", "certificate")
        yield Problem(f"directory:tls:{other}", "nothing", f"it beside {one}, or neither of both")
    if servers and tls["certificate"] and "directory_key" not in data["secrets"]:
        yield Problem("secrets:directory_key", "nothing", "the key of directory:tls:certificate")
    if servers and given["bind_dn"]:
        yield Problem(
            "directory:bind_dn", given["bind_dn"], "nothing: our own servers make their own"
        )
    if uris and given["bind_dn"] and "directory_client_password" not in data["secrets"]:
        yield Problem(
            "secrets:directory_client_password", "nothing", "the password of directory:bind_dn"
        )


def _bases(given: Data) -> Found:
    for key in ("user_base", "group_base"):
        if given[key] and given["base"] and not given[key].endswith(f",{given['base']}"):
            yield Problem(f"directory:{key}", given[key], f"a place under {given['base']}")


def _people(data: Data) -> Found:
    """Each name and number once, wherever users stand."""
    names: dict[str, str] = {}
    numbers: dict[tuple[str, int], str] = {}
    for where, name, kind, number in _ids(data):
        other = numbers.setdefault((kind, number), where)
        if other != where:
            yield Problem(f"{where}:{kind}", f"{number}, as {other}", f"each {kind} once")
        if kind == "uid":
            other = names.setdefault(name, where)
            if other != where:
                yield Problem(where, f"{name}, as {other}", "each user once")
    for name, fields in data["people"]["users"].items():
        if fields["uid"] < _LEAST_ID:
            where = f"people:users:{name}:uid"
            yield Problem(where, str(fields["uid"]), f"{_LEAST_ID} or more for a person")


_LEAST_ID = 1000  # below stand the distributions' own (useradd(8), UID_MIN)


def _ids(data: Data) -> Iterator[tuple[str, str, str, int]]:
    for section in ("system_accounts", "users"):
        for name, fields in data["foundation"][section].items():
            where = f"foundation:{section}:{name}"
            yield where, name, "uid", fields["uid"]
            yield where, name, "gid", fields["gid"]
    for name, fields in data["people"]["users"].items():
        yield f"people:users:{name}", name, "uid", fields["uid"]
        if "gid" not in fields:  # a group of his own
            yield f"people:users:{name}", name, "gid", fields["uid"]
    for name, fields in data["people"]["groups"].items():
        yield f"people:groups:{name}", name, "gid", fields["gid"]


def _members(people: Data) -> Found:
    for name, fields in people["groups"].items():
        unknown = [user for user in fields["members"] if user not in people["users"]]
        if unknown:
            where, found = f"people:groups:{name}:members", ", ".join(unknown)
            yield Problem(where, found, "keys of people:users")
    for kind in ("users", "groups"):
        for name in people["absent"][kind]:
            if name in people[kind]:
                found = f"{name}, which people:{kind} has too"
                yield Problem(f"people:absent:{kind}", found, "one of both")


def _rules(data: Data, has_directory: bool) -> Found:
    rules = data["accounts"]["directory"]["groups"]
    if rules and not has_directory:
        yield Problem(
            "accounts:directory:groups", "groups", "none without a directory",
            "give a host the role directory, or the site's servers in directory:uris",
        )  # fmt: skip
    known = {name for name, *_ in flat(data["accounts"]["tree"])} | {ROOT}
    known |= {lower(rule["account"]) for rule in rules.values()}
    open_ended = any("*" in rule["account"] for rule in rules.values())
    section = data["accounts"]
    qos = {lower(name) for name in (*section["qos"], *section["untouchable"]["qos"], "normal")}
    for group, rule in rules.items():
        where = f"accounts:directory:groups:{group}"
        for key in ("account", "coordinators"):
            stars = rule.get(key, "").count("*")
            if stars > group.count("*"):
                yield Problem(f"{where}:{key}", rule[key], "a * only as often as the group has one")
        parent = lower(rule.get("parent", ROOT))
        if parent not in known and not open_ended:
            expected = "an account of accounts:tree or of another group here"
            yield Problem(f"{where}:parent", rule["parent"], expected)
        for name in [
            *(rule.get("qos") or ()),
            *([rule["default_qos"]] if rule.get("default_qos") else ()),
        ]:
            if lower(name) not in qos:
                yield Problem(
                    f"{where}:qos", name, f"a key of accounts:qos ({', '.join(sorted(qos))})"
                )
        if parent == lower(rule["account"]):
            yield Problem(f"{where}:parent", rule["parent"], "another account than its own")
