"""Runs that no worker has yet: making them, taking them out of line, ending them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, assert_never

from psycopg.types.json import Jsonb

from foliot.domain.admission import Admission, Skip, Start, Wait
from foliot.domain.definition import Rules
from foliot.domain.ids import JobId, RunId, WorkspaceId
from foliot.domain.lifecycle import RunStatus
from foliot.domain.run import RunError, RunFacts, Trigger, WaitsFor
from foliot.domain.run_end import Settlement
from foliot.domain.schedule import SkipReason
from foliot.domain.target import Target, target_of
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class UnscheduledRun:
    """A run to make that no schedule planned."""

    id: RunId
    workspace_id: WorkspaceId
    job_id: JobId
    number: int
    schedule_rev: int
    rules: Rules
    trigger: Trigger
    planned_for: datetime
    available_at: datetime
    waits_for: WaitsFor | None = None
    expires_at: datetime | None = None
    input: Any = None
    triggered_by: str | None = None
    upstream_run_id: RunId | None = None
    retry_of: RunId | None = None
    note: str | None = None
    skip: SkipReason | None = None  # recorded only
    planned_local: datetime | None = None  # the wall-clock time, where a schedule would have named one
    fold: int = 0

    def admitted(self, answer: Admission) -> UnscheduledRun:
        """Return the same run with the decision about its start."""
        match answer:
            case Skip(reason=reason):
                return replace(self, skip=reason)
            case Start(not_before=at, expires_at=until):
                return replace(self, available_at=at or self.available_at, expires_at=until)
            case Wait(waits_for=waits_for, not_before=at, expires_at=until):
                at = at or self.available_at
                return replace(self, waits_for=waits_for, available_at=at, expires_at=until)
            case _ as never:
                assert_never(never)


@dataclass(frozen=True, slots=True)
class UnclaimedRun:
    """A run that was taken out of `ready` or `waiting`, to be ended."""

    facts: RunFacts
    fence: int


@dataclass(frozen=True, slots=True)
class ExpiredRun:
    """A run that no worker took before it was too late."""

    run_id: RunId
    job_id: JobId
    expires_at: datetime
    trigger: Trigger
    has_begun: bool  # this would be a further attempt
    waits_for: WaitsFor | None
    workspace_id: WorkspaceId
    target: Target | None  # of one that was ready for it


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What verbs on a run need to know of it. `status` is None while it is open."""

    id: RunId
    workspace_id: WorkspaceId
    job_id: JobId
    status: RunStatus | None
    trigger: Trigger
    planned_for: datetime
    planned_local: datetime
    fold: int
    schedule_rev: int
    planned_until: datetime | None
    input: Any


@dataclass(frozen=True, slots=True)
class RecordedTime:
    """A planned time, or a gap of them, that has its record."""

    planned_for: datetime
    planned_until: datetime | None
    planned_local: datetime
    fold: int
    schedule_rev: int
    trigger: Trigger
    is_skipped: bool


async def find(tx: Tx, run_id: RunId) -> RunRecord | None:
    row = await tx.fetch_one(sql.runs.find, {"id": run_id})
    if row is None:
        return None
    return RunRecord(
        row["id"],
        row["workspace_id"],
        row["job_id"],
        None if row["status"] is None else RunStatus(row["status"]),
        Trigger(row["trigger"]),
        row["planned_for"],
        row["planned_key"],
        row["fold"],
        row["schedule_rev"],
        row["planned_until"],
        row["input"],
    )


async def known(tx: Tx, run_ids: Collection[RunId]) -> frozenset[RunId]:
    """Those that there are."""
    rows = await tx.fetch(sql.runs.known, {"run_ids": list(run_ids)})
    return frozenset(row["id"] for row in rows)


async def recorded_between(tx: Tx, job_id: JobId, start: datetime, end: datetime) -> list[RecordedTime]:
    """The planned times from `start` up to `end` that have a record, whatever made it."""
    rows = await tx.fetch(sql.runs.recorded_between, {"job_id": job_id, "start": start, "end": end})
    return [
        RecordedTime(
            row["planned_for"],
            row["planned_until"],
            row["planned_key"],
            row["fold"],
            row["schedule_rev"],
            Trigger(row["trigger"]),
            row["status"] == RunStatus.SKIPPED,
        )
        for row in rows
    ]


