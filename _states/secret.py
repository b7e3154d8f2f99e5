"""Files that hold secrets: the state names them, the module puts the values in."""

from salt.exceptions import CommandExecutionError

__virtualname__ = "secret"


def __virtual__():
    return __virtualname__


def file(name, text, user, group, mode):
    """A file whose text names secrets as ``<secret:munge_key>``; its content never shows in a
    return.

    name: str, path
    text: str, public, with placeholders
    user, group: str
    mode: str, quoted, for example "0400"
    """
    ret = {"name": name, "result": True, "changes": {}, "comment": f"{name} is as wanted."}
    try:
        differs = __salt__["saltern.secret_file"](
            name, text, user, group, mode, test=__opts__["test"]
        )
    except CommandExecutionError as error:
        return {**ret, "result": False, "comment": str(error)}
    if not differs:
        return ret
    if __opts__["test"]:
        return {**ret, "result": None, "changes": differs, "comment": f"{name} would be written."}
    return {**ret, "changes": differs, "comment": f"{name} was written."}
