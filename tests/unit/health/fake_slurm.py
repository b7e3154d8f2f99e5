"""A simulated Slurm for drains. What it does with a node was measured on 24.11.5: it forgets the
reason of a node in service, UNDRAIN clears reason and flag, and an empty comment removes one."""

import json


class Slurm:
    """Nodes, and what `scontrol` was told."""

    def __init__(self, **nodes):
        self.nodes = {
            name: {"state": state.split("+"), "reason": "", "reason_set_by_user": "", "comment": ""}
            for name, state in nodes.items()
        }
        self.answers = True
        self.updates = []

    def drained_by(self, name, reason, user="root"):
        """Somebody's drain."""
        node = self.nodes[name]
        node.update(reason=reason, reason_set_by_user=user)
        node["state"] = [*(flag for flag in node["state"] if flag != "DRAIN"), "DRAIN"]

    def undrain(self, name):
        """Somebody's resume."""
        self._update(name, {"state": "UNDRAIN"})

    def state(self, name):
        return "+".join(self.nodes[name]["state"])

    def scontrol(self, command, **_):
        """As ``cmd.run_all``."""
        if not self.answers:
            return _said(stderr="slurm_load_node error: Unable to contact slurm controller", code=1)
        if command[1] == "show":
            names = command[3].split(",") if command[2] == "node" else list(self.nodes)
            found = [{"name": name, **self.nodes[name]} for name in names if name in self.nodes]
            return _said(json.dumps({"nodes": found}))
        name = command[2].partition("=")[2]
        values = dict(word.split("=", 1) for word in command[3:])
        self.updates.append((name, values))
        self._update(name, values)
        return _said()

    def _update(self, name, values):
        node = self.nodes[name]
        if values.get("state") == "DRAIN":
            assert values["reason"], "Slurm wants a reason"
            node["state"] = [*node["state"], "DRAIN"]
        if "reason" in values:
            node.update(reason=values["reason"], reason_set_by_user="root")
        if values.get("state") == "UNDRAIN":
            node["state"] = [flag for flag in node["state"] if flag != "DRAIN"]
        if not {"DRAIN", "DOWN"} & set(node["state"]):
            node.update(reason="", reason_set_by_user="")
        node["comment"] = values.get("comment", node["comment"])


def _said(stdout="", stderr="", code=0):
    return {"stdout": stdout, "stderr": stderr, "retcode": code}
