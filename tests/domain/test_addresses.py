"""Which addresses are closed, by which network they are named, and what an allowed network opens."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from foliot.domain.addresses import closed, meanings, networks

OPEN = [
    "1.1.1.1", "8.8.8.8", "93.184.216.34", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.1",
    "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "168.63.129.15",
    "2606:4700:4700::1111", "2a00:1450:4001::1", "2001:4860:4860::8888", "2001:200::1", "2620:fe::fe",
    "::ffff:8.8.8.8", "64:ff9b::8.8.8.8",
]  # fmt: skip
CLOSED = {
    "0.0.0.0": "0.0.0.0/8", "0.1.2.3": "0.0.0.0/8", "10.1.2.3": "10.0.0.0/8", "100.64.0.1": "100.64.0.0/10",
    "100.100.100.200": "100.100.100.200/32", "127.0.0.1": "127.0.0.0/8", "127.255.255.254": "127.0.0.0/8",
    "169.254.169.254": "169.254.169.254/32", "169.254.170.2": "169.254.170.0/24", "169.254.1.1": "169.254.0.0/16",
    "172.16.0.1": "172.16.0.0/12", "172.31.255.255": "172.16.0.0/12", "192.0.0.192": "192.0.0.192/32",
    "192.0.0.8": "192.0.0.0/24", "192.0.2.1": "192.0.2.0/24", "192.31.196.1": "192.31.196.0/24",
    "192.52.193.1": "192.52.193.0/24", "192.88.99.1": "192.88.99.0/24", "192.168.1.1": "192.168.0.0/16",
    "192.175.48.1": "192.175.48.0/24", "198.18.0.1": "198.18.0.0/15", "198.19.255.255": "198.18.0.0/15",
    "198.51.100.1": "198.51.100.0/24", "203.0.113.1": "203.0.113.0/24", "224.0.0.1": "224.0.0.0/4",
    "239.255.255.250": "224.0.0.0/4", "240.0.0.1": "240.0.0.0/4", "255.255.255.255": "255.255.255.255/32",
    "168.63.129.16": "168.63.129.16/32",
    "::": "::/128", "::1": "::1/128", "::7f00:1": "::/96", "::808:808": "::/96", "100::1": "100::/64",
    "2001::1": "2001::/32", "2001:10::1": "2001::/23", "2001:20::1": "2001::/23", "2001:db8::1": "2001:db8::/32",
    "2002:808:808::1": "2002::/16", "2620:4f:8000::1": "2620:4f:8000::/48", "3fff::1": "3fff::/20", "5f00::1": "5f00::/16",
    "fc00::1": "fc00::/7", "fd12:3456::1": "fc00::/7", "fd00:ec2::254": "fd00:ec2::254/128", "fe80::1": "fe80::/10",
    "fec0::1": "fec0::/10", "ff02::1": "ff00::/8", "4000::1": "::/0", "::ffff:0:127.0.0.1": "::/0",
    "64:ff9b:1::808:808": "64:ff9b:1::/48",
    "::ffff:127.0.0.1": "127.0.0.0/8", "::ffff:169.254.169.254": "169.254.169.254/32", "::ffff:10.0.0.1": "10.0.0.0/8",
    "2607:f8b0::5efe:10.0.0.1": "10.0.0.0/8", "64:ff9b::7f00:1": "127.0.0.0/8", "64:ff9b::a9fe:a9fe": "169.254.169.254/32",
}  # fmt: skip


@pytest.mark.parametrize("text", OPEN)
def test_the_public_internet_is_open(text: str) -> None:
    assert closed(ip_address(text)) is None


@pytest.mark.parametrize(("text", "network"), CLOSED.items())
def test_everything_else_is_closed_and_reported_by_its_network(text: str, network: str) -> None:
    found = closed(ip_address(text))
    assert found is not None
    assert str(found.network) == network
    assert f"in {network} (" in found.describe(text)


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ("::ffff:127.0.0.1", {"127.0.0.1"}),
        ("::7f00:1", {"::7f00:1", "127.0.0.1"}),
        ("2002:7f00:1::", {"2002:7f00:1::", "127.0.0.1"}),
        ("2607:f8b0::5efe:a00:1", {"2607:f8b0::5efe:a00:1", "10.0.0.1"}),
        ("2607:f8b0::200:5efe:a00:1", {"2607:f8b0::200:5efe:a00:1", "10.0.0.1"}),
        ("64:ff9b::7f00:1", {"64:ff9b::7f00:1", "127.0.0.1"}),
        ("2001:0:a00:1::80ff:fffe", {"2001:0:a00:1::80ff:fffe", "10.0.0.1", "127.0.0.1"}),
    ],
)
def test_an_ipv4_address_is_found_in_what_wraps_it(text: str, inside: set[str]) -> None:
    assert {str(each) for each in meanings(ip_address(text))} == inside


def test_local_translation_is_read_by_every_length_of_its_prefix() -> None:
    inside = {str(each) for each in meanings(ip_address("64:ff9b:1:7f00:0:100::"))}
    assert "127.0.0.1" in inside


def test_an_allowed_network_opens_itself_and_no_other() -> None:
    allowed = networks(("10.0.0.0/8", "fd00::/8", "2002::/16"))
    assert closed(ip_address("10.1.2.3"), allowed) is None
    assert closed(ip_address("::ffff:10.1.2.3"), allowed) is None
    assert closed(ip_address("64:ff9b::a01:203"), allowed) is None
    assert closed(ip_address("fd12::1"), allowed) is None
    assert closed(ip_address("192.168.0.1"), allowed) is not None
    assert closed(ip_address("2002:808:808::1"), allowed) is None


def test_an_allowed_wrapper_does_not_open_what_it_wraps() -> None:
    found = closed(ip_address("2002:7f00:1::1"), networks(("2002::/16",)))
    assert found is not None
    assert found.describe("2002:7f00:1::1") == "2002:7f00:1::1 leads to 127.0.0.1, in 127.0.0.0/8 (loopback)"
    reported = "six.test resolves to 2002:7f00:1::1, which leads to 127.0.0.1, in 127.0.0.0/8 (loopback)"
    assert found.describe("six.test") == reported
