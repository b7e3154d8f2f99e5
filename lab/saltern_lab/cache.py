"""`lab/lab cache`: what is kept, how much it is, and away with it."""

import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from saltern_lab import record
from saltern_lab.errors import LabError
from saltern_lab.paths import cache_dir

KINDS = {
    "roots": "bare roots in layers, by a hash of what went in",
    "wheels": "Python packages for Salt and the master, served by the mirror",
    "sources": "source archives of the plan, served by the mirror",
    "apt": "packages and indices of the machine's apt archives, served by the mirror",
    "artefacts": "built Slurm trees by build id: the builder's store",
    "jobs": "the compiled MPI job",
    "pip": "pip's own cache",
    "tmp": "leftovers of cut runs",
}


@dataclass(frozen=True)
class Entry:
    """One kept thing."""

    kind: str
    name: str
    size: int
    used_by: tuple[str, ...]


def entries() -> list[Entry]:
    """Everything in the cache: some kinds thing by thing, the others as a whole."""
    users = layer_users()
    found = []
    for kind in KINDS:
        folder = cache_dir() / kind
        if not folder.is_dir():
            continue
        if kind in {"roots", "wheels", "artefacts", "sources", "jobs"}:
            for path in sorted(folder.iterdir()):
                used_by = tuple(users.get(str(path), ()))
                found.append(Entry(kind, path.name, size_of(path), used_by))
        else:
            found.append(Entry(kind, "", size_of(folder), ()))
    return found


def layer_users() -> dict[str, list[str]]:
    """Which labs stand on which layer."""
    users: dict[str, list[str]] = {}
    for lab in record.all_labs():
        for layer in {layer for host in lab.hosts.values() for layer in host.layers}:
            users.setdefault(layer, []).append(lab.name)
    return users


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files in a folder (links not followed)."""
    if path.is_symlink() or not path.is_dir():
        return path.lstat().st_size
    return sum(p.lstat().st_size for p in path.rglob("*") if p.is_symlink() or p.is_file())


def show() -> str:
    """The cache as text."""
    lines = [f"{cache_dir()}"]
    total = 0
    for kind, meaning in KINDS.items():
        mine = [entry for entry in entries() if entry.kind == kind]
        total += sum(entry.size for entry in mine)
        lines.append(f"{kind:<10} {sum(entry.size for entry in mine) / 1e6:>8.1f} MB  {meaning}")
        for entry in mine:
            if entry.name:
                used = f"  (in use by lab {', '.join(entry.used_by)})" if entry.used_by else ""
                lines.append(f"{'':<10} {entry.size / 1e6:>8.1f} MB    {entry.name}{used}")
    lines.append(f"{'total':<10} {total / 1e6:>8.1f} MB")
    return "\n".join(lines)


def clean(kinds: Iterable[str]) -> list[str]:
    """Remove kinds of kept things (all if none is named); returns what was removed.

    Roots that a lab stands on stay. Raises LabError for an unknown kind, and for artefacts while a
    lab has them bound.
    """
    kinds = list(kinds) or list(KINDS)
    unknown = sorted(set(kinds) - set(KINDS))
    if unknown:
        raise LabError(
            f"The cache has no kind {', '.join(unknown)}; its kinds are: {', '.join(KINDS)}."
        )
    labs = [lab.name for lab in record.all_labs()]
    bound = set(kinds) & {"artefacts", "apt", "sources", "wheels", "tmp"}
    if labs and bound:
        raise LabError(
            f"The lab {', '.join(labs)} uses {', '.join(sorted(bound))} of the cache: `lab/lab "
            "destroy` it first, or name other kinds to clean."
        )
    removed = []
    for entry in entries():
        if entry.kind in kinds and not entry.used_by:
            path = cache_dir() / entry.kind / entry.name if entry.name else cache_dir() / entry.kind
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
            removed.append(f"{entry.kind}/{entry.name}".rstrip("/"))
    return removed
