"""The run history as people read it: runs with their current status, and their attempts. `run_search.py` has pages of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from foliot.domain.artifacts import Artifact
from foliot.domain.ids import JobId, PrincipalId, RunId, WorkerId, WorkspaceId, uuid7
from foliot.domain.lifecycle import AttemptStatus, RunStatus
from foliot.domain.run import Progress, RunError, Trigger
from foliot.domain.schedule import SkipReason, load_zone
from foliot.domain.usage import Usage
from foliot.storage.queries import sql
from foliot.storage.tx import Tx
from foliot.storage.workers.workers import WorkerName

_MILLISECOND = timedelta(milliseconds=1)
_NO_ENTROPY = bytes(10)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One record. `planned_local` is the wall-clock time of the schedule; a gap record has `planned_until` and `count`.

    `duration_ms` counts from the start of the first attempt to the end, waits between attempts included.
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
    revision: int | None = None  # of the newest attempt
    attempts: tuple[AttemptRecord, ...] | None = None  # None if not loaded
    progress: Progress | None = None  # while it runs, if its handler reports it
    triggered_by_name: str | None = None
    called: WorkerName | None = None  # of its current or last worker
    artifacts: tuple[Artifact, ...] | None = None  # None if not loaded
    next_try: NextAttempt | None = None
    usage: Usage | None = None  # None if not loaded


@dataclass(frozen=True, slots=True)
class RecentRun:
    """A record of a job, as short as a mark in a strip."""

    job_id: JobId
    id: RunId
    number: int
    skip_reason: SkipReason | None
    planned_for: datetime
    count: int | None
    status: RunStatus


@dataclass(frozen=True, slots=True)
class RunWithRevision:
    """A record with its note and revision of the schedule, for explanations."""

    run: RunRecord
    note: str | None
    schedule_rev: int


@dataclass(frozen=True, slots=True)
class NextAttempt:
    """The next attempt of a run whose last one failed, was lost or was released."""

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
    external_id: str | None = None  # its id in the other engine that runs it
    revision: int | None = None  # of the job; None where an older version ran it
    input: Any = None
    called: WorkerName | None = None  # of its worker


@dataclass(frozen=True, slots=True)
class Payloads:
    """A job's payloads, each with the first revision and instant of its validity, the newest first."""

    since: tuple[tuple[int, datetime, Mapping[str, Any]], ...]

    def of(self, revision: int | None, instant: datetime | None) -> Mapping[str, Any]:
        """Return the payload of the revision; without one that in force at `instant`; without both the current one."""
        for first, since, payload in self.since:
            if revision is not None:
                if first <= revision:
                    return payload
            elif instant is None or since <= instant:
                return payload
        return self.since[-1][2]


async def load_run(tx: Tx, run_id: RunId) -> RunWithRevision | None:
    return _with_revision(await tx.fetch_one_as(RunRow, sql.run_history.load_run, {"run_id": run_id}))


async def list_attempts(tx: Tx, run_id: RunId) -> tuple[AttemptRecord, ...]:
    return tuple(await tx.fetch_as(AttemptRecord, sql.run_history.list_attempts, {"run_id": run_id}))


async def load_earliest_start(tx: Tx, run_id: RunId) -> datetime | None:
    """Return the earliest start of a run that is ready or waiting."""
    return await tx.fetch_one_as(datetime, sql.run_history.load_earliest_start, {"run_id": run_id})


async def load_payloads(tx: Tx, job_ids: Collection[JobId]) -> dict[JobId, Payloads]:
    found: dict[JobId, list[tuple[int, datetime, Mapping[str, Any]]]] = {}
    if job_ids:
        for row in await tx.fetch_as(_Payload, sql.run_history.list_payloads, {"job_ids": list(job_ids)}):
            found.setdefault(row.job_id, []).append((row.revision, row.at, row.payload or {}))
    return {job_id: Payloads(tuple(since)) for job_id, since in found.items()}


async def load_newest(tx: Tx, job_id: JobId) -> RunWithRevision | None:
    return _with_revision(await tx.fetch_one_as(RunRow, sql.run_history.load_newest, {"job_id": job_id}))