async def make(tx: Tx, runs: Sequence[UnscheduledRun]) -> frozenset[RunId]:
    """Insert them; answers with those that are new. A dependent's run for an upstream run that has one already is not."""
    if not runs:
        return frozenset()
    specs = [run.rules.spec for run in runs]
    rows = await tx.fetch(
        sql.runs.make,
        {
            "workspace_id": [run.workspace_id for run in runs],
            "id": [run.id for run in runs],
            "job_id": [run.job_id for run in runs],
            "number": [run.number for run in runs],
            "trigger": [run.trigger.value for run in runs],
            "planned_for": [run.planned_for for run in runs],
            "planned_key": [
                run.planned_local or run.planned_for.astimezone(UTC).replace(tzinfo=None) for run in runs
            ],
            "fold": [run.fold for run in runs],
            "schedule_rev": [run.schedule_rev for run in runs],
            "input": [None if run.input is None else Jsonb(run.input) for run in runs],
            "triggered_by": [run.triggered_by for run in runs],
            "upstream_run_id": [run.upstream_run_id for run in runs],
            "retry_of": [run.retry_of for run in runs],
            "note": [run.note for run in runs],
            "skip_reason": [run.skip and run.skip.value for run in runs],
            "waits_for": [run.waits_for and run.waits_for.value for run in runs],
            "queue": [spec.queue for spec in specs],
            "type": [spec.type for spec in specs],
            "priority": [spec.priority for spec in specs],
            "available_at": [run.available_at for run in runs],
            "exclusive": [run.rules.is_exclusive for run in runs],
            "concurrency_key": [spec.concurrency_key for spec in specs],
            "timeout": [spec.limits.timeout for spec in specs],
            "expires_at": [run.expires_at for run in runs],
            "target": [spec.target and spec.target.text for spec in specs],
            "read_only": [spec.read_only for spec in specs],
            "now": tx.now,
        },
    )
    return frozenset(row["id"] for row in rows)


async def take_standing(tx: Tx, run_ids: Sequence[RunId]) -> list[UnclaimedRun]:
    """Those of `run_ids` that no worker has. Needs the locks of their timers."""
    if not run_ids:
        return []
    rows = await tx.fetch(sql.runs.take_standing, {"run_ids": list(run_ids)})
    return [
        UnclaimedRun(
            RunFacts(
                id=row["run_id"],
                job_id=row["job_id"],
                trigger=Trigger(row["trigger"]),
                status=RunStatus.READY if row["waits_for"] is None else RunStatus.WAITING,
                is_live=row["waits_for"] != WaitsFor.TURN,
                attempt_count=row["attempts"],
                retries_used=row["retries"],
                losses=row["losses"],
                started_at=row["started_at"],
                last_error=None if row["last_error"] is None else RunError(**row["last_error"]),
            ),
            row["fence"],
        )
        for row in rows
    ]


async def end_standing(tx: Tx, ended: Sequence[tuple[UnclaimedRun, Settlement]]) -> None:
    if not ended:
        return
    await tx.execute(
        sql.runs.end_standing,
        {
            "run_ids": [standing.facts.id for standing, _ in ended],
            "statuses": [settlement.status.value for _, settlement in ended],
            "skip_reasons": [s.skip_reason and s.skip_reason.value for _, s in ended],
            "notes": [settlement.note for _, settlement in ended],
            "errors": [error_json(settlement.error) for _, settlement in ended],
            "started_at": [standing.facts.started_at for standing, _ in ended],
            "attempts": [standing.facts.attempt_count for standing, _ in ended],
            "fences": [standing.fence for standing, _ in ended],
            "now": tx.now,
        },
    )


async def expired(tx: Tx, limit: int) -> list[tuple[RunId, JobId]]:
    rows = await tx.fetch(sql.runs.expired, {"now": tx.now, "limit": limit})
    return [(row["run_id"], row["job_id"]) for row in rows]


async def late(tx: Tx, run_ids: Sequence[RunId]) -> list[ExpiredRun]:
    """Those of `run_ids` that are still too late to start. Needs the locks of their timers."""
    rows = await tx.fetch(sql.runs.late, {"run_ids": list(run_ids), "now": tx.now})
    return [
        ExpiredRun(
            row["run_id"],
            row["job_id"],
            row["expires_at"],
            Trigger(row["trigger"]),
            row["attempts"] > 0,
            None if row["waits_for"] is None else WaitsFor(row["waits_for"]),
            row["workspace_id"],
            None if row["target"] is None else target_of(row["target"]),
        )
        for row in rows
    ]


async def request_cancel(tx: Tx, run_ids: Sequence[RunId]) -> frozenset[RunId]:
    """Ask the workers that have them; answers with the runs that some worker has."""
    if not run_ids:
        return frozenset()
    rows = await tx.fetch(sql.runs.request_cancel, {"run_ids": list(run_ids), "now": tx.now})
    return frozenset(row["run_id"] for row in rows)


async def set_note(tx: Tx, run_id: RunId, note: str | None) -> None:
    """Of a run that has not ended; nothing takes nothing away."""
    if note is not None:
        await tx.execute(sql.runs.set_note, {"id": run_id, "note": note})


def error_json(error: RunError | None) -> Jsonb | None:
    return None if error is None else Jsonb({"code": error.code, "message": error.message})
