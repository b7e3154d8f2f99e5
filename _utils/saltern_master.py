"""The raw plan, read with Salt's own pillar compiler, for the external pillar and the runner.

Only the master uses it.
"""

import hashlib
import json
import os
from pathlib import Path

import salt.pillar
import salt.utils.yaml
from saltern import plan
from saltern.problem import PlanError, Problem

# The plan's own pillar target (pillar/top.sls). A minion id cannot have a slash, so no host ever
# gets the raw plan.
PLAN_ID = "saltern/plan"


def settings(opts):
    """What the configuration says of the external pillar. Raises PlanError if it says nothing."""
    for entry in opts.get("ext_pillar", []):
        if "saltern" in entry:
            return entry["saltern"]
    raise PlanError(
        [
            Problem(
                "the master's configuration",
                "no external pillar `saltern`",
                "the settings of etc/master.d/saltern.conf",
                "link that file into /etc/salt/master.d and restart the master",
            )
        ]
    )


# The last plan that this process resolved: (hash of the raw plan and schema, plan). It stands here
# and not in the external pillar, which Salt loads anew for every request.
_last = (None, None)


def resolved(opts, schema_file):
    """The plan. Raises PlanError with everything that is wrong with it."""
    global _last  # noqa: PLW0603 - a cache of one, per master process
    raw = raw_plan(opts)
    schema = Path(schema_file).read_text(encoding="utf-8")
    # Keys stay in the plan's order: the first controller is the primary.
    key = hashlib.sha256(f"{schema}{json.dumps(raw, default=str)}".encode()).hexdigest()
    if _last[0] != key:
        _last = (key, plan.resolve(json.loads(schema), raw))
    return _last[1]


def raw_plan(opts):
    """The site's plan as its files give it, the same for every host.

    It is compiled apart from any minion's request: Salt merges what a minion sends as pillar
    override (``salt-call pillar.items pillar='{...}'``) into the pillar before external pillars see
    it, so a node could give itself a role. Neither override, grains nor environment of a minion
    reach this compilation.

    opts: dict, Salt's
    Raises PlanError for files that Salt cannot render, or no plan at all.
    """
    on_demand = opts.get("on_demand_ext_pillar", [])  # these a minion may add by itself
    others = [
        entry
        for entry in opts.get("ext_pillar", [])
        if "saltern" not in entry and not set(entry) & set(on_demand)
    ]
    own = {**opts, "ext_pillar": others, "pillar": {}, "grains": {}}
    pillar = salt.pillar.Pillar(own, {}, PLAN_ID, "base", pillarenv="base").compile_pillar()
    errors = pillar.get("_errors", [])
    if errors:
        # What follows is of use to Salt's developers only.
        errors = [str(error).partition("\nTraceback")[0] for error in errors]
        raise PlanError(
            [Problem("plan.sls", error, "files that Salt can render") for error in errors]
        )
    if pillar.get("saltern") is None:
        raise PlanError(
            [
                Problem(
                    "saltern",
                    "no plan",
                    "the key `saltern` in plan.sls of the first of pillar_roots",
                    "write /etc/saltern/plan/plan.sls (start from pillar/example/plan.sls)",
                )
            ]
        )
    return pillar["saltern"]


def tree(opts):
    """The folder of Saltern's own states; a site may have file roots of its own beside it.

    Returns Path, None if there is none.
    """
    for root in opts["file_roots"]["base"]:
        if (Path(root) / "p0_plan").is_dir():
            return Path(root)
    return None


def top(opts):
    """The one table of roles and components, salt/top.sls: {target: [SLS, ...]}."""
    root = tree(opts)
    if root is None:
        return {}
    return salt.utils.yaml.safe_load((root / "top.sls").read_text(encoding="utf-8"))["base"]


# The last version that this process found: (what the files looked like, version).
_version = (None, None)


def tree_version(opts):
    """A digest of what hosts get from the tree: states, modules, files. The same on every
    master."""
    global _version  # noqa: PLW0603 - a cache of one, per master process
    root = tree(opts)
    files = sorted(
        Path(folder) / name
        for folder, _, names in os.walk(root or "", followlinks=True)
        for name in names
        if not name.endswith(".pyc")
    )
    looks = tuple((str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in files)
    if _version[0] != looks:
        digest = hashlib.sha256()
        for path in files:
            digest.update(f"{path.relative_to(root)}\0{path.stat().st_size}\0".encode())
            digest.update(path.read_bytes())
        _version = (looks, digest.hexdigest()[:16])
    return _version[1]
