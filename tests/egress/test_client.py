"""Requests that leave, over real sockets and real DNS: whom they reach, and whom they never do."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import pytest

from foliot.domain.addresses import networks
from foliot.egress import client as system_resolver
from foliot.egress.client import AddressRefused, Egress, HttpAnswer, NoAnswer, OutgoingRequest
from foliot.egress.url import read_target
from tests.egress.dns import NameServer, name_server

pytestmark = pytest.mark.anyio
OURS, VICTIM = "127.0.0.2", "127.0.0.1"
ONLY_OURS = networks((f"{OURS}/32",))


class Heard(list[bytes]):
    """What a server was sent, head by head."""


@asynccontextmanager
async def listening(address: str, port: int = 0, tls: Any = None) -> AsyncIterator[tuple[int, Heard]]:
    heard = Heard()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 Fine\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, address, port, ssl=tls)
    async with server:
        yield server.sockets[0].getsockname()[1], heard


async def get(egress: Egress, url: str) -> HttpAnswer:
    return await egress.send(OutgoingRequest("GET", read_target(url)))


def guarded(names: NameServer, *allowed: str) -> Egress:
    return Egress(networks(allowed), resolve=names.resolve)


async def test_a_name_that_changes_its_address_leads_nowhere_else() -> None:
    async with AsyncExitStack() as stack:
        port, ours = await stack.enter_async_context(listening(OURS))
        _, victim = await stack.enter_async_context(listening(VICTIM, port))
        names = await stack.enter_async_context(name_server({"flips.test": [[OURS], [VICTIM]]}))
        egress = guarded(names, f"{OURS}/32")
        answer = await get(egress, f"http://flips.test:{port}/")
        assert (answer.status, answer.reason, answer.body) == (200, "Fine", b"ok")
        assert names.asked == {"flips.test": 1}  # resolved once: between look and call nothing can change
        with pytest.raises(AddressRefused, match=r"flips\.test resolves to 127\.0\.0\.1, in 127\.0\.0\.0/8"):
            await get(egress, f"http://flips.test:{port}/")
        assert (len(ours), victim) == (1, [])


async def test_one_closed_address_among_several_closes_the_name() -> None:
    async with name_server(
        {"mixed.test": [["93.184.216.34", "10.0.0.7"]], "six.test": [["93.184.216.34", "fd00::1"]]}
    ) as names:
        for name, network in (("mixed.test", "10.0.0.0/8"), ("six.test", "fc00::/7")):
            with pytest.raises(AddressRefused, match=network):
                await guarded(names).approve(read_target(f"http://{name}/"))


async def test_a_name_nobody_knows_is_no_refusal_but_a_failure_to_retry() -> None:
    async with name_server({}) as names:
        with pytest.raises(NoAnswer, match=r"unknown\.test cannot be resolved") as failed:
            await get(guarded(names), "http://unknown.test/")
    assert failed.value.code == "name_unknown"


async def test_a_dead_address_is_passed_over_for_a_living_one_of_the_same_name() -> None:
    async with listening(OURS) as (port, heard), name_server({"two.test": [["127.0.0.3", OURS]]}) as names:
        await get(guarded(names, "127.0.0.0/8"), f"http://two.test:{port}/")
    assert len(heard) == 1


async def test_host_keeps_the_name_though_the_connection_goes_to_an_address() -> None:
    async with listening(OURS) as (port, heard), name_server({"shop.test": [[OURS]]}) as names:
        await get(guarded(names, f"{OURS}/32"), f"http://Shop.test:{port}/a?b=c")
    assert heard[0].startswith(b"GET /a?b=c HTTP/1.1\r\n")
    assert f"host: shop.test:{port}\r\n".encode() in heard[0].lower()


async def test_proxies_of_the_environment_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening(OURS) as (port, heard), listening(VICTIM) as (proxy, asked):
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://{VICTIM}:{proxy}")
        egress = Egress(ONLY_OURS)
        await get(egress, f"http://{OURS}:{port}/")
        egress.close()
    assert (len(heard), asked) == (1, [])


async def test_the_systems_own_resolver_knows_this_machine() -> None:
    async with listening(VICTIM) as (port, heard):
        closed = Egress()
        with pytest.raises(
            AddressRefused, match=r"localhost resolves to .* \(loopback\), which may not be called"
        ):
            await get(closed, f"http://localhost:{port}/")
        opened = Egress(networks(("127.0.0.0/8", "::1/128")))
        assert (await get(opened, f"http://localhost:{port}/")).status == 200
        closed.close()
        opened.close()
    assert len(heard) == 1


async def test_an_answer_is_kept_in_part_and_its_connection_cut() -> None:
    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while True:
                writer.write(b"x" * 65_536)
                await writer.drain()
        except ConnectionError:
            cut.set()

    cut = asyncio.Event()
    server = await asyncio.start_server(flood, OURS, 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        answer = await get(Egress(ONLY_OURS), f"http://{OURS}:{port}/")
        await asyncio.wait_for(cut.wait(), 20)
    assert (len(answer.body), answer.truncated) == (64 * 1024, True)


async def test_a_closed_port_is_a_failure_to_retry() -> None:
    with socket.create_server((OURS, 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(NoAnswer) as failed:
        await get(Egress(ONLY_OURS), f"http://{OURS}:{port}/")
    assert failed.value.code == "http_failed"


@asynccontextmanager
async def saying(first: bytes, then: bytes = b"") -> AsyncIterator[str]:
    """A server that says this, and goes on without end with that."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(first)
        with suppress(ConnectionError):
            await writer.drain()
            while then:
                writer.write(then)
                await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, OURS, 0) as server:
        yield f"http://{OURS}:{server.sockets[0].getsockname()[1]}/"


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (b"", b"HTTP/1.1 102 Processing\r\n\r\n" * 200),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"1;" + b"x" * 9_000 + b"\r\na\r\n"),
    ],
)
async def test_what_comes_without_end_is_not_read_without_end(first: bytes, then: bytes) -> None:
    async with saying(first, then) as url:
        with pytest.raises(NoAnswer, match="sent more than 1024 KiB and no end"):
            await get(Egress(ONLY_OURS), url)


async def test_what_a_target_says_instead_of_an_answer_is_quoted_in_short() -> None:
    async with saying(b"X" * 90_000 + b"\r\n\r\n") as url:
        with pytest.raises(NoAnswer, match="illegal status line") as failed:
            await get(Egress(ONLY_OURS), url)
    assert len(str(failed.value)) < 300


async def test_names_that_nobody_answers_for_hold_up_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = threading.Event()

    def look_up(host: str, port: int) -> list[str]:
        if host != "honest.test":
            answer.wait()
        return [OURS]

    monkeypatch.setattr(system_resolver, "_look_up", look_up)
    resolver = system_resolver.SystemResolver()
    hanging = [asyncio.ensure_future(resolver(f"{each}.evil.test", 80)) for each in range(120)]
    try:
        await asyncio.sleep(0)  # they are all asked for
        async with asyncio.timeout(20):
            assert await resolver("honest.test", 80) == [OURS]
    finally:
        answer.set()
        await asyncio.gather(*hanging)
        resolver.close()
