"""Totals of runs per day: the janitor rolls them up; readers add the records that are not rolled up yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from foliot.domain.ids import JobId, PrincipalId
from foliot.domain.lifecycle import JobStatus, RunStatus
from foliot.storage.filter_sql import filled
from foliot.storage.jobs import agenda
from foliot.storage.queries import SqlQuery, sql
from foliot.storage.runs.run_history import first_id_at
from foliot.storage.tx import Params, Tx

MOST_SCANNED = 5_000  # records that percentiles are taken from
PERCENTILES = (0.5, 0.95, 0.99)  # as the queries name them
MOST_COUNTED = 10_000  # open runs
MOST_OF_DAY = 200  # records of a job and day that percentiles are taken from
MOST_SLICES, MOST_PROBES, MOST_OF_SLICE = (
    12,
    400,
    20,
)  # of a workspace: parts of a day, parts in all, records of each


@dataclass(frozen=True, slots=True)
class DayTotals:
    """Sums over the records made on one UTC day. `runs` counts attempted runs, `skips` planned times, `records` rows."""

    day: date
    records: int
    runs: int
    successes: int
    failures: int
    skips: int
    seconds: float
    lag_seconds: float


@dataclass(frozen=True, slots=True)
class DayPercentiles:
    """95th percentiles of a sample of the runs of one UTC day."""

    day: date
    seconds: float | None
    lag_seconds: float | None


@dataclass(frozen=True, slots=True)
class Percentiles:
    p50: timedelta
    p95: timedelta
    p99: timedelta


@dataclass(frozen=True, slots=True)
class RunTimings:
    """Durations and start delays of the newest runs."""

    runs: int
    duration: Percentiles | None
    lag: Percentiles | None


@dataclass(frozen=True, slots=True)
class OpenRunCounts:
    """Counts stop at MOST_COUNTED."""

    ready: int
    waiting: int
    running: int
    late: int
    next_due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class RollUpBatch:
    count: int
    last: UUID | None


async def roll_up(tx: Tx, after: UUID, before: datetime, limit: int) -> RollUpBatch:
    """Add the next records made before `before` to their days."""
    params = {"after": after, "before": first_id_at(before), "limit": limit}
    return await tx.fetch_value(RollUpBatch, _ROLL_UP, params)


async def roll_up_uncounted(tx: Tx, limit: int) -> int:
    return await tx.fetch_value(int, _ROLL_UP_UNCOUNTED, {"limit": limit})


async def list_days_of_job(tx: Tx, job_id: JobId, since: date) -> tuple[DayTotals, ...]:
    return await _list_days(tx, DAYS_OF_JOB, {"job_id": job_id, "since": since})


async def list_days_of_workspace(
    tx: Tx, since: date, owner_id: PrincipalId | None = None
) -> tuple[DayTotals, ...]:
    """List the totals of the transaction's workspace or, with `owner_id`, of one owner's jobs."""
    query = _DAYS_OF_WORKSPACE if owner_id is None else _DAYS_OF_OWNER
    return await _list_days(tx, query, {"owner_id": owner_id, "since": since})


async def list_day_percentiles_of_job(tx: Tx, job_id: JobId, since: date) -> list[DayPercentiles]:
    """Sample at most MOST_OF_DAY records of each day, the newest."""
    params = {"job_id": job_id, "since": since, "until": tx.now.date(), "most": MOST_OF_DAY}
    return await tx.fetch_as(DayPercentiles, sql.statistics.list_day_percentiles_of_job, params)


async def list_day_percentiles_of_workspace(tx: Tx, since: date) -> list[DayPercentiles]:
    """Sample records of each day at several hours: the newest alone would be those of its last minute."""
    days = (tx.now.date() - since).days + 1
    slices = max(2, min(MOST_SLICES, MOST_PROBES // days))
    step = timedelta(days=1) / slices
    begin = datetime.combine(since, datetime.min.time(), UTC)
    starts = [begin + step * n for n in range(days * slices)]
    params = {
        "days": [start.date() for start in starts],
        "lows": [first_id_at(start) for start in starts],
        "highs": [first_id_at(start + step) for start in starts],
        "most": MOST_OF_SLICE,
    }
    return await tx.fetch_as(DayPercentiles, sql.statistics.list_day_percentiles_of_workspace, params)


async def load_timings(tx: Tx, job_id: JobId, most: int) -> RunTimings:
    params = {"job_id": job_id, "most": most, "scan": MOST_SCANNED}
    return (await tx.fetch_value(_Timings, sql.statistics.load_timings, params)).timings


async def load_workspace_timings(tx: Tx, most: int, owner_id: PrincipalId | None = None) -> RunTimings:
    params = {"owner_id": owner_id, "most": most, "scan": MOST_SCANNED}
    return (await tx.fetch_value(_Timings, sql.statistics.load_workspace_timings, params)).timings


async def count_jobs_up_to(tx: Tx, most: int) -> dict[JobStatus, int]:
    """Count the jobs of each status, and stop at `most`."""
    params = {"workspace_id": tx.workspace_id, "most": most, "statuses": [each.value for each in JobStatus]}
    return dict(await tx.fetch_pairs(JobStatus, int, sql.statistics.count_jobs_up_to, params))


async def count_jobs_by_status(tx: Tx, owner_id: PrincipalId | None = None) -> dict[JobStatus, int]:
    query = sql.statistics.count_jobs_by_status
    return dict(await tx.fetch_pairs(JobStatus, int, query, {"owner_id": owner_id}))


async def count_open(tx: Tx, late_by: datetime, owner_id: PrincipalId | None = None) -> OpenRunCounts:
    """Count the open runs and the timers that were due before `late_by`, and find the next run."""
    params = {"owner_id": owner_id, "late_by": late_by, "most": MOST_COUNTED}
    counts = await tx.fetch_value(OpenRunCounts, sql.statistics.count_open, params)
    is_large = owner_id is None and await agenda.is_large(tx)
    next_at = await (agenda.find_next_run(tx) if is_large else agenda.find_next_run_of(tx, owner_id))
    return replace(counts, next_due_at=next_at)


async def load_last_run(tx: Tx, job_id: JobId) -> tuple[datetime, RunStatus] | None:
    """Return start and status of the job's last attempted run; None before the first."""
    rows = await tx.fetch_pairs(datetime, RunStatus, sql.statistics.load_last_run, {"job_id": job_id})
    return rows[0] if rows else None


