"""Salt's keys and Saltern's register: which key may become which host, and doing it.

Only the master uses it.
"""

import time
from pathlib import Path

import salt.key
import salt.utils.crypt
import salt.utils.event
import salt.utils.verify
import saltern_master
from saltern import admission, secret_store
from saltern.join_book import Book

# Where Salt keeps a key, by its state (salt/key.py).
_FOLDERS = {
    "accepted": "minions",
    "pending": "minions_pre",
    "rejected": "minions_rejected",
    "denied": "minions_denied",
}
# salt-key (3008.4) moves a key in two steps; a minion that asks between them is new to the master,
# which puts its key back among those that wait. So each move is looked at again.
_MOVES = 5
# The grain that carries the join token, and the name of the file that holds it on the master.
TOKEN_GRAIN = "saltern_join_token"  # noqa: S105 - a name


def book(opts):
    """The master's register of hosts."""
    return Book(saltern_master.settings(opts)["join_file"])


def keys(opts, minion_id):
    """The fingerprints of an id's keys, ``admission.Keys``; none for what cannot be an id."""
    if not salt.utils.verify.valid_id(opts, minion_id):
        return admission.Keys()
    return admission.Keys(
        **{
            state: fingerprint(opts, Path(opts["pki_dir"]) / folder / minion_id)
            for state, folder in _FOLDERS.items()
        }
    )


def fingerprint(opts, path):
    """A public key's fingerprint as ``key.finger`` shows it on its host, None without a file.

    Salt 3008.4's ``salt-key --finger`` shows another one, of the PEM armour too.
    """
    return salt.utils.crypt.pem_finger(path=str(path), sum_type=opts["hash_type"]) or None


def is_admitted(opts, join_file, minion_id):
    """Whether this id is in the register, with the very key that Salt accepts for it."""
    entry = Book(join_file).host(minion_id)
    return bool(entry) and keys(opts, minion_id).accepted == entry["fingerprint"]


def look(opts, plan, minion_id):
    """Decide on the key of an id, and act: accept or reject it, enter it, raise an event.

    plan: saltern.plan.Plan
    Returns ``admission.Decision``.
    """
    register = book(opts)
    decision = admission.judge(minion_id, keys(opts, minion_id), _known(opts, plan, minion_id))
    if decision.outcome == "admit":
        admit(opts, minion_id, decision.fingerprint, decision.proof, "the master")
    elif decision.action:
        move(opts, minion_id, decision.action, decision.fingerprint)
    told = {"waiting": "waiting", "refused": "refused", "second key": "second-key"}
    if decision.outcome in told and register.key_seen(
        minion_id, decision.outcome, decision.reason, time.time(), decision.stands
    ):
        event = {"id": minion_id, "reason": decision.reason}
        fire(opts, f"saltern/key/{told[decision.outcome]}", event)
    return decision


def _known(opts, plan, minion_id):
    register = book(opts)
    host = plan.host(minion_id)
    entry, named = register.host(minion_id), register.expected(minion_id)
    expected = named["fingerprint"] if named else plan.data["join"]["fingerprints"].get(minion_id)
    return admission.Known(
        roles=host.roles if host else None,
        registered=entry["fingerprint"] if entry else None,
        expected=expected,
        token=token_file(opts).exists(),
    )


def admit(opts, minion_id, finger, proof, by):
    """Accept this very key, enter the host into the register, tell the bus."""
    if keys(opts, minion_id).accepted != finger:
        move(opts, minion_id, "accept", finger)
    book(opts).admit(minion_id, finger, proof, by, time.time())
    fire(opts, "saltern/key/admitted", {"id": minion_id, "proof": proof, "by": by})


def preseed(opts, minion_id, public, by):
    """Have Salt know a host's public key before the host exists, and admit it.

    public: str, PEM
    """
    move(opts, minion_id, "delete")
    path = Path(opts["pki_dir"]) / _FOLDERS["accepted"] / minion_id
    aside = path.with_name(f".{minion_id}.new")
    aside.write_text(public, encoding="ascii")
    aside.replace(path)
    admit(opts, minion_id, fingerprint(opts, path), admission.PRESEEDED, by)


def move(opts, minion_id, action, finger=""):
    """Have Salt accept or reject an id's key.

    action: ``accept`` the key of this fingerprint, ``reject`` the accepted one, or ``delete`` all
    """
    for _ in range(_MOVES):
        held = keys(opts, minion_id)
        with salt.key.get_key(opts) as salts:
            if action == "accept":
                _accept(salts, minion_id, held, finger)
            elif action == "reject" and held.accepted:
                salts.reject(match_dict={"minions": [minion_id]}, include_accepted=True)
            elif action == "delete":
                there = {
                    folder: [minion_id]
                    for state, folder in _FOLDERS.items()
                    if getattr(held, state)
                }
                salts.delete_key(match_dict=there)
        now = keys(opts, minion_id)
        done = {
            "accept": now.accepted == finger and not now.pending,
            "reject": not now.accepted,
            "delete": now == admission.Keys(),
        }
        if done[action]:
            return


def _accept(salts, minion_id, held, finger):
    for state in ("pending", "rejected", "denied"):
        if getattr(held, state) == finger:
            salts.accept(
                match_dict={_FOLDERS[state]: [minion_id]},
                include_rejected=state == "rejected",
                include_denied=state == "denied",
            )
            return


def token_file(opts):
    """The file by which Salt's autosign knows the join token (autosign_grains_dir)."""
    return Path(opts["autosign_grains_dir"]) / TOKEN_GRAIN


def token(opts, new=False):
    """The join token; made on first use, and from then on Salt accepts keys that come with it.

    new: bool, replace it: images with the old one admit no more hosts
    """
    if new:
        token_file(opts).unlink(missing_ok=True)
    return secret_store.Store(opts["autosign_grains_dir"]).get(TOKEN_GRAIN)


def fire(opts, tag, data):
    """An event on the master's bus."""
    with salt.utils.event.get_master_event(opts, opts["sock_dir"], listen=False) as bus:
        bus.fire_event(data, tag)
