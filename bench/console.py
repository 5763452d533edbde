"""`./dev bench console`: the pages of the console over a workspace of 100,000 jobs and 10 million runs.

For every page: the time until the first byte at p50 and p95 beside that of the API call it shows, and its weight. Then the tail of
a log of 100 MB, and the CPU of 200 open pages while nothing happens. Loading takes minutes: `--keep FOLDER` keeps the database.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import psycopg
from rich.console import Console
from rich.table import Table

from bench.api import Client, served
from bench.engine import population
from bench.engine.population import DUE, Population
from bench.engine.processes import children, cpu_of, server_cpu
from bench.engine.setup import LOGIN, SETTINGS, SHARED_BUFFERS, Site
from foliot.embedded.config import EmbeddedConfig
from foliot.embedded.server import start
from foliot.storage.migrate import migrate
from foliot.web.console.pages import ROUTES
from foliot.web.console.session import COOKIE

RESULTS = Path(__file__).parent / "results" / "console.json"
WORKSPACE = "bench-1"
LOG_BYTES = 100_000_000
OPEN_PAGES = 200
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
    "/jobs": ("?q=failures%3E=1", "?q=hourly", "?sort=next_run_at"),
    "/runs": ("?q=status:failed", "?q=since:24h", "?q=status:waiting,ready,running"),
}
ASSET = re.compile(r'(?:href|src)="(/console/static/[\w.-]+)["#]')


@dataclass(frozen=True, slots=True)
class PageFigure:
    page: str
    p50_ms: float
    p95_ms: float
    api_p95_ms: float | None
    kilobytes: float  # the page itself
    whole_kilobytes: float  # with its styles and scripts


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

    def read(self, path: str) -> tuple[int, float, str]:
        """Status, milliseconds until the first byte, text."""
        began = time.perf_counter()
        self._connection.request("GET", path, headers=self.headers)
        answer = self._connection.getresponse()
        took = (time.perf_counter() - began) * 1e3
        return answer.status, took, answer.read().decode()


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
    options = parser.parse_args()
    before = os.getloadavg()[0]
    with loaded(options) as site:
        if options.load:
            return 0
        with served(site) as (url, key, _):
            quotas = {
                "jobs": 10_000_000,
                "requests_per_second": 1_000_000,
                "key_requests_per_second": 1_000_000,
            }
            Client(url, key, "default").ask("PATCH", f"/workspaces/{WORKSPACE}", {"quotas": quotas})
            figures = measure_pages(url, key, options.requests)
            log = measure_log(url, key, site)
            idle = measure_idle(url, key, site, options.seconds)
    show(figures, log, idle, before)
    return 0


@contextmanager
def loaded(options: argparse.Namespace) -> Iterator[Site]:
    with tempfile.TemporaryDirectory(prefix="foliot-bench-", ignore_cleanup_errors=True) as temporary:
        folder = (options.keep or Path(temporary)).resolve()
        folder.mkdir(exist_ok=True)
        folder.chmod(0o711)
        config = EmbeddedConfig(folder / "data", shared_buffers=SHARED_BUFFERS, settings=SETTINGS)
        with start(config) as server:
            database = server.owner_url.rsplit("/", 1)[1]
            site = Site(server.owner_url, server.url(LOGIN.name, LOGIN.password or "", database), server.pid)
            migrate(site.owner_url, login=LOGIN)
            if not (folder / "loaded").exists():
                load(site, options.jobs, options.runs)
                (folder / "loaded").touch()
            yield site


def load(site: Site, jobs: int, runs: int) -> None:
    began = time.perf_counter()
    print(f"Making {jobs:,} jobs and {runs:,} runs in one workspace ...", flush=True)
    population.fill(site.owner_url, site.url, Population(jobs, workspaces=1))
    now, rounds = datetime.now(UTC).replace(microsecond=0), runs // jobs
    with psycopg.connect(site.owner_url, autocommit=True) as owner:
        owner.execute("SET search_path TO foliot, public")
        owner.execute("SET maintenance_work_mem TO '1GB'")
        owner.execute("SET synchronous_commit TO off")
        owner.execute(_SHIFT_TIMERS, {"by": DUE - now})
        indexes = owner.execute(
            "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'foliot' AND tablename = 'runs' AND indexname <> 'runs_pkey'"
        ).fetchall()
        for name, _ in indexes:
            owner.execute(f"DROP INDEX {name}")
        for number in range(1, rounds + 1):
            owner.execute(_ONE_ROUND, {"number": number, "back": rounds - number, "now": now})
        print(f"  {time.perf_counter() - began:.0f} s: rows are there", flush=True)
        for _, definition in indexes:
            owner.execute(definition)
        owner.execute(_DAYS)
        owner.execute(_COUNTERS, {"rounds": rounds})
        owner.execute(_LONG_LOG, {"chunks": LOG_BYTES // 100_000})
        owner.execute("VACUUM (ANALYZE)")
    print(f"  {time.perf_counter() - began:.0f} s: loaded", flush=True)


def measure_pages(url: str, key: str, requests: int) -> list[PageFigure]:
    reader, client = Reader(url, key), Client(url, key, WORKSPACE)
    ids = {
        "job_id": json.loads(client.ask("GET", "/jobs?limit=1"))["items"][0]["id"],
        "run_id": json.loads(client.ask("GET", "/runs?limit=1"))["items"][0]["id"],
    }
    figures = []
    for route in ROUTES:
        names = re.findall(r"{(\w+)", route.path)
        if "GET" not in (route.methods or ()) or not set(names) <= set(ids):
            continue
        for view in ("", *VIEWS.get(route.path, ())):
            figure = measure_page(reader, client, route.path, view, ids, requests)
            if figure is not None:
                figures.append(figure)
                print(f"  {figure.page}: p95 {figure.p95_ms:.0f} ms, {figure.kilobytes:.0f} kB", flush=True)
    return figures


def measure_page(
    reader: Reader, client: Client, path: str, view: str, ids: dict[str, str], requests: int
) -> PageFigure | None:
    status, _, page = reader.read("/console" + path.format(**ids) + view)
    if status != 200 or not page.startswith("<!doctype"):
        return None
    times = sorted(reader.read("/console" + path.format(**ids) + view)[1] for _ in range(requests))
    beside = None
    if not view and path in SHOWN:
        beside = _quantile(sorted(_timed(client, SHOWN[path].format(**ids)) for _ in range(requests)), 95)
    assets = sum(len(reader.read(each)[2].encode()) for each in set(ASSET.findall(page)))
    weight = len(page.encode())
    return PageFigure(
        path + view, _quantile(times, 50), _quantile(times, 95), beside, weight / 1e3, (weight + assets) / 1e3
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
    for _ in range(10):
        _, took, page = reader.read(f"/console/runs/{row[0]}")
        times.append(took)
    has_tail = f"line {row[2]} " in page
    return {
        "bytes": row[1],
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


def show(figures: list[PageFigure], log: dict[str, Any], idle: dict[str, float], before: float) -> None:
    load_text = f"load {before:.1f} before, {os.getloadavg()[0]:.1f} after, {os.cpu_count()} cores"
    table = Table(title=f"Pages of the console; {load_text}")
    for column in ("page", "p50 ms", "p95 ms", "API p95 ms", "kB", "kB with styles and scripts"):
        table.add_column(column, justify="left" if column == "page" else "right")
    for each in figures:
        beside = "" if each.api_p95_ms is None else f"{each.api_p95_ms:.1f}"
        table.add_row(
            each.page,
            f"{each.p50_ms:.1f}",
            f"{each.p95_ms:.1f}",
            beside,
            f"{each.kilobytes:.0f}",
            f"{each.whole_kilobytes:.0f}",
        )
    Console().print(table)
    print(
        f"Log of {log['bytes']:,} bytes: p95 {log['p95_ms']:.0f} ms, {log['kilobytes']:.0f} kB, shows its tail: {log['shows_tail']}"
    )
    print(
        f"{idle['pages']} open pages: {idle['percent_of_a_core']} % of a core; none: {idle['percent_without_pages']} %"
    )
    RESULTS.parent.mkdir(exist_ok=True)
    written = {"load": load_text, "pages": [asdict(each) for each in figures], "log": log, "idle": idle}
    RESULTS.write_text(json.dumps(written, indent=2))
    print(f"Written to {RESULTS}")


# The population lies in the future; here its next planned times lie in the coming hours.
_SHIFT_TIMERS = """
UPDATE timers SET due_at = due_at - %(by)s, next_at = next_at - %(by)s, cursor_at = cursor_at - %(by)s
"""
# One run of each job, 21.6 hours before the next: 97 of 100 succeed, two fail and one is skipped. Ids begin with the instant of
# the record, as the service makes them.
_ONE_ROUND = """
WITH made AS (
    SELECT workspace_id, id AS job_id, abs(hashtext(id::text)) AS place, md5(id::text || %(number)s::text) AS dice,
           %(now)s - %(back)s * interval '21.6 hours' - (abs(hashtext(id::text)) %% 77000) * interval '1 second' AS at
      FROM jobs)