async def list_recent(
    tx: Tx, job_ids: Collection[JobId], limit: int, since: datetime | None, visible_owner: PrincipalId | None
) -> list[RecentRun]:
    """List the newest records of each job that were planned from `since` on, newest first."""
    params = {"job_ids": list(job_ids), "limit": limit, "since": since, "visible_owner": visible_owner}
    return await tx.fetch_as(RecentRun, sql.run_history.list_recent, params)


async def find_near(tx: Tx, job_id: JobId, at: datetime, within: timedelta) -> RunWithRevision | None:
    """Find the first record planned in [at, at + within), or the gap record that covers `at`."""
    params = {"job_id": job_id, "at": at, "before": at + within}
    row = await tx.fetch_one_as(RunRow, sql.run_history.find_near, params)
    if row is None or row.planned_for > at:
        gap = await tx.fetch_one_as(RunRow, sql.run_history.find_gap, {"job_id": job_id, "at": at})
        # Of a frequent job the next record may lie behind the gap, although it is within the minute.
        if gap is not None and (row is None or (gap.planned_until and row.planned_for > gap.planned_until)):
            row = gap
    return _with_revision(row)


def first_id_at(instant: datetime) -> UUID:
    """Return the lower bound of ids made at `instant` or later."""
    return uuid7(max(instant, datetime(1970, 1, 1, tzinfo=UTC)), _NO_ENTROPY)


def local_of(planned_for: datetime, planned_key: datetime, timezone: str) -> datetime:
    """Return the wall-clock time of a planned time. The key is that time for calendar schedules and UTC for all others."""
    if planned_key != planned_for.astimezone(UTC).replace(tzinfo=None):
        return planned_key
    return planned_for.astimezone(load_zone(timezone)).replace(tzinfo=None)


def _with_revision(row: RunRow | None) -> RunWithRevision | None:
    return None if row is None else RunWithRevision(row.record, row.note, row.schedule_rev)


def _milliseconds(start: datetime | None, end: datetime | None) -> int | None:
    return None if start is None or end is None else (end - start) // _MILLISECOND


class _Payload(NamedTuple):
    job_id: JobId
    revision: int
    at: datetime
    payload: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class RunRow:
    """A row of the view `run_records`."""

    workspace_id: WorkspaceId
    id: RunId
    job_id: JobId
    number: int
    status: RunStatus
    skip_reason: SkipReason | None
    note: str | None
    trigger: Trigger
    planned_for: datetime
    planned_key: datetime
    schedule_rev: int
    planned_until: datetime | None
    count: int | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    attempt_count: int
    worker_id: WorkerId | None
    input: Any
    output: Any
    error: RunError | None
    timezone: str
    job_name: str | None
    triggered_by: str | None
    retry_of: RunId | None
    upstream_run_id: RunId | None
    cancel_requested_at: datetime | None
    revision: int | None

    @property
    def record(self) -> RunRecord:
        # The planned time of a backfill had passed long before its request: its lag starts there.
        due_at = self.created_at if self.trigger is Trigger.BACKFILL else self.planned_for
        return RunRecord(
            id=self.id,
            job_id=self.job_id,
            number=self.number,
            status=self.status,
            skip_reason=self.skip_reason,
            trigger=self.trigger,
            planned_for=self.planned_for,
            planned_local=local_of(self.planned_for, self.planned_key, self.timezone),
            planned_until=self.planned_until,
            count=self.count,
            started_at=self.started_at,
            finished_at=self.finished_at,
            duration_ms=_milliseconds(self.started_at, self.finished_at),
            lag_ms=_milliseconds(due_at, self.started_at),
            attempt_count=self.attempt_count,
            input=self.input,
            output=self.output,
            error=self.error,
            worker=self.worker_id,
            job_name=self.job_name,
            note=self.note,
            triggered_by=self.triggered_by,
            retry_of=self.retry_of,
            upstream_run_id=self.upstream_run_id,
            created_at=self.created_at,
            cancel_requested_at=self.cancel_requested_at,
            revision=self.revision,
        )
