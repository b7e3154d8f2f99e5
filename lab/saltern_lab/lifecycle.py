"""A lab's life: up, down, destroy, one more host."""

import shutil
from collections.abc import Callable

from saltern_lab import hosts, mirror_control, needs, network, record, roots, subnet, topology
from saltern_lab.errors import LabError
from saltern_lab.paths import state_dir
from saltern_lab.record import Host, Lab

Say = Callable[[str], None]


def up(name: str, topology_name: str | None, wanted_subnet: str | None, say: Say) -> Lab:
    """Bring a lab's hosts up from whatever is there: nothing, hosts off, the network gone."""
    record.check_name(name)
    needs.check(say)
    with record.changing(name):
        return _up(name, topology_name, wanted_subnet, say)


def _up(name: str, topology_name: str | None, wanted_subnet: str | None, say: Say) -> Lab:
    lab = record.load(name)
    if lab is None:
        lab = _new(name, topology_name or "first", wanted_subnet)
    elif topology_name not in {None, lab.topology}:
        raise LabError(
            f"The lab {name!r} has the topology {lab.topology!r}: destroy it, or name another."
        )
    elif wanted_subnet not in {None, lab.network}:
        raise LabError(f"The lab {name!r} has the network {lab.network}: destroy it first.")
    plan = topology.load(lab.topology)
    layers = [str(layer) for layer in roots.layers(say)]
    for host, suffix in plan.hosts.items():
        lab.hosts.setdefault(host, Host(suffix))
    network.bridge_is_ours(lab)
    lab.save()
    network.up(lab)
    mirror_control.start(lab)
    off = [host for host in lab.hosts if not hosts.running(lab.hosts[host])]
    for host in off:
        lab.hosts[host].layers = lab.hosts[host].layers or layers
        hosts.power_on(lab, host, plan, mirror_control.PORT)
    hosts.wait_booted(lab, off)
    say(f"{len(off)} hosts booted" if off else "all hosts were up")
    return lab


def _new(name: str, topology_name: str, wanted_subnet: str | None) -> Lab:
    with record.locked(state_dir(), "networks"):
        plan = topology.load(topology_name)
        taken = network.taken(f"slt-{name}")
        taken += [subnet.Taken(lab.subnet, f"lab {lab.name}") for lab in record.all_labs()]
        chosen = subnet.choose(taken, wanted_subnet)
        lab = Lab(name, topology_name, str(chosen))
        lab.hosts = {host: Host(suffix) for host, suffix in plan.hosts.items()}
        network.bridge_is_ours(lab)
        lab.save()
    return lab


def add(lab: Lab, host: str, suffix: int | None, say: Say, first_boot: str | None = None) -> None:
    """One more bare host than the topology has.

    first_boot: a script that its first boot runs, as cloud-init or an installer would
    """
    if host in lab.hosts:
        raise LabError(f"The lab {lab.name!r} has a host {host!r} already.")
    used = {other.suffix for other in lab.hosts.values()}
    if suffix is None:
        suffix = next(number for number in range(23, 255) if number not in used)
    # The topology's own rules judge the new host.
    topology.parse(
        lab.topology, {"hosts": {**{h: o.suffix for h, o in lab.hosts.items()}, host: suffix}}
    )
    layers = [str(layer) for layer in roots.layers(say)]
    lab.hosts[host] = Host(suffix, layers=layers)
    lab.save()
    if first_boot is not None:
        hosts.prepare_first_boot(lab, host, first_boot)
    hosts.power_on(lab, host, topology.load(lab.topology), mirror_control.PORT)
    hosts.wait_booted(lab, [host])
    say(f"{host} is up at {lab.address(host)}, bare")


def power_on(lab: Lab, host: str) -> None:
    """Power a host on and wait for its boot."""
    hosts.power_on(lab, host, topology.load(lab.topology), mirror_control.PORT)
    hosts.wait_booted(lab, [host])


def down(lab: Lab, say: Say) -> None:
    """Shut the hosts down and remove the network; the disks stay."""
    hosts.shut_down(lab, lab.hosts)
    _leave_network(lab)
    say(f"lab {lab.name} is down; its disks are kept (`lab/lab up` goes on from there)")


def destroy(lab: Lab, say: Say) -> None:
    """Cut the power and forget the lab. The cache stays."""
    for host in lab.hosts:
        hosts.power_off(lab, host)
    _leave_network(lab)
    for host in lab.hosts:
        hosts.remove_disk(lab, host)
    shutil.rmtree(lab.folder, ignore_errors=True)
    say(f"lab {lab.name} is gone")


def _leave_network(lab: Lab) -> None:
    mirror_control.stop(lab)
    others = [other for other in record.all_labs() if other.name != lab.name]
    running = any(hosts.running(host) for other in others for host in other.hosts.values())
    network.down(lab, last=not running)
