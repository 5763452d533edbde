"""What looks wrong with timers and open runs, and the statements that put it right."""

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

MOST_ORPHANS = 1_000  # records of a job that are looked through for runs which are nowhere
RUN_LOST = RunError("run_lost", "This run was open, yet nobody had it: it was found and ended by the repair.")


@dataclass(frozen=True, slots=True)
class TimerCheck:
    """A timer as it stood when it was looked at. `row` is None where its spec cannot be read."""

    job_id: JobId
    row: TimerRow | None
    finds_its_run: bool
    behind: int


@dataclass(frozen=True, slots=True)
class QueuedRun:
    run_id: RunId
    job_id: JobId
    is_behind: bool  # another run of its job


@dataclass(frozen=True, slots=True)
class OpenRun:
    run_id: RunId
    job_id: JobId
    is_over: bool  # the ledger has it ended, or not at all
    is_known: bool  # to the timer of its job


@dataclass(frozen=True, slots=True)
class RescheduledTimer:
    row: TimerRow
    before: datetime | None
    after: datetime | None


async def timers_after(tx: Tx, after: UUID, limit: int) -> list[TimerCheck]:
    rows = await tx.fetch(sql.repair.timers_after, {"after": after, "limit": limit})
    return [TimerCheck(row["job_id"], _timer_row(row), row["finds_its_run"], row["behind"]) for row in rows]


async def due(tx: Tx, late: datetime, limit: int) -> tuple[int, list[JobId]]:
    """Of the timers that the tick takes next: how many have waited since before `late`, and which cannot be read."""
    rows = await tx.fetch(sql.repair.due, {"now": tx.now, "limit": limit})
    return sum(row["due_at"] < late for row in rows), [
        row["job_id"] for row in rows if not is_readable(row["spec"])
    ]


async def list_queued(tx: Tx, job_ids: Collection[JobId]) -> list[QueuedRun]:
    rows = await tx.fetch(sql.repair.standing, {"job_ids": list(job_ids)})
    return [QueuedRun(row["run_id"], row["job_id"], row["waits_for"] == "turn") for row in rows]


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
    params = {"job_ids": list(job_ids), "now": tx.now, "error": error, "scan": MOST_ORPHANS}
    return [(row["id"], row["job_id"]) for row in await tx.fetch(sql.repair.end_orphans, params)]


async def runs_after(tx: Tx, after: UUID, limit: int) -> list[OpenRun]:
    return [OpenRun(**row) for row in await tx.fetch(sql.repair.runs_after, {"after": after, "limit": limit})]


async def rebuild_specs(tx: Tx, job_ids: Collection[JobId]) -> dict[JobId, bool]:
    """Write each timer's spec anew from its job's definition; False for a definition that cannot be read either.

    A timer without a readable spec is parked: left due, it would stop every tick that meets it.
    """
    told: dict[JobId, bool] = {}
    for row in await tx.fetch(sql.repair.definition, {"job_ids": list(job_ids)}):
        spec = _spec_of(row)
        told[row["id"]] = spec is not None
        if spec is None:
            await tx.execute(sql.repair.park, {"job_id": row["id"]})
        else:
            await tx.execute(sql.repair.set_spec, {"job_id": row["id"], "spec": spec})
    return told


async def find_recorded(tx: Tx, asked: Iterable[tuple[TimerRow, PlannedTime]]) -> frozenset[JobId]:
    """The jobs whose planned time has its record already."""
    asked = list(asked)
    rows = await tx.fetch(
        sql.fires.recorded_already,
        {
            "job_ids": [row.job_id for row, _ in asked],
            "planned_keys": [planned.local for _, planned in asked],
            "folds": [planned.fold for _, planned in asked],
            "schedule_revs": [row.schedule_rev for row, _ in asked],
        },
    )
    return frozenset(row["job_id"] for row in rows)


async def note_rescheduled(tx: Tx, told: Sequence[RescheduledTimer], actor: str) -> None:
    """In each owner's audit."""
    if not told:
        return
    await tx.execute(
        sql.repair.note_rescheduled,
        {
            "workspace_ids": [each.row.workspace_id for each in told],
            "ids": [tx.new_id() for _ in told],
            "job_ids": [each.row.job_id for each in told],
            "befores": [each.before for each in told],
            "afters": [each.after for each in told],
            "actor": actor,
            "now": tx.now,
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
