"""Which network a lab gets: pure choice, no commands."""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network

from saltern_lab.errors import LabError

POOL = [IPv4Network(f"10.213.{third}.0/24") for third in range(256)]


@dataclass(frozen=True)
class Taken:
    """A network that is in use on this machine, and by what."""

    network: IPv4Network
    by: str


def choose(taken: Iterable[Taken], wanted: str | None = None) -> IPv4Network:
    """The wanted /24, or the first free one of the pool.

    Raises LabError if the wanted one is no /24 or overlaps with one in use, or if none is free.
    """
    taken = list(taken)
    if wanted is None:
        for network in POOL:
            if not _clash(network, taken):
                return network
        raise LabError(
            "Every network from 10.213.0.0/24 to 10.213.255.0/24 is in use on this machine."
        )
    try:
        network = IPv4Network(wanted)
    except ValueError as error:
        raise LabError(f"--subnet {wanted} is no IPv4 network: {error}.") from None
    if network.prefixlen != 24:
        raise LabError(f"--subnet {wanted}: a lab's network is a /24.")
    clash = _clash(network, taken)
    if clash:
        raise LabError(
            f"The network {network} is in use on this machine ({clash.by}, {clash.network}): "
            "choose another with --subnet, or end what uses it."
        )
    return network


def _clash(network: IPv4Network, taken: Iterable[Taken]) -> Taken | None:
    return next((other for other in taken if other.network.overlaps(network)), None)


def gateway(network: IPv4Network) -> str:
    """The machine's own address on a lab's bridge."""
    return str(network[1])


def address(network: IPv4Network, suffix: int) -> str:
    """The address of a host by its suffix."""
    return str(network[suffix])
