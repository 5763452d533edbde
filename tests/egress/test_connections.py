"""Kept connections: whose they are, when they are used again, and when they must not be."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from foliot.domain.addresses import networks
from foliot.egress import pool
from foliot.egress.client import AddressRefused, CachedResolver, Egress, HttpAnswer, NoAnswer, OutgoingRequest
from foliot.egress.url import read_target
from tests.egress.dns import name_server
from tests.polling import wait_until
from tests.stories.certificates import Authority

pytestmark = pytest.mark.anyio
OURS, OTHER = "127.0.0.2", "127.0.0.3"
LOOPBACK = networks(("127.0.0.0/8",))
FINE = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
Answer = Callable[[int, int, asyncio.StreamWriter], Awaitable[None]]


async def fine(connection: int, request: int, writer: asyncio.StreamWriter) -> None:
    writer.write(FINE)


class Receiver:
    """A server that keeps its connections and notes which request came on which."""

    def __init__(self, answer: Answer = fine) -> None:
        self.answer = answer
        self.heard: list[tuple[int, bytes]] = []  # number of the connection, head
        self.resumed: list[bool] = []
        self.open = 0
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number, requests = self.connections, 0
        self.open += 1
        if (secure := writer.get_extra_info("ssl_object")) is not None:
            self.resumed.append(secure.session_reused)
        with suppress(ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                size = [line[15:] for line in head.lower().split(b"\r\n") if line[:15] == b"content-length:"]
                await reader.readexactly(int(size[0]) if size else 0)
                self.heard.append((number, head))
                await self.answer(number, requests, writer)
                requests += 1
                await writer.drain()
        self.open -= 1
        writer.close()


@asynccontextmanager
async def served(
    receiver: Receiver, address: str = OURS, tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    server = await asyncio.start_server(receiver.serve, address, 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await wait_until(lambda: receiver.open == 0)


@asynccontextmanager
async def client(**given: object) -> AsyncIterator[Egress]:
    egress = Egress(LOOPBACK, **given)  # type: ignore[arg-type]
    try:
        yield egress
    finally:
        egress.close()


async def send(egress: Egress, url: str, workspace: str | None = "w", method: str = "POST") -> HttpAnswer:
    content = b"{}" if method == "POST" else None
    request = OutgoingRequest(method, read_target(url), (), content, workspace)
    return await asyncio.wait_for(egress.send(request), 20)


async def test_a_workspace_uses_its_connection_again_and_no_other_workspace_does() -> None:
    receiver = Receiver()
    async with served(receiver) as port, client() as egress:
        for workspace in ("one", "one", "two", "one", "two", None):
            await send(egress, f"http://{OURS}:{port}/", workspace)
    assert [number for number, _ in receiver.heard] == [1, 1, 2, 1, 2, 3]
    closing = [b"connection: close" in head.lower() for _, head in receiver.heard]
    assert closing == [False] * 5 + [True]


async def test_a_kept_connection_is_not_used_once_the_name_leads_elsewhere() -> None:
    ours, other = Receiver(), Receiver()
    answers = {"moves.test": [[OURS], [OTHER], ["10.0.0.1"]]}
    async with name_server(answers) as names, served(ours) as port:
        server = await asyncio.start_server(other.serve, OTHER, port)
        async with server, client(resolve=names.resolve) as egress:
            await send(egress, f"http://moves.test:{port}/")
            await send(egress, f"http://moves.test:{port}/")
            with pytest.raises(AddressRefused):
                await send(egress, f"http://moves.test:{port}/")
    assert (len(ours.heard), len(other.heard)) == (1, 1)
    await wait_until(lambda: other.open == 0)


async def test_a_name_shares_no_connection_with_another_name_of_the_same_address() -> None:
    receiver = Receiver()
    async with (
        name_server({"a.test": [[OURS]], "b.test": [[OURS]]}) as names,
        served(receiver) as port,
        client(resolve=names.resolve) as egress,
    ):
        for name in ("a", "b", "a"):
            await send(egress, f"http://{name}.test:{port}/")
    assert [number for number, _ in receiver.heard] == [1, 2, 1]


async def test_a_second_answer_is_never_taken_for_that_of_the_next_request() -> None:
    async def twice(connection: int, request: int, writer: asyncio.StreamWriter) -> None:
        writer.write(FINE + b"HTTP/1.1 200 Forged\r\ncontent-length: 6\r\n\r\nforged")

    receiver = Receiver(twice)
    async with served(receiver) as port, client() as egress:
        answers = [await send(egress, f"http://{OURS}:{port}/") for _ in range(3)]
    assert [each.body for each in answers] == [b"ok"] * 3
    assert [number for number, _ in receiver.heard] == [1, 2, 3]


async def test_what_comes_on_an_idle_connection_closes_it() -> None:
    late = asyncio.Event()

    async def later(connection: int, request: int, writer: asyncio.StreamWriter) -> None:
        writer.write(FINE)
        if connection == 1:
            await late.wait()
            writer.write(b"HTTP/1.1 200 Forged\r\ncontent-length: 6\r\n\r\nforged")

    receiver = Receiver(later)
    async with served(receiver) as port, client() as egress:
        await send(egress, f"http://{OURS}:{port}/")
        late.set()
        await wait_until(lambda: receiver.open == 0)
        assert (await send(egress, f"http://{OURS}:{port}/")).body == b"ok"
    assert [number for number, _ in receiver.heard] == [1, 2]


async def test_only_a_request_that_may_be_repeated_is_sent_again_when_a_kept_connection_is_closed() -> None:
    async def hang_up(connection: int, request: int, writer: asyncio.StreamWriter) -> None:
        if connection == 1 and request == 1:
            writer.transport.abort()
        else:
            writer.write(FINE)

    for method, sent in (("GET", [1, 1, 2]), ("POST", [1, 1])):
        receiver = Receiver(hang_up)
        async with served(receiver) as port, client() as egress:
            await send(egress, f"http://{OURS}:{port}/", method=method)
            if method == "GET":
                assert (await send(egress, f"http://{OURS}:{port}/", method=method)).status == 200
            else:
                with pytest.raises(NoAnswer, match="it closed the connection"):
                    await send(egress, f"http://{OURS}:{port}/", method=method)
        assert [number for number, _ in receiver.heard] == sent


async def test_a_receiver_that_closes_soon_or_at_once_is_not_kept() -> None:
    for line in (b"connection: close\r\n", b"keep-alive: timeout=1\r\n"):

        async def answer(
            connection: int, request: int, writer: asyncio.StreamWriter, line: bytes = line
        ) -> None:
            writer.write(b"HTTP/1.1 200 OK\r\n" + line + b"content-length: 0\r\n\r\n")

        receiver = Receiver(answer)
        async with served(receiver) as port, client() as egress:
            for _ in range(2):
                await send(egress, f"http://{OURS}:{port}/")
        assert [number for number, _ in receiver.heard] == [1, 2]


async def test_connections_to_one_receiver_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "MOST_PER_RECEIVER", 2)
    go = asyncio.Event()

    async def wait(connection: int, request: int, writer: asyncio.StreamWriter) -> None:
        await go.wait()
        writer.write(FINE)

    receiver = Receiver(wait)
    async with served(receiver) as port, client() as egress:
        url = f"http://{OURS}:{port}/"
        sending = [asyncio.ensure_future(send(egress, url)) for _ in range(5)]
        other = asyncio.ensure_future(send(egress, url, "other"))
        await wait_until(lambda: len(receiver.heard) == 3)  # two of this workspace, one of the other
        go.set()
        await asyncio.gather(other, *sending)
    assert (len(receiver.heard), receiver.connections) == (6, 3)


async def test_a_new_connection_resumes_the_tls_session_of_the_same_workspace_alone(tmp_path: Path) -> None:
    async def close(connection: int, request: int, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")

    authority = Authority.new(tmp_path)
    trusting = ssl.create_default_context(cafile=str(authority.file))
    receiver = Receiver(close)
    async with served(receiver, tls=authority.server(OURS)) as port, client(tls=trusting) as egress:
        for workspace in ("one", "one", "two", "two"):
            await send(egress, f"https://{OURS}:{port}/", workspace)
    assert receiver.resumed == [False, True, False, True]


@pytest.mark.parametrize(
    ("method", "raw", "body"),
    [
        ("HEAD", b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n", b""),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        ("GET", b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\nx: y\r\n\r\n", b"abcde"),
        ("GET", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + FINE, b"ok"),
        ("GET", b"HTTP/1.0 200 OK\r\n\r\nuntil the end", b"until the end"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("piece", [1, 1_000])
async def test_answers_of_every_form_are_read(method: str, raw: bytes, body: bytes, piece: int) -> None:
    async def say(connection: int, request: int, writer: asyncio.StreamWriter) -> None:
        for at in range(0, len(raw), piece):
            writer.write(raw[at : at + piece])
            await writer.drain()
            await asyncio.sleep(0)
        if raw.startswith(b"HTTP/1.0"):
            writer.close()

    receiver = Receiver(say)
    async with served(receiver) as port, client() as egress:
        for _ in range(2):
            answer = await send(egress, f"http://{OURS}:{port}/", method=method)
            assert (answer.body, "link" in answer.headers, "x" in answer.headers) == (body, False, False)


async def test_an_answer_that_breaks_off_is_no_answer() -> None:
    async def cut(connection: int, request: int, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf")
        writer.close()

    async with served(Receiver(cut)) as port, client() as egress:
        with pytest.raises(NoAnswer, match="before the end of its answer"):
            await send(egress, f"http://{OURS}:{port}/")


async def test_a_name_is_looked_up_once_for_requests_of_the_same_moment_and_approved_for_each() -> None:
    receiver = Receiver()
    async with name_server({"flips.test": [[OURS], ["10.0.0.1"]]}) as names, served(receiver) as port:
        resolve = CachedResolver(names.resolve, seconds=3_600)
        async with client(resolve=resolve) as egress:
            url = f"http://flips.test:{port}/"
            await asyncio.gather(*(send(egress, url) for _ in range(5)))
            assert names.asked == {"flips.test": 1}
        closed = Egress(resolve=resolve)  # the same answer, under another list of networks
        with pytest.raises(AddressRefused):
            await send(closed, url)
        closed.close()
        async with client(resolve=CachedResolver(names.resolve, seconds=-1)) as egress:
            with pytest.raises(AddressRefused):  # the answer is too old, and the next one leads inside
                await send(egress, url)


async def test_a_lookup_that_failed_is_tried_again_by_the_next_request() -> None:
    answers: dict[str, list[list[str]]] = {}
    receiver = Receiver()
    async with (
        name_server(answers) as names,
        served(receiver) as port,
        client(resolve=CachedResolver(names.resolve)) as egress,
    ):
        with pytest.raises(NoAnswer, match="cannot be resolved"):
            await send(egress, f"http://new.test:{port}/")
        answers["new.test"] = [[OURS]]
        assert (await send(egress, f"http://new.test:{port}/")).status == 200


async def test_messages_for_authors_of_jobs_name_no_address_of_an_internal_name() -> None:
    answers = {"db.internal.test": [["10.1.2.3"]], "up.test": [[OURS]]}
    async with name_server(answers) as names, client(resolve=names.resolve) as egress:
        with pytest.raises(AddressRefused) as refused:
            await send(egress, "http://db.internal.test/")
        server = await asyncio.start_server(lambda *_: None, OURS, 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        with pytest.raises(NoAnswer) as failed:
            await send(egress, f"http://up.test:{port}/")
    assert "10.1.2.3" in str(refused.value)  # for the log
    assert "10." not in refused.value.public
    assert OURS not in str(failed.value)
