"""The repository's files as they are now: tracked and new ones, without what git ignores."""

import hashlib
import io
import subprocess
import tarfile
from collections.abc import Sequence
from pathlib import Path

from saltern_lab.paths import REPOSITORY
from saltern_lab.run import run

# What a running master has loaded: a change here needs its restart.
LOADED = ("etc/", "_engines/", "_pillar/", "_runners/", "_utils/", "reactor/")


def files() -> list[str]:
    """Paths in the repository, sorted."""
    text = run(
        [
            "git",
            "-c",
            f"safe.directory={REPOSITORY}",
            "ls-files",
            "-z",
            "-co",
            "--exclude-standard",
        ],
        what="Listing the repository's files",
        cwd=REPOSITORY,
    )
    return sorted({name for name in text.split("\0") if name and _is_there(REPOSITORY / name)})


def _is_there(path: Path) -> bool:
    return path.is_symlink() or path.is_file()


def digest(names: Sequence[str], prefixes: Sequence[str] = ("",)) -> str:
    """A hash of names, modes and contents of the files under some prefixes."""
    total = hashlib.sha256()
    for name in names:
        if not name.startswith(tuple(prefixes)):
            continue
        path = REPOSITORY / name
        content = str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()
        total.update(f"{name}\0{path.lstat().st_mode}\0{len(content)}\0".encode() + content)
    return total.hexdigest()[:16]


def unpack_into(command: Sequence[str], names: Sequence[str]) -> None:
    """Send the files as a tar stream, owned by root, to a command's standard input."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name in names:
            info = tar.gettarinfo(REPOSITORY / name, arcname=name)
            info.uid = info.gid = 0
            info.uname = info.gname = "root"
            info.mode = 0o755 if info.mode & 0o100 else 0o644
            if info.isreg():
                with (REPOSITORY / name).open("rb") as content:
                    tar.addfile(info, content)
            else:
                tar.addfile(info)
    subprocess.run(list(command), input=archive.getvalue(), check=True, timeout=120)
