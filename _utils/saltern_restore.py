"""Putting a backup back, asked for by a person on the master.

What is replaced is backed up first. Whatever a restore would lose is said before anything is
touched, and takes ``replace=True``.

Only the master uses it.
"""

import os
import secrets
import time

import saltern_backup
from saltern import backup, join_image
from saltern.backup_store import BackupError
from saltern.join_book import BookError
from saltern.joins import JoinFailed
from saltern_lifecycle import Refused
from saltern_minions import Minions

# slurmctld forgets an ended job after MinJobAge (300 s by default, slurm.conf(5)); before, such a
# job does not count as a runaway.
_RUNAWAY = (
    "some minutes later: sacctmgr show runawayjobs (it names and mends jobs that ended since the "
    "backup, which accounting believes to run)"
)
_ASK_S = 60
_STOP_S = 180  # slurmctld writes its whole state before it ends
_START_S = 900  # slurmdbd of a newer version converts an older database
_LOAD_S = 6 * 3600


def run(opts, plan, part, name, test=False, replace=False):
    """The parts of `salt-run saltern.restore`.

    opts: dict, Salt's; plan: ``saltern.plan.Plan``
    part: str, of ``backup.FILES``; name: str, of the backup
    test: bool, read it (the database: load it) and say what stands against it; nothing is changed
    replace: bool, what stands against it is accepted
    Raises Refused with everything that stands against it, or with what failed and how things are.
    """
    if part not in saltern_backup.homes(plan):
        known = ", ".join(saltern_backup.homes(plan))
        raise Refused(problem=f"Found the part {part!r}; expected one of {known}.")
    with Minions(opts) as minions:
        try:
            return Restore(minions, opts, plan, name, test, replace).part(part)
        except (BackupError, BookError, JoinFailed) as error:
            raise Refused(problem=str(error)) from None


