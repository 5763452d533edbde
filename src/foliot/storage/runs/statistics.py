"""Days of runs, added up: rolled up into `daily` by the janitor, read together with what is not rolled up yet."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from uuid import UUID

from foliot.domain.ids import JobId, PrincipalId
from foliot.domain.lifecycle import JobStatus, RunStatus
from foliot.storage.jobs import agenda
from foliot.storage.queries import sql
from foliot.storage.runs.run_history import first_id_at
from foliot.storage.tx import Params, Row, Tx

MOST_SCANNED = 5_000  # records that percentiles look at to find their runs
MOST_COUNTED = 10_000  # open runs; beyond that a number is no news


@dataclass(frozen=True, slots=True)
class DayTotals:
    """Sums over the records made on one UTC day. `runs` were attempted; `skips` counts planned times, `records` rows."""

    day: date
    records: int
    runs: int
    successes: int
    failures: int
    skips: int
    seconds: float
    lag_seconds: float


@dataclass(frozen=True, slots=True)
class Percentiles:
    p50: timedelta
    p95: timedelta
    p99: timedelta


@dataclass(frozen=True, slots=True)
class RunTimings:
    """Over the newest runs: how many they are, how long they took, how late they started."""

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
    next_due_at: datetime | None


@dataclass(frozen=True, slots=True)
class RolledUp:
    count: int
    last: UUID | None


async def roll_up(tx: Tx, after: UUID, before: datetime, limit: int) -> RolledUp:
    """Count the next records made before `before`."""
    row = await tx.fetch_one(
        sql.statistics.roll_up, {"after": after, "before": first_id_at(before), "limit": limit}
    )
    assert row is not None
    return RolledUp(row["passed"], row["last"])


async def roll_up_uncounted(tx: Tx, limit: int) -> int:
    row = await tx.fetch_one(sql.statistics.roll_up_uncounted, {"limit": limit})
    assert row is not None
    found: int = row["counted"]
    return found


async def days_of_job(tx: Tx, job_id: JobId, since: date) -> tuple[DayTotals, ...]:
    params = {"job_id": job_id, "since": since, "rolled_to": await _rolled_to(tx)}
    return tuple(DayTotals(**row) for row in await tx.fetch(sql.statistics.days_of_job, params))


async def days_of_workspace(
    tx: Tx, since: date, owner_id: PrincipalId | None = None
) -> tuple[DayTotals, ...]:
    """Of the workspace of the transaction; of one owner's jobs, where one is named."""
    params = {**_whose(tx, owner_id), "since": since, "rolled_to": await _rolled_to(tx)}
    query = sql.statistics.days_of_workspace if owner_id is None else sql.statistics.days_of_owner
    return tuple(DayTotals(**row) for row in await tx.fetch(query, params))


async def load_timings(tx: Tx, job_id: JobId, most: int) -> RunTimings:
    row = await tx.fetch_one(
        sql.statistics.percentiles, {"job_id": job_id, "most": most, "scan": MOST_SCANNED}
    )
    assert row is not None
    return RunTimings(row["runs"], _percentiles(row, "seconds"), _percentiles(row, "lag_seconds"))


async def load_workspace_timings(tx: Tx, most: int, owner_id: PrincipalId | None = None) -> RunTimings:
    params = {**_whose(tx, owner_id), "most": most, "scan": MOST_SCANNED}
    row = await tx.fetch_one(sql.statistics.spread_of_workspace, params)
    assert row is not None
    return RunTimings(row["runs"], _percentiles(row, "seconds"), _percentiles(row, "lag_seconds"))


async def jobs_by_status(tx: Tx, owner_id: PrincipalId | None = None) -> dict[JobStatus, int]:
    rows = await tx.fetch(sql.statistics.jobs_by_status, _whose(tx, owner_id))
    return {JobStatus(row["status"]): row["jobs"] for row in rows}


async def count_open(tx: Tx, late_by: datetime, owner_id: PrincipalId | None = None) -> OpenRunCounts:
    """What is open at this moment, and which timers should have gone off before `late_by`."""
    whose = _whose(tx, owner_id)
    counts = await tx.fetch_one(sql.statistics.open_runs, {**whose, "late_by": late_by, "most": MOST_COUNTED})
    assert counts is not None
    walks = owner_id is None and await agenda.is_large(tx)
    next_at = await (agenda.find_next_run(tx) if walks else agenda.find_next_run_of(tx, owner_id))
    return OpenRunCounts(counts["ready"], counts["waiting"], counts["running"], counts["late"], next_at)


async def last_run(tx: Tx, job_id: JobId) -> tuple[datetime, RunStatus] | None:
    """When the job's last attempted run started, and how it ended; None before the first."""
    row = await tx.fetch_one(sql.statistics.last_run, {"job_id": job_id})
    if row is None or row["last_run_at"] is None:
        return None
    return row["last_run_at"], RunStatus(row["last_run_status"])


def _whose(tx: Tx, owner_id: PrincipalId | None) -> Params:
    return {"workspace_id": tx.workspace_id, "owner_id": owner_id}


async def _rolled_to(tx: Tx) -> UUID:
    row = await tx.fetch_one(sql.statistics.rolled_to)
    assert row is not None
    found: UUID = row["position"]
    return found


def _percentiles(row: Row, name: str) -> Percentiles | None:
    values = row[name]
    if values is None or None in values:
        return None
    return Percentiles(*(timedelta(seconds=value) for value in values))
