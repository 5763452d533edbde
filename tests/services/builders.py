"""Short functions for tests of services: definitions, workers, ticks, claims and reports."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg

from foliot.domain.access import Scope
from foliot.domain.definition import Definition, Spec
from foliot.domain.ids import JobId, WorkerId, WorkspaceId
from foliot.domain.outcomes import Outcome, Succeeded
from foliot.domain.schedule import Cron, Interval, Manual, Schedule
from foliot.services.jobs import jobs
from foliot.services.scheduling.tick import tick
from foliot.services.settlement.report import Report, report
from foliot.services.workers.claim import Turns, claim
from foliot.storage.queue.run_queue import Claimed
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from foliot.testing.fixtures import TEST

Owner = psycopg.Connection[Any]
WORKER = WorkerId(uuid4())
SUCCEEDED = Succeeded()
HOURLY = Cron("0 * * * *")
MINUTELY = Interval(timedelta(minutes=1))
MANUAL = Manual()


def make_definition(schedule: Schedule, name: str = "sync", **spec: Any) -> Definition:
    beside = {key: spec.pop(key) for key in ("retention", "depends_on", "payload") if key in spec}
    return replace(Definition(name, Spec(schedule, spec.pop("type", "http"), **spec)), **beside)


async def create_job(database: Database, workspace: WorkspaceId, schedule: Schedule, **spec: Any) -> JobId:
    return (await jobs.create(database, Scope(workspace, TEST), make_definition(schedule, **spec))).id


async def advance_and_tick(database: Database, clock: ManualClock, by: timedelta) -> None:
    """Advance the clock and tick until no timer is due."""
    clock.advance(by)
    while (await tick(database)).looked_at:
        pass


async def claim_runs(database: Database, permits: int = 100) -> list[Claimed]:
    return await claim(database, WORKER, "default", ["http"], permits, Turns())


async def report_runs(
    database: Database, taken: list[Claimed], outcome: Outcome = SUCCEEDED, output: Any = None
) -> None:
    reports = [Report(run.run_id, run.job_id, run.fence, WORKER, outcome, output) for run in taken]
    assert len(await report(database, reports)) == len(taken)


def insert_immortal_worker(owner: Owner, worker: WorkerId) -> None:
    """Insert a worker that never expires and has no queues: tests claim for it directly."""
    owner.execute(
        "INSERT INTO foliot.workers (id, name, queues, types, capacity, started_at, alive_until)"
        " VALUES (%s, 'test', '{}', '{}', 100, now(), 'infinity') ON CONFLICT DO NOTHING",
        [worker],
    )


def insert_worker(
    owner: Owner, clock: ManualClock, name: str, queues: list[str], types: list[str], capacity: int = 10
) -> WorkerId:
    worker = WorkerId(uuid4())
    owner.execute(
        "INSERT INTO foliot.workers (id, name, queues, types, capacity, started_at, alive_until)"
        " VALUES (%s, %s, %s, %s, %s, %s, %s)",
        [worker, name, queues, types, capacity, clock.now(), clock.now() + timedelta(days=3650)],
    )
    return worker
