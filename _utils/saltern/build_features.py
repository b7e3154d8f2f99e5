"""What a Slurm tree can do: judged by its files, never by configure's exit status."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch

from saltern.problem import Problem


@dataclass(frozen=True)
class Feature:
    """One thing that a tree can do.

    files: patterns under the prefix; each must match a file
    flag: how Slurm's configure is asked for it, ``{prefix}`` is the tree's own
    decides: finds the lines of a configure output that settled it
    packages: what brings it, by OS family
    """

    files: tuple[str, ...]
    flag: str
    decides: str
    packages: Mapping[str, tuple[str, ...]]


# The plugin files are Slurm 24.11's (its src/plugins folders); the packages are those of SchedMD's
# quick start guide.
FEATURES: Mapping[str, Feature] = {
    "cgroup_v2": Feature(
        ("lib/slurm/cgroup_v2.so",),
        "--enable-cgroupv2",
        r"bpf|dbus|cgroup",
        {"Debian": ("libbpf-dev", "libdbus-1-dev"), "RedHat": ("libbpf-devel", "dbus-devel")},
    ),
    "hwloc": Feature(
        ("lib/libhwloc.so.*", "lib/slurm/task_affinity.so"), "--with-hwloc={prefix}", r"hwloc", {}
    ),
    "json": Feature(
        ("lib/slurm/serializer_json.so",),
        "--with-json",
        r"json",
        {"Debian": ("libjson-c-dev",), "RedHat": ("json-c-devel",)},
    ),
    "jwt": Feature(
        ("lib/slurm/auth_jwt.so",),
        "--with-jwt",
        r"jwt",
        {"Debian": ("libjwt-dev",), "RedHat": ("libjwt-devel",)},
    ),
    "lua": Feature(
        ("lib/slurm/job_submit_lua.so", "lib/slurm/cli_filter_lua.so"),
        "--with-lua",
        r"lua",
        {"Debian": ("liblua5.3-dev",), "RedHat": ("lua-devel",)},
    ),
    "munge": Feature(
        ("lib/slurm/auth_munge.so", "lib/slurm/cred_munge.so"),
        "--with-munge",
        r"munge",
        {"Debian": ("libmunge-dev",), "RedHat": ("munge-devel",)},
    ),
    "mysql": Feature(
        ("lib/slurm/accounting_storage_mysql.so",),
        "--with-mysql_config=/usr/bin",
        r"mysql|mariadb",
        {"Debian": ("libmariadb-dev",), "RedHat": ("mariadb-devel",)},
    ),
    "nvml": Feature(
        ("lib/slurm/gpu_nvml.so",),
        "--with-nvml",
        r"nvml|nvidia",
        {"Debian": ("libnvidia-ml-dev",), "RedHat": ("cuda-nvml-devel",)},
    ),
    "pam": Feature(
        ("lib/security/pam_slurm_adopt.so",),
        "--enable-pam",
        r"pam",
        {"Debian": ("libpam0g-dev",), "RedHat": ("pam-devel",)},
    ),
    "pmix": Feature(
        ("lib/libpmix.so.*", "lib/slurm/mpi_pmix_v*.so"), "--with-pmix={prefix}", r"pmix", {}
    ),
    "yaml": Feature(
        ("lib/slurm/serializer_yaml.so",),
        "--with-yaml",
        r"yaml",
        {"Debian": ("libyaml-dev",), "RedHat": ("libyaml-devel",)},
    ),
}


def flags(wanted: Iterable[str], prefix: str) -> list[str]:
    """Slurm's configure flags for these features."""
    return [FEATURES[name].flag.format(prefix=prefix) for name in sorted(wanted)]


def packages(wanted: Iterable[str], family: str) -> list[str]:
    """The development packages of these features."""
    return sorted(
        {package for name in wanted for package in FEATURES[name].packages.get(family, ())}
    )


def present(files: Sequence[str]) -> list[str]:
    """The features of a tree with these files (paths under its prefix)."""
    return [
        name
        for name, feature in FEATURES.items()
        if all(any(fnmatch(file, pattern) for file in files) for pattern in feature.files)
    ]


def missing(wanted: Iterable[str], files: Sequence[str]) -> list[str]:
    """The wanted features that a tree with these files has not."""
    return [name for name in wanted if name not in present(files)]


def lacking(wanted: Iterable[str], files: Sequence[str], where: str) -> list[Problem]:
    """A problem for each wanted feature that a tree has not."""
    return [
        Problem(f"{where}, feature {name}", _found(name, files), " and ".join(FEATURES[name].files))
        for name in missing(wanted, files)
    ]


def unbuilt(
    wanted: Iterable[str], files: Sequence[str], configure_output: str, family: str
) -> list[Problem]:
    """A problem for each wanted feature that a build did not make, with the line that decided it
    and the remedy."""
    return [
        Problem(
            f"build, feature {name}",
            f"{_found(name, files)}; configure said {deciding_line(name, configure_output)!r}",
            " and ".join(FEATURES[name].files),
            _remedy(name, family),
        )
        for name in missing(wanted, files)
    ]


def deciding_line(feature: str, configure_output: str) -> str:
    """The last line of a configure output that settled a feature; warnings and errors before
    others."""
    lines = [
        line.strip()
        for line in configure_output.splitlines()
        if re.search(FEATURES[feature].decides, line, re.IGNORECASE)
    ]
    loud = [
        line for line in lines if re.search(r"warning|error|unable|not found", line, re.IGNORECASE)
    ]
    negative = [line for line in lines if re.search(r"\.\.\. *(no)?$", line)]
    return (loud or negative or lines or ["nothing about it"])[-1]


def _found(feature: str, files: Sequence[str]) -> str:
    partly = any(fnmatch(file, pattern) for file in files for pattern in FEATURES[feature].files)
    return "only some of its files" if partly else "none of its files"


def _remedy(feature: str, family: str) -> str:
    names = FEATURES[feature].packages.get(family)
    return (
        f"install {' '.join(names)} on the builder"
        if names
        else f"look at the build of {feature} before Slurm's"
    )
