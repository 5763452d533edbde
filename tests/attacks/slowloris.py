"""`./dev prove slowloris`: 1,500 connections send the head of a request a byte at a time and never finish, beside a bystander.

Bars: a client that asks in the ordinary way is answered throughout, the bystander starts on time, and the log stays short.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from urllib.parse import urlsplit

from tests.attacks.site import Site, attacked_site, judge

CONNECTIONS = 1_500
HEAD = b"GET /api/v1/jobs HTTP/1.1\r\nHost: slow\r\nX-Padding: " + b"a" * 10_000
BYTE_EVERY = 1.0  # seconds
P99_MS = 300.0
ASK_P99_MS = 500.0
MOST_LINES = 50  # of the log, for the whole attack


async def drip(host: str, port: int, until: float) -> None:
    """Send a byte now and then; connect again when cut."""
    loop = asyncio.get_running_loop()
    while loop.time() < until:
        try:
            _, writer = await asyncio.open_connection(host, port)
            try:
                for at in range(len(HEAD)):
                    writer.write(HEAD[at : at + 1])
                    await writer.drain()
                    await asyncio.sleep(BYTE_EVERY)
                    if loop.time() >= until:
                        return
            finally:
                writer.close()
        except OSError:
            await asyncio.sleep(BYTE_EVERY)


async def ask(site: Site, until: float) -> list[float]:
    """Ask for jobs on a new connection again and again; return how long each took, or a minute where it failed."""
    place, took, loop = urlsplit(site.url), [], asyncio.get_running_loop()
    head = f"GET /api/v1/jobs HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer {site.key}\r\nConnection: close\r\n\r\n"
    while loop.time() < until:
        began = time.perf_counter()
        answer = b""
        try:
            async with asyncio.timeout(10):
                reader, writer = await asyncio.open_connection(place.hostname, place.port)
                writer.write(head.encode())
                answer = await reader.read()
                writer.close()
        except (OSError, TimeoutError):
            pass
        took.append(time.perf_counter() - began if answer[9:12] == b"200" else 60.0)
        await asyncio.sleep(0.2)
    return sorted(took)


async def attack(site: Site, connections: int, seconds: float) -> list[float]:
    place = urlsplit(site.url)
    until = asyncio.get_running_loop().time() + seconds
    slow = [
        asyncio.create_task(drip(str(place.hostname), place.port or 80, until)) for _ in range(connections)
    ]
    took = await ask(site, until)
    for each in slow:
        each.cancel()
    await asyncio.wait(slow)
    return took


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="./dev prove slowloris", description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--connections", type=int, default=CONNECTIONS)
    options = parser.parse_args(argv)
    with attacked_site() as site:
        with site.phase("before"):
            site.rest()
        lines = len(site.server.lines)
        with site.phase("during"):
            took = asyncio.run(attack(site, options.connections, options.seconds))
        lines = len(site.server.lines) - lines
        with site.phase("after"):
            site.rest()
        p99 = took[min(len(took) - 1, int(len(took) * 0.99))] * 1e3
        print(
            f"{len(took)} ordinary requests: p50 {took[len(took) // 2] * 1e3:.0f} ms, p99 {p99:.0f} ms; {lines} log lines"
        )
        return max(
            site.judge(p99_ms=P99_MS),
            judge(f"an ordinary request within {ASK_P99_MS:.0f} ms at p99", p99 / ASK_P99_MS),
            judge(f"at most {MOST_LINES} log lines", lines / MOST_LINES),
        )


if __name__ == "__main__":
    sys.exit(main())
