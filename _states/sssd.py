"""SSSD's place in PAM and NSS, made by the distribution's own tool."""

from salt.exceptions import CommandExecutionError

__virtualname__ = "sssd"


def __virtual__():
    return __virtualname__


def enabled(name):
    """PAM and NSS ask SSSD, and a first login makes the home.

    name: str, for people
    """
    ret = {"name": name, "result": True, "changes": {}, "comment": "PAM and NSS ask SSSD."}
    try:
        missing = __salt__["sssd.missing"]()
        if not missing:
            return ret
        changes = {what: {"old": "missing", "new": "enabled"} for what in missing}
        if __opts__["test"]:
            comment = f"{', '.join(missing)} would be enabled."
            return {**ret, "result": None, "changes": changes, "comment": comment}
        __salt__["sssd.enable"]()
        left = __salt__["sssd.missing"]()
    except CommandExecutionError as error:
        return {**ret, "result": False, "comment": str(error)}
    if left:
        comment = f"Still missing after it was enabled: {', '.join(left)}."
        return {**ret, "result": False, "comment": comment}
    return {**ret, "changes": changes, "comment": f"{', '.join(missing)} enabled."}
