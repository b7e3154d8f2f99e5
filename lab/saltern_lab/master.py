"""The Salt master of a lab, set up as the README says: tree, plan, one include file, keys.

Nothing is accepted unseen: each host is admitted by the fingerprint of the key that it holds.
"""

import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from saltern_lab import hosts, keys, mirror_control, plan, roots, tree
from saltern_lab.errors import LabError
from saltern_lab.record import Lab, write_json
from saltern_lab.topology import Topology

Say = Callable[[str], None]
TREE = "/srv/saltern"
PRESENCE_S = 90
SUBSCRIBERS = ["ss", "-Htn", "state", "established", "( sport = :4505 )"]


class Master:
    """The master's host in a lab."""

    def __init__(self, lab: Lab, topology: Topology) -> None:
        if topology.master is None:
            raise LabError(f"The topology {topology.name} names no master.")
        self.lab = lab
        self.topology = topology
        self.host = topology.master
        self.notes = lab.folder / "pushed.json"

    def run(
        self, command: list[str], what: str, stdin: str | None = None, timeout: float = 300
    ) -> str:
        """A command on the master's host."""
        return hosts.execute(self.lab, self.host, command, what=what, stdin=stdin, timeout=timeout)

    def shell(self, script: str, what: str, stdin: str | None = None) -> str:
        """A shell script on the master's host."""
        return self.run(["sh", "-ec", script], what, stdin)

    def push(self, say: Say) -> None:
        """Bring tree, plan and master to the repository's state, as far as they are not."""
        names = tree.files()
        done = self._notes()
        want = {
            "tree": tree.digest(names),
            "loaded": tree.digest(names, tree.LOADED),
            "requirements": ";".join(roots.repository_requirements()),
            "master": "id pinned",
            "plan": json.dumps(plan.files(self.lab, self.topology)),
        }
        changed = {name for name, value in want.items() if done.get(name) != value}
        if "tree" in changed:
            say(f"sending the tree ({len(names)} files) to {self.host}:{TREE}")
            self._send_tree(names)
        if "plan" in changed:
            self._write_plan()
        if "requirements" in changed and want["requirements"]:
            self._install_requirements(say)
        if not self._master_runs() or changed & {"loaded", "requirements", "master"}:
            say("starting the Salt master")
            self._configure_master()
            self.run(["systemctl", "enable", "--quiet", "salt-master"], "Enabling the Salt master")
            self.run(["systemctl", "restart", "salt-master"], "Starting the Salt master")
            changed.add("loaded")
        self.enrol(self.topology.hosts, say)
        if changed:
            self.wait_present(self.topology.hosts)
        if changed & {"tree", "loaded"}:
            self.run(
                ["salt-run", "--out=json", "saltutil.sync_all"], "Syncing the master's modules"
            )
            self.run(
                ["salt", "--out=json", "*", "saltutil.sync_all", "refresh=True"],
                "Syncing the minions' modules",
            )
        elif "plan" in changed:
            self.run(
                ["salt", "--out=json", "*", "saltutil.refresh_pillar"], "Refreshing the pillar"
            )
        write_json(self.notes, want)

    def _notes(self) -> dict[str, str]:
        try:
            notes: dict[str, str] = json.loads(self.notes.read_text(encoding="utf-8"))
        except (FileNotFoundError, json.JSONDecodeError):
            return {}
        return notes

    def _send_tree(self, names: list[str]) -> None:
        script = (
            f"rm -rf {TREE}.new; mkdir -p {TREE}.new; tar -x -C {TREE}.new; "
            f"if [ -e {TREE} ]; then rm -rf {TREE}.old; mv {TREE} {TREE}.old; fi; "
            f"mv {TREE}.new {TREE}; rm -rf {TREE}.old"
        )
        tree.unpack_into(hosts.enter(self.lab, self.host, ["sh", "-ec", script]), names)

    def _write_plan(self) -> None:
        self.shell("mkdir -p -m 0755 /etc/saltern/plan", "Making /etc/saltern/plan")
        for name, text in plan.files(self.lab, self.topology).items():
            script = f"cd /etc/saltern/plan; cat > .{name}.new; mv .{name}.new {name}"
            self.shell(script, f"Writing {name}", stdin=text)

    def _install_requirements(self, say: Say) -> None:
        """Do `salt-pip install -r etc/requirements-master.txt`, from the lab's mirror."""
        want = roots.wanted()
        ours = roots.machine(want["suite"], want["components"])
        lower = [Path(layer) for layer in self.lab.host(self.host).layers]
        folder = roots.wheels("master", roots.repository_requirements(), ours, lower, say)
        self.run(
            [
                "salt-pip", "install", "--quiet", "--root-user-action=ignore", "--no-index",
                "--trusted-host", self.lab.gateway,
                "--find-links", f"{mirror_control.url(self.lab)}/wheels/{folder.name}/",
                "-r", f"{TREE}/etc/requirements-master.txt",
            ],
            "Installing the master's Python libraries",
        )  # fmt: skip

    def _master_runs(self) -> bool:
        return (
            hosts.probe(self.lab, self.host, ["systemctl", "is-active", "salt-master"]) == "active"
        )

    def _configure_master(self) -> None:
        """Link the tree's configuration, and pin the master's own id.

        Salt 3008 names the master's key by the host's full name and makes a new key when that
        changes, as it does when the plan's names reach /etc/hosts: every minion would refuse it.
        """
        self.shell(
            f"ln -sfn {TREE}/etc/master.d/saltern.conf /etc/salt/master.d/saltern.conf; "
            f"echo 'id: {self.host}' > /etc/salt/master.d/id.conf",
            "Linking the master's configuration",
        )

    def enrol(self, names: Iterable[str], say: Say) -> None:
        """Point each host's minion at the master, and admit it by the key that it really holds."""
        accepted = set(self.accepted())
        missing = [name for name in names if name not in accepted]
        if not missing:
            return
        for name in missing:
            self.introduce(name)
        admit = [
            f"salt-run saltern.admit {name} fingerprint={self._held(name)} & " for name in missing
        ]
        self.shell(f"{''.join(admit)} wait", f"Admitting {', '.join(missing)}")
        deadline = time.monotonic() + PRESENCE_S
        while set(missing) - set(self.accepted()):
            if time.monotonic() > deadline:
                late = ", ".join(sorted(set(missing) - set(self.accepted())))
                shown = self.run(["salt-run", "saltern.joins"], "Asking for the join register")
                raise LabError(f"{late} was not admitted within {PRESENCE_S} s:\n{shown}")
            time.sleep(0.2)
        say(f"admitted {', '.join(missing)} by their fingerprints")

    def _held(self, name: str, wait_s: float = 60) -> str:
        """The fingerprint of the key that a host holds; its minion makes it when it starts."""
        deadline = time.monotonic() + wait_s
        while True:
            pem = hosts.probe(self.lab, name, ["cat", "/etc/salt/pki/minion/minion.pub"])
            if "END PUBLIC KEY" in pem:
                return keys.fingerprint(pem)
            if time.monotonic() > deadline:
                raise LabError(f"The minion of {name} made no key within {wait_s:.0f} s.")
            time.sleep(0.2)

    def introduce(self, name: str) -> None:
        """Tell a host's minion its master's address and fingerprint, and start it."""
        finger = keys.fingerprint(
            self.run(["cat", "/etc/salt/pki/master/master.pub"], "Reading the master's key")
        )
        text = (
            f"master: {self.lab.address(self.host)}\nid: {name}\nmaster_finger: '{finger}'\n"
            # Salt spreads thousands of minions out by waiting; four need not wait.
            "acceptance_wait_time: 1\nrandom_reauth_delay: 0\n"
        )
        script = (
            "cat > /etc/salt/minion.d/master.conf; systemctl enable --quiet salt-minion; "
            "systemctl restart --no-block salt-minion"
        )
        what = f"Starting the Salt minion of {name}"
        hosts.execute(self.lab, name, ["sh", "-ec", script], what=what, stdin=text)

    def accepted(self) -> list[str]:
        """The hosts whose keys are accepted."""
        script = "ls /etc/salt/pki/master/minions 2>/dev/null || true"
        return sorted(self.shell(script, "Listing the accepted keys").split())

    def wait_present(self, names: Iterable[str]) -> None:
        """Wait until every minion is connected and answers.

        A call right after a master's start would find none of them; and one that is sent before
        they are connected waits for the master's whole time-out. So the connections are looked at
        first.
        """
        missing = {self.lab.address(name): name for name in names}
        everyone = ",".join(sorted(missing.values()))
        deadline = time.monotonic() + PRESENCE_S
        while True:
            connected = _peers(hosts.probe(self.lab, self.host, SUBSCRIBERS))
            missing = {
                address: name for address, name in missing.items() if address not in connected
            }
            if not missing:
                break
            if time.monotonic() > deadline:
                late = ", ".join(sorted(missing.values()))
                raise LabError(
                    f"The minions of {late} did not connect to the master within {PRESENCE_S} s."
                )
            time.sleep(0.2)
        self.run(["salt", "--out=json", "--list", everyone, "test.ping"], "Calling the minions")


def _peers(text: str) -> set[str]:
    """The remote addresses in the output of `ss -Htn`."""
    lines = [line.split() for line in text.splitlines()]
    return {
        fields[-1].rpartition(":")[0].strip("[]").removeprefix("::ffff:")
        for fields in lines
        if fields
    }
