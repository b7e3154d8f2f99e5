"""Node health and drains: what the checks say here, who drained which node, and our own drains."""

import json
import os
import time

from salt.exceptions import CommandExecutionError
from saltern import drain_board, drain_orders, nhc_conf, slurm_answers, slurm_daemons
from saltern.drain_reasons import Cause, clean

__virtualname__ = "nhc"

_CHECKER = "/usr/lib/saltern/node_health"
_REPORT = "/usr/lib/saltern/health_report.py"
_SETTINGS = "/etc/saltern/health.json"
_SCONTROL = f"{slurm_daemons.TREE}/bin/scontrol"
_ANSWER_S = 30
_CHECKS_S = 120
_PAUSE_S = 1
_READ_BACKS = 3


def __virtual__():
    return __virtualname__


def run():
    """Run the health checks of this node, and drain nothing.

    Returns a dict: ``passed`` bool, ``checks`` list of dict (``check``, ``target``, ``passed``,
    ``finding``, ``seconds``; LBNL NHC names what fails only). Raises CommandExecutionError when
    they cannot run.

    CLI Example:

    .. code-block:: bash

        salt 'node01' nhc.run
    """
    command = [_CHECKER, "--json"]
    if __salt__["saltern.view"]("health:provider") == "lbnl":
        command = [__salt__["saltern.platform"]()["python"]["path"], "-I", _REPORT, "--check"]
    if not os.path.exists(_CHECKER):
        raise CommandExecutionError(
            f"{_CHECKER}: found nothing; expected the checker. Run the state p5_environment.health."
        )
    result = _all(command, _CHECKS_S)
    try:
        return json.loads(result["stdout"])
    except ValueError:
        said = result["stderr"] or result["stdout"] or "nothing"
        raise CommandExecutionError(f"{command[-2]} printed no result, but: {said[:500]}") from None


def status(nodes=None):
    """How nodes stand, and whose each drain is.

    nodes: list of str, names; a str for one; None for all of the cluster
    Returns a dict of node: dict: ``state`` str (``IDLE+DRAIN``), ``reason`` str, ``owner`` str
    (``saltern``, ``person``, ``slurm`` or empty), ``causes`` list of dict, ``since`` str, ``user``
    str. A name that Slurm does not know is left out. Raises CommandExecutionError when slurmctld
    does not answer.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' nhc.status
        salt 'mgmt01' nhc.status node01
    """
    return drain_orders.rows(list(_nodes(_listed(nodes) if nodes else None).values()))


def reason(node=None):
    """The reason of a node, without Slurm's own brackets.

    node: str, a name; None for this host
    Returns str, empty for none. Raises CommandExecutionError for a node that Slurm does not know.

    CLI Example:

    .. code-block:: bash

        salt 'node01' nhc.reason
    """
    name = node or __salt__["saltern.view"]("host:name")
    found = _nodes([name])
    if name not in found:
        raise CommandExecutionError(f"{name}: found no such node in Slurm's running configuration.")
    return found[name].reason


def drain(nodes, cause, finding, test=False):
    """Take nodes out of service for one cause more. No job ends, and no drain of a person, or of
    Slurm's own, is touched.

    nodes: list of str, names; a str for one
    cause: str, one word, for example ``join``; the same word resumes
    finding: str, for people
    test: bool, only say what would change
    Returns a dict of node: dict: ``changed`` bool, ``state`` str, ``reason`` str, ``left`` str
    (why the node was left alone, or empty). Raises CommandExecutionError when slurmctld does not
    answer, and for a name that Slurm would not give back.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' nhc.drain '["node01","node02"]' maintenance 'new memory, ticket 7'
    """
    if not drain_orders.NAME.match(cause) or not clean(finding):
        raise CommandExecutionError(
            f"cause {cause!r}, finding {finding!r}: expected one word and a text."
        )
    wanted = Cause(cause, finding, time.time())
    return _ordered(nodes, lambda node: drain_orders.drain(node, wanted), test)


def resume(nodes, cause, test=False):
    """Take one cause of ours back; a node with no other comes back. What others drained stays.

    nodes: list of str, names; a str for one
    cause: str, the word that drained, or ``*`` for every cause of ours
    test: bool, only say what would change
    Returns what ``nhc.drain`` returns. A node that is not drained is no change and no error.

    CLI Example:

    .. code-block:: bash

        salt 'mgmt01' nhc.resume '["node01","node02"]' maintenance
    """
    return _ordered(nodes, lambda node: drain_orders.resume(node, cause), test)


