"""What may not be committed: this machine's paths, registries' names, secrets, large or generated
files."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from ClusterShell.NodeSet import NodeSet

ROOT = Path(__file__).resolve().parents[2]
FILES = subprocess.run(
    ["git", "-C", str(ROOT), "ls-files", "-z"], check=True, capture_output=True, text=True
).stdout.split("\0")[:-1]
TEXTS = [
    file
    for file in FILES
    if (ROOT / file).is_file()
    and not (ROOT / file).is_symlink()
    and not file.startswith("tests/tree/")
]

FORBIDDEN = {
    "a path of a developer's machine": re.compile(r"/work/(main|shared|\.library)|/tmp/w/|/root/"),
    "a private key": re.compile(r"BEGIN [A-Z ]*PRIVATE KEY"),
    "unchecked transport": re.compile(
        r"verify=False|StrictHostKeyChecking[= ]no|--trusted-host=\S*\.org"
    ),
    "a value of a secret": re.compile(
        r"(?i)\b(password|storagepass|passwd)[\"']?\s*[=:]\s*[\"']?[\w+/]{12,}"
    ),
    "a merge that was not finished": re.compile(r"^(<{7}|>{7}) ", re.MULTILINE),
}
# Packages and sources come from what the machine or the site is configured with; the repository
# names no registry. Hosts that are none:
NAMED = {"docs.saltproject.io", "json-schema.org"}
RESERVED = re.compile(r"(^|\.)(example|invalid|test|localhost|saltern)$")


def test_there_is_something_to_look_at():
    assert len(TEXTS) > 50


@pytest.mark.parametrize("what", FORBIDDEN, ids=lambda what: what.replace(" ", "-"))
def test_is_not_committed(what):
    found = [
        f"{file}: {match.group(0)}"
        for file in TEXTS
        if (
            match := FORBIDDEN[what].search(
                (ROOT / file).read_text(encoding="utf-8", errors="replace")
            )
        )
    ]
    assert not found, found


def test_no_registry_is_named():
    found = [
        f"{file}: {host}"
        for file in TEXTS
        for host in re.findall(
            r"\bhttps?://([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)",
            (ROOT / file).read_text(encoding="utf-8", errors="replace"),
        )
        if host not in NAMED and not RESERVED.search(host) and not re.fullmatch(r"[0-9.]+", host)
    ]
    assert not found, found


def test_files_are_small():
    large = {file: size for file in TEXTS if (size := (ROOT / file).stat().st_size) > 60_000}
    assert not large, large


def test_relative_links_of_the_documents_resolve():
    broken = [
        f"{file}: {target}"
        for file in TEXTS
        if file.endswith(".md")
        for target in re.findall(
            r"\]\(([^)#:]+)(?:#[^)]*)?\)", (ROOT / file).read_text(encoding="utf-8")
        )
        if not (ROOT / file).parent.joinpath(target).exists()
    ]
    assert not broken, broken


def test_kitchen_names_what_is_there():
    """Test Kitchen is not run here; what its file points at can be looked for."""
    kitchen = yaml.safe_load((ROOT / "kitchen.yml").read_text(encoding="utf-8"))
    (components,) = kitchen["provisioner"]["state_top"]["base"].values()
    for component in components:
        assert (ROOT / "salt" / f"{component.replace('.', '/')}.sls").exists(), component
    example = yaml.safe_load((ROOT / "pillar/example/plan.sls").read_text(encoding="utf-8"))
    hosts = set(NodeSet.fromlist(example["saltern"]["hosts"]))
    assert {suite["provisioner"]["salt_minion_id"] for suite in kitchen["suites"]} <= hosts
