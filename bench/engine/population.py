"""Many jobs, as `services.jobs.create` would have made them one by one: 60 % daily cron from 200 expressions in 20 zones, 30 %
hourly cron, 10 % intervals, default policies, 100 workspaces.

All were made at CREATED, the intervals in the seconds before it: an interval counts from its own creation, so no two of those have
the same rules, while cron jobs share theirs. The first `due` of them have their next planned time around DUE, the others in later hours, so that a
clock set to DUE finds thousands due at once, none of them late, and each is planned by the time engine.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice, product
from typing import Any
from uuid import uuid4

import psycopg
from psycopg.rows import DictRow, dict_row
from psycopg.types.json import Jsonb

from foliot.domain.access import Actor, Scope
from foliot.domain.definition import Definition, Rules, Spec
from foliot.domain.ids import JobId, WorkspaceId
from foliot.domain.job import Timer
from foliot.domain.lifecycle import JobStatus
from foliot.domain.planning.due_job import DueJob
from foliot.domain.planning.plan import plan_start
from foliot.domain.schedule import Cron, Interval
from foliot.domain.schedule.parse import anchored
from foliot.domain.schedule.zone import load_zone
from foliot.services.jobs import jobs
from foliot.services.scheduling.repair import refresh_zone_data
from foliot.storage.jobs.definitions import definition_json, definition_of, spec_text
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock

CREATED = datetime(2027, 1, 14, 12, 20, tzinfo=UTC)  # a Thursday
DUE = datetime(2027, 1, 14, 13, 0, tzinfo=UTC)
LATER_HOURS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
WORKSPACES = 100
TYPE = "bench"
ZONES = (
    "UTC", "America/New_York", "America/Los_Angeles", "America/Chicago", "America/Sao_Paulo", "America/Santiago",
    "America/St_Johns", "Europe/London", "Europe/Berlin", "Europe/Moscow", "Africa/Cairo", "Africa/Casablanca",
    "Asia/Kolkata", "Asia/Tokyo", "Asia/Beirut", "Asia/Tehran", "Australia/Sydney", "Australia/Lord_Howe",
    "Pacific/Auckland", "Pacific/Apia",
)  # fmt: skip
DAYS = (
    "*",
    "1-5",
    "0-6",
    "4,5",
    "3-5",
    "4-6",
    "1,4,5",
    "2,4-5",
    "*/1",
)  # each has Thursday and Friday: of any zone's DUE
EXPRESSIONS = 200


@dataclass(frozen=True, slots=True)
class Population:
    jobs: int
    due: int = 0  # of them, around DUE
    workspaces: int = WORKSPACES


@dataclass(frozen=True, slots=True)
class _Kind:
    """Jobs that differ in name, id and workspace alone."""

    share: str  # daily, hourly, interval
    definition: Definition
    timer: Timer


@contextmanager
def index_runs_later(owner: psycopg.Connection[Any]) -> Iterator[None]:
    """Make the indexes of `runs` after the rows: that is faster and leaves them no worse."""
    indexes = owner.execute(
        "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'foliot' AND tablename = 'runs' AND indexname <> 'runs_pkey'"
    ).fetchall()
    for name, _ in indexes:
        owner.execute(f"DROP INDEX {name}")
    yield
    for _, definition in indexes:
        owner.execute(definition)


def fill(owner_url: str, url: str, wanted: Population) -> None:
    """Set-based, then held against a sample that the service itself makes. The zone data are noted first, as a first start does
    before there are any jobs: else the first janitor would look through all of them.
    """
    asyncio.run(_note_zone_data(url))
    due = list(_kinds(DUE, EXPRESSIONS))
    later = [kind for hours in LATER_HOURS for kind in _kinds(DUE + timedelta(hours=hours), 20)]
    with psycopg.connect(owner_url, autocommit=True, row_factory=dict_row) as connection:
        connection.execute("SET search_path TO foliot, public")
        connection.execute("SET TimeZone TO 'UTC'")
        connection.execute(_WORKSPACES, {"n": wanted.workspaces, "at": CREATED})
        connection.execute(_KINDS)
        _store(connection, due, is_due=True)
        _store(connection, later, is_due=False)
        milliseconds = int(CREATED.timestamp()) * 1000
        connection.execute(_JOBS.format(jobs=wanted.jobs, due=wanted.due, milliseconds=milliseconds))
        asyncio.run(_check(connection, url))
        connection.execute("VACUUM (ANALYZE)")


async def _note_zone_data(url: str) -> None:
    async with Database(url) as database:
        await refresh_zone_data(database)


def _kinds(at: datetime, expressions: int) -> Iterator[_Kind]:
    for zone in ZONES:
        for expr in islice(_daily(at.astimezone(load_zone(zone))), expressions):
            yield _kind("daily", Cron(expr, timezone=zone))
    past = 0 if at == DUE else 5  # an hourly job is due in every hour; the later ones in the sixth minute
    for zone in ZONES:
        minute = (at.astimezone(load_zone(zone)).minute + past) % 60
        yield _kind("hourly", Cron(f"{minute} * * * *", timezone=zone))
    for seconds in range(10):
        yield _kind("interval", Interval(at - CREATED - timedelta(seconds=seconds)))


def _daily(local: datetime) -> Iterator[str]:
    for other, days in product(range(24), DAYS):
        hours = sorted({local.hour, (local.hour + other) % 24})
        yield f"{local.minute} {','.join(map(str, hours))} * * {days}"


def _kind(share: str, schedule: Cron | Interval) -> _Kind:
    spec = Spec(anchored(schedule, CREATED), TYPE)
    job = Rules(spec).job(JobId(uuid4()), WorkspaceId(uuid4()), 1)
    timer = plan_start(DueJob(job, JobStatus.ACTIVE, Timer(CREATED, None, None)), CREATED).timer
    return _Kind(share, Definition(share, spec), timer)


def _store(connection: psycopg.Connection[DictRow], kinds: list[_Kind], *, is_due: bool) -> None:
    places: Counter[str] = Counter()
    once = {spec_text(kind.definition.spec): kind for kind in kinds}
    with connection.cursor().copy("COPY bench_kinds FROM STDIN") as copy:
        for text, kind in once.items():
            timer, definition = kind.timer, Jsonb(definition_json(kind.definition))
            copy.write_row(
                (
                    is_due,
                    kind.share,
                    places[kind.share],
                    definition,
                    text,
                    timer.cursor,
                    timer.due_at,
                    timer.next_at,
                )
            )
            places[kind.share] += 1


async def _check(connection: psycopg.Connection[DictRow], url: str) -> None:
    """The rows made here are the rows that the service makes, but for their ids."""
    clock = ManualClock(CREATED)
    async with Database(url, clock=clock) as database:
        for ours in connection.execute(_SAMPLE).fetchall():
            clock.set(datetime.fromisoformat(ours["job"]["created_at"]))
            definition = definition_of(ours["job"]["definition"])
            if isinstance(schedule := definition.spec.schedule, Interval):
                spec = replace(definition.spec, schedule=replace(schedule, anchor=None))
                definition = replace(definition, spec=spec)
            made = await jobs.create(database, Scope(ours["workspace_id"], Actor("bench")), definition)
            theirs = connection.execute(_ROWS, {"id": made.id}).fetchone()
            assert ours == theirs, f"{ours} is not what the service makes: {theirs}"
            connection.execute("DELETE FROM timers WHERE job_id = %s", (made.id,))
            connection.execute("DELETE FROM jobs WHERE id = %s", (made.id,))


_WORKSPACES = """
INSERT INTO workspaces (id, slug, name, created_at)
SELECT gen_random_uuid(), 'bench-' || i, 'Bench ' || i, %(at)s FROM generate_series(1, %(n)s) AS i
"""
_KINDS = """
CREATE UNLOGGED TABLE bench_kinds (is_due boolean, share text, place int, definition jsonb, spec text, cursor_at timestamptz,
                                   due_at timestamptz, next_at timestamptz, PRIMARY KEY (is_due, share, place))
