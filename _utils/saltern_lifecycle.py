"""What a person asks of hosts on the master: admit, invite, replace, retire. Each can be called
again.

Only the master uses it.
"""

import socket
import time
from pathlib import Path

import salt.utils.user
import saltern_admission
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from saltern import admission, joins, nodeset, user_data
from saltern.joins import JoinFailed
from saltern_minions import Minions

_CALL_S = 60
_POLL_S = 5
_KEY_BITS = 4096  # Salt's default is 2048 (minion configuration, keysize)
RETIRE = "retire"  # the cause in the drain's reason


class Refused(Exception):
    """Nothing was done, or not all; what to tell, as parts of an answer."""

    def __init__(self, **parts):
        super().__init__(str(parts))
        self.parts = parts


def person():
    """Who works on the master, for the record."""
    return salt.utils.user.get_specific_user()


# --- admission -----------------------------------------------------------------------------------


def admit(opts, plan, minion_id, finger):
    """Admit by fingerprint, now or when the key is shown. Returns parts of an answer."""
    _known(plan, minion_id)
    keys = saltern_admission.keys(opts, minion_id)
    entry = saltern_admission.book(opts).host(minion_id)
    finger = finger.strip().lower()
    if entry and finger and entry["fingerprint"] != finger:
        raise Refused(
            problem=f"{minion_id} is registered with another key ({entry['fingerprint']}). If it "
            f"was installed anew: salt-run saltern.replace {minion_id} fingerprint={finger}"
        )
    if entry and keys.accepted == entry["fingerprint"]:
        return {"admitted": f"{minion_id}, since {entry['proof']} by {entry['by']}; nothing to do"}
    if not finger:
        raise Refused(
            keys=_shown(keys) or f"{minion_id} has shown no key yet",
            what_next=[
                f"on {minion_id}: salt-call --local key.finger",
                f"if it is the same: salt-run saltern.admit {minion_id} fingerprint=…",
            ],
        )
    if finger in (keys.pending, keys.rejected, keys.accepted):
        saltern_admission.admit(opts, minion_id, finger, admission.FINGERPRINT, person())
        return {"admitted": f"{minion_id} with the key {finger}"}
    if keys.shown:
        raise Refused(
            problem=f"{minion_id} showed {keys.shown}, not {finger}. Nothing was admitted: look at "
            f"the host itself (salt-call --local key.finger)"
        )
    saltern_admission.book(opts).expect(minion_id, finger, person(), time.time())
    return {"expected": f"{minion_id} is admitted as soon as it shows the key {finger}"}


def admit_accepted(opts, plan, names):
    """Admit hosts whose keys a person accepted with salt-key."""
    rows = []
    for name in nodeset.expand(names):
        _known(plan, name)
        keys, entry = saltern_admission.keys(opts, name), saltern_admission.book(opts).host(name)
        if entry:
            said = "in the register already"
        elif keys.accepted:
            saltern_admission.admit(opts, name, keys.accepted, admission.BY_HAND, person())
            said = "admitted"
        else:
            said = "not admitted: salt-key has accepted no key of it"
        rows.append({"host": name, "result": said, "key": keys.accepted or ""})
    if any(row["result"].startswith("not") for row in rows):
        raise Refused(hosts=rows)
    return {"hosts": rows}


def invite(opts, plan, minion_id, form):
    """A key pair for a host, admitted; returns user-data with the private key, kept nowhere."""
    _known(plan, minion_id)
    _check_format(form)
    register = saltern_admission.book(opts)
    if register.host(minion_id):
        raise Refused(
            problem=f"{minion_id} is registered already. If its disk is to be installed anew: "
            f"salt-run saltern.retire {minion_id} first, or let it show its new key and "
            f"salt-run saltern.replace {minion_id}"
        )
    private, public = _key_pair()
    saltern_admission.preseed(opts, minion_id, public, person())
    return _user_data(opts, plan, form, minion_id=minion_id, key=(private, public))


