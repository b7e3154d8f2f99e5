"""The bare root of the hosts, in layers, each kept in the cache under a hash of what goes in.

`base` is Debian and Python from mmdebstrap; `salt` on top of it is a virtual environment with Salt
at /opt/saltstack/salt, the place of Salt's own packages. Wheels are built once, in a throw-away
root with a compiler, and installed without one.
"""

import configparser
import contextlib
import hashlib
import io
import json
import os
import shutil
import subprocess
import tempfile
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from saltern_lab import aptsources
from saltern_lab.errors import LabError
from saltern_lab.paths import LAB_DIR, REPOSITORY, cache_dir
from saltern_lab.record import locked
from saltern_lab.run import last_lines, run

FORMAT = 1  # raise when the way of building a layer changes
SALT_HOME = "/opt/saltstack/salt"
SALT_PROGRAMS = (
    "salt",
    "salt-call",
    "salt-cp",
    "salt-key",
    "salt-master",
    "salt-minion",
    "salt-run",
)
PIP_CONF = (Path("/etc/pip.conf"), Path.home() / ".config/pip/pip.conf")
CA_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")


@dataclass(frozen=True)
class Machine:
    """What the hosts take over from this machine's apt configuration."""

    sources: tuple[aptsources.Source, ...]
    settings: tuple[str, ...]
    proxy: str | None

    @property
    def upstreams(self) -> dict[str, str]:
        """The hosts' http address of each archive, and where it really is."""
        return {source.plain_uri: source.uri.rstrip("/") for source in self.sources}


def wanted() -> dict[str, Any]:
    """lab/root.yaml."""
    data: dict[str, Any] = yaml.safe_load((LAB_DIR / "root.yaml").read_text(encoding="utf-8"))
    return data


def machine(suite: str, components: Sequence[str]) -> Machine:
    """Read the machine's apt configuration for a suite."""
    files = {}
    for path in [Path("/etc/apt/sources.list"), *Path("/etc/apt/sources.list.d").glob("*")]:
        if path.is_file():
            files[str(path)] = path.read_text(encoding="utf-8")
    sources = aptsources.translate(aptsources.parse_files(files), codename(), suite, components)
    dump = run(["apt-config", "dump"], what="Reading the machine's apt configuration")
    return Machine(tuple(sources), tuple(aptsources.kept_settings(dump)), aptsources.proxy(dump))


def codename() -> str:
    """The machine's own Debian release."""
    for line in Path("/etc/os-release").read_text(encoding="utf-8").splitlines():
        if line.startswith("VERSION_CODENAME="):
            return line.split("=", 1)[1].strip('"')
    raise LabError(
        "This machine's /etc/os-release names no release: the lab runs on Debian 12 or 13."
    )


