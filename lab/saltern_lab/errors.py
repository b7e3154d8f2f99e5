"""The lab's one kind of failure: a sentence for a person."""


class LabError(Exception):
    """Something a person can act on. Its text is one sentence or a short list; never a traceback."""