INSERT INTO runs (workspace_id, id, job_id, number, trigger, status, skip_reason, planned_for, planned_key, schedule_rev, created_at,
                  started_at, finished_at, attempt_count, fence, worker_id, error)
SELECT workspace_id, (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || substr(dice, 1, 3) || '8' || substr(dice, 4, 15))::uuid,
       job_id, %(number)s, 'schedule', outcome, CASE WHEN outcome = 'skipped' THEN 'overlap' END, at, at AT TIME ZONE 'UTC', 1, at,
       CASE WHEN outcome <> 'skipped' THEN at + interval '0.05 seconds' END, at + interval '1.2 seconds',
       CASE WHEN outcome = 'skipped' THEN 0 ELSE 1 END, 1, job_id,
       CASE WHEN outcome = 'failed' THEN '{"code": "http_status", "message": "the server answered 503"}'::jsonb END
  FROM made CROSS JOIN LATERAL (
       SELECT CASE WHEN (place + %(number)s) %% 100 < 2 THEN 'failed' WHEN (place + %(number)s) %% 100 = 2 THEN 'skipped'
                   ELSE 'succeeded' END AS outcome) AS chosen
 ORDER BY at
"""
_DAYS = """
INSERT INTO job_days (workspace_id, job_id, day, runs, successes, failures, skips, seconds, lag_seconds, records)
SELECT workspace_id, job_id, created_at::date, count(*) FILTER (WHERE status <> 'skipped'), count(*) FILTER (WHERE status = 'succeeded'),
       count(*) FILTER (WHERE status = 'failed'), count(*) FILTER (WHERE status = 'skipped'), count(*) * 1.15, count(*) * 0.05, count(*)
  FROM runs WHERE created_at > now() - interval '15 days' AND created_at < date_trunc('day', now()) GROUP BY 1, 2, 3;
