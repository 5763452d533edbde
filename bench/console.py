"""`./dev bench console`: the pages of the console over a workspace of 100,000 jobs and 10 million runs.

For every page: the time until the first byte at p50 and p95, beside that of the API call it shows; processor time of the server's
HTTP process and statements with their time in PostgreSQL, which say more than the clock on a busy machine; and its weight with styles
and scripts. Then the tail of a log of 100 MB, and the CPU of 200 open pages while nothing happens. Each has a bar. Loading takes
minutes: `--keep FOLDER` keeps the database.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import statistics
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

import psycopg
from rich.console import Console
from rich.table import Table

from bench.api import Client, served
from bench.console_data import loaded
from bench.engine.processes import children, cpu_of, server_cpu
from bench.engine.setup import Site
from foliot.web.console.pages import ROUTES
from foliot.web.console.session import COOKIE

RESULTS = Path(__file__).parent / "results" / "console.json"
WORKSPACE = "bench-1"
OPEN_PAGES = 200
BAR_MS, BAR_KB, BAR_IDLE = 100.0, 150.0, 5.0  # milliseconds at p95, kilobytes, percent of a core
# The call of the API that a page shows, as the figure beside it.
SHOWN = {
    "/": "/stats",
    "/jobs": "/jobs?limit=50",
    "/jobs/{job_id}": "/jobs/{job_id}/runs?limit=60",
    "/jobs/{job_id}/edit": "/jobs/{job_id}",
    "/runs": "/runs?limit=50",
    "/runs/{run_id}": "/runs/{run_id}",
    "/agenda": "/agenda",
    "/capacity": "/queues",
    "/incidents": "/incidents",
    "/freezes": "/freezes",
    "/audit": "/audit",
}
VIEWS = {
    "/jobs": ("?q=failures:%3E=1", "?q=hourly", "?sort=next_run_at"),
    "/jobs/{job_id}": ("?tab=figures", "?tab=changes", "?tab=definition", "?tab=alerts"),
    "/runs": ("?q=status:failed", "?q=since:24h", "?q=status:waiting,ready,running", "?group=error"),
    "/agenda": ("?view=week", "?view=heat", "?view=list"),
}
ASSET = re.compile(r'(?:href|src)="(/console/static/[\w.-]+)["#]')


class Cost(NamedTuple):
    """What one reading of a page costs the server."""

    cpu_ms: float  # of the HTTP process
    statements: float
    database_ms: float


@dataclass(frozen=True, slots=True)
class PageFigure:
    page: str
    p50_ms: float
    p95_ms: float
    api_p95_ms: float | None
    cost: Cost
    kilobytes: float  # the page itself
    whole_kilobytes: float  # with its styles and scripts

    @property
    def is_ok(self) -> bool:
        return self.p95_ms < BAR_MS and self.whole_kilobytes < BAR_KB


class Reader:
    """A signed-in browser without a screen: it reads pages over one connection."""

    def __init__(self, url: str, key: str) -> None:
        place = urlsplit(url)
        self.host, self.port = str(place.hostname), place.port
        self._connection = http.client.HTTPConnection(self.host, self.port, timeout=300)
        body = urlencode({"key": key})
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        self._connection.request("POST", "/console/sign-in", body, form)
        answer = self._connection.getresponse()
        answer.read()
        found = re.search(rf"{COOKIE}=([^;]+)", answer.headers["set-cookie"])
        assert found is not None, answer.status
        self.headers = {"Cookie": f"{COOKIE}={found[1]}; foliot_workspace={WORKSPACE}"}

    def close(self) -> None:
        """Close the connection. The next request opens another."""
        self._connection.close()

    def weigh(self, path: str) -> int:
        """Bytes of a style or script, as a browser gets it."""
        self._connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
        return len(self._connection.getresponse().read())

    def read(self, path: str) -> tuple[int, float, str]:
        """Status, milliseconds until the first byte, text."""
        began = time.perf_counter()
        self._connection.request("GET", path, headers=self.headers)
        answer = self._connection.getresponse()
        took = (time.perf_counter() - began) * 1e3
        return answer.status, took, answer.read().decode()


class Meter:
    """Counts what the HTTP process and PostgreSQL do between two readings."""

    def __init__(self, site: Site, http_process: int) -> None:
        self._owner = psycopg.connect(site.owner_url, autocommit=True)
        self._tasks = Path(f"/proc/{http_process}/task")

    def start(self) -> None:
        self._owner.execute("SELECT pg_stat_statements_reset()")
        self._before = self._cpu_ms()

    def stop(self, times: int) -> Cost:
        cpu = self._cpu_ms() - self._before
        row = self._owner.execute(
            "SELECT COALESCE(sum(calls), 0), COALESCE(sum(total_exec_time + total_plan_time), 0) FROM pg_stat_statements"
        ).fetchone()
        assert row is not None
        return Cost(round(cpu / times, 1), round(float(row[0]) / times, 1), round(row[1] / times, 1))

    def costliest(self, times: int) -> list[tuple[float, float, float, str]]:
        """The statements since the start: calls and milliseconds of each reading, its plans among them, and the text."""
        return self._owner.execute(
            "SELECT calls / %(times)s::float, (total_exec_time + total_plan_time) / %(times)s, total_plan_time / %(times)s,"
            " regexp_replace(left(query, 150), '\\s+', ' ', 'g') FROM pg_stat_statements"
            " ORDER BY total_exec_time + total_plan_time DESC LIMIT 12",
            {"times": times},
        ).fetchall()

    def _cpu_ms(self) -> float:
        """Nanoseconds on a processor, of all threads."""
        spent = 0
        for task in self._tasks.iterdir():
            spent += int((task / "schedstat").read_text().split()[0])
        return spent / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench console", description=__doc__)
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=10_000_000)
    parser.add_argument("--requests", type=int, default=30, help="of each page")
    parser.add_argument("--seconds", type=float, default=30.0, help="of the idle pages")
    parser.add_argument(
        "--keep", type=Path, help="load into this folder, or use what was loaded there before"
    )
    parser.add_argument("--load", action="store_true", help="load, and measure nothing")
    parser.add_argument(
        "--only", help="pages whose address contains this, each with its costliest statements; nothing else"
    )
    options = parser.parse_args()
    before = os.getloadavg()[0]
    with loaded(options) as site:
        if options.load:
            return 0
        with served(site, roles="api") as (url, key, http_process):
            quotas = {
                "jobs": 10_000_000,
                "requests_per_second": 1_000_000,
                "key_requests_per_second": 1_000_000,
            }
            Client(url, key, "default").ask("PATCH", f"/workspaces/{WORKSPACE}", {"quotas": quotas})
            figures = measure_pages(url, key, Meter(site, http_process), options)
            if options.only is not None:
                show_pages(figures, before)
                return 0
            log = measure_log(url, key, site)
            idle = measure_idle(url, key, site, options.seconds)
    return show(figures, log, idle, before)


def measure_pages(url: str, key: str, meter: Meter, options: argparse.Namespace) -> list[PageFigure]:
    reader, client = Reader(url, key), Client(url, key, WORKSPACE)
    ids = {
        "job_id": json.loads(client.ask("GET", "/jobs?limit=1"))["items"][0]["id"],
        "run_id": json.loads(client.ask("GET", "/runs?q=status:failed&limit=1"))["items"][0]["id"],
    }
    figures = []
    for route in ROUTES:
        names = re.findall(r"{(\w+)", route.path)
        if "GET" not in (route.methods or ()) or not set(names) <= set(ids) or "." in route.path:
            continue  # no page, or a file such as a whole log
        for view in ("", *VIEWS.get(route.path, ())):
            if (options.only or "") not in route.path + view:
                continue
            figure = measure_page(reader, client, meter, (route.path, view), ids, options.requests)
            if figure is None:
                continue
            figures.append(figure)
            print(f"  {figure.page}: p95 {figure.p95_ms:.0f} ms, CPU {figure.cost.cpu_ms:.0f} ms", flush=True)
            if options.only is not None:
                for calls, spent, planned, text in meter.costliest(options.requests):
                    print(f"    {spent:7.2f} ms, {planned:5.2f} of plans, {calls:4.1f} x {text}", flush=True)
    return figures


def measure_page(
    reader: Reader, client: Client, meter: Meter, page: tuple[str, str], ids: dict[str, str], requests: int
) -> PageFigure | None:
    path, view = page
    address = "/console" + path.format(**ids) + view
    status, _, text = reader.read(address)
    if status >= 500:
        print(f"  {path + view}: {status}, not measured", flush=True)
    if status != 200 or not text.startswith("<!doctype"):
        return None  # a redirect, a file, a part of a page, or a page that needs a token
    beside = None
    if not view and path in SHOWN:
        client.close()  # it was idle while other pages were read: the server may have closed its end
        beside = _quantile(sorted(_timed(client, SHOWN[path].format(**ids)) for _ in range(requests)), 95)
    reader.close()
    reader.read(address)
    meter.start()
    times = sorted(reader.read(address)[1] for _ in range(requests))
    cost = meter.stop(requests)
    assets = sum(map(reader.weigh, set(ASSET.findall(text))))
    weight = len(text.encode())
    return PageFigure(
        path + view,
        _quantile(times, 50),
        _quantile(times, 95),
        beside,
        cost,
        weight / 1e3,
        (weight + assets) / 1e3,
    )


def _timed(client: Client, path: str) -> float:
    began = time.perf_counter()
    client.ask("GET", path)
    return (time.perf_counter() - began) * 1e3


def _quantile(times: list[float], percent: int) -> float:
    return round(statistics.quantiles(times, n=100, method="inclusive")[percent - 1], 1)


def measure_log(url: str, key: str, site: Site) -> dict[str, Any]:
    """Open the run with the long log: the page holds its last line, and neither its size nor its time follows the log's."""
    with psycopg.connect(site.owner_url) as owner:
        row = owner.execute(
            "SELECT run_id, bytes, lines FROM foliot.logs ORDER BY bytes DESC LIMIT 1"
        ).fetchone()
    assert row is not None
    reader = Reader(url, key)
    times = []
    for _ in range(20):
        _, took, page = reader.read(f"/console/runs/{row[0]}")
        times.append(took)
    has_tail = f"line {row[2]} " in page
    return {
        "bytes": row[1],
        "p50_ms": _quantile(sorted(times), 50),
        "p95_ms": _quantile(sorted(times), 95),
        "kilobytes": len(page.encode()) / 1e3,
        "shows_tail": has_tail,
    }


