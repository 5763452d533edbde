"""Repair: find timers and open runs that contradict each other, and correct them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.types.json import Jsonb

from foliot.domain.ids import JobId, RunId
from foliot.domain.job import Timer
from foliot.domain.lifecycle import JobEvent, JobStatus
from foliot.domain.run import RunError
from foliot.domain.schedule import PlannedTime
from foliot.storage.jobs.definitions import UnreadableRules, definition_of, rules_of, spec_text
from foliot.storage.queries import sql
from foliot.storage.timers.timers import TimerRow
from foliot.storage.tx import Row, Tx

MOST_ORPHANS = 1_000  # newest records of a job among which open runs without a queue row are searched
RUN_LOST = RunError("run_lost", "This run was open, but in no queue and with no worker; the repair ended it.")


@dataclass(frozen=True, slots=True)
class TimerCheck:
    """A timer as it was read, without a lock. `row` is None if its spec cannot be read."""

    job_id: JobId
    row: TimerRow | None
    finds_its_run: bool
    behind: int


@dataclass(frozen=True, slots=True)
class QueuedRun:
    run_id: RunId
    job_id: JobId
    is_behind: bool  # it waits behind another run of its job


@dataclass(frozen=True, slots=True)
class OpenRun:
    run_id: RunId
    job_id: JobId
    is_over: bool  # its record has ended, or does not exist
    is_known: bool  # to the timer of its job


@dataclass(frozen=True, slots=True)
class RescheduledTimer:
    row: TimerRow
    before: datetime | None
    after: datetime | None


async def list_timers(tx: Tx, after: UUID, limit: int) -> list[TimerCheck]:
    rows = await tx.fetch(sql.repair.list_timers, {"after": after, "limit": limit})
    return [TimerCheck(row["job_id"], _timer_row(row), row["finds_its_run"], row["behind"]) for row in rows]


async def list_due(tx: Tx, late: datetime, limit: int) -> tuple[int, list[JobId]]:
    """Of the timers that the next tick reads, count those due before `late` and list the unreadable ones."""
    rows = await tx.fetch(sql.repair.list_due, {"limit": limit})
    return sum(row["due_at"] < late for row in rows), [
        row["job_id"] for row in rows if not is_readable(row["spec"])
    ]


async def list_queued(tx: Tx, job_ids: Collection[JobId]) -> list[QueuedRun]:
    return await tx.fetch_as(QueuedRun, sql.repair.list_queued, {"job_ids": list(job_ids)})


async def set_timers(tx: Tx, rows: Sequence[TimerRow]) -> None:
    if not rows:
        return
    await tx.execute(
        sql.repair.set_timers,
        {
            "job_id": [row.job_id for row in rows],
            "cursor_at": [row.timer.cursor for row in rows],
            "due_at": [row.timer.due_at for row in rows],
            "next_at": [row.timer.next_at for row in rows],
            "ending": [row.timer.ending and row.timer.ending.value for row in rows],
            "live": [row.live for row in rows],
            "waiting": [row.waiting for row in rows],
            "live_run_id": [row.live_run_id for row in rows],
        },
    )


async def end_orphans(tx: Tx, job_ids: Collection[JobId]) -> list[tuple[RunId, JobId]]:
    error = Jsonb({"code": RUN_LOST.code, "message": RUN_LOST.message})
    params = {"job_ids": list(job_ids), "error": error, "scan": MOST_ORPHANS}
    return await tx.fetch_pairs(RunId, JobId, sql.repair.end_orphans, params)


async def list_open_runs(tx: Tx, after: UUID, limit: int) -> list[OpenRun]:
    return await tx.fetch_as(OpenRun, sql.repair.list_open_runs, {"after": after, "limit": limit})


async def rebuild_specs(tx: Tx, job_ids: Collection[JobId]) -> dict[JobId, bool]:
    """Rewrite each timer's spec from its job's definition, and return whether that was readable.

    A timer without a readable spec becomes due never: otherwise it would fail every tick that reads it.
    """
    readable: dict[JobId, bool] = {}
    for row in await tx.fetch(sql.repair.load_definitions, {"job_ids": list(job_ids)}):
        spec = _spec_of(row)
        readable[row["id"]] = spec is not None
        if spec is None:
            await tx.execute(sql.repair.park, {"job_id": row["id"]})
        else:
            await tx.execute(sql.repair.set_spec, {"job_id": row["id"], "spec": spec})
    return readable


async def find_recorded(tx: Tx, planned_times: Iterable[tuple[TimerRow, PlannedTime]]) -> frozenset[JobId]:
    """Return the jobs whose planned time has a record already."""
    planned_times = list(planned_times)
    rows = await tx.fetch(
        sql.fires.recorded_already,
        {
            "job_ids": [row.job_id for row, _ in planned_times],
            "planned_keys": [planned.local for _, planned in planned_times],
            "folds": [planned.fold for _, planned in planned_times],
            "schedule_revs": [row.schedule_rev for row, _ in planned_times],
        },
    )
    return frozenset(row["job_id"] for row in rows)


async def note_rescheduled(tx: Tx, rescheduled: Sequence[RescheduledTimer], actor: str) -> None:
    """Append an audit entry for each timer, in its workspace."""
    if not rescheduled:
        return
    await tx.execute(
        sql.repair.note_rescheduled,
        {
            "workspace_ids": [each.row.workspace_id for each in rescheduled],
            "ids": [tx.new_id() for _ in rescheduled],
            "job_ids": [each.row.job_id for each in rescheduled],
            "befores": [each.before for each in rescheduled],
            "afters": [each.after for each in rescheduled],
            "actor": actor,
        },
    )


def is_readable(spec: str) -> bool:
    return not isinstance(rules_of(spec), UnreadableRules)


def _spec_of(row: Row) -> str | None:
    try:
        spec = spec_text(definition_of(row["definition"]).spec)
    except Exception:  # noqa: BLE001
        return None
    return spec if is_readable(spec) else None


def _timer_row(row: Row) -> TimerRow | None:
    if not is_readable(row["spec"]):
        return None
    return TimerRow(
        workspace_id=row["workspace_id"],
        job_id=row["job_id"],
        status=JobStatus(row["status"]),
        rules=rules_of(row["spec"]),
        schedule_rev=row["schedule_rev"],
        version=row["version"],
        timer=Timer(
            row["cursor_at"], row["due_at"], row["next_at"], row["ending"] and JobEvent(row["ending"])
        ),
        runs_created=row["runs_created"],
        live=row["live"],
        waiting=row["waiting"],
        live_until=row["live_until"],
        live_run_id=row["live_run_id"],
        skip_next=row["skip_next"],
        skip_until=row["skip_until"],
        errors=row["errors"],
        has_gate=row["has_gate"],
        number=row["number"],
    )
