"""What differs between operating systems, as one table: packages, paths, units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# os: (os_family, releases that the rendering tests cover)
SUPPORTED = {
    "Debian": ("Debian", ("12", "13")),
    "Ubuntu": ("Debian", ("22.04", "24.04")),
    "RedHat": ("RedHat", ("8", "9", "10")),
    "Rocky": ("RedHat", ("8", "9", "10")),
    "AlmaLinux": ("RedHat", ("8", "9", "10")),
}

_COMMON: dict[str, Any] = {
    "munge": {
        "service": "munge",
        # folder: mode, as munged demands them (munged(8), FILES); all belong to munge.
        "directories": {"/etc/munge": "0700", "/var/lib/munge": "0711", "/var/log/munge": "0700"},
    },
    # Other daemons that set the clock. Debian's chrony package removes the first, EL's does not.
    "rivals": ["systemd-timesyncd", "ntpd", "ntp", "ntpsec", "openntpd"],
    "limits": {
        "pam": "/etc/security/limits.d/60-saltern.conf",
        "systemd": "/etc/systemd/system.conf.d/60-saltern.conf",
    },
    "sysctl": {"conf": "/etc/sysctl.d/60-saltern.conf"},
}

TABLE: dict[str, dict[str, Any]] = {
    "Debian": {
        "munge": {
            **_COMMON["munge"],
            "package": "munge",
            "options_file": "/etc/default/munge",
        },
        "chrony": {
            "package": "chrony",
            "service": "chrony",
            "conf": "/etc/chrony/chrony.conf",
            "drift_file": "/var/lib/chrony/chrony.drift",
            "rivals": _COMMON["rivals"],
            "key_file": "/etc/chrony/chrony.keys",
        },
        "limits": _COMMON["limits"],
        "sysctl": {**_COMMON["sysctl"], "package": "procps"},
        "mariadb": {
            "package": "mariadb-server",
            "service": "mariadb",
            "conf": "/etc/mysql/mariadb.conf.d/60-saltern.cnf",
            "client": "mariadb",
            "dump": "mariadb-dump",
        },
        "openldap": {
            "packages": ["slapd", "ldap-utils"],
            "client": "ldap-utils",
            "preseed": {"slapd/no_configuration": {"type": "boolean", "value": "true"}},
            "service": "slapd",
            "user": "openldap",
            "conf": "/etc/ldap/slapd.d",
            "schemas": "/etc/ldap/schema",
            "tls": "/etc/ldap/saltern",
            "modules": "/usr/lib/ldap",
            "data": "/var/lib/ldap",
            "run": "/run/slapd",
        },
        "sssd": {
            "packages": ["sssd-ldap", "libnss-sss", "libpam-sss", "sssd-tools"],
            # systemd's sockets start the parts of it; a line that names them makes those fail.
            "services": "",
            "conf_mode": "0640",
            "homes_active": "pam_mkhomedir",
            "homes_file": "/etc/pam.d/common-session",
            "homes": ["pam-auth-update", "--enable", "mkhomedir"],
        },
        "ssh": {"package": "openssh-server", "service": "ssh"},
        "nginx": {
            "package": "nginx-light",
            "service": "nginx",
            "default_site": "/etc/nginx/sites-enabled/default",
        },
        "logrotate": {"package": "logrotate"},
        "python": {"package": "python3", "path": "/usr/bin/python3"},
        "nhc": ["bash", "make", "gawk", "procps"],
        # What a Slurm tree's programs and plugins link beside itself.
        "slurm_runtime": [
            "libevent-core-2.1-7t64",
            "libevent-pthreads-2.1-7t64",
            "libbpf1",
            "libdbus-1-3",
            "libhttp-parser2.9",
            "libjson-c5",
            "libjwt2",
            "liblua5.3-0",
            "liblz4-1",
            "libmariadb3",
            "libmunge2",
            "libnuma1",
            "libpam0g",
            "libreadline8t64",
            "libyaml-0-2",
        ],
        "slurm_build": [
            "build-essential",
            "gcc",
            "libc6-dev",
            "make",
            "bzip2",
            "libbpf-dev",
            "libdbus-1-dev",
            "libevent-dev",
            "libhttp-parser-dev",
            "libjson-c-dev",
            "libjwt-dev",
            "liblua5.3-dev",
            "liblz4-dev",
            "libmariadb-dev",
            "libmunge-dev",
            "libnuma-dev",
            "libnvidia-ml-dev",
            "libpam0g-dev",
            "libreadline-dev",
            "libssl-dev",
            "libyaml-dev",
            "perl",
            "pkg-config",
            "python3",
            "xz-utils",
            "zlib1g-dev",
        ],
    },
    "RedHat": {
        "munge": {
            **_COMMON["munge"],
            "package": "munge",
            "options_file": "/etc/sysconfig/munge",
        },
        "chrony": {
            "package": "chrony",
            "service": "chronyd",
            "conf": "/etc/chrony.conf",
            "drift_file": "/var/lib/chrony/drift",
            "rivals": _COMMON["rivals"],
            "key_file": "/etc/chrony.keys",
        },
        "limits": _COMMON["limits"],
        "sysctl": {**_COMMON["sysctl"], "package": "procps-ng"},
        "mariadb": {
            "package": "mariadb-server",
            "service": "mariadb",
            "conf": "/etc/my.cnf.d/60-saltern.cnf",
            "client": "mysql",
            "dump": "mysqldump",
        },
        "openldap": {
            "packages": ["openldap-servers", "openldap-clients"],
            "client": "openldap-clients",
            "preseed": {},
            "service": "slapd",
            "user": "ldap",
            "conf": "/etc/openldap/slapd.d",
            "schemas": "/etc/openldap/schema",
            "tls": "/etc/openldap/saltern",
            "modules": "/usr/lib64/openldap",
            "data": "/var/lib/ldap",
            "run": "/var/run/openldap",
        },
        "sssd": {
            "packages": [
                "sssd-ldap",
                "sssd-client",
                "sssd-tools",
                "oddjob-mkhomedir",
                "authselect",
            ],
            "services": "nss, pam, ssh",
            "conf_mode": "0600",
            "homes_active": "with-mkhomedir",
            "homes_file": "/etc/authselect/authselect.conf",
            "homes": ["authselect", "select", "sssd", "with-mkhomedir", "--force"],
        },
        "ssh": {"package": "openssh-server", "service": "sshd"},
        "nginx": {"package": "nginx", "service": "nginx", "default_site": None},
        "logrotate": {"package": "logrotate"},
        "python": {"package": "python3", "path": "/usr/bin/python3"},
        "nhc": ["bash", "make", "gawk", "procps-ng"],
        "slurm_runtime": [
            "dbus-libs",
            "http-parser",
            "json-c",
            "libbpf",
            "libevent",
            "libjwt",
            "libyaml",
            "lua-libs",
            "lz4-libs",
            "mariadb-connector-c",
            "munge-libs",
            "numactl-libs",
            "pam",
            "readline",
        ],
        "slurm_build": [
            "bzip2",
            "dbus-devel",
            "gcc",
            "gcc-c++",
            "http-parser-devel",
            "json-c-devel",
            "libbpf-devel",
            "libevent-devel",
            "libjwt-devel",
            "libyaml-devel",
            "lua-devel",
            "lz4-devel",
            "make",
            "mariadb-devel",
            "munge-devel",
            "numactl-devel",
            "openssl-devel",
            "pam-devel",
            "perl",
            "pkgconf-pkg-config",
            "python3",
            "readline-devel",
            "xz",
            "zlib-devel",
        ],
    },
}

# The time_t transition renamed these in Debian 13 and Ubuntu 24.04; before it they had no suffix.
_RENAMED = {
    "libevent-core-2.1-7t64": "libevent-core-2.1-7",
    "libevent-pthreads-2.1-7t64": "libevent-pthreads-2.1-7",
    "libreadline8t64": "libreadline8",
}
# Programs on nodes want Python 3.10 or newer; these systems' own is older.
_PYTHON = {"8": "python3.11", "9": "python3.11"}
# SSSD 2.10 opens its file to the group at each start (Debian 13); before, it took no such file.
_SSSD_PRIVATE = {("Debian", "12"), ("Ubuntu", "22.04"), ("Ubuntu", "24.04")}
_BEFORE_TIME_T = {("Debian", "12"), ("Ubuntu", "22.04")}
_OTHERS = {
    ("Debian", "12"): {"libjwt2": "libjwt0"},
    ("Ubuntu", "22.04"): {"libjwt2": "libjwt0", "libbpf1": "libbpf0"},
}


class UnknownPlatform(LookupError):
    """An operating system that Saltern does not know."""


def supported() -> str:
    """The systems that Saltern knows, for a message."""
    return "; ".join(f"{name} {', '.join(releases)}" for name, (_, releases) in SUPPORTED.items())


def is_supported(os: str, release: str) -> bool:
    """Whether Saltern knows a system."""
    return release in SUPPORTED.get(os, ("", ()))[1]


def release_of(grains: Mapping[str, Any]) -> str:
    """The release as the plan spells it: Ubuntu's year and month, the others' major number."""
    if grains["os"] == "Ubuntu":
        return str(grains["osrelease"])
    return str(grains.get("osmajorrelease", grains.get("osrelease", "")))


def of(os: str, release: str) -> dict[str, Any]:
    """The table's row for a system. Raises UnknownPlatform, with what is known."""
    if not is_supported(os, release):
        raise UnknownPlatform(
            f"Found the operating system {os} {release}; expected one of: {supported()}."
        )
    row = TABLE[SUPPORTED[os][0]]
    renamed = dict(_OTHERS.get((os, release), {}))
    if (os, release) in _BEFORE_TIME_T:
        renamed.update(_RENAMED)
    python = row["python"]
    if SUPPORTED[os][0] == "RedHat" and release in _PYTHON:
        python = {"package": _PYTHON[release], "path": f"/usr/bin/{_PYTHON[release]}"}
    sssd = row["sssd"]
    if (os, release) in _SSSD_PRIVATE:
        sssd = {**sssd, "conf_mode": "0600"}
    runtime = [renamed.get(name, name) for name in row["slurm_runtime"]]
    return {**row, "python": python, "slurm_runtime": runtime, "sssd": sssd}
