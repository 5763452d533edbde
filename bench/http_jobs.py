"""`./dev bench http`: http runs a second through one worker, beside a bare aiohttp client that sends as many requests in the same run.

There are two receivers, each in a process of its own that keeps its connections. `ordinary` is an application of aiohttp.web, which costs
about what the web service of a customer costs. `instant` reads just enough of HTTP to answer, so that nothing but the clients is measured; no worker
that records its runs can come near a bare client there, because PostgreSQL's work alone is more than all that the bare client does.
Both clients send the same body and headers with the same number of requests under way. They take turns, plain and over TLS, and medians count.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import ssl
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp
import aiohttp.web
from rich.console import Console
from rich.table import Table

from bench.engine import fires, loops
from bench.engine.loops import Plan
from bench.engine.population import DUE, Population
from bench.engine.processes import Measured, Signal, together
from bench.engine.report import merge
from bench.engine.setup import Bench, bench
from foliot.domain.addresses import networks
from foliot.egress.client import Egress
from foliot.handlers.http import HttpHandler
from foliot.handlers.registry import Assignment, HandlerResult
from tests.stories.certificates import Authority

PERMITS = 100
WORKSPACES = 5
ROUNDS = 3
LONGEST = 120.0  # seconds
BAR = 0.6  # of the bare client
ORDINARY, INSTANT = "ordinary", "instant"  # receivers
ANSWER = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{"ok":true}'
HEADERS = {
    "user-agent": "bench", "accept": "*/*", "accept-encoding": "identity", "idempotency-key": "0" * 36,
    "foliot-run-id": "0" * 36, "foliot-attempt": "1", "foliot-fence": "1", "content-type": "application/json",
    "foliot-planned-for": DUE.isoformat(),
}  # fmt: skip


class Answering(asyncio.Protocol):
    """The receiver: it reads as much of HTTP as these two clients write."""

    def connection_made(self, transport: Any) -> None:
        self._transport, self._buffer = transport, b""

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end].lower()
            at = head.find(b"content-length:")
            size = 0 if at < 0 else int(head[at + 15 :].split(b"\r\n", 1)[0])
            if len(self._buffer) < end + 4 + size:
                return
            self._buffer = self._buffer[end + 4 + size :]
            self._transport.write(ANSWER)


async def answer(request: aiohttp.web.BaseRequest) -> aiohttp.web.Response:
    await request.json()
    return aiohttp.web.json_response({"ok": True})


def receive(kind: str, folder: str | None, ports: Any) -> None:
    async def serve() -> None:
        tls = None if folder is None else Authority.new(Path(folder)).server("127.0.0.1")
        protocol: Any = Answering if kind == INSTANT else aiohttp.web.Server(answer)
        server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0, ssl=tls)
        ports.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(serve())


@contextmanager
def receiver(kind: str, folder: str | None) -> Iterator[str]:
    spawn = multiprocessing.get_context("spawn")
    mine, theirs = spawn.Pipe(duplex=False)
    process = spawn.Process(target=receive, args=(kind, folder, theirs), daemon=True)
    process.start()
    try:
        yield f"{'http' if folder is None else 'https'}://127.0.0.1:{mine.recv()}/hook"
    finally:
        process.terminate()
        process.join()


def trust(folder: str | None) -> ssl.SSLContext | None:
    return None if folder is None else ssl.create_default_context(cafile=str(Path(folder) / "authority.pem"))


class Calls(HttpHandler):
    """The handler of http jobs, with one configuration for all."""

    def __init__(self, url: str, tls: ssl.SSLContext | None) -> None:
        super().__init__(Egress(networks(("127.0.0.0/8",)), tls=tls))
        self._config = {"url": url}
        self.entered = None

    async def run(self, assignment: Assignment) -> HandlerResult:
        return await super().run(replace(assignment, config=self._config))


def work(
    signal: Signal, database_url: str, plan: Plan, url: str, folder: str | None
) -> tuple[int, float, float, Any]:
    return asyncio.run(loops.work(signal, database_url, plan, Calls(url, trust(folder)), PERMITS))


def call(signal: Signal, url: str, count: int, folder: str | None) -> tuple[int, float, float, Any]:
    return asyncio.run(_call(signal, url, count, folder))


async def _call(signal: Signal, url: str, count: int, folder: str | None) -> tuple[int, float, float, Any]:
    left = iter(range(count))
    connector = aiohttp.TCPConnector(limit=PERMITS, ssl=trust(folder) or True)

    async def send(session: aiohttp.ClientSession) -> None:
        for _ in left:
            async with session.post(url, data=b"{}", headers=HEADERS) as answer:
                assert answer.status == 200
                await answer.read()

    async with aiohttp.ClientSession(connector=connector) as session:
        began = signal.wait()
        await asyncio.gather(*(send(session) for _ in range(PERMITS)))
        ended = time.monotonic()
    return count, began, ended, None


def measure_ours(server: Bench, jobs: int, url: str, folder: str | None) -> Measured:
    with server.database(Population(jobs, jobs, WORKSPACES)) as site:
        fired = fires.on(site, 2)
        plan = Plan(DUE + timedelta(seconds=60), time.monotonic(), LONGEST, fired.count)
        return together(site.server_pid, [(work, (site.url, plan, url, folder))])


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench http", description=__doc__)
    parser.add_argument(
        "--runs", type=int, default=5_000, help="http runs in each of the measurements (5000)"
    )
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    load, figures = os.getloadavg()[0], dict[str, float]()
    table = Table(
        "client, receiver", "runs or requests a second", "of bare", "bar", "CPU of one, us", title="http"
    )
    with bench() as server, tempfile.TemporaryDirectory(prefix="foliot-bench-") as authority:
        for kind, (transport, folder) in product((ORDINARY, INSTANT), (("plain", None), ("tls", authority))):
            with receiver(kind, folder) as url:
                bare, ours = [], []
                for _ in range(given.rounds):
                    bare.append(together(server.server_pid, [(call, (url, given.runs, folder))]))
                    ours.append(measure_ours(server, given.runs, url, folder))
            theirs, own = (median(each.per_second for each in found) for found in (bare, ours))
            part = own / theirs
            name = f"http_{kind}_{transport}"
            figures |= {f"{name}_runs_per_s": round(own, 1), f"{name}_of_bare": round(part, 3)}
            cost = median(each.cpu_us[0] for each in bare)
            table.add_row(f"bare aiohttp, {kind}, {transport}", f"{theirs:,.0f}", "", "", f"{cost:.0f}")
            worker, postgres = (median(each.cpu_us[side] for each in ours) for side in (0, 1))
            verdict = f">= {BAR} {'ok' if part >= BAR else 'missed'}"
            table.add_row(
                f"worker, {kind}, {transport}", f"{own:,.0f}", f"{part:.2f}", verdict,
                f"{worker:.0f}, and {postgres:.0f} of PostgreSQL",
            )  # fmt: skip
    console = Console(width=120)
    console.print(table)
    console.print(f"{given.rounds} x {given.runs:,} runs, {PERMITS} permits; load before: {load:.1f}")
    merge(figures)
    return 0 if all(value >= BAR for key, value in figures.items() if key.endswith("of_bare")) else 1


if __name__ == "__main__":
    raise SystemExit(main())