def key(*parts: Any) -> str:
    """A short hash of what goes into a layer."""
    text = json.dumps([FORMAT, *parts], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def layers(say: Callable[[str], None]) -> list[Path]:
    """The layers of a bare host, upper first; built if they are not in the cache."""
    want = wanted()
    ours = machine(want["suite"], want["components"])
    base = _base(want, ours, say)
    salt = _salt(want, ours, base, say)
    return [salt, base]


def _base(want: dict[str, Any], ours: Machine, say: Callable[[str], None]) -> Path:
    text = aptsources.render(ours.sources)
    bundle = hashlib.sha256(CA_BUNDLE.read_bytes()).hexdigest() if CA_BUNDLE.exists() else ""
    name = f"base-{key(want['suite'], want['packages'], text, ours.settings, bundle)}"
    with _made(name) as (kept, new):
        if new is None:
            return kept
        reachable(ours)
        say(f"building the root of Debian {want['suite']} (once)")
        command = ["mmdebstrap", "--quiet", "--variant=minbase", "--skip=cleanup/apt/lists"]
        command += [f"--aptopt={setting.removesuffix(';')}" for setting in ours.settings]
        if ours.proxy:
            command.append(f'--aptopt=Acquire::http::Proxy "{ours.proxy}"')
        command += [f"--include={','.join(want['packages'])}", want["suite"], str(new), "-"]
        real = aptsources.render(ours.sources, plain=False)
        run(command, stdin=real, what=_registry(f"Building the root of Debian {want['suite']}"))
        _finish_base(new, ours, text)
    return kept


def _registry(what: str) -> str:
    return f"{what} (is a package registry reachable?)"


def reachable(ours: Machine) -> None:
    """Raise LabError unless the machine's first archive answers."""
    source = ours.sources[0]
    url = f"{source.uri.rstrip('/')}/dists/{source.suite}/InRelease"
    proxies = [urllib.request.ProxyHandler({"http": ours.proxy})] if ours.proxy else []
    request = urllib.request.Request(url, method="HEAD")
    try:
        urllib.request.build_opener(*proxies).open(request, timeout=30).close()
    except OSError as error:
        raise LabError(
            f"No package registry can be reached: {url} (from this machine's apt sources) says: "
            f"{error}."
        ) from None


def _finish_base(root: Path, ours: Machine, sources: str) -> None:
    """What each host then finds: the machine's apt sources and certificates, no identity."""
    for old in (root / "etc/apt/sources.list.d").glob("*"):
        old.unlink()
    for old in (root / "etc/apt/apt.conf.d").glob("99mmdebstrap"):
        old.unlink()
    (root / "etc/apt/sources.list").write_text(sources, encoding="utf-8")
    settings = "".join(f"{setting}\n" for setting in ours.settings)
    (root / "etc/apt/apt.conf.d/90machine").write_text(settings, encoding="utf-8")
    for source in ours.sources:
        if source.signed_by and Path(source.signed_by).is_file():
            copy = root / source.signed_by.lstrip("/")
            copy.parent.mkdir(parents=True, exist_ok=True)
            if not copy.exists():
                shutil.copy2(source.signed_by, copy)
    if CA_BUNDLE.exists():
        shutil.copy2(CA_BUNDLE, root / str(CA_BUNDLE).lstrip("/"))
    for identity in ("etc/machine-id", "etc/hostname", "etc/resolv.conf"):
        (root / identity).unlink(missing_ok=True)
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n::1 localhost\n", encoding="utf-8")
    run(["systemctl", f"--root={root}", "enable", "systemd-networkd"], what="Enabling the network")
    run(
        ["systemctl", f"--root={root}", "mask", "getty@tty1", "console-getty"], what="Masking getty"
    )


def _salt(want: dict[str, Any], ours: Machine, base: Path, say: Callable[[str], None]) -> Path:
    kept_wheels = wheels("salt", [f"salt=={want['salt']}", "pip"], ours, [base], say)
    units = {p.name: p.read_text(encoding="utf-8") for p in (LAB_DIR / "root").glob("*.service")}
    name = f"salt-{key(base.name, kept_wheels.name, units, SALT_PROGRAMS)}"
    with _made(name) as (kept, new):
        if new is None:
            return kept
        say(f"installing Salt {want['salt']} into the root (once)")
        links = " && ".join(f"ln -s {SALT_HOME}/bin/{p} /usr/bin/{p}" for p in SALT_PROGRAMS)
        script = (
            f"set -e; python3 -m venv --without-pip {SALT_HOME}; "
            f"python3 $(echo /wheels/pip-*.whl)/pip -q --python {SALT_HOME}/bin/python install"
            f" --no-index --find-links /wheels --root-user-action=ignore pip salt=={want['salt']}; "
            f"{links}; ln -s {SALT_HOME}/bin/pip /usr/bin/salt-pip; "
            "mkdir -p /etc/salt/minion.d /etc/salt/master.d /var/log/salt"
        )
        with throw_away([base], upper=new) as root:
            for unit, text in units.items():
                (root / "usr/lib/systemd/system" / unit).write_text(text, encoding="utf-8")
            inside(root, script, binds=[f"{kept_wheels}:/wheels"], what="Installing Salt")
    return kept


def wheels(
    name: str,
    requirements: Sequence[str],
    ours: Machine,
    lower: Sequence[Path],
    say: Callable[[str], None],
) -> Path:
    """A folder of wheels with everything that the requirements need, built if not in the cache.

    The lower layers are those of the throw-away root: with Salt's, its pip is there already and no
    compiler is installed, which the master's libraries do not need.
    """
    want = wanted()
    packages = [] if len(lower) > 1 else want["wheel_builder"]
    folder = f"{name}-{key(list(requirements), want['suite'], packages)}"
    with _made(folder, "wheels") as (kept, new):
        if new is None:
            return kept
        say(f"building wheels for {name} (once)")
        script = (
            "set -e; export DEBIAN_FRONTEND=noninteractive; "
            f"{apt_install(ours, ' '.join(packages)) if packages else 'true'}; "
            "pip=$(command -v salt-pip || command -v pip); "
            f"$pip wheel -q --cache-dir /pip-cache -w /wheels {' '.join(requirements)}"
        )
        pip_cache = cache_dir() / "pip"
        pip_cache.mkdir(parents=True, exist_ok=True)
        with throw_away(lower) as root:
            real_sources(root, ours)
            texts = [path.read_text(encoding="utf-8") for path in PIP_CONF if path.is_file()]
            (root / "etc/pip.conf").write_text(pip_configuration(texts), encoding="utf-8")
            inside(
                root,
                script,
                binds=[f"{new}:/wheels", f"{pip_cache}:/pip-cache"],
                what=_registry(f"Building wheels for {name}"),
            )
    return kept


def apt_install(ours: Machine, packages: str) -> str:
    """Shell text that installs packages in a throw-away root."""
    apt = f"apt-get -q {f'-o Acquire::http::Proxy={ours.proxy}' if ours.proxy else ''}"
    return f"{apt} update; {apt} install -y --no-install-recommends {packages}"


def real_sources(root: Path, ours: Machine) -> None:
    """Let a throw-away root, which is on the machine's own network, fetch as the machine does."""
    text = aptsources.render(ours.sources, plain=False)
    (root / "etc/apt/sources.list").write_text(text, encoding="utf-8")


def pip_configuration(texts: Sequence[str]) -> str:
    """The machine's pip configuration for a root, without folders that only the machine has."""
    merged = configparser.RawConfigParser()
    for text in texts:
        merged.read_string(text)
    for section in merged.sections():
        for name in ("find-links", "extra-index-url"):
            if merged.has_option(section, name):
                kept = [w for w in merged.get(section, name).split() if w.startswith("http")]
                merged.set(section, name, "\n".join(kept))
    written = io.StringIO()
    merged.write(written)
    return written.getvalue()


@contextlib.contextmanager
def _made(name: str, kind: str = "roots") -> Iterator[tuple[Path, Path | None]]:
    """The kept folder, and a new one to fill if it is not there, moved in place when whole."""
    kept = cache_dir() / kind / name
    with locked(cache_dir(), f"{kind}-{name.partition('-')[0]}"):
        if kept.is_dir():
            os.utime(kept)
            yield kept, None
            return
        kept.parent.mkdir(parents=True, exist_ok=True)
        new = Path(tempfile.mkdtemp(prefix=f".new-{name}-", dir=kept.parent))
        new.chmod(0o755)
        try:
            yield kept, new
            new.rename(kept)
        finally:
            shutil.rmtree(new, ignore_errors=True)


@contextlib.contextmanager
def throw_away(lower: Sequence[Path], upper: Path | None = None) -> Iterator[Path]:
    """A writable root over layers, for a while; what is written lands in `upper` or nowhere."""
    (cache_dir() / "tmp").mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="root-", dir=cache_dir() / "tmp") as name:
        folder = Path(name)
        for part in ("upper", "work", "merged"):
            (folder / part).mkdir()
        if upper is not None:
            # The work folder must lie on the upper one's file system; both are in the cache.
            (folder / "upper").rmdir()
            (folder / "upper").symlink_to(upper)
        options = (
            f"lowerdir={':'.join(map(str, lower))},upperdir={folder}/upper,workdir={folder}/work"
        )
        merged = folder / "merged"
        run(["mount", "-t", "overlay", "saltern", "-o", options, merged], what="Mounting a root")
        try:
            yield merged
        finally:
            run(["umount", merged], what="Unmounting a root")


