"""Source archives for the lab's mirror: fetched once on this machine, checked by the plan's sha256.

They come from Debian's source packages by apt, with lists of its own (the machine's apt
configuration stays as it is), or else from the plan's own `url`.
"""

import hashlib
import shutil
import tempfile
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from saltern_lab import aptsources, roots
from saltern_lab.errors import LabError
from saltern_lab.paths import LAB_DIR, cache_dir
from saltern_lab.record import locked
from saltern_lab.run import run

Say = Callable[[str], None]


def ensure(wanted: Mapping[str, Mapping[str, Any]], say: Say) -> None:
    """Have every wanted source ({name: {file, sha256, url?}}) in the mirror, as its sha256 says."""
    folder = cache_dir() / "sources"
    with locked(cache_dir(), "sources"):
        folder.mkdir(parents=True, exist_ok=True)
        missing = {
            name: source
            for name, source in wanted.items()
            if not _is_right(folder / source["file"], source["sha256"])
        }
        if missing:
            say(f"fetching the sources of {', '.join(missing)} (once)")
            with tempfile.TemporaryDirectory(prefix="sources-", dir=_tmp()) as work:
                for source in missing.values():
                    _fetch(source, Path(work), folder)


def _tmp() -> Path:
    (cache_dir() / "tmp").mkdir(parents=True, exist_ok=True)
    return cache_dir() / "tmp"


def sha256(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_right(path: Path, wanted: str) -> bool:
    return path.is_file() and sha256(path) == wanted


def _fetch(source: Mapping[str, Any], work: Path, folder: Path) -> None:
    file = source["file"]
    known = yaml.safe_load((LAB_DIR / "sources.yaml").read_text(encoding="utf-8"))
    got: Path | None = None
    if file in known:
        got = _by_apt(known[file]["package"], known[file]["suite"], file, work)
    elif source.get("url"):
        got = _by_url(source["url"], work / file)
    if got is None:
        raise LabError(
            f"The lab does not know where to get {file} from: put it into {folder} yourself "
            f"(sha256 {source['sha256']}), give the source a `url` in the plan, or name its Debian "
            "package in lab/sources.yaml."
        )
    found = sha256(got)
    if found != source["sha256"]:
        aside = folder / f".wrong-{file}"
        shutil.move(got, aside)
        raise LabError(
            f"The source {file} has the sha256 {found}, but the plan says {source['sha256']}; the "
            f"file is kept as {aside} for you to look at."
        )
    got.chmod(0o644)
    staged = folder / f".new-{file}"
    shutil.move(got, staged)
    staged.replace(folder / file)


def _by_apt(package: str, suite: str, file: str, work: Path) -> Path | None:
    """Download a source package's archives; the wanted one if it is among them."""
    state = work / suite
    apt = ["apt-get", "-q", *_apart(state)]
    what = f"Fetching the source package {package} (is a package registry reachable?)"
    if not state.is_dir():
        for part in ("lists/partial", "archives/partial"):
            (state / part).mkdir(parents=True)
        entries = roots.machine(suite, ["main"]).sources
        text = aptsources.render(entries, "deb-src", plain=False)
        (state / "sources.list").write_text(text, encoding="utf-8")
        run([*apt, "update"], what=what)
    run([*apt, "source", "--download-only", "--tar-only", package], what=what, cwd=work)
    return work / file if (work / file).is_file() else None


def _apart(state: Path) -> list[str]:
    """Options that keep apt out of the machine's own lists."""
    options = {
        "Dir::State": state,
        "Dir::State::lists": state / "lists",
        "Dir::State::status": "/var/lib/dpkg/status",
        "Dir::Cache": state,
        "Dir::Cache::archives": state / "archives",
        "Dir::Etc::sourcelist": state / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "APT::Sandbox::User": "root",
    }
    return [word for name, value in options.items() for word in ("-o", f"{name}={value}")]


def _by_url(url: str, target: Path) -> Path:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer, target.open("wb") as file:
            shutil.copyfileobj(answer, file)
    except OSError as error:
        raise LabError(f"Fetching {url} failed: {error}.") from None
    return target
