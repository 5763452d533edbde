"""Network addresses that outgoing requests may use: the public internet, and networks that the operator allows.

Python's `is_global` accepts addresses that lead inside (NAT64 and 6to4 around private addresses, multicast, site-local). This list
therefore holds all of IANA's special-purpose registries and the metadata addresses of clouds.

Why: docs/decisions/900-guarded-outgoing-requests.md
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True)
class BlockedAddress:
    """Why an address is blocked. `meant` is its final destination: another address if it wraps an IPv4 address."""

    address: Address
    meant: Address
    network: Network
    what: str

    def describe(self, host: str) -> str:
        """Describe how the host leads to a blocked network."""
        way = [host]
        if host != str(self.address):
            way.append(f"resolves to {self.address}")
        if self.meant != self.address:
            way.append(f"leads to {self.meant}")
        place = f"in {self.network} ({self.what})"
        return f"{host} is {place}" if len(way) == 1 else f"{way[0]} {', which '.join(way[1:])}, {place}"


def closed(address: Address, allowed: Sequence[Network] = ()) -> BlockedAddress | None:
    """Return why the address is blocked, or None. A wrapped address must be allowed too."""
    for meant in meanings(address):
        found = _closed_network(meant)
        if found is not None and not any(_holds(network, meant) for network in allowed):
            return BlockedAddress(address, meant, *found)
    return None


def meanings(address: Address) -> Iterator[Address]:
    """Return every address that a packet to this address may reach: itself, and the IPv4 addresses inside it."""
    if isinstance(address, IPv4Address):
        yield address
        return
    if address.ipv4_mapped is not None:  # another way to write an IPv4 address, and nothing beside it
        yield address.ipv4_mapped
        return
    yield address
    yield from _embedded(address)


@lru_cache(maxsize=100)
def networks(texts: tuple[str, ...]) -> tuple[Network, ...]:
    """As settings hold them."""
    return tuple(map(ip_network, texts))


def _embedded(address: IPv6Address) -> Iterator[IPv4Address]:
    octets = address.packed
    if address in _NAT64:
        yield IPv4Address(octets[12:])
    elif (
        address in _NAT64_LOCAL
    ):  # how long its prefix is, only its own network knows (RFC 6052, section 2.2)
        yield IPv4Address(octets[12:])
        yield IPv4Address(octets[6:8] + octets[9:11])
        yield IPv4Address(octets[7:8] + octets[9:12])
        yield IPv4Address(octets[9:13])
    elif address in _COMPATIBLE and int(address) > 1:
        yield IPv4Address(octets[12:])
    elif address.sixtofour is not None:
        yield address.sixtofour
    elif address.teredo is not None:
        yield from address.teredo
    elif octets[8:12] in _ISATAP:
        yield IPv4Address(octets[12:])


def _closed_network(address: Address) -> tuple[Network, str] | None:
    if isinstance(address, IPv4Address):
        return next((each for each in _CLOSED_4 if address in each[0]), None)
    found: tuple[Network, str] | None = next((each for each in _CLOSED_6 if address in each[0]), None)
    if found is None and address not in _GLOBAL and address not in _NAT64:
        return _EVERYTHING, "of which only 2000::/3 is the public internet"
    return found


def _holds(network: Network, address: Address) -> bool:
    return address.version == network.version and address in network


def _list4(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[IPv4Network, str], ...]:
    return tuple((IPv4Network(network), what) for network, what in pairs)


def _list6(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[IPv6Network, str], ...]:
    return tuple((IPv6Network(network), what) for network, what in pairs)


_GLOBAL, _EVERYTHING = IPv6Network("2000::/3"), IPv6Network("::/0")
_NAT64, _NAT64_LOCAL = IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48")
_COMPATIBLE = IPv6Network("::/96")
# Behind any prefix (RFC 5214): a router of its network unwraps the rest.
_ISATAP = (b"\0\0\x5e\xfe", b"\2\0\x5e\xfe")
# Narrow ones first: the first match is the one that errors name.
_CLOSED_4 = _list4(
    [
        ("168.63.129.16/32", "the platform of a cloud"),
        ("100.100.100.200/32", "the metadata of a cloud"),
        ("169.254.169.254/32", "the metadata of a cloud"),
        ("169.254.170.0/24", "the credentials of a cloud"),
        ("192.0.0.192/32", "the metadata of a cloud"),
        ("255.255.255.255/32", "broadcast"),
        ("0.0.0.0/8", "this network"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared by customers of one carrier"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved for protocols"),
        ("192.0.2.0/24", "for documentation"),
        ("192.31.196.0/24", "for AS112"),
        ("192.52.193.0/24", "for multicast tunnels"),
        ("192.88.99.0/24", "for 6to4 relays"),
        ("192.168.0.0/16", "private"),
        ("192.175.48.0/24", "for AS112"),
        ("198.18.0.0/15", "for benchmarks"),
        ("198.51.100.0/24", "for documentation"),
        ("203.0.113.0/24", "for documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
    ]
)
_CLOSED_6 = _list6(
    [
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("::/96", "for IPv4 addresses in a form no longer used"),
        ("64:ff9b:1::/48", "for local translation to IPv4"),
        ("100::/64", "where packets are discarded"),
        ("100:0:0:1::/64", "a dummy prefix"),
        ("2001::/32", "for Teredo tunnels"),
        ("2001:db8::/32", "for documentation"),
        ("2001::/23", "reserved for protocols"),
        ("2002::/16", "for 6to4 tunnels"),
        ("2620:4f:8000::/48", "for AS112"),
        ("3fff::/20", "for documentation"),
        ("5f00::/16", "for segment routing"),
        ("fd00:ec2::254/128", "the metadata of a cloud"),
        ("fd20:ce::254/128", "the metadata of a cloud"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
    ]
)