def inside(
    root: Path, script: str, *, binds: Sequence[str], what: str, read_only: Sequence[str] = ()
) -> None:
    """Run a shell script in a root, on the machine's own network."""
    command = ["systemd-nspawn", "--quiet", "--register=no", "--pipe", "--as-pid2"]
    command += [
        "--resolv-conf=replace-host",
        f"--machine=saltern-{os.getpid()}",
        f"--directory={root}",
    ]
    if not Path("/run/systemd/system").is_dir():
        command.append("--keep-unit")
    command += [f"--bind={bind}" for bind in binds]
    command += [f"--bind-ro={bind}" for bind in read_only]
    for name, value in os.environ.items():
        pip = name.startswith("PIP_") and name not in {"PIP_FIND_LINKS", "PIP_CACHE_DIR"}
        if pip or name.lower() in {"http_proxy", "https_proxy", "no_proxy"}:
            command.append(f"--setenv={name}={value}")
    done = subprocess.run(
        [*command, "sh", "-c", script],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        # nspawn's own complaint about its folder under /run (no tmpfs here) says nothing about the
        # script.
        said = [line for line in done.stderr.splitlines() if "/run/systemd/nspawn/" not in line]
        raise LabError(f"{what} failed: {last_lines(chr(10).join(said) or done.stdout)}")


def repository_requirements() -> list[str]:
    """The lines of etc/requirements-master.txt, if the repository has it yet."""
    path = REPOSITORY / "etc" / "requirements-master.txt"
    if not path.is_file():
        return []
    lines = [line.split("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line]
