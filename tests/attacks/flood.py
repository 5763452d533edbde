"""`./dev prove flood`: 300 connections ask for lists of jobs as fast as they get answers, beside a bystander's job every second.

Bars: the bystander starts on time; the API still serves most of what it serves to a few clients; /healthz and /readyz answer quickly.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tests.attacks.site import Site, attacked_site, judge

PATH = "/api/v1/jobs"
ATTACKER = "flooding"
JOBS = 50
FEW = 4  # connections of the measurement without load
P99_MS = 300.0
LEAST_SHARE = 0.8  # of the throughput without load
PROBE_P99_MS = 100.0
PROBE_EVERY = 0.2  # seconds
UNLIMITED = {"FOLIOT_RATE_PER_KEY": "0", "FOLIOT_RATE_PER_WORKSPACE": "0"}


@dataclass(frozen=True, slots=True)
class Load:
    """Answers by status, and how long those took that were served."""

    seconds: float
    answers: dict[str, int]

    @property
    def served_per_second(self) -> float:
        return sum(count for status, count in self.answers.items() if status.startswith("2")) / self.seconds


class Connections:
    """Connections that send a request as soon as they have an answer, and connect again when they are cut."""

    def __init__(self, url: str, request: bytes) -> None:
        place = urlsplit(url)
        self._host, self._port = str(place.hostname), place.port or 80
        self._request = request
        self._answers: Counter[str] = Counter()

    async def press(self, count: int, seconds: float) -> Load:
        until = asyncio.get_running_loop().time() + seconds
        began = time.monotonic()
        await asyncio.gather(*(self._one(until) for _ in range(count)))
        return Load(time.monotonic() - began, dict(self._answers))

    async def _one(self, until: float) -> None:
        loop = asyncio.get_running_loop()
        while loop.time() < until:
            try:
                async with asyncio.timeout_at(until):
                    reader, writer = await asyncio.open_connection(self._host, self._port)
                    try:
                        while True:
                            self._answers[await self._ask(reader, writer)] += 1
                    finally:
                        writer.close()
            except TimeoutError:
                return
            except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                self._answers["cut"] += 1
                await asyncio.sleep(0.05)

    async def _ask(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
        writer.write(self._request)
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(line.partition(b":")[2])
            for line in head.lower().split(b"\r\n")
            if line.startswith(b"content-length:")
        )
        await reader.readexactly(length)
        return head[9:12].decode()


def request_for(key: str, workspace: str) -> bytes:
    lines = (
        f"GET {PATH} HTTP/1.1",
        "Host: flood",
        f"Authorization: Bearer {key}",
        f"Foliot-Workspace: {workspace}",
        "",
        "",
    )
    return "\r\n".join(lines).encode()


def press(url: str, request: bytes, connections: int, seconds: float) -> Load:
    """Run the connections in a process of their own, so that they do not slow the probes down."""
    given = {"url": url, "request": request.decode(), "connections": connections, "seconds": seconds}
    child = (sys.executable, "-m", "tests.attacks.flood", "--child")
    done = subprocess.run(child, input=json.dumps(given).encode(), stdout=subprocess.PIPE, check=True)
    return Load(**json.loads(done.stdout))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="./dev prove flood", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long the flood lasts (60)")
    parser.add_argument("--connections", type=int, default=300)
    parser.add_argument("--api-processes", default="1")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.child:
        given: dict[str, Any] = json.load(sys.stdin)
        loaded = asyncio.run(
            Connections(given["url"], given["request"].encode()).press(given["connections"], given["seconds"])
        )
        print(json.dumps({"seconds": loaded.seconds, "answers": loaded.answers}))
        return 0
    with attacked_site(**UNLIMITED, FOLIOT_API_PROCESSES=options.api_processes) as site:
        return flood(site, options.connections, options.seconds)


def flood(site: Site, connections: int, seconds: float) -> int:
    workspace = site.create_workspace(ATTACKER)
    with site.client(workspace) as client:
        for number in range(JOBS):
            schedule = {"kind": "cron", "expr": "0 6 * * *"}
            work = {"type": "message", "config": {"text": "never sent"}}
            client.jobs.create({"name": f"job {number}", "schedule": schedule, **work})
    request = request_for(site.key, workspace)
    press(site.url, request, FEW, 2.0)  # warm up
    unloaded = press(site.url, request, FEW, 5.0)
    with site.phase("before"):
        site.rest()
    with site.phase("during"):
        loaded, probes = asyncio.run(_flood_and_probe(site, request, connections, seconds))
    with site.phase("after"):
        site.rest()
    share = loaded.served_per_second / unloaded.served_per_second
    print(f"unloaded, {FEW} connections: {unloaded.served_per_second:.0f} served/s")
    print(
        f"flood, {connections} connections: {loaded.served_per_second:.0f} served/s "
        f"({share:.0%} of unloaded); answers {loaded.answers}"
    )
    late = site.judge(p99_ms=P99_MS)
    failures = [late, judge(f"at least {LEAST_SHARE:.0%} of the unloaded throughput", LEAST_SHARE / share)]
    for path, took in probes.items():
        took.sort()
        p99 = took[min(len(took) - 1, int(len(took) * 0.99))] * 1e3
        print(f"{path}: {len(took)} probes, p50 {took[len(took) // 2] * 1e3:.0f} ms, p99 {p99:.0f} ms")
        failures.append(judge(f"{path} within {PROBE_P99_MS:.0f} ms at p99", p99 / PROBE_P99_MS))
    return max(failures)


async def _flood_and_probe(
    site: Site, request: bytes, connections: int, seconds: float
) -> tuple[Load, dict[str, list[float]]]:
    flooding = asyncio.create_task(asyncio.to_thread(press, site.url, request, connections, seconds))
    place = urlsplit(site.url)
    probes: dict[str, list[float]] = {"/healthz": [], "/readyz": []}
    while not flooding.done():
        for path, took in probes.items():
            began = time.perf_counter()
            reader, writer = await asyncio.open_connection(place.hostname, place.port)
            writer.write(f"GET {path} HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n".encode())
            answer = await reader.read()
            writer.close()
            took.append(time.perf_counter() - began if answer[9:12] == b"200" else 60.0)
        await asyncio.sleep(PROBE_EVERY)
    return await flooding, probes


if __name__ == "__main__":
    sys.exit(main())
