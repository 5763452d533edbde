"""Every way we know to talk a server into calling itself or its cloud: refused for good, with the reason on the run."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from foliot.domain.outcomes import Failed
from foliot.egress.client import Egress
from foliot.handlers.http import HttpHandler
from foliot.handlers.registry import Assignment
from foliot.sdk.context import Context
from tests.egress.dns import name_server

pytestmark = pytest.mark.anyio
CTX = Context("w", "j", "job", "run-1", 1, 1, "schedule", datetime(2027, 1, 15, tzinfo=UTC))
NAMES = {
    "localhost": [["127.0.0.1", "::1"]],
    "localhost.": [["127.0.0.1"]],
    "metadata.google.internal": [["169.254.169.254"]],
    "instance-data": [["169.254.169.254"]],
    "127.0.0.1.nip.io": [["127.0.0.1"]],
    "inside.test": [["192.168.1.20"]],
    "half.test": [["93.184.216.34", "10.0.0.1"]],
    "six.test": [["::1"]],
    "mapped.test": [["::ffff:10.0.0.1"]],
    "nat64.test": [["64:ff9b::a9fe:a9fe"]],
    "private-six.test": [["fd00:ec2::254"]],
    "nowhere.test": [["0.0.0.0"]],
}
INSIDE = "resolves to an address that may not be called"  # which one, the author of a job must not learn
# The address, and what its refusal says.
FORMS = [
    # As it is
    ("http://127.0.0.1/", "127.0.0.0/8 (loopback)"),
    ("http://127.0.0.1:6379/", "127.0.0.0/8 (loopback)"),
    ("http://127.8.8.8/", "127.0.0.0/8 (loopback)"),
    ("http://0.0.0.0/", "0.0.0.0/8 (this network)"),
    ("http://10.0.0.1/", "10.0.0.0/8 (private)"),
    ("http://172.16.0.1/", "172.16.0.0/12 (private)"),
    ("http://192.168.0.1/", "192.168.0.0/16 (private)"),
    ("http://100.64.0.1/", "100.64.0.0/10"),
    ("http://198.18.0.1/", "198.18.0.0/15"),
    ("http://224.0.0.1/", "224.0.0.0/4 (multicast)"),
    ("http://255.255.255.255/", "broadcast"),
    ("http://240.0.0.1/", "240.0.0.0/4 (reserved)"),
    # What clouds serve themselves
    ("http://169.254.169.254/latest/meta-data/", "metadata"),
    ("http://169.254.170.2/v2/credentials", "credentials"),
    ("http://100.100.100.200/latest/meta-data/", "metadata"),
    ("http://192.0.0.192/opc/v2/", "metadata"),
    ("http://168.63.129.16/machine", "platform"),
    ("http://[fd00:ec2::254]/latest/", "metadata"),
    ("http://metadata.google.internal/computeMetadata/v1/", INSIDE),
    ("http://instance-data/latest/", INSIDE),
    # IPv6
    ("http://[::1]/", "::1/128 (loopback)"),
    ("http://[0:0:0:0:0:0:0:1]/", "::1/128 (loopback)"),
    ("http://[::]/", "unspecified"),
    ("http://[fe80::1]/", "link-local"),
    ("http://[fec0::1]/", "site-local"),
    ("http://[fc00::1]/", "private"),
    ("http://[ff02::1]/", "multicast"),
    ("http://[2001:db8::1]/", "documentation"),
    ("http://[100::1]/", "discarded"),
    # IPv4 inside of IPv6
    ("http://[::ffff:127.0.0.1]/", "leads to 127.0.0.1"),
    ("http://[::ffff:7f00:1]/", "leads to 127.0.0.1"),
    ("http://[0:0:0:0:0:ffff:a9fe:a9fe]/", "leads to 169.254.169.254"),
    ("http://[::127.0.0.1]/", "::/96"),
    ("http://[::7f00:1]/", "::/96"),
    ("http://[::ffff:0:127.0.0.1]/", "::/0"),
    ("http://[2002:7f00:1::]/", "2002::/16"),
    ("http://[2002:a9fe:a9fe::1]/", "2002::/16"),
    ("http://[2001:0:7f00:1::80ff:fffe]/", "2001::/32"),
    ("http://[64:ff9b::127.0.0.1]/", "leads to 127.0.0.1"),
    ("http://[64:ff9b::a9fe:a9fe]/", "leads to 169.254.169.254"),
    ("http://[64:ff9b:1::7f00:1]/", "64:ff9b:1::/48"),
    # Other spellings
    ("http://2130706433/", "spelling of 127.0.0.1"),
    ("http://0x7f000001/", "spelling of 127.0.0.1"),
    ("http://0x7f.0x0.0x0.0x1/", "spelling of 127.0.0.1"),
    ("http://0177.0.0.1/", "spelling of 127.0.0.1"),
    ("http://017700000001/", "spelling of 127.0.0.1"),
    ("http://127.1/", "spelling of 127.0.0.1"),
    ("http://127.0.1/", "spelling of 127.0.0.1"),
    ("http://0/", "spelling of 0.0.0.0"),
    ("http://127.0.0.1./", "spelling of 127.0.0.1"),
    ("http://0xa9fea9fe/", "spelling of 169.254.169.254"),
    ("http://2852039166/", "spelling of 169.254.169.254"),
    ("http://169.254.43518/", "spelling of 169.254.169.254"),
    ("http://00000177.0.0.1/", "spelling of 127.0.0.1"),
    ("http://127.0.0.256/", "not an IPv4 address"),
    ("http://127.0.0.1.2/", "not an IPv4 address"),
    ("http://%31%32%37.0.0.1/", "percent"),
    ("http://127.0.0.1%00.example.com/", "percent"),
    ("http://[fe80::1%25eth0]/", "percent"),
    ("http://[fe80::1%eth0]/", "percent"),
    ("http://\uff11\uff12\uff17.0.0.1/", "characters that names cannot have"),
    ("http://127。0。0。1/", "loopback"),
    ("http://ⓛocalhost/", "characters that names cannot have"),
    ("http://local\u00adhost/", "characters that names cannot have"),
    ("http://local\u200bhost/", "invisible"),
    # Names that lead inside
    ("http://localhost/", INSIDE),
    ("http://LOCALHOST/", INSIDE),
    ("http://127.0.0.1.nip.io/", INSIDE),
    ("http://inside.test/", INSIDE),
    ("http://half.test/", INSIDE),
    ("http://six.test/", INSIDE),
    ("http://mapped.test/", INSIDE),
    ("http://nat64.test/", INSIDE),
    ("http://private-six.test/", INSIDE),
    ("http://nowhere.test/", INSIDE),
    # Two readers, two hosts
    ("http://example.com@127.0.0.1/", "user"),
    ("http://127.0.0.1@example.com/", "user"),
    ("http://user:password@10.0.0.1/", "user"),
    ("http://example.com:80@127.0.0.1/", "user"),
    ("http://example.com\\@127.0.0.1/", "backslashes"),
    ("http://127.0.0.1\\.example.com/", "backslashes"),
    ("http://127.0.0.1 .example.com/", "blanks"),
    ("http://127.0.0.1\t/", "blanks"),
    (" http://127.0.0.1/", "blanks"),
    ("http://example.com/\r\nHost: 127.0.0.1", "line breaks"),
    ("http://example.com\r\n.127.0.0.1/", "line breaks"),
    ("http://exa\nmple.com/", "line breaks"),
]  # fmt: skip
NO_HTTP = [
    "file:///etc/passwd", "file://127.0.0.1/etc/passwd", "gopher://127.0.0.1:6379/_INFO", "dict://127.0.0.1:11211/stats",
    "ftp://127.0.0.1/", "ldap://127.0.0.1/", "jar:http://127.0.0.1!/", "unix:///var/run/docker.sock", "//127.0.0.1/",
    "http:127.0.0.1", "http:/127.0.0.1", "http://127.0.0.1:0/", "http://127.0.0.1:65536/", "http://[::1", "http://::1/",
]  # fmt: skip


@pytest.fixture
async def handler() -> AsyncIterator[HttpHandler]:
    async with name_server(NAMES) as names:
        yield HttpHandler(Egress(resolve=names.resolve))


async def refused(handler: HttpHandler, url: str) -> tuple[str, str]:
    done = await asyncio.wait_for(handler.run(Assignment(CTX, {"url": url, "method": "GET"}, {})), 20)
    assert isinstance(done.outcome, Failed)
    assert done.outcome.permanent
    assert done.output is None
    return done.outcome.error.code, done.outcome.error.message


def test_there_are_more_than_sixty_forms() -> None:
    assert len({url for url, _ in FORMS}) == len(FORMS) > 60


@pytest.mark.parametrize(("url", "reason"), FORMS)
async def test_what_leads_inside_is_refused_with_the_reason(
    handler: HttpHandler, url: str, reason: str
) -> None:
    code, message = await refused(handler, url)
    assert code == "address_refused"
    assert reason in message


@pytest.mark.parametrize("url", NO_HTTP)
async def test_what_is_no_http_address_is_refused(handler: HttpHandler, url: str) -> None:
    code, _ = await refused(handler, url)
    assert code == "url_invalid"


async def test_a_refusal_says_what_to_do(handler: HttpHandler) -> None:
    _, message = await refused(handler, "http://inside.test/")
    assert message == (
        "inside.test resolves to an address that may not be called from here; the log of the process that calls names it. "
        "An operator can allow it in FOLIOT_EGRESS_ALLOW, on every node, worker and host."
    )
