"""The raw plan, read with Salt's own pillar compiler, for the external pillar and the runner.

Only the master uses it.
"""

import hashlib
import json
import os
from pathlib import Path

import salt.pillar
import salt.utils.yaml
from saltern import nodeset, plan
from saltern.problem import PlanError, Problem

# The plan's own pillar target (pillar/top.sls). A minion id cannot have a slash, so no host ever
# gets the raw plan.
PLAN_ID = "saltern/plan"
ACCOUNTS_ID = "saltern/accounts"


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


# The last plans that this process resolved, by the hash of raw plan and schema: that of the hosts
# that get accounts.sls too, and that of all others. They stand here and not in the external
# pillar, which Salt loads anew for every request.
_KEPT = 2
_last = {}


def resolved(opts, schema_file, minion_id=None):
    """The plan. Raises PlanError with everything that is wrong with it.

    minion_id: for whom; only the hosts that reconcile accounts and write the directory, and None,
        which asks for everything, get what stands in accounts.sls. Ten thousand users cost seconds
        to render, and no other host's pillar shall pay for it.
    """
    raw = raw_plan(opts)
    if minion_id is None or minion_id in (_first(raw, "controller"), _first(raw, "directory")):
        raw = _with_accounts(raw, raw_accounts(opts))
    return _resolved(raw, schema_file)


def _resolved(raw, schema_file):
    schema = Path(schema_file).read_text(encoding="utf-8")
    # Keys stay in the plan's order: the first controller is the primary.
    key = hashlib.sha256(f"{schema}{json.dumps(raw, default=str)}".encode()).hexdigest()
    if key not in _last:
        found = plan.resolve(json.loads(schema), raw)
        while len(_last) >= _KEPT:
            del _last[next(iter(_last))]
        _last[key] = found
    return _last[key]


def _first(raw, role):
    """The first host with a role in a plan that nobody has checked yet; None if it cannot be
    told."""
    hosts = raw.get("hosts") if isinstance(raw, dict) else None
    for name, fields in hosts.items() if isinstance(hosts, dict) else ():
        given = fields.get("roles") if isinstance(fields, dict) else None
        if isinstance(given, list) and role in given:
            try:
                return nodeset.expand(str(name))[0]
            except nodeset.NodeSetError:
                return None  # the plan's check says it
    return None


# The sections that accounts.sls may have, and the parts of them that other hosts need too.
_APART = {"accounts": {"enforce", "priority"}, "people": set()}


def _with_accounts(raw, apart):
    """The plan with what stands in accounts.sls; each part stands in one of both files."""
    if not isinstance(raw, dict):
        return raw
    problems, whole = [], dict(raw)
    for section, needed in _APART.items():
        own, more = raw.get(section, {}), apart.get(section) or {}
        if not more or not isinstance(own, dict):
            continue
        for key in sorted(more.keys() & needed):
            expected = "it in plan.sls: every controller needs it"
            problems.append(Problem(f"{section}:{key}", "it in accounts.sls", expected))
        for key in sorted(own.keys() & more.keys()):
            found = "it in plan.sls and in accounts.sls"
            problems.append(Problem(f"{section}:{key}", found, "one of both files"))
        whole[section] = {**own, **more}
    for section in sorted(apart.keys() - _APART.keys()):
        expected = f"it in plan.sls; only {' and '.join(_APART)} stand there"
        problems.append(Problem(section, "it in accounts.sls", expected))
    if problems:
        raise PlanError(problems)
    return whole


def raw_accounts(opts):
    """The sections of accounts.sls, empty if the site has no such file."""
    return _compiled(opts, ACCOUNTS_ID, "accounts.sls").get("saltern") or {}


def raw_plan(opts):
    """The site's plan as its files give it, the same for every host.

    It is compiled apart from any minion's request: Salt merges what a minion sends as pillar
    override (``salt-call pillar.items pillar='{...}'``) into the pillar before external pillars see
    it, so a node could give itself a role. Neither override, grains nor environment of a minion
    reach this compilation.

    opts: dict, Salt's
    Raises PlanError for files that Salt cannot render, or no plan at all.
    """
    pillar = _compiled(opts, PLAN_ID, "plan.sls")
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


def _compiled(opts, target, file):
    """Pillar of one of the plan's own targets."""
    on_demand = opts.get("on_demand_ext_pillar", [])  # these a minion may add by itself
    others = [
        entry
        for entry in opts.get("ext_pillar", [])
        if "saltern" not in entry and not set(entry) & set(on_demand)
    ]
    own = {**opts, "ext_pillar": others, "pillar": {}, "grains": {}}
    pillar = salt.pillar.Pillar(own, {}, target, "base", pillarenv="base").compile_pillar()
    errors = pillar.get("_errors", [])
    if errors:
        # What follows is of use to Salt's developers only.
        errors = [str(error).partition("\nTraceback")[0] for error in errors]
        raise PlanError([Problem(file, error, "files that Salt can render") for error in errors])
    return pillar
