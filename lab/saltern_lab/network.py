"""A lab's bridge, its masquerade rule, and cuts of single hosts."""

import json
import shutil
from ipaddress import IPv4Network
from pathlib import Path

from saltern_lab.errors import LabError
from saltern_lab.paths import state_dir
from saltern_lab.record import Lab
from saltern_lab.run import run
from saltern_lab.subnet import Taken

IP_FORWARD = Path("/proc/sys/net/ipv4/ip_forward")


def taken(own_bridge: str = "") -> list[Taken]:
    """The networks in use on this machine: addresses and routes, except those of our own bridge."""
    found = []
    for link in json.loads(run(["ip", "-j", "-4", "address"], what="Reading addresses")):
        for entry in link.get("addr_info", []):
            if link.get("ifname") != own_bridge and "local" in entry:
                network = IPv4Network(f"{entry['local']}/{entry['prefixlen']}", strict=False)
                found.append(Taken(network, f"interface {link['ifname']}"))
    for route in json.loads(run(["ip", "-j", "-4", "route"], what="Reading routes")):
        if route["dst"] != "default" and route.get("dev") != own_bridge:
            found.append(
                Taken(IPv4Network(route["dst"]), f"route over {route.get('dev', 'nothing')}")
            )
    return found


def mark(lab: Lab) -> str:
    """The alias by which a bridge is known as this lab's own."""
    return f"saltern lab {lab.folder}"


def bridge_is_ours(lab: Lab) -> bool:
    """Whether the lab's bridge is there. Raises LabError if something else has its name."""
    if not Path(f"/sys/class/net/{lab.bridge}").exists():
        return False
    alias = Path(f"/sys/class/net/{lab.bridge}/ifalias").read_text(encoding="utf-8").strip()
    if alias != mark(lab):
        raise LabError(
            f"The bridge {lab.bridge} is in use by something that this lab did not start: "
            "choose another lab name with --name, or remove the bridge."
        )
    return True


def up(lab: Lab) -> None:
    """Make the bridge and the masquerade rule, unless they are there."""
    if not bridge_is_ours(lab):
        clash = next((t for t in taken(lab.bridge) if t.network.overlaps(lab.subnet)), None)
        if clash:
            raise LabError(
                f"The network {lab.network} of lab {lab.name!r} is in use on this machine "
                f"({clash.by}, {clash.network}): end what uses it, or `lab/lab destroy` and `up` "
                "with another --subnet."
            )
        what = f"Making the bridge {lab.bridge}"
        run(["ip", "link", "add", lab.bridge, "type", "bridge"], what=what)
        run(["ip", "link", "set", lab.bridge, "alias", mark(lab)], what=what)
        run(["ip", "address", "add", f"{lab.gateway}/24", "dev", lab.bridge], what=what)
        run(["ip", "link", "set", lab.bridge, "up"], what=what)
    _forward()
    run(["nft", "-f", "-"], stdin=masquerade(lab), what="Setting the masquerade rule")


def masquerade(lab: Lab) -> str:
    """The lab's own nftables table."""
    table = f"ip saltern_{lab.name}"
    return (
        f"table {table}\ndelete table {table}\ntable {table} {{\n"
        "  chain postrouting {\n"
        "    type nat hook postrouting priority 100; policy accept;\n"
        f'    ip saddr {lab.network} oifname != "{lab.bridge}" masquerade\n'
        "  }\n}\n"
    )


def _forward() -> None:
    """Switch forwarding on, and remember that it was off."""
    if IP_FORWARD.read_text(encoding="ascii").strip() == "0":
        (state_dir() / ".ip_forward_was_off").touch()
        IP_FORWARD.write_text("1", encoding="ascii")


def down(lab: Lab, *, last: bool) -> None:
    """Remove what `up` made; with the last lab, forwarding goes back to what it was."""
    if shutil.which("ip") and bridge_is_ours(lab):
        run(["ip", "link", "delete", lab.bridge], what=f"Removing the bridge {lab.bridge}")
        table = f"ip saltern_{lab.name}"
        run(
            ["nft", f"add table {table}; delete table {table}"], what="Removing the masquerade rule"
        )
    note = state_dir() / ".ip_forward_was_off"
    if last and note.exists():
        IP_FORWARD.write_text("0", encoding="ascii")
        note.unlink()


def host_mtu() -> int:
    """What fits through the machine's own way out."""
    routes = json.loads(run(["ip", "-j", "-4", "route", "show", "default"], what="Reading routes"))
    if not routes:
        return 1500
    mtu = Path(f"/sys/class/net/{routes[0]['dev']}/mtu").read_text(encoding="ascii")
    return min(1500, int(mtu))


def veth(lab: Lab, leader: int) -> str:
    """The machine's side of a host's cable."""
    text = run(
        ["nsenter", "-t", str(leader), "-n", "ip", "-j", "link", "show", "host0"],
        what="Looking for the host's cable",
    )
    index = json.loads(text)[0]["link_index"]
    links = json.loads(
        run(["ip", "-j", "link", "show", "master", lab.bridge], what="Reading links")
    )
    for link in links:
        if link["ifindex"] == index:
            return str(link["ifname"])
    raise LabError(f"No cable of that host is in the bridge {lab.bridge}.")


def set_cable(lab: Lab, leader: int, state: str) -> None:
    """Cut (`down`) or heal (`up`) the cable of a host."""
    run(["ip", "link", "set", veth(lab, leader), state], what=f"Setting the cable {state}")
