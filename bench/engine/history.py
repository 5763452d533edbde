"""Measure reading the runs of one job over 90 days, as its workspace reads them, among millions of runs."""

from __future__ import annotations

import asyncio
import random
import time
from datetime import timedelta
from typing import Any

import psycopg

from bench.engine.population import CREATED, Population, index_runs_later
from bench.engine.setup import Bench, Site
from foliot.domain.ids import WorkspaceId
from foliot.storage.queries import SqlQuery
from foliot.storage.tx import Database, Role

DAYS = 90
ASKED = 200  # jobs, picked by chance
# By the index runs_newest_of_a_job, under row-level security, the largest page there is.
_HISTORY = SqlQuery(
    "bench.history",
    b"SELECT * FROM runs WHERE job_id = %(job_id)s AND planned_for >= %(since)s ORDER BY planned_for DESC, id DESC LIMIT 200",
)


def measure(bench: Bench, runs: int) -> list[float]:
    """Milliseconds of each question, from asking for a transaction to holding the rows, sorted."""
    with bench.database(Population(runs // DAYS + 1, 0)) as site:
        with psycopg.connect(site.owner_url, autocommit=True) as owner:
            _fill(owner)
            found = owner.execute(
                "SELECT workspace_id, id FROM foliot.jobs ORDER BY md5(id::text) LIMIT %s", (ASKED,)
            ).fetchall()
        random.Random(0).shuffle(found)
        return sorted(asyncio.run(_asked(site, found)))


def _fill(owner: psycopg.Connection[Any]) -> None:
    """Insert day after day, as a ledger grows."""
    owner.execute("SET search_path TO foliot, public")
    owner.execute("SET maintenance_work_mem TO '512MB'")
    with index_runs_later(owner):
        for day in range(DAYS, 0, -1):
            owner.execute(_ONE_DAY, {"at": CREATED - timedelta(days=day), "number": DAYS - day + 1})
    owner.execute("VACUUM (ANALYZE) runs")


async def _asked(site: Site, found: list[tuple[Any, Any]]) -> list[float]:
    took = []
    async with Database(site.url) as database:
        for workspace_id, job_id in found:
            began = time.perf_counter()
            async with database.tx(Role.APP, WorkspaceId(workspace_id)) as tx:
                rows = await tx.fetch(_HISTORY, {"job_id": job_id, "since": CREATED - timedelta(days=DAYS)})
            took.append((time.perf_counter() - began) * 1000)
            assert len(rows) == DAYS
    return took


_ONE_DAY = """
INSERT INTO runs (workspace_id, id, job_id, number, trigger, status, planned_for, planned_key, schedule_rev, created_at, started_at,
                  finished_at, attempt_count, fence, worker_id)
SELECT workspace_id, (substr(md5(id::text || %(number)s::text), 1, 32))::uuid, id, %(number)s, 'schedule', 'succeeded', %(at)s,
       %(at)s, 1, %(at)s, %(at)s, %(at)s, 1, 1, id
  FROM jobs
"""
