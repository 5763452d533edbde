"""Statistics: rates and averages from daily sums, percentiles from the newest runs; and the roll-up that writes the sums.

Why: docs/decisions/500-daily-figures-and-pruning.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from foliot.domain.access import Scope
from foliot.domain.errors import Invalid
from foliot.domain.ids import JobId
from foliot.domain.lifecycle import JobStatus, RunStatus
from foliot.services.jobs.visibility_steps import check_job_visible
from foliot.storage import scans
from foliot.storage.runs import statistics
from foliot.storage.runs.statistics import DayPercentiles, DayTotals, OpenRunCounts, Percentiles, RunTimings
from foliot.storage.scans import Scan
from foliot.storage.tx import Database, Role

__all__ = ["DayPercentiles", "DayTotals", "OpenRunCounts", "Percentiles", "RunTimings"]

DAYS = 30
WEEK = 7
MOST_DAYS = 3_660
NEWEST = 1_000  # runs for percentiles
MOST_COUNTED = 10_001  # jobs of one status at this moment: "10,000+"
NEWEST_NOW = 200  # the same, of this moment
MOST_SAMPLED = 92  # days with percentiles of their own
BATCH = 5_000
LATE = timedelta(minutes=2)
# A record may commit a little after the hour: an hour is complete when no such transaction can be open.
SETTLED = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Totals:
    """`success_rate` is the percentage of succeeded among succeeded and failed runs, rounded down: 100 means all."""

    records: int
    runs: int
    successes: int
    failures: int
    skips: int
    success_rate: int | None
    average_duration: timedelta | None
    average_lag: timedelta | None


@dataclass(frozen=True, slots=True)
class WorkspaceStats:
    """`newest` covers the newest runs. Late timers were due LATE ago: a scheduler is missing or behind."""

    totals: Totals
    days: tuple[DayTotals, ...]  # oldest first; days without records are missing
    p95: Mapping[date, DayPercentiles]  # empty unless asked for
    jobs: Mapping[JobStatus, int]
    newest: RunTimings
    now: OpenRunCounts
    as_of: datetime


@dataclass(frozen=True, slots=True)
class WorkspaceNow:
    jobs: Mapping[JobStatus, int] | None  # None unless asked for; each counted up to MOST_COUNTED
    totals: Totals | None  # None unless asked for
    newest: RunTimings
    now: OpenRunCounts
    as_of: datetime


@dataclass(frozen=True, slots=True)
class JobStats:
    totals: Totals
    days: tuple[DayTotals, ...]
    p95: Mapping[date, DayPercentiles]
    newest: RunTimings
    last_run_at: datetime | None
    last_run_status: RunStatus | None


@dataclass(frozen=True, slots=True)
class RollUpStep:
    counted: int = 0
    is_more: bool = False  # continue at once


async def job_stats(
    database: Database, scope: Scope, job_id: JobId, days: int = DAYS, *, percentiles: bool = False
) -> JobStats:
    """Return figures of the last `days` UTC days, today included; with percentiles of the last MOST_SAMPLED days."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        await check_job_visible(tx, job_id, scope)
        found = await statistics.list_days_of_job(tx, job_id, _since(tx.now, days))
        last = await statistics.load_last_run(tx, job_id)
        newest = await statistics.load_timings(tx, job_id, NEWEST)
        p95 = []
        if percentiles:
            since = _since(tx.now, min(days, MOST_SAMPLED))
            p95 = await statistics.list_day_percentiles_of_job(tx, job_id, since)
    return JobStats(totals(found), found, {each.day: each for each in p95}, newest, *(last or (None, None)))


async def workspace_stats(
    database: Database, scope: Scope, days: int = DAYS, *, percentiles: bool = False
) -> WorkspaceStats:
    """Return figures of the workspace; for an agent, of its own jobs and without percentiles."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = await statistics.list_days_of_workspace(tx, _since(tx.now, days), scope.visible_owner)
        jobs = await statistics.count_jobs_by_status(tx, scope.visible_owner)
        newest = await statistics.load_workspace_timings(tx, NEWEST, scope.visible_owner)
        now = await statistics.count_open(tx, tx.now - LATE, scope.visible_owner)
        p95 = []
        if percentiles and scope.visible_owner is None:
            since = _since(tx.now, min(days, MOST_SAMPLED))
            p95 = await statistics.list_day_percentiles_of_workspace(tx, since)
        return WorkspaceStats(
            totals(found), found, {each.day: each for each in p95}, jobs, newest, now, tx.now
        )


async def workspace_now(
    database: Database, scope: Scope, *, jobs: bool = False, days: int | None = None
) -> WorkspaceNow:
    """Return the open runs, late jobs and start lag of this moment, for an agent of its own jobs. With `jobs` also the jobs by status,
    with `days` the totals of so many UTC days, today included.
    """
    owner = scope.visible_owner
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        newest = await statistics.load_workspace_timings(tx, NEWEST_NOW, owner)
        now = await statistics.count_open(tx, tx.now - LATE, owner)
        counted = found = None
        if jobs and owner is None:
            counted = await statistics.count_jobs_up_to(tx, MOST_COUNTED)
        elif jobs:
            counted = await statistics.count_jobs_by_status(tx, owner)
        if days is not None:
            found = totals(await statistics.list_days_of_workspace(tx, _since(tx.now, days), owner))
        return WorkspaceNow(counted, found, newest, now, tx.now)


async def roll_up(database: Database, limit: int = BATCH) -> RollUpStep:
    """Add up one batch of records in one transaction. Does nothing while another node does it."""
    async with database.tx(Role.ENGINE) as tx:
        reached = await scans.lock_position(tx, Scan.ROLL_UP)
        if reached is None:
            return RollUpStep()
        late = await statistics.roll_up_uncounted(tx, limit)
        # By hours: readers add up the rest themselves, and a day of a large workspace is a hundred thousand records.
        complete = (tx.now - SETTLED).replace(minute=0, second=0, microsecond=0)
        passed = await statistics.roll_up(tx, reached.position, complete, limit)
        if passed.last is not None:
            await scans.store_position(tx, Scan.ROLL_UP, passed.last)
        return RollUpStep(late + passed.count, is_more=limit in (late, passed.count))


def totals(days: Sequence[DayTotals]) -> Totals:
    runs = sum(day.runs for day in days)
    successes, failures = sum(day.successes for day in days), sum(day.failures for day in days)
    judged = successes + failures
    return Totals(
        records=sum(day.records for day in days),
        runs=runs,
        successes=successes,
        failures=failures,
        skips=sum(day.skips for day in days),
        success_rate=successes * 100 // judged if judged else None,
        average_duration=timedelta(seconds=sum(day.seconds for day in days)) / runs if runs else None,
        average_lag=timedelta(seconds=sum(day.lag_seconds for day in days)) / runs if runs else None,
    )


def _since(now: datetime, days: int) -> date:
    if not 1 <= days <= MOST_DAYS:
        raise Invalid(f"Between 1 and {MOST_DAYS:,} days.", pointer="/days")
    return now.date() - timedelta(days=days - 1)