def measure_idle(url: str, key: str, site: Site, seconds: float) -> dict[str, float]:
    """CPU of the whole server, as a share of one core, with this many open pages and with none."""
    reader = Reader(url, key)
    mine = [pid for pid in children(os.getpid()) if pid != site.server_pid]
    everyone = [*mine, *(child for pid in mine for child in children(pid))]

    def spent() -> float:
        return sum(map(cpu_of, everyone)) + server_cpu(site.server_pid)

    def share() -> float:
        time.sleep(5)
        before = spent()
        time.sleep(seconds)
        return round((spent() - before) / seconds * 100, 2)

    without = share()
    streams = []
    for _ in range(OPEN_PAGES):
        stream = http.client.HTTPConnection(reader.host, reader.port, timeout=300)
        stream.request("GET", "/console/live", headers=reader.headers)
        answer = stream.getresponse()
        assert answer.status == 200, answer.read()
        streams.append(stream)
    return {"pages": OPEN_PAGES, "percent_of_a_core": share(), "percent_without_pages": without}


def show(figures: list[PageFigure], log: dict[str, Any], idle: dict[str, float], before: float) -> int:
    load = show_pages(figures, before)
    cost = round(idle["percent_of_a_core"] - idle["percent_without_pages"], 2)
    is_log_ok = log["shows_tail"] and log["p95_ms"] < BAR_MS
    print(
        f"Log of {log['bytes']:,} bytes: p50 {log['p50_ms']:.0f} ms, p95 {log['p95_ms']:.0f} ms (bar {BAR_MS:.0f}),"
        f" {log['kilobytes']:.0f} kB, shows its tail: {log['shows_tail']}, {_ok(is_log_ok)}"
    )
    print(
        f"{idle['pages']} open pages: {cost} % of a core (bar {BAR_IDLE:.0f}), {_ok(cost < BAR_IDLE)};"
        f" the whole server {idle['percent_of_a_core']} %, without them {idle['percent_without_pages']} %"
    )
    missed = [each.page for each in figures if not each.is_ok]
    print(
        f"{len(figures) - len(missed)} of {len(figures)} pages within their bars. Beyond: {', '.join(missed) or 'none'}"
    )
    RESULTS.parent.mkdir(exist_ok=True)
    pages = [asdict(each) | {"cost": each.cost._asdict(), "ok": each.is_ok} for each in figures]
    RESULTS.write_text(json.dumps({"load": load, "pages": pages, "log": log, "idle": idle}, indent=2))
    print(f"Written to {RESULTS}")
    return 0


