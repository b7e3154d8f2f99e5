"""Each lab has a network of its own."""

from ipaddress import IPv4Network

import pytest
from saltern_lab import subnet
from saltern_lab.errors import LabError
from saltern_lab.subnet import Taken


def taken(*networks):
    return [Taken(IPv4Network(network), f"lab {number}") for number, network in enumerate(networks)]


@pytest.mark.parametrize(
    ("in_use", "chosen"),
    [
        pytest.param([], "10.213.0.0/24", id="free machine"),
        pytest.param(["192.0.2.0/24"], "10.213.0.0/24", id="others elsewhere"),
        pytest.param(["10.213.0.0/24", "10.213.1.0/24"], "10.213.2.0/24", id="other labs"),
        pytest.param(["10.213.0.7/32"], "10.213.1.0/24", id="one address inside"),
    ],
)
def test_first_free_network_is_chosen(in_use, chosen):
    assert str(subnet.choose(taken(*in_use))) == chosen


def test_wanted_network_in_use_is_refused_by_name():
    with pytest.raises(LabError, match=r"10.213.5.0/24 is in use .*lab 0, 10.213.0.0/16"):
        subnet.choose(taken("10.213.0.0/16"), "10.213.5.0/24")


@pytest.mark.parametrize("wanted", ["10.213.0.0/16", "10.213.0.1/24", "nonsense"])
def test_only_a_24_is_a_labs_network(wanted):
    with pytest.raises(LabError):
        subnet.choose([], wanted)


def test_no_free_network_is_a_sentence():
    with pytest.raises(LabError, match="Every network"):
        subnet.choose(taken("10.0.0.0/8"))


def test_addresses_are_by_suffix():
    network = IPv4Network("10.213.3.0/24")
    assert (subnet.gateway(network), subnet.address(network, 21)) == ("10.213.3.1", "10.213.3.21")
