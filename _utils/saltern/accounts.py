"""Fixed ids: does an account of the plan fit what a host already has?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from saltern.problem import Problem

Ids = Mapping[str, int]  # name: number

# File systems that belong to this host alone; one that others share is not searched for files.
LOCAL = frozenset(
    {"bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "xfs", "zfs"}
)


def conflicts(name: str, uid: int, gid: int, users: Ids, groups: Ids) -> list[Problem]:
    """Why an account cannot get its ids here: it has others, or they have another owner."""
    return [
        *_of_kind("user", name, uid, users),
        *_of_kind("group", name, gid, groups),
    ]


def _of_kind(kind: str, name: str, number: int, known: Ids) -> Iterable[Problem]:
    letter = kind[0]
    if known.get(name, number) != number:
        yield Problem(
            f"{kind} {name}",
            f"{letter}id {known[name]}",
            f"{number}, as the plan says",
            f"Saltern changes no id under files: stop its daemons, give its files to {number}, "
            f"then `{kind}mod -{letter} {number} {name}`; or set it in foundation of the plan",
        )
    for owner, taken in known.items():
        if taken == number and owner != name:
            yield Problem(
                f"{kind} {name}",
                f"{letter}id {number} taken by {owner}",
                f"{number} free",
                f"move {owner} to another id, or change the plan",
            )


def local_mounts(mounts: str) -> list[str]:
    """Where this host's own file systems are mounted, by /proc/mounts; each of them once."""
    found: dict[str, str] = {}
    for line in mounts.splitlines():
        device, point, kind = line.split()[:3]
        if kind in LOCAL:
            # /proc/mounts writes blanks and the like as octal (proc(5), fstab(5))
            found.setdefault(device, point.encode().decode("unicode_escape"))
    return sorted(found.values())


SHOWN = 5


def owned(kind: str, number: int, files: list[str], complete: bool) -> str:
    """The sentence on the files that an id owns. complete: whether the search came to its end."""
    least = "" if complete else "at least "
    count = f"{least}{len(files)} file{'' if len(files) == 1 else 's'}"
    shown = ", ".join(files[:SHOWN])
    rest = ", …" if len(files) > SHOWN else ""
    return f"{kind} {number} owns {count} on this host's own file systems" + (
        f": {shown}{rest}" if files else ""
    )
