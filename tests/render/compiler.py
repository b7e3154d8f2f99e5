"""Salt's own compiler, in this process: pillar with the external pillar, top file, every SLS, for
one host and system."""

import logging
import os
from pathlib import Path
from typing import Any

import salt.config
import salt.state
import yaml

# Salt keeps early messages for a handler that pytest has closed by then; its errors come back as
# values.
logging.disable(logging.CRITICAL)

ROOT = Path(__file__).resolve().parents[2]

# Grains of the systems that the platform table knows, as Salt reports them.
SYSTEMS = {
    "Debian 12": {"os": "Debian", "os_family": "Debian", "osmajorrelease": 12, "osrelease": "12"},
    "Debian 13": {"os": "Debian", "os_family": "Debian", "osmajorrelease": 13, "osrelease": "13"},
    "Ubuntu 22.04": {
        "os": "Ubuntu",
        "os_family": "Debian",
        "osmajorrelease": 22,
        "osrelease": "22.04",
    },
    "Ubuntu 24.04": {
        "os": "Ubuntu",
        "os_family": "Debian",
        "osmajorrelease": 24,
        "osrelease": "24.04",
    },
    "RedHat 8": {"os": "RedHat", "os_family": "RedHat", "osmajorrelease": 8, "osrelease": "8.10"},
    "Rocky 9": {"os": "Rocky", "os_family": "RedHat", "osmajorrelease": 9, "osrelease": "9.6"},
    "Rocky 10": {"os": "Rocky", "os_family": "RedHat", "osmajorrelease": 10, "osrelease": "10.1"},
}


def plan_os(system: str) -> dict[str, str]:
    """The plan's `os` for a system."""
    grains = SYSTEMS[system]
    release = grains["osrelease"] if grains["os"] == "Ubuntu" else grains["osmajorrelease"]
    return {"name": str(grains["os"]), "release": str(release)}


class Compiler:
    """A masterless Salt with the project's own directories and a plan."""

    def __init__(self, folder: Path, plan: dict[str, Any]) -> None:
        self.folder = folder
        site = folder / "plan"
        site.mkdir(parents=True, exist_ok=True)
        (site / "plan.sls").write_text(
            yaml.safe_dump({"saltern": plan}, sort_keys=False), encoding="utf-8"
        )
        os.chmod(folder, 0o700)

    def options(self, host: str, system: str) -> dict[str, Any]:
        """A minion's options; its grains are given, so nothing of this machine shows."""
        opts = salt.config.minion_config(None)
        grains = {
            **SYSTEMS[system],
            "id": host,
            "osarch": "amd64",
            "cpuarch": "x86_64",
            "init": "systemd",
            "kernel": "Linux",
            "saltversioninfo": [3008, 4],
            "saltpath": "",
        }
        opts.update(
            id=host,
            grains=grains,
            file_client="local",
            root_dir=str(self.folder),
            cachedir=str(self.folder / f"cache-{host}"),
            extension_modules=str(self.folder / f"cache-{host}" / "extmods"),
            file_roots={"base": [str(ROOT / "salt")]},
            pillar_roots={"base": [str(self.folder / "plan"), str(ROOT / "pillar")]},
            ext_pillar=[
                {
                    "saltern": {
                        "schema_file": str(ROOT / "pillar/schema.json"),
                        "secrets_dir": str(self.folder / "secrets"),
                        "join_file": str(self.folder / "join/register.db"),
                    }
                }
            ],
            pillar_dirs=[str(ROOT / "_pillar")],
            module_dirs=[str(ROOT / "_modules")],
            states_dirs=[str(ROOT / "_states")],
            fileserver_followsymlinks=True,
            fileserver_list_cache_time=0,
            state_events=False,
        )
        return opts

    def pillar(self, host: str, system: str) -> dict[str, Any]:
        """What the master would send to this host."""
        opts = self.options(host, system)
        return salt.pillar.get_pillar(opts, opts["grains"], host, "base").compile_pillar()

    def chunks(self, host: str, system: str) -> list[dict[str, Any]]:
        """The low chunks of the host's highstate, in the order of their run. Raises AssertionError
        with Salt's words."""
        high = salt.state.HighState(self.options(host, system))
        high.push_active()
        try:
            compiled = high.compile_low_chunks()
        finally:
            high.pop_active()
        errors = [item for item in compiled if not isinstance(item, dict)]
        assert not errors, "\n".join(str(error) for error in errors)
        return compiled
