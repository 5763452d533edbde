"""Parse a URL once and strictly: the parts that are checked here are the ones connected to later.

Nothing is corrected. A URL that another program might parse differently is refused.
"""

from __future__ import annotations

import re
import unicodedata
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from urllib.parse import quote

import idna

from foliot.domain.addresses import Address

DEFAULT_PORTS = {"http": 80, "https": 443}
LONGEST = 8_000  # characters

_WHOLE = re.compile(
    r"(?P<scheme>https?)://(?P<authority>[^/?#]*)(?P<path>[^?#]*)(?P<query>[^#]*)", re.IGNORECASE
)
_UNFIT = re.compile(
    r"[\x00-\x20\x7f-\xa0\\\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff\ud800-\udfff]"
)
_BRACKETED = re.compile(r"\[([^\]]*)\](?::([0-9]*))?")
_NAMED = re.compile(r"([^:\[\]]*)(?::([0-9]*))?")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")
_SAFE = "".join(map(chr, range(0x21, 0x7F)))  # a valid address is sent unchanged


class InvalidTarget(Exception):
    """The text is not an http address."""

    code = "url_invalid"

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class MisleadingTarget(InvalidTarget):
    """The address is ambiguous: other programs may parse it differently."""

    code = "address_refused"


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """`host` is a name in lower case, or an address without brackets; `path` includes the query."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def address(self) -> Address | None:
        """Return the host's IP address, or None where it is a name."""
        return _plain(self.host)

    @property
    def authority(self) -> str:
        """Return the value of the Host header: without a default port, and without the last dot of a full name."""
        host = f"[{self.host}]" if ":" in self.host else self.host.rstrip(".")
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        """Format without path and query, which often hold secrets."""
        return f"{self.scheme}://{self.authority}"


@lru_cache(maxsize=1_000)  # a job has the same address in every run
def read_target(url: str) -> HttpTarget:
    """Parse the URL, or raise InvalidTarget with a hint."""
    if _UNFIT.search(url):
        raise MisleadingTarget(
            "An address has no blanks, line breaks, backslashes or invisible characters.",
            "Write them percent-encoded, such as %20, or remove them.",
        )
    if len(url) > LONGEST:
        raise InvalidTarget(
            f"An address is at most {LONGEST:,} characters long.", "Send the rest in the body."
        )
    found = _WHOLE.match(url)
    if found is None:
        raise InvalidTarget("This must be an address.", "It starts with http:// or https://.")
    scheme, authority = found["scheme"].lower(), found["authority"]
    host, port = _host_and_port(authority)
    path = quote((found["path"] or "/") + found["query"], safe=_SAFE)
    return HttpTarget(scheme, host, DEFAULT_PORTS[scheme] if port is None else port, path)


def _host_and_port(authority: str) -> tuple[str, int | None]:
    if "@" in authority:
        raise MisleadingTarget(
            "An address may not hold a user or a password.",
            "Send them in the header Authorization, whose value may be a secret.",
        )
    if "%" in authority:
        raise MisleadingTarget(
            "The host of an address is written without percent signs.",
            "Write the plain name or address; zones of IPv6 addresses cannot be used.",
        )
    if authority.startswith("["):
        found = _BRACKETED.fullmatch(authority)
        if found is None:
            raise InvalidTarget(
                "The host of this address cannot be read.", "Such as http://[2606:4700::1111]:8080/."
            )
        host = _ipv6(found[1])
    else:
        found = _NAMED.fullmatch(authority)
        if found is None:
            raise InvalidTarget(
                "The host of this address cannot be read.",
                "Write an IPv6 address in brackets, and the port as a number.",
            )
        host = _name(found[1])
    return host, _port(found[2])


def _port(text: str | None) -> int | None:
    if not text:
        return None
    if len(text) > 5 or not 1 <= int(text) <= 65_535:
        raise InvalidTarget("This port does not exist.", "Ports go from 1 to 65535.")
    return int(text)


def _ipv6(text: str) -> str:
    try:
        return str(IPv6Address(text))
    except AddressValueError:
        raise InvalidTarget(
            "This is not an IPv6 address.", "Such as http://[2606:4700::1111]:8080/."
        ) from None


def _name(text: str) -> str:
    host = _ascii(text).lower()
    if not host:
        raise InvalidTarget("This address names no host.", "Such as https://example.com/hook.")
    if _NUMBER.fullmatch(host.removesuffix(".").rpartition(".")[2]):
        return _ipv4(host)
    labels = host.removesuffix(".").split(".")
    if len(host) > 254 or not all(map(_LABEL.fullmatch, labels)):
        raise InvalidTarget(
            "The host of this address is not a valid name.",
            "Names consist of letters, digits and hyphens, with dots between them.",
        )
    return host


def _ascii(text: str) -> str:
    """Names in other scripts as DNS has them. Characters that stand for others, such as wide digits, are no names."""
    if text.isascii():
        return text
    with suppress(idna.IDNAError, UnicodeError):
        if unicodedata.normalize("NFKC", text) == text:
            return idna.encode(text).decode("ascii")
    raise MisleadingTarget(
        "The host of this address has characters that names cannot have.",
        "Write it as DNS has it, in ASCII: xn--….",
    )


def _ipv4(host: str) -> str:
    """A host that ends in a number is an address to every resolver, in spellings that hide which."""
    if _plain(host) is not None:
        return host
    meant = _meant(host.removesuffix("."))
    if meant is None:
        raise MisleadingTarget(
            "The host of this address is not an IPv4 address.", "It has four numbers from 0 to 255."
        )
    raise MisleadingTarget(
        f"The host of this address is an unusual spelling of {meant}.",
        f"Write {meant}, if that is what you mean.",
    )


@lru_cache(maxsize=1_000)
def _plain(host: str) -> Address | None:
    try:
        return IPv6Address(host) if ":" in host else IPv4Address(host)
    except AddressValueError:
        return None


def _meant(host: str) -> IPv4Address | None:
    """As `inet_aton` reads it: up to four parts, decimal, octal (0…) or hexadecimal (0x…), the last one fills the rest."""
    parts = host.split(".")
    if len(parts) > 4 or not all(map(_NUMBER.fullmatch, parts)) or max(map(len, parts)) > 40:
        return None
    try:
        numbers = [_number(part) for part in parts]
    except ValueError:
        return None
    *front, last = numbers
    if any(each > 255 for each in front) or last >= 256 ** (4 - len(front)):
        return None
    return IPv4Address(sum(each << 8 * (3 - place) for place, each in enumerate(front)) + last)


def _number(part: str) -> int:
    if part.startswith("0x"):
        return int(part[2:] or "0", 16)
    return int(part, 8) if part.startswith("0") else int(part)