async def _list_days(tx: Tx, query: SqlQuery, params: Params) -> tuple[DayTotals, ...]:
    rolled_to = await tx.fetch_value(UUID, sql.statistics.load_roll_up_position)
    return tuple(await tx.fetch_as(DayTotals, query, {**params, "rolled_to": rolled_to}))


class _Timings(NamedTuple):
    runs: int
    seconds: Sequence[float | None] | None
    lag_seconds: Sequence[float | None] | None

    @property
    def timings(self) -> RunTimings:
        return RunTimings(self.runs, _percentiles(self.seconds), _percentiles(self.lag_seconds))


def _percentiles(values: Sequence[float | None] | None) -> Percentiles | None:
    found = [timedelta(seconds=value) for value in values or () if value is not None]
    return Percentiles(*found) if len(found) == len(PERCENTILES) else None


def _days_query(days: str, condition: str) -> SqlQuery:
    return filled(
        sql.statistics.list_days,
        days=days,
        of_days=condition.format(days),
        of_counts=condition.format("run_counts"),
        of_uncounted=condition.format("uncounted_runs"),
    )


_OF_OWNER = "{0}.workspace_id = %(workspace_id)s AND {0}.job_id IN (SELECT id FROM jobs WHERE owner_id = %(owner_id)s)"
DAYS_OF_JOB = _days_query("job_days", "{0}.job_id = %(job_id)s")
_DAYS_OF_WORKSPACE = _days_query("workspace_days", "{0}.workspace_id = %(workspace_id)s")
_DAYS_OF_OWNER = _days_query("job_days", _OF_OWNER)
_ROLL_UP, _ROLL_UP_UNCOUNTED = (
    filled(query, write_totals=sql.statistics.write_totals.text.decode())
    for query in (sql.statistics.roll_up, sql.statistics.roll_up_uncounted)
)