def files(name):
    """What the plan wants of this node's checks: nhc.conf, and what the drain logic goes by.

    name: str, path of nhc.conf
    Returns a dict of path: text.

    CLI Example:

    .. code-block:: bash

        salt 'node01' nhc.files /etc/nhc/nhc.conf
    """
    view = __salt__["saltern.view"]()
    settings = json.dumps(nhc_conf.settings(view, _SCONTROL), indent=1, sort_keys=True)
    return {name: nhc_conf.text(view), _SETTINGS: f"{settings}\n"}


def facts(timeout=0):
    """What the gate of phase 5 looks at: the checks' results, and whether Slurm calls them.

    timeout: float, seconds for a controller to take a new interval; 0 asks once
    Returns a dict, empty on a host that runs no jobs.

    CLI Example:

    .. code-block:: bash

        salt 'node01' nhc.facts
    """
    if "slurmd" not in __salt__["slurm_cluster.daemons"]():
        return {}
    wanted = __salt__["saltern.view"]("health:interval_s")
    deadline = time.monotonic() + timeout
    while (interval := _interval()) != wanted and time.monotonic() < deadline:
        time.sleep(_PAUSE_S)
    return {"checks": run(), "program": {"interval_s": interval}}


def _interval():
    """HealthCheckInterval of the running configuration, in seconds."""
    result = _all([_SCONTROL, "show", "config"])
    if result["retcode"]:
        said = (result["stderr"] or result["stdout"]).strip()[:300]
        raise CommandExecutionError(f"scontrol show config: found {said!r}; expected an answer.")
    shown = slurm_answers.config(result["stdout"]).get("HealthCheckInterval", "0")
    return int(shown.split()[0])


def _ordered(nodes, order_of, test):
    """Each node for itself: Slurm does half of a list and says one word for all."""
    names = _listed(nodes)
    found = _nodes(names)
    return {name: _one(name, found.get(name), order_of, test) for name in names}


def _one(name, node, order_of, test):
    """Slurm has no compare-and-set: what stands afterwards is read, and asked for again."""
    changed = False
    for _ in range(_READ_BACKS):
        if node is None:
            left = "Slurm's running configuration has no such node"
            return {"changed": changed, "state": "", "reason": "", "left": left}
        order = order_of(node)
        if test or not order.update:
            changed = changed or bool(order.update)
            break
        _update(name, order.update)
        changed = True
        node = _nodes([name]).get(name)
    else:
        raise CommandExecutionError(
            f"{name}: found state {node.state.text}, reason {node.reason!r} after "
            f"{_READ_BACKS} updates; expected {dict(order.update)}. Somebody else changes it too."
        )
    state, reason_now = node.state.text, node.reason
    return {"changed": changed, "state": state, "reason": reason_now, "left": order.left}


def _listed(nodes):
    return [nodes] if isinstance(nodes, str) else list(dict.fromkeys(nodes))


def _nodes(names):
    """{name: node} of those that Slurm knows; all for None."""
    if names == []:
        return {}
    asked = ["nodes"] if names is None else ["node", ",".join(names)]
    result = _all([_SCONTROL, "show", *asked, "--json"])
    try:
        found = drain_board.nodes(result["stdout"])
    except (slurm_answers.Unreadable, KeyError):
        said = (result["stderr"] or result["stdout"]).strip()[:300]
        raise CommandExecutionError(
            f"scontrol show {asked[0]}: found {said!r}; expected slurmctld's answer."
        ) from None
    return {node.name: node for node in found if node.name}


def _update(name, values):
    words = [f"{key}={value}" for key, value in values.items()]
    result = _all([_SCONTROL, "update", f"nodename={name}", *words])
    if result["retcode"]:
        said = result["stderr"] or result["stdout"]
        raise CommandExecutionError(f"{name}: scontrol update refused {words}: {said}")


def _all(command, timeout=_ANSWER_S):
    """Run a program; a time-out counts as a failure, with the words of one."""
    try:
        return __salt__["cmd.run_all"](
            command,
            python_shell=False,
            timeout=timeout,
            env=__salt__["slurm_cluster.client_env"](),
            ignore_retcode=True,
            output_loglevel="quiet",
        )
    except CommandExecutionError as error:
        return {"retcode": 127, "stdout": "", "stderr": str(error)}
