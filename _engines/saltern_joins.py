"""The process of the master that works off the join queue (``_utils/saltern_joins.py``)."""

import saltern_joins

__virtualname__ = "saltern_joins"


def __virtual__():
    return __virtualname__


def start():
    """Work until the master ends; Salt starts it again should it fall."""
    saltern_joins.run(__opts__)
