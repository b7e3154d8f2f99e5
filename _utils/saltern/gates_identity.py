"""The gate of phase 7: what Slurm's accounting and its controller say, in; reasons out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from saltern import enforcement
from saltern.problem import Problem

Facts = Mapping[str, Any]
View = Mapping[str, Any]

_SHOWN = 5


def identity(facts: Facts, view: View) -> list[Problem]:
    """Why this host does not know who may do what; a host without that task has nothing to show.

    facts: ``accounts``, the answer of ``sacctmgr.plan``; ``enforced``, what slurmctld enforces;
        each with an ``error``; ``server`` and ``client``, what ``directory.facts`` and
        ``sssd.facts`` say; only what the host's roles ask for
    """
    found: list[Problem] = []
    if "server" in facts:
        found += _server(facts["server"], view)
    if "client" in facts:
        found += _client(facts["client"], view["directory"])
    if "accounts" in facts:
        found += _accounts(facts["accounts"])
    if "enforced" in facts:
        found += _enforced(facts["enforced"], view["accounts"]["enforce"])
    return found


def _server(answer: Facts, view: View) -> Iterator[Problem]:
    if answer["error"]:
        yield Problem("slapd", answer["error"], "an answer on its socket")
        return
    for change in answer["changes"]:
        yield Problem("slapd", f"something to {change}", "what the plan says")
    own = answer["marks"].get(view["host"]["name"])
    for name, marks in answer["marks"].items():
        where = f"the directory server {name}"
        if isinstance(marks, str):
            yield Problem(where, marks, "an answer to a client, with TLS and its password")
        elif isinstance(own, list) and marks != own:
            expected = "the same last changes as here"
            yield Problem(where, ", ".join(marks) or "none", expected, "look at slapd's log there")


def _client(answer: Facts, source: View) -> Iterator[Problem]:
    for what in answer["missing"]:
        yield Problem("PAM and NSS", f"no {what}", "it, as the distribution's tool sets it")
    if answer["probe"] is False:
        kind = {"passwd": "user", "group": "group"}[source["probe"]["database"]]
        yield Problem(
            f"{kind} {source['probe']['name']}",
            "nobody by that name",
            f"a {kind} of the directory ({', '.join(source['uris'])})",
            "look at `systemctl status sssd` and /var/log/sssd, and whether those servers answer",
        )


def _accounts(answer: Facts) -> Iterator[Problem]:
    if answer["error"]:
        yield Problem("accounting", answer["error"], "an answer of slurmdbd")
        return
    commands = answer["value"]["commands"]
    if commands:
        more = f" and {len(commands) - _SHOWN} more" if len(commands) > _SHOWN else ""
        yield Problem(
            "accounting",
            f"{len(commands)} calls away from the plan: {'; '.join(commands[:_SHOWN])}{more}",
            "associations that equal the plan",
            "run the state p7_identity.accounts here",
        )


def _enforced(answer: Facts, wanted: list[str]) -> Iterator[Problem]:
    if answer["error"]:
        yield Problem("AccountingStorageEnforce", answer["error"], "an answer of slurmctld")
        return
    planned, running = enforcement.whole(wanted), sorted(answer["value"])
    if planned != running:
        yield Problem(
            "AccountingStorageEnforce",
            ", ".join(running) or "none",
            f"{', '.join(planned) or 'none'}, by the plan",
            "run the states p4_scheduler.slurmctld and p7_identity.accounts on the controllers",
        )