INSERT INTO workspace_days (workspace_id, day, records, runs, successes, failures, skips, seconds, lag_seconds)
SELECT workspace_id, created_at::date, count(*), count(*) FILTER (WHERE status <> 'skipped'), count(*) FILTER (WHERE status = 'succeeded'),
       count(*) FILTER (WHERE status = 'failed'), count(*) FILTER (WHERE status = 'skipped'), count(*) * 1.15, count(*) * 0.05
  FROM runs WHERE created_at < date_trunc('day', now()) GROUP BY 1, 2;
UPDATE scans SET position = (SELECT max(id::text)::uuid FROM runs WHERE created_at < date_trunc('day', now())) WHERE name = 'roll_up'
"""
_COUNTERS = """
UPDATE timers SET fire_count = %(rounds)s, run_count = %(rounds)s, success_count = %(rounds)s - 3, failure_count = 2, skip_count = 1,
       number = %(rounds)s, runs_created = %(rounds)s, last_run_at = newest.started_at, last_run_id = newest.id, last_run_status = newest.status,
       failures_in_a_row = CASE WHEN newest.status = 'failed' THEN 1 ELSE 0 END, last_error = newest.error ->> 'message'
  FROM runs AS newest WHERE newest.job_id = timers.job_id AND newest.number = %(rounds)s
"""
_LONG_LOG = """
WITH one AS (SELECT workspace_id, id FROM runs ORDER BY id DESC LIMIT 1), head AS (
    INSERT INTO logs (workspace_id, run_id, lines, bytes) SELECT workspace_id, id, %(chunks)s * 1000, %(chunks)s * 100000 FROM one)
INSERT INTO log_chunks (workspace_id, run_id, last_seq, attempt, lines)
SELECT one.workspace_id, one.id, chunk * 1000, 1,
       (SELECT jsonb_agg(jsonb_build_array('2026-11-16T08:00:00+00:00', 'stdout', rpad('line ' || ((chunk - 1) * 1000 + line) || ' ', 100, 'x')))
          FROM generate_series(1, 1000) AS line)
  FROM one CROSS JOIN generate_series(1, %(chunks)s) AS chunk
"""

if __name__ == "__main__":
    sys.exit(main())
