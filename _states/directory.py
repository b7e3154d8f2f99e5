"""A directory server of OpenLDAP: its first configuration, its settings, its entries."""

from salt.exceptions import CommandExecutionError

__virtualname__ = "directory"


def __virtual__():
    return __virtualname__


def prepared(name):
    """slapd has a configuration, before it first starts.

    name: str, for people
    """
    ret = {"name": name, "result": True, "changes": {}, "comment": "slapd has a configuration."}
    try:
        if __salt__["directory.prepared"]():
            return ret
        changes = {"configuration": {"old": "none", "new": "made"}}
        if __opts__["test"]:
            return {**ret, "result": None, "changes": changes, "comment": "It would be made."}
        __salt__["directory.prepare"]()
    except CommandExecutionError as error:
        return {**ret, "result": False, "comment": str(error)}
    return {**ret, "changes": changes, "comment": "slapd's first configuration was made."}


def configured(name):
    """slapd's running configuration is what the plan asks for.

    name: str, for people
    """
    return _applied(name, "configuration")


def populated(name):
    """The directory has the plan's users and groups; others stay.

    name: str, for people
    """
    return _applied(name, "entries")


def _applied(name, part):
    ret = {"name": name, "result": True, "changes": {}, "comment": "All is as planned."}
    try:
        wanted = __salt__["directory.changes"](part)
        if not wanted:
            return ret
        if __opts__["test"]:
            comment = f"{len(wanted)} entries would be changed."
            return {**ret, "result": None, "changes": {part: wanted}, "comment": comment}
        __salt__["directory.apply"](part)
        left = __salt__["directory.changes"](part)
    except CommandExecutionError as error:
        # On a bare host a dry run finds no server, which a real run would have started.
        return {**ret, "result": None if __opts__["test"] else False, "comment": str(error)}
    done = [each for each in wanted if each not in left]
    changes = {part: done} if done else {}
    if left:
        comment = f"slapd keeps these otherwise than the plan says: {'; '.join(left)}"
        return {**ret, "result": False, "changes": changes, "comment": comment}
    return {**ret, "changes": changes, "comment": f"{len(done)} entries changed."}