"""
# Ids are UUIDv7, as the service makes them; the jobs of one workspace and of one kind are scattered over the table, as they are
# in life. Ten jobs in a row are six daily, three hourly and one interval.
_JOBS = """
CREATE UNLOGGED TABLE bench_jobs AS
WITH sizes AS (SELECT is_due, share, count(*) AS size FROM bench_kinds GROUP BY is_due, share),
     homes AS (SELECT array_agg(id) AS ids FROM workspaces),
     numbered AS (
    SELECT i, i <= {due} AS is_due, CASE WHEN i % 10 < 6 THEN 'daily' WHEN i % 10 < 9 THEN 'hourly' ELSE 'interval' END AS share,
           (lpad(to_hex({milliseconds} - 1000000 + i), 12, '0') || '7' || substr(md5(i::text), 1, 3) || '8'
             || substr(md5(i::text), 4, 15))::uuid AS id,
           CASE WHEN i % 10 = 9 THEN (i::bigint * 7919 % 9000000) * interval '1 microsecond' ELSE '0' END AS earlier
      FROM generate_series(1, {jobs}) AS i)
SELECT homes.ids[1 + abs(hashint4(i)) % array_length(homes.ids, 1)] AS workspace_id, numbered.id, numbered.share, kinds.cursor_at - earlier AS at,
       CASE WHEN earlier = '0' THEN kinds.definition
            ELSE jsonb_set(kinds.definition, '{{spec,schedule,anchor}}', to_jsonb(to_char(kinds.cursor_at - earlier, 'YYYY-MM-DD"T"HH24:MI:SS.US+00:00'))) END AS definition,
       CASE WHEN earlier = '0' THEN kinds.spec
            ELSE regexp_replace(kinds.spec, '"anchor":"[^"]*"', '"anchor":"' || to_char(kinds.cursor_at - earlier, 'YYYY-MM-DD"T"HH24:MI:SS.US+00:00') || '"') END AS spec,
       kinds.due_at - earlier AS due_at, kinds.next_at - earlier AS next_at, abs(hashint4(i + 3)) AS place
  FROM numbered JOIN sizes USING (is_due, share) CROSS JOIN homes
  JOIN bench_kinds AS kinds ON kinds.is_due = numbered.is_due AND kinds.share = numbered.share
                           AND kinds.place = abs(hashint8(numbered.i + 7)) % sizes.size;

INSERT INTO jobs (workspace_id, id, name, type, queue, tags, definition, status, status_by, status_at, created_by, created_at,
                  updated_at)
SELECT workspace_id, id, share, 'bench', 'default', '{{}}', definition, 'active', 'bench', at, 'bench', at, at FROM bench_jobs ORDER BY place;

INSERT INTO timers (workspace_id, job_id, status, spec, schedule_rev, cursor_at, due_at, next_at, has_gate)
SELECT workspace_id, id, 'active', spec, 1, at, due_at, next_at, false FROM bench_jobs ORDER BY place;

DROP TABLE bench_jobs, bench_kinds
"""
_COMPARED = """
SELECT jobs.workspace_id, to_jsonb(jobs) - 'id' AS job, to_jsonb(timers) - 'job_id' AS timer
  FROM jobs JOIN timers ON timers.job_id = jobs.id
"""
_ROWS = _COMPARED + " WHERE jobs.id = %(id)s"
_SAMPLE = _COMPARED + " ORDER BY jobs.id LIMIT 20"
