"""The reason of a drained node: whose it is, and our own, as text and as data.

Ours is ``saltern: CAUSE: finding @2026-12-01T13:01Z | CAUSE: …``; a word before the cause says
what became of it. Of a node in service the same text stands in the comment, after a person's own:
Slurm forgets the reason of a node that is neither drained nor down (measured, 24.11.5).

The text fits accounting's column (``reason tinytext``): slurmdbd cuts a longer one at 255 bytes, in
the middle of a cause (measured, 24.11.5 with MariaDB 11.8).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timezone

MARK = "saltern:"
MAX_BYTES = 255
_SEPARATOR = " | "
_CUT = ".."

DRAINED = ""
SUSPECT = "suspect"  # failed here, and the other nodes are about to be looked at
HELD = "held"  # fails on more than the plan's share of nodes: not drained
WIDESPREAD = "widespread"  # held, and this node raised the event
FLAPPING = "flapping"  # came and went too often: a person resumes
KINDS = (SUSPECT, HELD, WIDESPREAD, FLAPPING)
# The kinds that keep a node in service.
IN_SERVICE = frozenset({SUSPECT, HELD, WIDESPREAD})
_OVERFLOW = "more"

_CAUSE = re.compile(
    rf"^(?:(?P<kind>{'|'.join(KINDS)}) )?(?P<name>[^\s|:]+(?::[^\s|:]+)*): "
    r"(?P<finding>.*?)(?: @(?P<since>\d{4}-\d\d-\d\dT\d\d:\d\dZ))?$",
    re.DOTALL,
)
_AUTHOR = re.compile(r"^(?P<text>.*) \[(?P<user>[^\s\[\]@]+)@(?P<at>[^\s\[\]]+)\]$", re.DOTALL)


@dataclass(frozen=True)
class Cause:
    """One thing for which a node is, or may be, out of service.

    name: a check (``check_fs_mount_rw(/home)``) or what asked for the drain (``join``)
    since: seconds since the epoch, 0 if the text does not tell
    """

    name: str
    finding: str
    since: float = 0.0
    kind: str = DRAINED

    @property
    def is_check(self) -> bool:
        """Whether a node's own health check found it, and lifts it."""
        return self.name.startswith("check_")


def author(text: str) -> tuple[str, str, str]:
    """(reason, user, time) of a text of ``scontrol show node``: only the last bracket is Slurm's.

    User and time are empty when it has none (a reason from slurm.conf).
    """
    first, *rest = text.split("\n")  # of a reason of several lines, Slurm signs the first
    match = _AUTHOR.match(first)
    if match is None:
        return text, "", ""
    lines = [match["text"], *(line.removeprefix(" " * 10) for line in rest)]
    return "\n".join(lines), match["user"], match["at"]


def is_ours(reason: str) -> bool:
    """Whether the reason carries our mark; an empty one is nobody's."""
    return reason.startswith(MARK)


# What slurmctld and slurmd write by themselves (node_mgr.c, ping_nodes.c, slurmd/req.c, 24.11).
_SLURMS = re.compile(
    r"^(Not responding|Low |Kill task failed|Prolog error|Epilog error|Duplicate jobid|"
    r"batch job complete failure|Node unexpectedly rebooted|NO NETWORK ADDRESS FOUND|"
    r"ResumeTimeout reached|Reboot |reboot |gres/|Health check failed|Invalid |invalid |"
    r"GRES core|Stray |Scheduler health|Node .* not responding|missing |Failed to )"
)


def owner(reason: str, user: str, drained: bool) -> str:
    """Whose a drain or a reason is: ``saltern``, ``slurm``, ``person``, or empty for nobody's."""
    if is_ours(reason):
        return "saltern"
    if not reason:
        return "person" if drained else ""
    return "slurm" if _SLURMS.match(reason) and user in {"root", "slurm", ""} else "person"


def parse(reason: str) -> list[Cause]:
    """The causes of a reason of ours; none of another's."""
    if not is_ours(reason):
        return []
    parts = reason[len(MARK) :].strip().split(_SEPARATOR)
    return [_cause(part) for part in parts if part and not part.startswith(f"{_OVERFLOW}: ")]


