"""The checker as a module, and nodes that are folders."""

import importlib.util
import sys

import pytest
from checker_file import CHECKER


def checker():
    spec = importlib.util.spec_from_file_location("node_health", CHECKER)
    module = importlib.util.module_from_spec(spec)
    sys.modules["node_health"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def health():
    return checker()


class Fake:
    """A node that is a folder: files of /proc, /sys and others."""

    def __init__(self, health, root):
        self.health, self.root = health, root
        self.variables = {}

    def write(self, path, text):
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return self

    def program(self, name, script):
        """A program of the node, found first."""
        file = self.root / "bin" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        file.chmod(0o755)
        self.variables["PATH"] = f"{file.parent}:/usr/bin:/bin"
        return self

    def look(self, *lines, **options):
        """[finding] of nhc.conf lines, on this node."""
        variables = dict(self.variables)
        text = "\n".join(f"* || {line}" for line in lines)
        checks = self.health.configuration(text, "node01", variables)
        node = self.health.Node(str(self.root), variables)
        hung = str(self.root / "hung")
        return [one.finding for one in self.health.run(checks, node, **{"hung": hung, **options})]

    def one(self, line, **options):
        (finding,) = self.look(line, **options)
        return finding


@pytest.fixture
def fake(health, tmp_path):
    return Fake(health, tmp_path)
