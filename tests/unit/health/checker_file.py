"""Where the checker stands."""

from support import ROOT

CHECKER = ROOT / "salt/p5_environment/files/node_health.py"
