"""The artefact: what goes in, its id, the steps of its build, its manifest."""

from __future__ import annotations

import hashlib
import json
import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from saltern import build_features

ROOT = "/opt/slurm"
LINK = f"{ROOT}/current"
# Part of every spec: raise it when the steps below change what they make.
RECIPE = 1
ORDER = ("hwloc", "pmix", "slurm")
_ID_DIGITS = 12

Spec = Mapping[str, Any]


@dataclass(frozen=True)
class Step:
    """One program of a build."""

    name: str
    command: list[str]
    folder: str  # where it runs


def spec(build: Mapping[str, Any]) -> dict[str, Any]:
    """What the plan alone decides about an artefact; every host computes the same."""
    return {
        "recipe": RECIPE,
        "sources": {
            name: {
                key: build["sources"][name][key] for key in ("version", "sha256", "subdirectory")
            }
            for name in ORDER
        },
        "features": sorted(build["features"]),
        "configure": {name: list(build["configure"][name]) for name in ORDER},
    }


def digest(value: Any) -> str:
    """A short hash of plain data."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_ID_DIGITS]


def build_id(wanted: Spec, system: Mapping[str, str], packages: Mapping[str, str]) -> str:
    """The id of an artefact: its spec, the operating system, the versions of tools and linked
    libraries."""
    return digest({"spec": wanted, "system": system, "packages": packages})


def name(wanted: Spec, identity: str) -> str:
    """The artefact's name and folder: <Slurm version>-<build id>."""
    return f"{wanted['sources']['slurm']['version']}-{identity}"


def why(wanted: Mapping[str, Any], last: Mapping[str, Any] | None) -> list[str]:
    """What differs between the inputs wanted and those of the last artefact, in words."""
    if last is None:
        return ["nothing was built yet"]
    before, after = _flat(last), _flat(wanted)
    return [
        f"{key}: {before.get(key, 'absent')} -> {after.get(key, 'absent')}"
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]


def _flat(value: Any, path: str = "") -> dict[str, str]:
    if isinstance(value, Mapping):
        pairs = [(f"{path}:{key}" if path else str(key), below) for key, below in value.items()]
        return {key: leaf for at, below in pairs for key, leaf in _flat(below, at).items()}
    return {path: " ".join(value) if isinstance(value, list) else str(value)}


def configure_flags(wanted: Spec, prefix: str) -> dict[str, list[str]]:
    """Each configure's flags; what a feature needs is asked for by name, never left to be found."""
    return {
        "hwloc": [
            f"--prefix={prefix}",
            "--disable-static",
            "--disable-cairo",
            "--disable-libxml2",
            "--disable-opencl",
            "--disable-cuda",
            "--disable-nvml",
            "--disable-rsmi",
            "--disable-levelzero",
            *wanted["configure"]["hwloc"],
        ],
        "pmix": [
            f"--prefix={prefix}",
            f"--with-hwloc={prefix}",
            "--with-libevent",
            "--disable-static",
            "--disable-man-pages",
            "--without-tests-examples",
            *wanted["configure"]["pmix"],
        ],
        "slurm": [
            f"--prefix={prefix}",
            "--sysconfdir=/etc/slurm",
            "--disable-static",
            "--enable-slurmrestd",
            "--disable-sview",
            "--without-ofed",
            "--without-hdf5",
            "--without-rsmi",
            "--without-oneapi",
            "--without-freeipmi",
            "--without-ucx",
            f"--with-pam_dir={prefix}/lib/security",
            *build_features.flags(wanted["features"], prefix),
            *wanted["configure"]["slurm"],
        ],
    }


