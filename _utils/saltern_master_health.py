"""What the nodes of the cluster say of their health, asked of a controller; master side."""

import salt.client
from saltern import health_overview
from saltern.problem import PlanError, Problem

_ANSWER_S = 60


def overview(opts, plan, whole):
    """The tables of `salt-run saltern.health`.

    opts: dict, Salt's
    plan: ``saltern.plan.Plan``
    whole: bool, nodes that are well too
    Raises PlanError when no controller answers, with each one's words.
    """
    controllers = [host.name for host in plan.with_role("controller")]
    planned = [name for name, host in plan.hosts.items() if host.node_type]
    problems = []
    with salt.client.get_local_client(mopts=opts) as client:
        for controller in controllers:
            said = client.cmd(controller, "nhc.status", timeout=_ANSWER_S)
            if isinstance(said.get(controller), dict):
                return health_overview.tables(said[controller], planned, whole)
            words = str(said.get(controller) or "no answer from its minion").strip()
            problems.append(Problem(f"nhc.status on {controller}", words, "slurmctld's nodes"))
    raise PlanError(problems or [Problem("hosts", "no controller", "one that can be asked")])
