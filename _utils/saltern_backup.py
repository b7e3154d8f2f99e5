"""Backups asked for on the master: of what minions keep, and of what stands on the master itself.

Only the master uses it.
"""

import io
import socket
import sys
import tarfile
import time
from pathlib import Path

import saltern_admission
import saltern_master
from saltern import backup, join_image
from saltern.backup_store import BackupError, Store
from saltern.join_book import BookError
from saltern.joins import JoinFailed
from saltern_lifecycle import Refused
from saltern_minions import Minions

_ASK_S = 60
_MAKE_S = 6 * 3600  # a dump of some hundred million jobs


def run(opts, plan, due=False):
    """The parts of `salt-run saltern.backup`.

    opts: dict, Salt's; plan: ``saltern.plan.Plan``
    due: bool, only the parts of which the newest is older than backup:every_h
    Raises Refused when a part could not be made; the others were.
    """
    now = time.time()
    name, made, failed = backup.name(now), [], []
    with Minions(opts) as minions:
        known = kept(minions, opts, plan)[0] if due else []
        for part, hosts in homes(plan).items():
            rows = [row for row in known if row["part"] == part]
            if due and not backup.is_due(rows, plan.data["backup"]["every_h"], now):
                continue
            began = time.monotonic()
            row, why = _one(minions, opts, plan, part, hosts, name)
            took = f"{time.monotonic() - began:.1f} s"
            if row:
                made.append(row)
                said = f"{row['of']}, {backup.size(row['bytes'])}, {took}"
            else:
                failed.append(f"{part}: {why}")
                said = f"failed, {took}"
            sys.stderr.write(f"{part}: {said}\n")
    parts = {"made": backup.table(made, time.time())}
    if failed:
        raise Refused(**parts, failed=failed, summary=f"{len(failed)} parts could not be made")
    return {**parts, "summary": f"{name}, {len(made)} parts" if made else "nothing is due"}


def overview(opts, plan):
    """The parts of `salt-run saltern.backups`; ``retcode`` 1 when a part has no young backup."""
    with Minions(opts) as minions:
        rows, beside, silent = kept(minions, opts, plan)
    now, every_h = time.time(), plan.data["backup"]["every_h"]
    late = backup.late(rows, homes(plan), every_h, now)
    same = f"{', '.join(beside)}: kept on the file system of what is saved; see backup:folder"
    return {
        "backups": backup.table(rows, now),
        "not_backed_up": late,
        "no_answer": silent,
        "lost_with_the_disk": same if beside else "",
        "summary": f"{len(late)} parts without a young backup" if late else "every part has one",
        "retcode": 1 if late else 0,
    }


def homes(plan):
    """Who can make each part: a list of minion ids, or None for the master; in the order of
    ``backup.FILES``."""
    names = {
        role: [host.name for host in plan.with_role(role)]
        for role in ("mariadb", "database", "controller")
    }
    hosts = {"database": (names["mariadb"] or names["database"])[:1], "state": names["controller"]}
    hosts = {part: found for part, found in hosts.items() if found}
    return {**hosts, **dict.fromkeys(backup.ON_MASTER)}


def kept(minions, opts, plan):
    """What is kept everywhere.

    Returns rows, the newest first; the hosts whose backups share a file system with what they save;
    and those that did not answer, with why.
    """
    master = Master(opts, plan)
    rows, silent = master.store.rows(), []
    beside = ["the master"] if rows and master.is_beside() else []
    hosts = sorted({host for found in homes(plan).values() for host in found or ()})
    why = "no answer from its minion"
    try:
        said = minions.ask(hosts, "slurm_backup.entries", within=_ASK_S) if hosts else {}
    except JoinFailed as error:
        said, why = {}, str(error)
    for host in hosts:
        answer = said.get(host, why)
        if not isinstance(answer, dict):
            silent.append(f"{host}: {answer}")
            continue
        rows += answer["rows"]
        beside += [host] if answer["beside"] else []
    # The master is a minion too, as a rule, and then both see one folder.
    unique = {(row["backup"], row["part"], row["host"]): row for row in rows}
    return [unique[key] for key in sorted(unique, reverse=True)], beside, silent


def version(minions, plan):
    """The version of Slurm that a database host or controller has; empty if none says it."""
    names = [host.name for role in ("database", "controller") for host in plan.with_role(role)]
    said = minions.ask(names, "slurm_build.active", within=_ASK_S) if names else {}
    known = [said[name] for name in names if isinstance(said.get(name), str) and said[name]]
    return known[0].partition("-")[0] if known else ""


def _one(minions, opts, plan, part, hosts, name):
    """One part: its row, or None and why."""
    if hosts is None:
        try:
            return Master(opts, plan).make(part, name), ""
        except (BackupError, BookError, OSError) as error:
            return None, str(error)
    why = []
    for host in hosts:
        try:
            slurm = version(minions, plan)
            said = minions.run(host, "slurm_backup.make", part, name, within=_MAKE_S, slurm=slurm)
        except JoinFailed as error:
            said = str(error)
        if isinstance(said, dict):
            return said, ""
        why.append(f"{host}: {said}")
    return None, "; ".join(why)


class Master:
    """The parts that stand on the master."""

    def __init__(self, opts, plan):
        self.opts, self.plan = opts, plan
        self.store = Store(plan.data["backup"]["folder"])
        self.folders = {
            "secrets": Path(saltern_master.settings(opts)["secrets_dir"]),
            "keys": Path(opts["pki_dir"]),
        }
        self.book = saltern_admission.book(opts)

    def make(self, part, name, before_restore=False):
        """Make one part, and remove the oldest ones beyond backup:keep.

        before_restore: bool, none is removed: the oldest may be the one that is restored
        Returns its row. Raises BackupError, BookError or OSError.
        """
        if part == "register":
            image = join_image.take(self.book)
            of = f"{len(self.book.hosts())} hosts"
        else:
            image, count = _packed(self.folders[part])
            of = f"{count} files of {self.folders[part]}"
        about = {
            "at": time.time(),
            "host": socket.getfqdn().partition(".")[0],
            "cluster": self.plan.data["cluster"]["name"],
            "of": of,
        }
        row = self.store.keep(name, part, about, lambda take: take(image), backup.FILES[part])
        if not before_restore:
            self.store.prune(part, self.plan.data["backup"]["keep"])
        return row

    def is_beside(self):
        """Whether its backups share a file system with what they save."""
        devices = {folder.stat().st_dev for folder in self.folders.values() if folder.is_dir()}
        return self.store.folder.stat().st_dev in devices

    def image(self, part, name):
        """What was kept of one part, whole. Raises BackupError."""
        return b"".join(self.store.read(name, part))


def _packed(folder):
    """Every file of a folder as a tar archive, and how many there are; links are left out."""
    packed, count = io.BytesIO(), 0
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path in sorted(folder.rglob("*")):
            if path.is_symlink() or not path.is_file():
                continue
            tar.add(path, arcname=str(path.relative_to(folder)), recursive=False)
            count += 1
    return packed.getvalue(), count


def unpacked(image):
    """The files of such an archive: {path within the folder: bytes}. Raises BackupError for a path
    that leads out of it."""
    with tarfile.open(fileobj=io.BytesIO(image)) as tar:
        files = {member.name: tar.extractfile(member).read() for member in tar if member.isfile()}
    out = [name for name in files if name.startswith("/") or ".." in name.split("/")]
    if out:
        raise BackupError(f"The backup holds {out[0]!r}; expected names within its folder.")
    return files
