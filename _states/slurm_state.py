"""The state that several controllers share."""

__virtualname__ = "slurm_state"


def __virtual__():
    return __virtualname__


def shared(name, timeout):
    """StateSaveLocation is the same folder here and on the controllers that were there before.

    name: str, the folder, for people
    timeout: int, seconds to wait for the first controller
    It changes nothing on the host but this host's own mark in that folder.
    """
    ret = {"name": name, "result": True, "changes": {}, "comment": f"{name} is every controller's."}
    problems = __salt__["slurm_state.problems"](0 if __opts__["test"] else timeout)
    if problems:
        return {
            **ret,
            "result": None if __opts__["test"] else False,
            "comment": "\n".join(problems),
        }
    return ret