class Restore:
    """One restore."""

    def __init__(self, minions, opts, plan, name, test, replace):
        self.minions, self.opts, self.plan = minions, opts, plan
        self.name, self.test, self.replace = name, test, replace
        self.saved_as = backup.name(time.time())
        self.slurm = saltern_backup.version(minions, plan)

    def part(self, part):
        """Restore one part. Returns the parts of the answer."""
        on_hosts = {"database": self._database, "state": self._state}
        return on_hosts[part]() if part in on_hosts else self._on_master(part)

    # --- slurmdbd's database ---

    def _database(self):
        (host,) = saltern_backup.homes(self.plan)["database"]
        daemons = [one.name for one in self.plan.with_role("database")]
        found = self._call(host, "slurm_backup.load", self.name, within=_LOAD_S, kind=dict)
        row = found["row"]
        read = f"{found['tables']} tables, {found['jobs']} jobs, the last of {_when(found['last'])}"
        against = [backup.too_new(row, self.slurm)]
        if found["present"]:
            against.append(
                f"accounting has {found['present']} jobs now, {found['newer']} of them submitted "
                "after the backup; what was recorded since would be missing"
            )
        stop = None
        try:
            stop = self._against(read, against, barred=against[0])
            if not stop:
                self._stop(daemons, "slurmdbd")
        except Refused:
            self._unload(host)
            raise
        if stop:
            self._unload(host)
            return stop
        arguments = ("slurm_backup.swap", self.saved_as, self.slurm)
        saved = self._while_stopped(daemons, "slurmdbd", host, *arguments)
        return self._done(read, saved, ["salt-run saltern.verify", _RUNAWAY])

    def _unload(self, host):
        self.minions.ask([host], "slurm_backup.unload", within=_ASK_S)

    # --- StateSaveLocation ---

    def _state(self):
        controllers = saltern_backup.homes(self.plan)["state"]
        host, row = self._holder(controllers)
        self._call(host, "slurm_backup.examine_state", self.name, within=_LOAD_S, kind=dict)
        read = f"{row['of']}, {backup.size(row['bytes'])}, of {_when(row['at'])}"
        up, unknown = self._active(controllers, "slurmctld")
        barred = backup.too_new(row, self.slurm)
        against = [barred, *self._lost(row, up, unknown)]
        stop = self._against(read, against, barred)
        if stop:
            return stop
        answering = [name for name in controllers if name not in unknown]
        if host in unknown:
            raise Refused(problem=f"{host}, which keeps this backup, does not answer.")
        self._stop(answering, "slurmctld")
        arguments = ("slurm_backup.restore_state", self.name, self.saved_as, self.slurm)
        saved = self._while_stopped(answering, "slurmctld", host, *arguments)
        return self._done(read, saved, ["squeue", "salt-run saltern.verify"])

    def _holder(self, controllers):
        """The controller that keeps this backup, and what it knows of it."""
        said = self.minions.ask(controllers, "slurm_backup.entries", within=_ASK_S)
        names = set()
        for host in controllers:
            for row in said[host]["rows"] if isinstance(said.get(host), dict) else ():
                if row["part"] == "state":
                    names.add(row["backup"])
                    if row["backup"] == self.name:
                        return host, row
        newest = ", ".join(sorted(names, reverse=True)[:5]) or "none"
        raise Refused(
            problem=f"Found no state in a backup {self.name} on {', '.join(controllers)}; "
            f"the newest are {newest}."
        )

    def _lost(self, row, up, unknown):
        """What an older state would cost, in words."""
        found = []
        if up:
            found.append(
                f"slurmctld runs on {', '.join(up)} with a newer state: jobs submitted since would "
                "be unknown, jobs that ended since would run again"
            )
        found += [
            f"{name} does not answer: make sure that slurmctld is off there" for name in unknown
        ]
        if self.plan.data["elastic"]:
            found.append("elastic nodes are not asked what they run")
        nodes = [host.name for role in ("compute", "gpu") for host in self.plan.with_role(role)]
        said = self.minions.ask(nodes, "slurm_nodes.steps", row["at"], within=_ASK_S)
        for node in dict.fromkeys(nodes):
            steps = said.get(node)
            if steps is None or isinstance(steps, str):
                found.append(f"{node} does not answer: nobody knows what runs there")
            elif steps:
                found.append(
                    f"{node} runs what the backup does not know and slurmd would end: "
                    f"{', '.join(steps)}"
                )
        return found

    # --- what stands on the master ---

    def _on_master(self, part):
        master = saltern_backup.Master(self.opts, self.plan)
        image = master.image(part, self.name)
        if part == "register":
            new = join_image.hosts(image)
            now = {host["id"]: host["fingerprint"] for host in master.book.hosts()}
            read = f"{len(new)} admitted hosts"
        else:
            new = saltern_backup.unpacked(image)
            folder = master.folders[part]
            now = {path: (folder / path).read_bytes() for path in new if (folder / path).is_file()}
            read = f"{len(new)} files of {folder}"
        differ = sorted(name for name in now if now[name] != new.get(name))
        against = (
            [f"{len(differ)} differ from what is there: {', '.join(differ)}"] if differ else []
        )
        stop = self._against(read, against)
        if stop:
            return stop
        saved = master.make(part, self.saved_as, before_restore=True)["backup"] if now else ""
        if part == "register":
            join_image.put_back(master.book, image)
        else:
            for path, data in new.items():
                _write(master.folders[part] / path, data)
        return self._done(read, saved, [_NEXT[part]])

    # --- what every restore says and does ---

    def _against(self, read, against, barred=""):
        """Whether to stop here: the answer of a test; or None, to go on. Raises Refused."""
        against = [words for words in against if words]
        if self.test:
            return {
                "read": read,
                "what_stands_against_it": against,
                "summary": f"the {self.name} backup is whole; nothing was changed",
            }
        if barred or (against and not self.replace):
            words = "" if barred else "to accept it: the same command with replace=True"
            raise Refused(read=read, what_stands_against_it=against, what_next=words)
        return None

    def _done(self, read, saved, what_next):
        before = f"backed up as {saved}" if saved else "nothing was there"
        return {
            "read": read,
            "what_it_replaced": before,
            "what_next": what_next,
            "summary": f"restored from {self.name}",
        }

    def _active(self, hosts, daemon):
        """The hosts on which a daemon runs, and those that do not say."""
        said = self.minions.ask(hosts, "daemon.status", daemon, within=_ASK_S)
        known = {name: found for name, found in said.items() if isinstance(found, dict)}
        return [name for name in hosts if known.get(name, {}).get("active")], [
            name for name in hosts if name not in known
        ]

    def _while_stopped(self, daemons, daemon, host, function, *arguments):
        """Call a function of one host while a daemon is stopped, and start it again.

        Whatever comes of it, it is started; only when nobody knows whether the function still works
        does it stay off.
        """
        try:
            done = self._call(host, function, *arguments, within=_LOAD_S)
        except JoinFailed as error:
            raise Refused(
                problem=f"{host}: {error}. {daemon} stays stopped on {', '.join(daemons)}, because "
                f"{function} may go on there. When it has ended, call this again; or start it: "
                f"salt -L {','.join(daemons)} daemon.start {daemon}"
            ) from None
        except Refused:
            self._start(daemons, daemon)
            raise
        self._start(daemons, daemon)
        return done

    def _stop(self, hosts, daemon):
        """Stop a daemon everywhere. Raises Refused, with it started again, if one host does not
        say that it is stopped."""
        self.minions.ask(hosts, "service.stop", daemon, within=_STOP_S)
        up, unknown = self._active(hosts, daemon)
        if up or unknown:
            self._start([name for name in hosts if name not in unknown], daemon)
            raise Refused(
                problem=f"{daemon} could not be stopped on {', '.join([*up, *unknown])}; it would "
                "write while the backup is put back. Nothing was changed."
            )

    def _start(self, hosts, daemon):
        """Start it again, the first host first: the others are in reserve."""
        for host in hosts:
            said = self.minions.ask([host], "daemon.start", daemon, within=_START_S)
            if said.get(host, "no answer") is not None:
                raise Refused(
                    problem=f"{daemon} did not start on {host}: {said.get(host, 'no answer')} "
                    f"What was there before is in the backup {self.saved_as}."
                )

    def _call(self, host, function, *arguments, within, kind=object):
        """kind: what it returns; a minion without our modules answers with a sentence instead."""
        said = self.minions.run(host, function, *arguments, within=within)
        failed = isinstance(said, str) and said.startswith("ERROR")
        if failed or not isinstance(said, kind):
            raise Refused(problem=f"{host}: {str(said).removeprefix('ERROR: ')}")
        return said


_NEXT = {
    "secrets": "salt '*' state.highstate: hosts get these values again",
    "register": "salt-run saltern.joins hosts=True",
    "keys": "systemctl restart salt-master: it holds its own keys in memory",
}


def _when(at):
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at)) if at else "no time"


def _write(path, data):
    """Put a file in place at once, for the owner of its folder alone."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            owner = path.parent.stat()
            os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
