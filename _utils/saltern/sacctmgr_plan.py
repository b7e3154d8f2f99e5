"""The whole difference: every call in its order, what stays, what the plan does not know."""

from __future__ import annotations

from collections.abc import Iterator

from saltern import sacctmgr_diff, sacctmgr_diff_users, sacctmgr_removals
from saltern.sacctmgr_model import Policy, Tree
from saltern.sacctmgr_qos_lists import Lists
from saltern.sacctmgr_removals import Jobs
from saltern.sacctmgr_steps import REMOVALS, Plan, Step


def plan(
    cluster: str,
    wanted: Tree,
    present: Tree,
    policy: Policy,
    jobs: Jobs | None = None,
    shared: bool = False,
) -> Plan:
    """What makes the wanted tree of the present one.

    jobs: the active jobs by (account, user)
    shared: other clusters use the same database
    """
    going = sacctmgr_removals.doomed(wanted, present, policy, jobs or {})
    strange = sacctmgr_removals.unknown(wanted, present, policy)
    strange.associations -= going.associations
    strange.users -= going.users
    strange.accounts -= going.accounts
    strange.qos -= going.qos
    strange.resources -= going.resources
    steps = [
        *_changes(cluster, wanted, present, policy),
        *sacctmgr_removals.steps(cluster, going, wanted, present, shared),
    ]
    return Plan(
        tuple(sorted(steps, key=lambda step: step.stage)),  # stable: parents stay before children
        tuple(going.kept),
        tuple(sacctmgr_removals.listing(strange)),
        tuple(_refused(wanted, policy)),
    )


def _changes(cluster: str, wanted: Tree, present: Tree, policy: Policy) -> Iterator[Step]:
    lists = Lists(wanted, present)
    yield from sacctmgr_diff.qos(wanted, present, policy)
    yield from sacctmgr_diff.resources(cluster, wanted, present)
    yield from sacctmgr_diff.accounts(cluster, wanted, present, policy, lists)
    yield from sacctmgr_diff_users.users(cluster, wanted, present, policy, lists)
    yield from sacctmgr_diff.coordinators(wanted, present, policy)


def _refused(wanted: Tree, policy: Policy) -> Iterator[str]:
    """What is wanted of an untouchable, which is not done."""
    yield from (f"account {name}" for name in wanted.accounts if not policy.touches_account(name))
    yield from (f"user {name}" for name in wanted.users if not policy.touches_user(name))
    yield from (f"QOS {name}" for name in wanted.qos if not policy.touches_qos(name))


def removes(found: Plan) -> bool:
    """Whether anything would go, so that jobs have to be looked for."""
    return any(step.stage in REMOVALS for step in found.steps)
