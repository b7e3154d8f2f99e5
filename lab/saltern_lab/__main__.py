"""`python -m saltern_lab`: see cli.py."""

import sys

from saltern_lab.cli import main

sys.exit(main())
