"""The ledger as people read it: runs with their live status, and their attempts. Pages of them are `looking.py`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from foliot.domain.artifacts import Artifact
from foliot.domain.ids import JobId, RunId, WorkerId, uuid7
from foliot.domain.lifecycle import AttemptStatus, RunStatus
from foliot.domain.progress import Progress
from foliot.domain.run import RunError, Trigger
from foliot.domain.schedule import SkipReason, load_zone
from foliot.storage.queries import sql
from foliot.storage.tx import Row, Tx
from foliot.storage.workers.workers import WorkerName

_MILLISECOND = timedelta(milliseconds=1)
_NO_ENTROPY = bytes(10)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One record. `planned_local` is the wall-clock time the schedule names; a gap record has `planned_until` and `count`.

    `duration_ms` runs from the first attempt's start to the end, waits between attempts included.
    """

    id: RunId
    job_id: JobId
    number: int
    status: RunStatus
    skip_reason: SkipReason | None
    trigger: Trigger
    planned_for: datetime
    planned_local: datetime
    planned_until: datetime | None
    count: int | None
    started_at: datetime | None
    finished_at: datetime | None
    duration_ms: int | None
    lag_ms: int | None
    attempt_count: int
    input: Any
    output: Any
    error: RunError | None
    worker: WorkerId | None
    job_name: str | None
    note: str | None
    triggered_by: str | None
    retry_of: RunId | None
    upstream_run_id: RunId | None
    created_at: datetime
    cancel_requested_at: datetime | None
    attempts: tuple[AttemptRecord, ...] | None = None  # None where they were not looked up
    progress: Progress | None = None  # while it runs, where its work tells
    triggered_by_name: str | None = None
    called: WorkerName | None = None  # the worker that has it, or had it last
    artifacts: tuple[Artifact, ...] | None = None  # None where they were not looked up
    next_try: NextAttempt | None = None


@dataclass(frozen=True, slots=True)
class RunWithRevision:
    """A record with what stands beside it, for explaining it."""

    run: RunRecord
    note: str | None
    schedule_rev: int


@dataclass(frozen=True, slots=True)
class NextAttempt:
    """The next attempt at a run that has failed, or was lost or handed back."""

    number: int
    at: datetime
    why: str


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    number: int
    status: AttemptStatus
    worker: WorkerId
    fence: int
    leased_at: datetime
    ended_at: datetime | None
    error: RunError | None
    external_id: str | None = None  # what the engine calls it that it was handed over to
    called: WorkerName | None = None  # its worker


@dataclass(frozen=True, slots=True)
class Payloads:
    """A job's payloads, each with when it came in force, the newest first."""

    since: tuple[tuple[datetime, Mapping[str, Any]], ...]

    def at(self, instant: datetime | None) -> Mapping[str, Any]:
        """None asks for the one in force."""
        for since, payload in self.since:
            if instant is None or since <= instant:
                return payload
        return self.since[-1][1]


async def load_run(tx: Tx, run_id: RunId) -> RunWithRevision | None:
    row = await tx.fetch_one(sql.run_history.one, {"run_id": run_id})
    return None if row is None else _entry(row)


async def list_attempts(tx: Tx, run_id: RunId) -> tuple[AttemptRecord, ...]:
    rows = await tx.fetch(sql.run_history.attempts, {"run_id": run_id})
    return tuple(
        AttemptRecord(
            row["number"],
            AttemptStatus(row["status"]),
            row["worker_id"],
            row["fence"],
            row["leased_at"],
            row["ended_at"],
            _error(row["error"]),
            row["external_id"],
        )
        for row in rows
    )


async def startable_at(tx: Tx, run_id: RunId) -> datetime | None:
    """Of a run that stands ready or waits: when it may start at the earliest."""
    row = await tx.fetch_one(sql.run_history.startable_at, {"run_id": run_id})
    return None if row is None else row["available_at"]


async def load_payloads(tx: Tx, job_ids: Collection[JobId]) -> dict[JobId, Payloads]:
    found: dict[JobId, list[tuple[datetime, Mapping[str, Any]]]] = {}
    if job_ids:
        for row in await tx.fetch(sql.run_history.payloads, {"job_ids": list(job_ids)}):
            found.setdefault(row["job_id"], []).append((row["at"], row["payload"] or {}))
    return {job_id: Payloads(tuple(since)) for job_id, since in found.items()}


async def load_newest(tx: Tx, job_id: JobId) -> RunWithRevision | None:
    row = await tx.fetch_one(sql.run_history.newest, {"job_id": job_id})
    return None if row is None else _entry(row)


async def find_near(tx: Tx, job_id: JobId, at: datetime, within: timedelta) -> RunWithRevision | None:
    """The record of the planned time that `at` means, or the gap record that covers it."""
    row = await tx.fetch_one(sql.run_history.near, {"job_id": job_id, "at": at, "before": at + within})
    if row is None or row["planned_for"] > at:
        gap = await tx.fetch_one(sql.run_history.gap_over, {"job_id": job_id, "at": at})
        # Of a job that beats often, the next record within the minute may lie behind the gap, and is not what was asked for.
        if gap is not None and (row is None or row["planned_for"] > gap["planned_until"]):
            row = gap
    return None if row is None else _entry(row)


def first_id_at(instant: datetime) -> UUID:
    """No id made at `instant` or later is smaller; none made a millisecond earlier is greater."""
    return uuid7(max(instant, datetime(1970, 1, 1, tzinfo=UTC)), _NO_ENTROPY)


def local_of(planned_for: datetime, planned_key: datetime, timezone: str) -> datetime:
    """The wall-clock time of a planned time. The key is that time for calendar schedules and UTC for all others."""
    if planned_key != planned_for.astimezone(UTC).replace(tzinfo=None):
        return planned_key
    return planned_for.astimezone(load_zone(timezone)).replace(tzinfo=None)


def record(row: Row) -> RunRecord:
    """From a row of the view."""
    started_at, finished_at = row["started_at"], row["finished_at"]
    is_backfill = (
        row["trigger"] == Trigger.BACKFILL
    )  # its planned time passed long before anybody asked for it
    asked_for = row["created_at"] if is_backfill else row["planned_for"]
    return RunRecord(
        id=row["id"],
        job_id=row["job_id"],
        number=row["number"],
        status=RunStatus(row["status"]),
        skip_reason=row["skip_reason"] and SkipReason(row["skip_reason"]),
        trigger=Trigger(row["trigger"]),
        planned_for=row["planned_for"],
        planned_local=local_of(row["planned_for"], row["planned_key"], row["timezone"]),
        planned_until=row["planned_until"],
        count=row["count"],
        started_at=started_at,
        finished_at=finished_at,
        duration_ms=_milliseconds(started_at, finished_at),
        lag_ms=_milliseconds(asked_for, started_at),
        attempt_count=row["attempt_count"],
        input=row["input"],
        output=row["output"],
        error=_error(row["error"]),
        worker=row["worker_id"],
        job_name=row["job_name"],
        note=row["note"],
        triggered_by=row["triggered_by"],
        retry_of=row["retry_of"],
        upstream_run_id=row["upstream_run_id"],
        created_at=row["created_at"],
        cancel_requested_at=row["cancel_requested_at"],
    )


def _entry(row: Row) -> RunWithRevision:
    return RunWithRevision(record(row), row["note"], row["schedule_rev"])


def _milliseconds(start: datetime | None, end: datetime | None) -> int | None:
    return None if start is None or end is None else (end - start) // _MILLISECOND


def _error(error: Mapping[str, str] | None) -> RunError | None:
    return None if error is None else RunError(error["code"], error["message"])
