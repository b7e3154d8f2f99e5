"""The commands of `lab/lab`."""

import argparse
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from saltern_lab import (
    cache,
    cluster,
    hosts,
    lifecycle,
    mirror_control,
    needs,
    network,
    record,
    skew,
    topology,
)
from saltern_lab.errors import LabError
from saltern_lab.master import Master
from saltern_lab.record import Lab


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; a failure is one message on standard error."""
    words = list(sys.argv[1:] if argv is None else argv)
    command: list[str] = []
    if "--" in words:
        words, command = words[: words.index("--")], words[words.index("--") + 1 :]
    arguments = _parser().parse_args(words)
    arguments.command = command
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with record.changing(arguments.name) if arguments.changes else contextlib.nullcontext():
            result: int = arguments.act(arguments)
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("lab: interrupted; run the same command again to go on", file=sys.stderr)
        return 130
    return result


def say(text: str) -> None:
    """One line of progress with the time of day."""
    print(f"{time.strftime('%H:%M:%S')}  {text}", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="lab/lab", description=__doc__)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--name", default=os.environ.get("SALTERN_LAB", "lab"), help="which lab")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def add(
        name: str, act: object, text: str, host: bool = False, changes: bool = False
    ) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text, parents=[common])
        sub.set_defaults(act=act, changes=changes)
        if host:
            sub.add_argument("host", metavar="HOST")
        return sub

    sub = add("up", _up, "bring the hosts up, bare or as they were")
    sub.add_argument("--topology", help="a file of lab/topologies (default: first)")
    sub.add_argument("--subnet", help="an IPv4 /24 (default: the first free one of 10.213.0.0/16)")
    sub = add("cluster", _cluster, "all of it: up, push, salt '*' state.highstate, jobs")
    sub.add_argument("--topology", help="a file of lab/topologies (default: first)")
    sub.add_argument("--subnet", help="an IPv4 /24")
    add("push", _push, "send tree and plan to the master, accept the hosts' keys")
    add("down", _down, "shut the hosts down; their disks stay", changes=True)
    add("destroy", _destroy, "cut the power and forget the lab; the cache stays", changes=True)
    add("status", _status, "what runs").add_argument("--json", action="store_true")
    sub = add("exec", _exec, "run a command in a host: exec HOST [--user USER] -- CMD", host=True)
    sub.add_argument("--user", help="as this user's login instead of root")
    sub = add("shell", _shell, "a root shell in a host", host=True)
    sub.add_argument("--user", help="as this user instead of root")
    add(
        "power-off",
        _power_off,
        "cut a host's power (SIGKILL to its PID 1)",
        host=True,
        changes=True,
    )
    add("power-on", _power_on, "power a host on", host=True, changes=True)
    add("cut", _cut, "take a host's cable down", host=True, changes=True)
    add("heal", _heal, "put a host's cable back", host=True, changes=True)
    sub = add("skew", _skew, "shift the clock of a host's daemons (0: right again)", host=True)
    sub.add_argument("seconds", type=int, metavar="SECONDS")
    sub = add("cache", _cache, "what the lab keeps on this machine: cache [show|clean [KIND…]]")
    sub.add_argument("verb", choices=("show", "clean"), nargs="?", default="show")
    sub.add_argument("kinds", nargs="*", metavar="KIND")
    sub = add("add", _add, "one more bare host", host=True, changes=True)
    sub.add_argument("--address", type=int, help="last number of its address")
    sub.add_argument("--minion", action="store_true", help="start its minion: it asks the master")
    sub.add_argument("--first-boot", type=Path, help="a script that its first boot runs")
    sub = add("logs", _logs, "a host's journal, or its console if it is off", host=True)
    sub.add_argument("--unit", help="one unit only")
    return parser


def _lab(arguments: argparse.Namespace) -> Lab:
    return record.require(arguments.name)


def _up(arguments: argparse.Namespace) -> int:
    lab = lifecycle.up(arguments.name, arguments.topology, arguments.subnet, say)
    for host in lab.hosts:
        print(f"  {host:<12} {lab.address(host):<16} {hosts.state(lab.hosts[host])}")
    return 0


def _cluster(arguments: argparse.Namespace) -> int:
    return cluster.cluster(arguments.name, arguments.topology, arguments.subnet, say)


def _push(arguments: argparse.Namespace) -> int:
    lab = _lab(arguments)
    Master(lab, topology.load(lab.topology)).push(say)
    say("tree, plan and master are as the repository is")
    return 0


def _down(arguments: argparse.Namespace) -> int:
    lifecycle.down(_lab(arguments), say)
    return 0


def _destroy(arguments: argparse.Namespace) -> int:
    lab = record.load(arguments.name)
    if lab is None:
        say(f"there is no lab {arguments.name}")
        return 0
    lifecycle.destroy(lab, say)
    return 0


def _status(arguments: argparse.Namespace) -> int:
    lab = record.load(arguments.name)
    status = {
        "name": arguments.name,
        "exists": lab is not None,
        "network": lab.network if lab else None,
        "bridge": lab.bridge if lab else None,
        "gateway": lab.gateway if lab else None,
        "topology": lab.topology if lab else None,
        "mirror": mirror_control.url(lab) if lab else None,
        "disk": str(lab.folder) if lab else None,
        "hosts": {
            name: {
                "address": lab.address(name),
                "state": hosts.state(host),
                "pid": host.leader["pid"] if host.leader and hosts.running(host) else None,
            }
            for name, host in (lab.hosts if lab else {}).items()
        }
        if lab
        else {},
        "labs": [other.name for other in record.all_labs()],
    }
    if arguments.json:
        print(json.dumps(status, indent=2))
        return 0
    if lab is None:
        print(f"there is no lab {arguments.name}; labs here: {', '.join(status['labs']) or 'none'}")
        return 0
    print(f"lab {lab.name}, topology {lab.topology}, network {lab.network} on {lab.bridge}")
    for name, host in lab.hosts.items():
        print(f"  {name:<12} {lab.address(name):<16} {hosts.state(host)}")
    return 0


def _exec(arguments: argparse.Namespace) -> int:
    if not arguments.command:
        raise LabError("exec needs a command: lab/lab exec HOST -- CMD …")
    words = hosts.enter(_lab(arguments), arguments.host, arguments.command, arguments.user)
    _become(words)


def _shell(arguments: argparse.Namespace) -> int:
    words = hosts.enter(_lab(arguments), arguments.host, ["bash", "-l"], arguments.user)
    _become(words)


def _become(words: list[str]) -> NoReturn:
    """Go on as another program, with its streams and exit status."""
    sys.stdout.flush()
    os.execvp(words[0], words)  # noqa: S606


def _power_off(arguments: argparse.Namespace) -> int:
    was_on = hosts.power_off(_lab(arguments), arguments.host)
    say(f"{arguments.host} {'lost power' if was_on else 'was off'}")
    return 0


def _power_on(arguments: argparse.Namespace) -> int:
    lifecycle.power_on(_lab(arguments), arguments.host)
    say(f"{arguments.host} is up")
    return 0


def _cut(arguments: argparse.Namespace) -> int:
    return _cable(arguments, "down")


def _heal(arguments: argparse.Namespace) -> int:
    return _cable(arguments, "up")


def _cable(arguments: argparse.Namespace, state: str) -> int:
    lab = _lab(arguments)
    host = lab.host(arguments.host)
    process = hosts.running(host)
    if process is None:
        raise LabError(f"{arguments.host} is off: there is no cable to set.")
    network.set_cable(lab, process.pid, state)
    host.cut = state == "down"
    lab.save()
    say(f"the cable of {arguments.host} is {'cut' if host.cut else 'in'}")
    return 0


def _skew(arguments: argparse.Namespace) -> int:
    units = skew.set_skew(_lab(arguments), arguments.host, arguments.seconds)
    what = f"{arguments.seconds:+d} s" if arguments.seconds else "right again"
    say(f"the clock of {arguments.host} is {what} for: {', '.join(units) or 'no running daemon'}")
    return 0


def _cache(arguments: argparse.Namespace) -> int:
    if arguments.verb == "show":
        print(cache.show())
        return 0
    needs.root()
    for name in cache.clean(arguments.kinds):
        print(f"removed {name}")
    return 0


def _add(arguments: argparse.Namespace) -> int:
    lab = _lab(arguments)
    script = arguments.first_boot.read_text(encoding="utf-8") if arguments.first_boot else None
    lifecycle.add(lab, arguments.host, arguments.address, say, script)
    if arguments.minion:
        Master(lab, topology.load(lab.topology)).introduce(arguments.host)
        say(f"the minion of {arguments.host} asks the master; its key is not accepted by the lab")
    return 0


def _logs(arguments: argparse.Namespace) -> int:
    lab = _lab(arguments)
    if hosts.running(lab.host(arguments.host)) is None:
        print(hosts.console_end(lab, arguments.host))
        return 0
    command = ["journalctl", "--no-pager", "--boot"]
    if arguments.unit:
        command.append(f"--unit={arguments.unit}")
    words = hosts.enter(lab, arguments.host, command)
    _become(words)