def show_pages(figures: list[PageFigure], before: float) -> str:
    load = f"load {before:.1f} before, {os.getloadavg()[0]:.1f} after, {os.cpu_count()} cores"
    bars = f"bars: p95 {BAR_MS:.0f} ms, {BAR_KB:.0f} kB with styles and scripts"
    table = Table(title=f"Pages of the console, {bars}; {load}")
    columns = (
        "page",
        "p50 ms",
        "p95 ms",
        "ok",
        "CPU ms",
        "statements",
        "database ms",
        "API p95 ms",
        "kB",
        "whole kB",
    )
    for column in columns:
        table.add_column(column, justify="left" if column == "page" else "right", no_wrap=True)
    for each in figures:
        table.add_row(
            each.page,
            f"{each.p50_ms:.1f}",
            f"{each.p95_ms:.1f}",
            _ok(each.is_ok),
            *(f"{value:.1f}" for value in each.cost),
            "" if each.api_p95_ms is None else f"{each.api_p95_ms:.1f}",
            f"{each.kilobytes:.0f}",
            f"{each.whole_kilobytes:.0f}",
        )
    Console(width=max(120, Console().width)).print(table)
    return load


def _ok(is_ok: bool) -> str:
    return "ok" if is_ok else "NO"


if __name__ == "__main__":
    sys.exit(main())
