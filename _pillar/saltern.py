"""External pillar: each minion's view of the plan, and the secrets that its roles need.

Configured in etc/master.d/saltern.conf. Raises for a broken plan or an unknown minion, and Salt
then refuses every state run of that minion.
"""

import copy

# An external pillar that cannot be loaded is only logged by Salt, and every minion goes on without
# a plan; one that raises stops every state run. So a missing library is kept here and raised below.
try:
    import saltern_admission
    import saltern_authority
    import saltern_master
    from saltern import roles, secret_store, view
except ImportError as error:
    _missing = error
else:
    _missing = None

__virtualname__ = "saltern"


def __virtual__():
    return __virtualname__


class NotAdmitted(Exception):
    """A minion whose key Salt accepts, and that is not in the admission register with it."""


def ext_pillar(minion_id, pillar, schema_file, secrets_dir, join_file):
    """The view of a minion, under the key ``saltern``.

    minion_id: str
    pillar: dict, the minion's pillar so far. Nothing is read from it: the minion can write into it.
    schema_file: str, path of pillar/schema.json
    secrets_dir: str, path of a directory of mode 0700; made on first use
    join_file: str, path of the admission register; made on first use

    Raises PlanError, UnknownHost, NotAdmitted, SecretError, BookError.
    """
    pillar.pop("saltern", None)
    if _missing:
        raise RuntimeError(
            f"The master's Salt Python lacks what the plan needs ({_missing}). On the master: "
            "salt-pip install -r etc/requirements-master.txt, then restart salt-master."
        )
    resolved = saltern_master.resolved(__opts__, schema_file, minion_id)
    # A copy: the plan is kept for the next minion, and Salt goes on to merge into what it gets.
    mine = copy.deepcopy(view.of(resolved, minion_id))
    # An accepted key is not yet an admitted host. (A masterless host, __role minion, asks itself.)
    asks_itself = __opts__.get("__role") == "minion"
    if not asks_itself and not saltern_admission.is_admitted(__opts__, join_file, minion_id):
        raise NotAdmitted(
            f"{minion_id} is not in the admission register with the key that Salt accepts for it, "
            f"so it gets nothing. `salt-run saltern.joins` says why; `salt-run saltern.admit "
            f"{minion_id}` admits it."
        )
    mine["tree"] = saltern_master.tree_version(__opts__)
    store = secret_store.Store(secrets_dir)
    own = resolved.data["secrets"]
    source = mine.get("directory", {"kind": "none"})
    mine["secrets"] = {
        name: own[name] if name in own else store.get(name)
        for name in roles.secrets_of(frozenset(mine["roles"]), source["kind"])
    }
    if source["kind"] != "none":
        mine["certificates"] = saltern_authority.vouch(store, resolved, source)
    return {"saltern": mine}
