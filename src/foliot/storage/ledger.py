"""The ledger as people read it: runs with their live status, pages of history, attempts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from foliot.domain.ids import JobId, RunId, WorkerId, uuid7
from foliot.domain.lifecycle import AttemptStatus, RunStatus
from foliot.domain.run import RunError, Trigger
from foliot.domain.schedule import SkipReason, load_zone
from foliot.storage.queries import Query, sql
from foliot.storage.tx import Params, Row, Tx

MOST_SCANNED = 5_000  # records that one page looks at, when a filter leaves most of them out
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


@dataclass(frozen=True, slots=True)
class Entry:
    """A record with what stands beside it, for explaining it."""

    run: RunRecord
    note: str | None
    schedule_rev: int


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    number: int
    status: AttemptStatus
    worker: WorkerId
    fence: int
    leased_at: datetime
    ended_at: datetime | None
    error: RunError | None


@dataclass(frozen=True, slots=True)
class Filter:
    """Empty means all. `since` is included, `until` is not: of planned times in a job's history, of records in a workspace's."""

    statuses: tuple[RunStatus, ...] = ()
    triggers: tuple[Trigger, ...] = ()
    since: datetime | None = None
    until: datetime | None = None

    @property
    def is_sparse(self) -> bool:
        return bool(self.statuses or self.triggers)


@dataclass(frozen=True, slots=True)
class Payloads:
    """What a job's payload was up to each edit of it, in their order; the last is in force."""

    spans: tuple[tuple[datetime | None, Mapping[str, Any]], ...]

    def at(self, instant: datetime | None) -> Mapping[str, Any]:
        """None asks for the one in force."""
        for until, payload in self.spans:
            if until is None or (instant is not None and instant < until):
                return payload
        return {}


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Where a page ended: the next one begins right after it."""

    planned_for: datetime
    id: RunId


@dataclass(frozen=True, slots=True)
class Page:
    runs: tuple[RunRecord, ...]
    next: Bookmark | None  # None at the end; a filtered page may be short and still have a next one


async def one(tx: Tx, run_id: RunId) -> Entry | None:
    row = await tx.fetch_one(sql.ledger.one, {"run_id": run_id})
    return None if row is None else _entry(row)


async def attempts(tx: Tx, run_id: RunId) -> tuple[AttemptRecord, ...]:
    rows = await tx.fetch(sql.ledger.attempts, {"run_id": run_id})
    return tuple(
        AttemptRecord(
            row["number"],
            AttemptStatus(row["status"]),
            row["worker_id"],
            row["fence"],
            row["leased_at"],
            row["ended_at"],
            _error(row["error"]),
        )
        for row in rows
    )


async def payloads(tx: Tx, job_ids: Collection[JobId]) -> dict[JobId, Payloads]:
    if not job_ids:
        return {}
    params = {
        "workspace_id": tx.workspace_id,
        "job_ids": list(job_ids),
        "object_ids": [str(job_id) for job_id in job_ids],
    }
    found: dict[JobId, list[tuple[datetime | None, Mapping[str, Any]]]] = {}
    for row in await tx.fetch(sql.ledger.payloads, params):
        found.setdefault(row["job_id"], []).append((row["until"], row["payload"] or {}))
    return {job_id: Payloads(tuple(spans)) for job_id, spans in found.items()}


async def of_job(tx: Tx, job_id: JobId, wanted: Filter, after: Bookmark | None, limit: int) -> Page:
    """A job's history, newest planned time first."""
    params = {
        "job_id": job_id,
        "since": wanted.since,
        "until": wanted.until,
        "before": after and after.planned_for,
        "before_id": after and after.id,
        **_kinds(wanted),
    }
    rows = await tx.fetch(sql.ledger.of_job, params | _bounds(wanted, limit))
    return await _page(tx, rows, wanted, limit, sql.ledger.floor_of_job, params)


async def of_workspace(tx: Tx, wanted: Filter, after: Bookmark | None, limit: int) -> Page:
    """What was recorded last in the workspace of the transaction."""
    params = {
        "workspace_id": tx.workspace_id,
        "since_id": wanted.since and first_id_at(wanted.since),
        "until_id": wanted.until and first_id_at(wanted.until),
        "before_id": after and after.id,
        **_kinds(wanted),
    }
    rows = await tx.fetch(sql.ledger.of_workspace, params | _bounds(wanted, limit))
    return await _page(tx, rows, wanted, limit, sql.ledger.floor_of_workspace, params)


async def near(tx: Tx, job_id: JobId, at: datetime, within: timedelta) -> Entry | None:
    """The record of the planned time that `at` means, or the gap record that covers it."""
    row = await tx.fetch_one(sql.ledger.near, {"job_id": job_id, "at": at, "before": at + within})
    if row is None:
        row = await tx.fetch_one(sql.ledger.gap_over, {"job_id": job_id, "at": at})
    return None if row is None else _entry(row)


def first_id_at(instant: datetime) -> UUID:
    """No id made at `instant` or later is smaller; none made a millisecond earlier is greater."""
    return uuid7(max(instant, datetime(1970, 1, 1, tzinfo=UTC)), _NO_ENTROPY)


def local_of(planned_for: datetime, planned_key: datetime, timezone: str) -> datetime:
    """The wall-clock time of a planned time. The key is that time for calendar schedules and UTC for all others."""
    if planned_key != planned_for.astimezone(UTC).replace(tzinfo=None):
        return planned_key
    return planned_for.astimezone(load_zone(timezone)).replace(tzinfo=None)


def _kinds(wanted: Filter) -> dict[str, list[str] | None]:
    return {
        "statuses": [status.value for status in wanted.statuses] or None,
        "triggers": [trigger.value for trigger in wanted.triggers] or None,
    }


def _bounds(wanted: Filter, limit: int) -> dict[str, int]:
    return {"scan": MOST_SCANNED if wanted.is_sparse else limit + 1, "limit": limit + 1}


async def _page(tx: Tx, rows: list[Row], wanted: Filter, limit: int, floor: Query, params: Params) -> Page:
    runs = tuple(_record(row) for row in rows[:limit])
    if len(rows) > limit:
        return Page(runs, Bookmark(runs[-1].planned_for, runs[-1].id))
    if not wanted.is_sparse:
        return Page(runs, None)
    last = await tx.fetch_one(floor, {**params, "scan": MOST_SCANNED - 1})
    return Page(runs, None if last is None else Bookmark(last["planned_for"], last["id"]))


def _entry(row: Row) -> Entry:
    return Entry(_record(row), row["note"], row["schedule_rev"])


def _record(row: Row) -> RunRecord:
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
    )


def _milliseconds(start: datetime | None, end: datetime | None) -> int | None:
    return None if start is None or end is None else (end - start) // _MILLISECOND


def _error(error: Mapping[str, str] | None) -> RunError | None:
    return None if error is None else RunError(error["code"], error["message"])