def _key_pair():
    """(private, public) as PEM, as a minion makes them; Salt's own function differs by version."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=_KEY_BITS)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return private.decode(), public.decode()


def token(opts, plan, form, new):
    """User-data for images, with the join token."""
    _check_format(form)
    value = saltern_admission.token(opts, new)
    what = "join token made anew" if new else "join token shown"
    saltern_admission.book(opts).note("", what, person(), "", time.time())
    return _user_data(opts, plan, form, token=(saltern_admission.TOKEN_GRAIN, value))


def _known(plan, minion_id):
    if not admission.is_host_name(minion_id) or plan.host(minion_id) is None:
        raise Refused(
            problem=f"the plan has no host {minion_id!r} and no elastic pattern that fits it. "
            "Add it there first: the plan says what a host may become"
        )


def _check_format(form):
    if form not in user_data.FORMATS:
        raise Refused(problem=f"format={form}: expected one of {', '.join(user_data.FORMATS)}")


def _shown(keys):
    """The keys of an id, for people."""
    states = ("accepted", "pending", "rejected", "denied")
    return [
        {"key": state, "fingerprint": getattr(keys, state)}
        for state in states
        if getattr(keys, state)
    ]


def _user_data(opts, plan, form, **own):
    finger = saltern_admission.fingerprint(opts, Path(opts["pki_dir"]) / "master.pub")
    join = plan.data["join"]
    written = user_data.files(join["master"] or socket.getfqdn(), finger, **own)
    return user_data.text(form, written, plan.data["os"]["name"], join["install"])


def replace(opts, minion_id, finger):
    """Take a second key that a person knows for the registered one."""
    register = saltern_admission.book(opts)
    entry = register.host(minion_id)
    if entry is None:
        raise Refused(
            problem=f"{minion_id} is not in the register: salt-run saltern.admit {minion_id}"
        )
    keys = saltern_admission.keys(opts, minion_id)
    others = [key for key in (keys.denied, keys.pending, keys.rejected) if key]
    others = [key for key in others if key != entry["fingerprint"]]
    if not others:
        raise Refused(
            problem=f"{minion_id} has shown no key but the registered {entry['fingerprint']}. "
            "Start its minion, then call this again"
        )
    finger = finger.strip().lower()
    if finger not in others:
        raise Refused(
            **({"problem": f"{minion_id} showed no key {finger}"} if finger else {}),
            keys=[{"key": "registered", "fingerprint": entry["fingerprint"]}]
            + [{"key": "shown now", "fingerprint": key} for key in others],
            what_next=[
                f"on {minion_id}: salt-call --local key.finger",
                f"if it is the one shown: salt-run saltern.replace {minion_id} fingerprint=…",
            ],
        )
    saltern_admission.admit(opts, minion_id, finger, admission.REPLACED, person())
    register.enqueue(minion_id, time.time())
    return {
        "replaced": f"{minion_id} has the key {finger} from now on",
        "what_next": [
            f"on {minion_id}: systemctl restart salt-minion (a refused minion ends itself)"
        ],
    }


def join(opts, plan, minion_id):
    """Queue a host now."""
    _known(plan, minion_id)
    register = saltern_admission.book(opts)
    if register.host(minion_id) is None:
        raise Refused(problem=f"{minion_id} is not admitted: salt-run saltern.admit {minion_id}")
    register.enqueue(minion_id, time.time())
    return {"queued": f"{minion_id}; salt-run saltern.joins shows how it goes"}


# --- the end of a node ---------------------------------------------------------------------------


def retire(opts, plan, minion_id, wait_s):
    """Drain, wait for the jobs, out of Slurm, key and register entry gone."""
    if not admission.is_host_name(minion_id):
        raise Refused(problem=f"{minion_id!r} is no host name")
    host = plan.host(minion_id)
    with Minions(opts) as minions:
        controller = _controller(plan, minions)
        if controller:
            _empty(minions, controller, minion_id, wait_s)
        if host and not host.elastic:
            raise Refused(
                done=f"{minion_id} is drained and runs nothing",
                what_next=[
                    f"take {minion_id} out of the plan (hosts:{host.entry})",
                    f"salt-run saltern.retire {minion_id}, which goes on from here",
                ],
            )
        minions.ask([minion_id], "service.disable", "slurmd", within=_CALL_S)
        minions.ask([minion_id], "service.stop", "slurmd", within=_CALL_S)
        if controller:
            _out_of_slurm(minions, controller, minion_id, host)
    saltern_admission.move(opts, minion_id, "delete")
    saltern_admission.book(opts).forget(minion_id, "retired", person(), time.time())
    saltern_admission.fire(opts, "saltern/node/retired", {"id": minion_id, "by": person()})
    return {"retired": f"{minion_id}: out of Slurm, its key and its register entry are gone"}


def _controller(plan, minions):
    """A controller whose slurmctld answers; None when the plan has none."""
    names = [host.name for host in plan.with_role("controller")]
    if not names:
        return None
    up = minions.controllers(plan, _CALL_S)
    if not up:
        raise Refused(
            problem=f"slurmctld runs on none of {', '.join(names)}, so nobody can say what still "
            "runs on the node. Nothing was done"
        )
    return up[0]


def _empty(minions, controller, node, wait_s):
    """Drain a node and wait for its jobs."""
    try:
        known = minions.run(controller, "slurm_nodes.states", [node], within=_CALL_S)
        if not isinstance(known, dict):
            raise Refused(problem=f"{controller}: {known}. Nothing was done")
        if node not in known:
            return
        minions.run(controller, "nhc.drain", [node], RETIRE, f"by {person()}", within=_CALL_S)
        deadline = time.monotonic() + wait_s
        while True:
            jobs = minions.run(controller, "slurm_nodes.jobs_on", node, within=_CALL_S)
            if jobs == []:
                return
            if time.monotonic() > deadline:
                raise Refused(
                    problem=f"{node} is drained and still runs jobs; none was ended",
                    jobs=jobs if isinstance(jobs, list) else [str(jobs)],
                    what_next=[
                        f"salt-run saltern.retire {node} wait_s=86400, which goes on from here"
                    ],
                )
            time.sleep(_POLL_S)
    except JoinFailed as error:
        raise Refused(problem=f"{controller}: {error.reason}") from None


def _out_of_slurm(minions, controller, node, host):
    """Have the controllers take the plan without the node; an elastic node is not in it."""
    try:
        if host and host.elastic:
            said = minions.run(controller, "slurm_nodes.delete", node, within=_CALL_S)
        else:
            minions.ask([controller], "saltutil.refresh_pillar", within=_CALL_S, wait=True)
            said = minions.run(
                controller, "state.apply", "p4_scheduler.slurmctld", within=3600, queue=True
            )
            joins.result(said)
        known = minions.run(controller, "slurm_nodes.states", [node], within=_CALL_S)
    except JoinFailed as error:
        raise Refused(
            problem=f"{controller}: {error.reason}. The key stays until this works"
        ) from None
    if known != {}:
        raise Refused(problem=f"{controller} still has the node {node}: {known}. The key stays")
