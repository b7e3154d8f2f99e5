"""The directory's groups and Slurm's accounts, asked of the controller that reconciles; master
side."""

from saltern.joins import JoinFailed
from saltern_lifecycle import Refused
from saltern_minions import Minions

_SYNC_S = 1800  # a first load of ten thousand users takes a minute; slurmdbd may be slow
_LOOK_S = 300


def sync(opts, plan, accept_fewer, test):
    """The tables of `salt-run saltern.sync_accounts`.

    opts: dict, Salt's
    plan: ``saltern.plan.Plan``
    accept_fewer: bool, a person says that so few people are right
    test: bool, only what would be called
    Raises Refused when the controller does not answer, or the directory is not believed.
    """
    if not plan.data["accounts"]["directory"]["groups"]:
        return {"accounts": "the plan's accounts:directory names no group; nothing to do"}
    said = _ask(opts, plan, "directory_groups.sync", _SYNC_S, accept_fewer=accept_fewer, test=test)
    calls = said.get("done", said.get("commands", []))
    parts = {
        "summary": f"{len(calls)} calls {'would be made' if test else 'made'}",
        "groups": said["groups"],
        "calls": calls,
        "kept": said["kept"],
        "unknown": said["unknown"],
        "refused": said["refused"],
        "names_that_Slurm_cannot_hold": said["strange"],
        "unknown_to_the_controller": said["unknown_here"],
    }
    failed = [f"{each['command']}: {each['said']}" for each in said.get("failed", [])]
    if failed or said.get("left"):
        raise Refused(
            **parts, failed=failed, not_reached=said.get("left", []),
            interrupted=said.get("interrupted", ""),
        )  # fmt: skip
    return parts


def overview(opts, plan):
    """The tables of `salt-run saltern.accounts`.

    opts: dict, Salt's; plan: ``saltern.plan.Plan``
    Raises Refused when the controller, slurmdbd or the directory does not answer.
    """
    said = _ask(opts, plan, "directory_groups.drift", _LOOK_S)
    people, calls, unknown = said["people"], said["calls"], said["unknown"]
    equal = not (people or calls or unknown)
    summary = "directory, plan and Slurm agree" if equal else f"{len(people)} findings"
    return {
        "summary": summary,
        "people": people,
        "calls_away_from_the_plan": calls,
        "unknown_to_the_plan": unknown,
    }


def _ask(opts, plan, function, within, **keywords):
    controllers = plan.with_role("controller")
    if not controllers:
        raise Refused(problem="The plan has no controller, so there are no accounts.")
    name = controllers[0].name
    try:
        with Minions(opts) as minions:
            said = minions.run(name, function, within=within, **keywords)
    except JoinFailed as error:
        raise Refused(problem=f"{name}: {error}") from None
    if not isinstance(said, dict):
        words = str(said).removeprefix("ERROR: ").strip()
        raise Refused(problem=words)
    return said
