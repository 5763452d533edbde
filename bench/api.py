"""`./dev bench api`: requests per second, how long they take and their CPU, over HTTP against a `foliot serve` of its own process.

The first line is a bare FastAPI route with one indexed query (bench/bare_api.py), in a process like the one that serves HTTP.
CPU is that of this process alone, without PostgreSQL and the clients. One workspace holds all the jobs. Each case is requested by a few clients with connections of their own for some seconds; they share
the machine with the server, so on few cores the figures are of both.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from rich.console import Console
from rich.table import Table

from bench.engine.population import Population
from bench.engine.setup import Site, bench
from foliot.services.identity.installation import create_admin_key
from foliot.storage.tx import Database

RESULTS = Path(__file__).parent / "results" / "api.json"
JOB = {"name": "made by the bench", "type": "http", "config": {"url": "https://example.test/hook"},
       "schedule": {"kind": "cron", "expr": "0 6 * * *", "timezone": "Europe/Paris"}, "tags": ["bench"]}  # fmt: skip
DEEP = 20  # pages
BARE = "bare FastAPI, one query"
CREATE, GET, LIST = "create a job", "get a job", "list, first page of 50"
MOST_CPU_MS = {CREATE: 4.0, LIST: 4.0}  # bars, milliseconds of CPU
OF_BARE = 0.5  # bar for GET: the bare route's CPU divided by its own


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    method: str
    path: Callable[[int], str]
    body: Any = None


@dataclass(frozen=True, slots=True)
class Figure:
    name: str
    requests_per_s: float
    p50_ms: float
    p99_ms: float
    count: int
    cpu_ms: float


class Client:
    """One connection that stays open."""

    def __init__(self, url: str, key: str, workspace: str, prefix: str = "/api/v1") -> None:
        place = urlsplit(url)
        self._prefix = prefix
        self._connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=60)
        self._headers = {
            "Authorization": f"Bearer {key}",
            "Foliot-Workspace": workspace,
            "Content-Type": "application/json",
        }

    def close(self) -> None:
        """Close the connection. The next request opens another."""
        self._connection.close()

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        sent = None if body is None else json.dumps(body)
        self._connection.request(method, f"{self._prefix}{path}", sent, self._headers)
        answer = self._connection.getresponse()
        raw = answer.read()
        if answer.status >= 400:
            raise SystemExit(f"{method} {path}: {answer.status} {raw[:500].decode()}")
        return raw


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench api", description=__doc__)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each case")
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--only", help="measure the cases whose name contains this, such as: a job")
    options = parser.parse_args()
    before = os.getloadavg()
    print(f"Making {options.jobs:,} jobs in one workspace ...", flush=True)
    with (
        bench() as made,
        made.database(Population(options.jobs, workspaces=1)) as site,
        served(site) as (url, key, process),
        bare(site) as (bare_url, bare_process),
    ):
        slug = json.loads(Client(url, key, "default").ask("GET", "/workspaces?limit=2"))["items"]
        workspace = next(each["slug"] for each in slug if each["slug"] != "default")

        quotas = {"jobs": 10_000_000, "requests_per_second": 1_000_000, "key_requests_per_second": 1_000_000}
        Client(url, key, "default").ask("PATCH", f"/workspaces/{workspace}", {"quotas": quotas})

        def client() -> Client:
            return Client(url, key, workspace)

        def bare_client() -> Client:
            return Client(bare_url, key, workspace, prefix="")

        wanted = [each for each in cases(client()) if (options.only or "") in each.name]
        ids = [each["id"] for each in json.loads(client().ask("GET", "/jobs?limit=200"))["items"]]
        asked = [(Case(BARE, "GET", lambda n: f"/jobs/{ids[n % len(ids)]}"), bare_client, bare_process)]
        asked += [(each, client, process) for each in wanted]
        figures = []
        for case, connect, pid in asked:
            figures.append(measured(case, connect, pid, options))
            print(f"  {figures[-1].name}: {figures[-1].requests_per_s:.0f}/s", flush=True)
    show(figures, options, before)
    return 0


def cases(client: Client) -> list[Case]:
    """A job that has been run some times, and a cursor far down the list."""
    page = json.loads(client.ask("GET", "/jobs?limit=200"))
    ids = [each["id"] for each in page["items"]]
    for _ in range(DEEP):  # needs some 4,000 jobs
        page = json.loads(client.ask("GET", f"/jobs?limit=200&cursor={page['next_cursor']}"))
    cursor, one = page["next_cursor"], ids[0]
    for _ in range(50):
        client.ask("POST", f"/jobs/{one}/run", {})

    def some(n: int) -> str:
        return str(ids[n % len(ids)])

    return [
        Case(CREATE, "POST", lambda _: "/jobs", JOB),
        Case(GET, "GET", lambda n: f"/jobs/{some(n)}"),
        Case(LIST, "GET", lambda _: "/jobs"),
        Case(f"list, page {DEEP * 4} of 50", "GET", lambda _: f"/jobs?cursor={cursor}"),
        Case("list q=status:active tag:…", "GET", lambda _: f"/jobs?q={quote('status:active tag:bench')}"),
        Case("list q=a word of the name", "GET", lambda _: "/jobs?q=hourly"),
        Case("run a job now", "POST", lambda n: f"/jobs/{some(n)}/run", {}),
        Case("history of a job", "GET", lambda _: f"/jobs/{one}/runs"),
        Case("runs of the workspace", "GET", lambda _: "/runs"),
        Case("explain a job", "GET", lambda n: f"/jobs/{some(n)}/explain"),
        Case("statistics of the workspace", "GET", lambda _: "/stats"),
        Case("agenda of a day", "GET", lambda _: "/agenda"),
        Case("list by next run", "GET", lambda _: "/jobs?sort=next_run_at"),
    ]


def measured(case: Case, client: Callable[[], Client], pid: int, options: argparse.Namespace) -> Figure:
    clients: int = options.clients
    took: list[float] = []
    failed: list[BaseException] = []
    client().ask(case.method, case.path(0), case.body)
    cpu_before = cpu_seconds(pid)
    until = time.perf_counter() + options.seconds

    def work(number: int) -> None:
        mine: list[float] = []
        own, n = client(), number
        try:
            while (began := time.perf_counter()) < until or not mine:
                own.ask(case.method, case.path(n), case.body)
                mine.append(time.perf_counter() - began)
                n += clients
        except BaseException as error:  # noqa: BLE001  # reported by the waiting thread
            failed.append(error)
        took.extend(mine)

    began = time.perf_counter()
    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    if failed:
        raise failed[0]
    whole, cpu = time.perf_counter() - began, cpu_seconds(pid) - cpu_before
    cuts = statistics.quantiles(took, n=100) if len(took) > 1 else took * 99
    return Figure(
        case.name,
        round(len(took) / whole, 1),
        round(cuts[49] * 1e3, 2),
        round(cuts[98] * 1e3, 2),
        len(took),
        round(cpu / len(took) * 1e3, 2),
    )


def cpu_seconds(pid: int) -> float:
    """User and system time of one process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def bare(site: Site) -> Iterator[tuple[str, int]]:
    """The bare route, and its process."""
    process = subprocess.Popen(
        (sys.executable, "-m", "bench.bare_api", site.owner_url), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip(), process.pid
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def served(site: Site, *, roles: str | None = None) -> Iterator[tuple[str, str, int]]:
    """A whole server or one with these roles, its key and the process that serves HTTP. None of the jobs is due while it lasts, so the
    API is nearly alone in it.
    """
    with tempfile.TemporaryDirectory(prefix="foliot-bench-") as folder:
        environ = {"FOLIOT_PORT": "0", "FOLIOT_DATABASE_URL": site.url, "FOLIOT_MIGRATE_URL": site.owner_url}
        if roles is not None:
            environ["FOLIOT_ROLES"] = roles
        process = subprocess.Popen(
            (Path(sys.executable).with_name("foliot"), "serve", "--data-dir", folder),
            env=os.environ | environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert process.stdout is not None
        try:
            url, http_process = None, 0
            for line in process.stdout:
                if found := re.search(r"api\.started.*?pid\D*(\d+)", line):
                    http_process = int(found[1])
                if found := re.search(r"serving at (http://127\.0\.0\.1:\d+)", line):
                    url = found[1]
                    break
            if url is None:
                raise SystemExit("foliot serve did not start")
            threading.Thread(
                target=process.stdout.read, daemon=True
            ).start()  # or it would block on a full pipe
            key = Path(folder) / "admin.key"  # of a first start
            known = key.read_text().strip() if key.exists() else asyncio.run(_admin_key(site))
            yield url, known, http_process
        finally:
            process.terminate()
            process.wait(30)


async def _admin_key(site: Site) -> str:
    async with Database(site.url) as database:
        return (await create_admin_key(database, "bench")).secret


def verdict(figure: Figure, bare: Figure) -> str:
    """The bar of a request and whether it is met: CPU of one request, and for a single job its part of the bare route."""
    if (most := MOST_CPU_MS.get(figure.name)) is not None:
        return f"<= {most:g} ms {'ok' if figure.cpu_ms <= most else 'missed'}"
    if figure.name == GET:
        return f">= {OF_BARE:g} {'ok' if bare.cpu_ms / figure.cpu_ms >= OF_BARE else 'missed'}"
    return ""


def show(figures: list[Figure], options: argparse.Namespace, before: tuple[float, float, float]) -> None:
    load = f"load {before[0]:.1f} before, {os.getloadavg()[0]:.1f} after, {os.cpu_count()} cores"
    table = Table(
        title=f"API over HTTP, {options.jobs:,} jobs in the workspace, {options.clients} clients; {load}"
    )
    columns = ("request", "per second", "CPU ms", "of bare by CPU", "bar", "p50 ms", "p99 ms", "requests")
    for column in columns:
        table.add_column(column, justify="left" if column == "request" else "right")
    for each in figures:
        table.add_row(
            each.name,
            f"{each.requests_per_s:,.0f}",
            f"{each.cpu_ms:.2f}",
            f"{figures[0].cpu_ms / each.cpu_ms:.2f}",
            verdict(each, figures[0]),
            f"{each.p50_ms:.1f}",
            f"{each.p99_ms:.1f}",
            f"{each.count:,}",
        )
    Console(width=120).print(table)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(
        json.dumps(
            {
                "jobs": options.jobs,
                "clients": options.clients,
                "load": load,
                "figures": [asdict(each) for each in figures],
            },
            indent=2,
        )
    )
    print(f"Written to {RESULTS}")


if __name__ == "__main__":
    sys.exit(main())