def steps(
    wanted: Spec, archives: Mapping[str, str], prefix: str, work: str, jobs: int
) -> list[Step]:
    """The programs of a build in their order; each source against the ones before it."""
    listed = [
        step
        for source in ORDER
        for step in _source_steps(wanted, source, archives[source], prefix, work, jobs)
    ]
    folder = _folder(wanted, "slurm", work)
    if "pam" in wanted["features"]:
        listed.append(
            Step("slurm-pam", ["make", "-C", "contribs/pam_slurm_adopt", "install"], folder)
        )
    return [*listed, *_trim_steps(prefix)]


def _source_steps(
    wanted: Spec, source: str, archive: str, prefix: str, work: str, jobs: int
) -> list[Step]:
    flags = configure_flags(wanted, prefix)[source]
    folder = _folder(wanted, source, work)
    top = posixpath.join(work, source)
    run_path = f"LDFLAGS=-Wl,-rpath,{prefix}/lib"
    return [
        # Slurm's configure takes a folder for PAM modules only if it is there.
        Step(f"{source}-unpack", ["mkdir", "-p", top, f"{prefix}/lib/security"], work),
        Step(
            f"{source}-unpack",
            ["tar", "-xf", archive, "-C", top, "--strip-components=1", "--no-same-owner"],
            work,
        ),
        Step(f"{source}-configure", [f"{folder}/configure", *flags, run_path], folder),
        Step(f"{source}-make", ["make", f"-j{jobs}"], folder),
        Step(f"{source}-install", ["make", f"-j{jobs}", "install"], folder),
    ]


def _folder(wanted: Spec, source: str, work: str) -> str:
    return posixpath.normpath(
        posixpath.join(work, source, wanted["sources"][source]["subdirectory"])
    )


def _trim_steps(prefix: str) -> list[Step]:
    """No static archives, no libtool files, no debugging symbols, no manuals of libraries."""
    unwanted = ["(", "-name", "*.a", "-o", "-name", "*.la", ")", "-delete"]
    # file(1) may not be there; strip leaves what is no object file alone and says so with its
    # status.
    objects = [
        "(",
        "-name",
        "*.so",
        "-o",
        "-name",
        "*.so.*",
        "-o",
        "-path",
        "*/bin/*",
        "-o",
        "-path",
        "*/sbin/*",
        ")",
    ]
    strip = [
        "-exec",
        "sh",
        "-c",
        'strip --strip-debug "$@" 2>/dev/null || true',
        "strip",
        "{}",
        "+",
    ]
    return [
        Step("trim", ["find", prefix, "-type", "f", *unwanted], prefix),
        Step("trim", ["find", prefix, "-type", "f", *objects, *strip], prefix),
        Step(
            "trim", ["rm", "-rf", f"{prefix}/share/doc", f"{prefix}/share/hwloc/misc-tests"], prefix
        ),
    ]


def foreign(libraries: str, prefix: str) -> list[str]:
    """Plugins whose libraries do not resolve as they must, from the output of ldd over a tree.

    hwloc and PMIx have to come from the tree itself; nothing may be missing, but for NVML, which
    the driver brings.
    """
    found = []
    file = ""
    for line in libraries.splitlines():
        if not line.startswith("\t"):
            file = line.rstrip(":")
            continue
        library, _, target = line.strip().partition(" => ")
        own = library.startswith(("libpmix.so", "libhwloc.so", "libslurm"))
        if target.startswith("not found") and not library.startswith("libnvidia-ml.so"):
            found.append(f"{file}: {library} is not found")
        elif own and target and not target.startswith(f"{prefix}/"):
            found.append(f"{file}: {library} comes from {target.split()[0]}, not from the tree")
    return found


def newest(manifests: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The manifest that was written last."""
    return max(manifests, key=lambda manifest: manifest["built"], default=None)


def surplus(
    names: Sequence[str], ages: Mapping[str, float], used: set[str], keep: int
) -> list[str]:
    """The deployed trees to remove: the oldest beyond ``keep``, never one that is active or still
    runs."""
    spare = sorted(
        (name for name in names if name not in used), key=lambda name: ages[name], reverse=True
    )
    return spare[keep:]