def comment_parts(comment: str) -> tuple[str, str]:
    """(a person's own words, ours) of a node's comment."""
    words, mark, ours = comment.partition(MARK)
    return words.rstrip(), mark + ours


def comment(words: str, causes: Iterable[Cause]) -> str:
    """A node's comment of a person's own words and ours."""
    return " ".join(part for part in (words, text(causes)) if part)


def _cause(part: str) -> Cause:
    match = _CAUSE.match(part)
    if match is None:  # a person changed it by hand: kept as it is, under no check's name
        return Cause("unreadable", clean(part))
    since = _seconds(match["since"]) if match["since"] else 0.0
    return Cause(match["name"], match["finding"], since, match["kind"] or DRAINED)


def text(causes: Iterable[Cause]) -> str:
    """The reason for these causes; empty for none. Findings are cut to fit, names never."""
    wanted = list(causes)
    kept = fitting(wanted)
    if not kept:
        return ""
    extra = _overflow(len(wanted) - len(kept))
    room = MAX_BYTES - _size([*(replace(cause, finding="") for cause in kept), *extra])
    return _joined([*_shortened(kept, max(room, 0)), *extra])


def fitting(causes: Iterable[Cause]) -> list[Cause]:
    """The causes that a reason can name, in its order.

    Those of programs (``join``) come first. What does not fit is counted in the text, and the
    node's own record has it.
    """
    ordered = sorted(causes, key=lambda cause: (cause.is_check, cause.since, cause.name))
    kept = [replace(cause, finding="") for cause in ordered]
    while len(kept) > 1 and _size([*kept, *_overflow(len(ordered) - len(kept))]) > MAX_BYTES:
        kept.pop()
    return ordered[: len(kept)]


def overflows(reason: str) -> bool:
    """Whether a reason of ours could not name all its causes."""
    return is_ours(reason) and f"{_SEPARATOR}{_OVERFLOW}: " in reason


def _overflow(left: int) -> list[Cause]:
    return [Cause(_OVERFLOW, f"{left} causes")] if left else []


def clean(finding: str) -> str:
    """A finding as one line without what has a meaning in a reason of ours."""
    line = " ".join("".join(char if char.isprintable() else " " for char in finding).split())
    return line.replace("|", "/").replace('"', "'")


def cut(text: str, size: int) -> str:
    """A text within a number of bytes, whole characters only."""
    data = text.encode()
    if len(data) <= size:
        return text
    return data[: max(size - len(_CUT), 0)].decode(errors="ignore").rstrip() + _CUT[:size]


def stamp(seconds: float) -> str:
    """A time as reasons show it, to the minute."""
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%MZ")


def _seconds(stamp: str) -> float:
    try:
        moment = datetime.strptime(stamp, "%Y-%m-%dT%H:%MZ")
    except ValueError:  # edited by hand
        return 0.0
    return moment.replace(tzinfo=timezone.utc).timestamp()


def _one(cause: Cause) -> str:
    kind = f"{cause.kind} " if cause.kind else ""
    since = f" @{stamp(cause.since)}" if cause.since else ""
    return f"{kind}{cause.name}: {clean(cause.finding)}{since}"


def _joined(causes: Iterable[Cause]) -> str:
    return f"{MARK} {_SEPARATOR.join(_one(cause) for cause in causes)}"


def _size(causes: Iterable[Cause]) -> int:
    return len(_joined(causes).encode())


def _shortened(causes: list[Cause], room: int) -> list[Cause]:
    """The same causes, with findings that share the room: short ones leave theirs to long ones."""
    sizes = {index: len(clean(cause.finding).encode()) for index, cause in enumerate(causes)}
    granted: dict[int, int] = {}
    for left, (index, size) in zip(
        range(len(sizes), 0, -1), sorted(sizes.items(), key=lambda item: item[1]), strict=True
    ):
        granted[index] = min(size, room // left)
        room -= granted[index]
    return [
        replace(cause, finding=cut(clean(cause.finding), granted[index]))
        for index, cause in enumerate(causes)
    ]
