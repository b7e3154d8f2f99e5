"""The checker: its file, and it as a module."""

import importlib.util
import sys

from support import ROOT

CHECKER = ROOT / "salt/p5_environment/files/node_health.py"


def checker():
    spec = importlib.util.spec_from_file_location("node_health", CHECKER)
    module = importlib.util.module_from_spec(spec)
    sys.modules["node_health"] = module
    spec.loader.exec_module(module)
    return module
