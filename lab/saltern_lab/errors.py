"""The lab's one kind of failure: a sentence for a person."""


class LabError(Exception):
    """Something a person can act on: a sentence or a short list, never a traceback."""
