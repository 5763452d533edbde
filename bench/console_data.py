"""The database of `./dev bench console`: a workspace of 100,000 jobs and 10 million runs, one of them with a log of 100 MB."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from bench.engine import population
from bench.engine.population import Population
from bench.engine.setup import LOGIN, SETTINGS, SHARED_BUFFERS, Site
from foliot.embedded.config import EmbeddedConfig
from foliot.embedded.server import start
from foliot.storage.migrate import migrate

LOG_BYTES = 100_000_000
# Counts the statements of each page, and their time with that of their plans.
PROFILE = {
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track_planning": "on",
    "pg_stat_statements.track_utility": "off",
}


@contextmanager
def loaded(options: argparse.Namespace) -> Iterator[Site]:
    with tempfile.TemporaryDirectory(prefix="foliot-bench-", ignore_cleanup_errors=True) as temporary:
        folder = (options.keep or Path(temporary)).resolve()
        folder.mkdir(exist_ok=True)
        folder.chmod(0o711)
        config = EmbeddedConfig(folder / "data", shared_buffers=SHARED_BUFFERS, settings=SETTINGS | PROFILE)
        with start(config) as server:
            database = server.owner_url.rsplit("/", 1)[1]
            site = Site(server.owner_url, server.url(LOGIN.name, LOGIN.password or "", database), server.pid)
            migrate(site.owner_url, login=LOGIN)
            if not (folder / "loaded").exists():
                load(site, options.jobs, options.runs)
                (folder / "loaded").touch()
            _prepare(site)
            yield site


def _prepare(site: Site) -> None:
    """Bring the database to one state, however long ago it was loaded and whatever an earlier server did to it."""
    with psycopg.connect(site.owner_url, autocommit=True) as owner:
        owner.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        owner.execute("SET search_path TO foliot, public")
        owner.execute(_NO_OPEN_RUNS)
        owner.execute(_ANCHORS)
        owner.execute(_MOVE_TIMERS)
        owner.execute(_ROLLED_UP)
        owner.execute(_REVISIONS)
        for table in ("timers", "ready", "jobs", "revisions"):
            owner.execute(f"VACUUM (ANALYZE) {table}")


def load(site: Site, jobs: int, runs: int) -> None:
    began = time.perf_counter()
    print(f"Making {jobs:,} jobs and {runs:,} runs in one workspace ...", flush=True)
    population.fill(site.owner_url, site.url, Population(jobs, workspaces=1))
    now, rounds = datetime.now(UTC).replace(microsecond=0), runs // jobs
    with psycopg.connect(site.owner_url, autocommit=True) as owner:
        owner.execute("SET search_path TO foliot, public")
        owner.execute("SET maintenance_work_mem TO '1GB'")
        owner.execute("SET synchronous_commit TO off")
        with population.index_runs_later(owner):
            for number in range(1, rounds + 1):
                owner.execute(_ONE_ROUND, {"number": number, "back": rounds - number, "now": now})
            print(f"  {time.perf_counter() - began:.0f} s: rows are there", flush=True)
        owner.execute(_DAYS)
        owner.execute(_COUNTERS, {"rounds": rounds})
        owner.execute(_LONG_LOG, {"chunks": LOG_BYTES // 100_000})
        owner.execute("VACUUM (ANALYZE)")
    print(f"  {time.perf_counter() - began:.0f} s: loaded", flush=True)


# Nothing is open: no worker would ever run these jobs.
_NO_OPEN_RUNS = """
DELETE FROM runs WHERE id IN (SELECT run_id FROM ready UNION ALL SELECT run_id FROM waiting UNION ALL SELECT run_id FROM leases);
DELETE FROM ready;
DELETE FROM waiting;
DELETE FROM leases;
UPDATE timers SET live = 0, waiting = 0, live_run_id = NULL, live_until = NULL WHERE live > 0 OR waiting > 0
"""
# The intervals of the population count from an instant in the future.
_ANCHORS = """
UPDATE jobs SET definition = jsonb_set(definition, '{spec,schedule,anchor}', to_jsonb(replace(definition #>> '{spec,schedule,anchor}', '2027-', '2026-')))
 WHERE definition #>> '{spec,schedule,anchor}' LIKE '2027-%';
UPDATE timers SET spec = replace(spec, '"anchor":"2027-', '"anchor":"2026-'), due_at = due_at - interval '365 days', next_at = next_at - interval '365 days'
 WHERE spec LIKE '%"anchor":"2027-%'
"""
# The first planned time of each job that is not due while the pages are measured.
_MOVE_TIMERS = """
UPDATE timers SET due_at = due_at + moved.by, next_at = next_at + moved.by, cursor_at = due_at + moved.by - moved.step
  FROM (SELECT job_id, step, ceil(extract(epoch FROM now() + interval '30 minutes' - due_at) / extract(epoch FROM step)) * step AS by
          FROM (SELECT timers.job_id, timers.due_at, CASE jobs.name WHEN 'hourly' THEN interval '1 hour' WHEN 'daily' THEN interval '1 day'
                       ELSE (timers.spec::jsonb #>> '{schedule,every}')::int * interval '1 second' END AS step
                  FROM timers JOIN jobs ON jobs.id = timers.job_id) AS each) AS moved
 WHERE moved.job_id = timers.job_id AND (moved.by > interval '0' OR timers.due_at > now() + interval '10 days')
"""
_REVISIONS = """
INSERT INTO revisions (workspace_id, job_id, revision, schedule_rev, at, actor, definition)
SELECT workspace_id, id, revision, schedule_rev, created_at, created_by, definition FROM jobs WHERE NOT EXISTS (SELECT FROM revisions)
"""
# As far behind as the roll-up is just before it adds an hour up.
_ROLLED_UP = """
UPDATE scans SET position = (SELECT (lpad(to_hex((extract(epoch FROM max(created_at) - interval '70 minutes') * 1000)::bigint), 12, '0')
                                     || '70008000000000000000')::uuid FROM (SELECT created_at FROM runs ORDER BY id DESC LIMIT 1) AS newest)
 WHERE name = 'roll_up'
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
  FROM runs WHERE created_at < date_trunc('day', now()) GROUP BY 1, 2
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
