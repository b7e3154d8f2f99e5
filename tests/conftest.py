"""What all tests share: the plain Python of the project on the path, and the example plan."""

import logging
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
for folder in ("_utils", "lab", "tests"):
    if str(ROOT / folder) not in sys.path:
        sys.path.insert(0, str(ROOT / folder))


def pytest_unconfigure():
    """Salt keeps messages of the daemons under test for a stream that pytest has closed when the
    process ends; thousands of lines would stand below pytest's last one."""
    logging.raiseExceptions = False
