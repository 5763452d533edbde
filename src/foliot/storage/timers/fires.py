"""Take due timers and write their plans: one statement advances the timers and records runs and skips."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from foliot.domain.ids import JobId, WorkspaceId
from foliot.domain.job import JobLoad
from foliot.domain.lifecycle import FireStatus
from foliot.domain.run import WaitsFor
from foliot.domain.run_plan import MAX_COUNTED, NewRun, Plan, PlanRecord, SkippedRange, SkippedTime
from foliot.domain.schedule import PlannedTime, SkipReason
from foliot.storage.arrays import (
    Packer,
    assembled,
    bigints,
    booleans,
    durations,
    instant_of,
    instants,
    ints,
    packed,
    raw_uuids,
    smallints,
    texts,
    uuids,
    wall_times,
)
from foliot.storage.queries import sql
from foliot.storage.timers.packed_plans import COLUMNS
from foliot.storage.timers.timers import TimerRow, timer_row
from foliot.storage.tx import Row, Tx

# The arrays of `fires.sql`, in the order of the tuples that `_flatten` makes.
_TIMER_COLUMNS: dict[str, Packer] = {
    "job_id": uuids, "version": bigints, "cursor_at": instants, "due_at": instants, "next_at": instants, "ending": texts,
    "live": ints, "waiting": ints, "live_run_id": uuids, "live_until": instants, "uses_skip_next": booleans,
    "errors": smallints, "fires": ints, "numbers": ints, "skips": bigints, "fire_status": texts, "fire_run_id": uuids,
    "schedule_errors": ints,
}  # fmt: skip
_RUN_COLUMNS: dict[str, Packer] = {
    "run_workspace_id": uuids, "run_id": uuids, "run_job_id": uuids, "run_number": bigints, "status": texts,
    "skip_reason": texts, "note": texts, "planned_for": instants, "planned_key": wall_times, "fold": smallints,
    "schedule_rev": ints, "planned_until": instants, "count": ints, "waits_for": texts, "queue": texts, "type": texts,
    "priority": smallints, "available_at": instants, "exclusive": booleans, "concurrency_key": texts, "timeout": durations,
    "expires_at": instants, "target": texts, "read_only": booleans,
}  # fmt: skip


class DueTimer(NamedTuple):
    """A due timer, locked. Ids are bytes and instants are raw: most of them are only handed on to `fire_fast`."""

    workspace_id: bytes
    job_id: bytes
    status: str
    spec: str
    schedule_rev: int
    version: int
    cursor_at: int
    due_at: int | None
    next_at: int | None
    ending: str | None
    runs_created: int
    live: int
    waiting: int
    live_until: int | None
    live_run_id: bytes | None
    skip_next: str | None
    skip_until: int | None
    errors: int
    has_gate: bool
    number: int
    failures_in_a_row: int
    has_dependents: bool
    is_fast_path: bool  # as far as the timer itself decides it

    def read(self) -> TimerRow:
        row: list[Any] = list(self)
        for place in _ID_PLACES:
            row[place] = row[place] and UUID(bytes=row[place])
        for place in _INSTANT_PLACES:
            row[place] = None if row[place] is None else instant_of(row[place])
        return timer_row(*row)


_ID_PLACES = (0, 1, 14)
_INSTANT_PLACES = (6, 7, 8, 13, 16)


class FastFire(NamedTuple):
    """A timer on the fast path, and the packed columns of its run."""

    job_id: bytes
    version: int
    columns: tuple[bytes, ...]


class PlannedTimer(NamedTuple):
    """A timer, its plan, and its count of scheduler errors in a row after the plan is written."""

    row: TimerRow
    plan: Plan
    errors: int = 0


class AlreadyRecordedError(RuntimeError):
    """Some planned times have their record already: new zone data, a timer set back. Nothing was written."""


async def take_due(tx: Tx, limit: int, zone_data: str) -> list[DueTimer]:
    """Lock due timers that no other tick has locked."""
    params = {"limit": limit, "zone_data": zone_data}
    return list(map(DueTimer._make, await tx.fetch_raw(sql.fires.take_due, params)))


def earliest_cursor(taken: Sequence[DueTimer]) -> datetime:
    return instant_of(min(timer.cursor_at for timer in taken))


def job_ids_of(taken: Sequence[DueTimer]) -> list[JobId]:
    return [JobId(UUID(bytes=timer.job_id)) for timer in taken]


def workspace_ids_of(taken: Sequence[DueTimer]) -> list[WorkspaceId]:
    return [WorkspaceId(UUID(bytes=each)) for each in {timer.workspace_id for timer in taken}]


async def fire_fast(tx: Tx, fires: Sequence[FastFire]) -> int:
    """Advance the timers and record one run of each; return how many."""
    if not fires:
        return 0
    job_ids, versions, columns = zip(*fires, strict=True)
    params = {
        "job_id": raw_uuids(job_ids),
        "version": bigints(versions),
        "run_id": raw_uuids(tx.new_raw_ids(len(fires))),
        **assembled(COLUMNS, columns),
    }
    answer = await tx.fetch_one(sql.fires.fire_fast, params)
    _check(answer, len(fires), len(fires))
    return len(fires)


async def fire(tx: Tx, planned: Sequence[PlannedTimer]) -> int:
    """Advance the timers and record their plans; return how many records were made."""
    timers: list[tuple[Any, ...]] = []
    runs: list[tuple[Any, ...]] = []
    ids = iter(tx.new_ids(sum(len(each.plan.records) for each in planned)))
    for each in planned:
        _flatten(ids, each, timers, runs)
    arrays = packed(_TIMER_COLUMNS, timers) | packed(_RUN_COLUMNS, runs)
    answer = await tx.fetch_one(sql.fires.fire, arrays)
    _check(answer, len(timers), len(runs))
    return len(runs)


async def without_recorded(tx: Tx, planned: Sequence[PlannedTimer]) -> list[PlannedTimer]:
    """Return the same plans without the planned times that have a record already: their timers advance without a run."""
    asked = [
        (each.row, time) for each in planned for record in each.plan.records if (time := _time_of(record))
    ]
    if not asked:
        return list(planned)
    rows = await tx.fetch(
        sql.fires.recorded_already,
        {
            "job_ids": uuids([row.job_id for row, _ in asked]),
            "planned_keys": wall_times([time.local for _, time in asked]),
            "folds": smallints([time.fold for _, time in asked]),
            "schedule_revs": ints([row.schedule_rev for row, _ in asked]),
        },
    )
    known = {(row["job_id"], row["planned_key"], row["fold"]) for row in rows}

    def is_new(row: TimerRow, record: PlanRecord) -> bool:
        time = _time_of(record)
        return time is None or (row.job_id, time.local, time.fold) not in known

    return [
        each._replace(
            plan=replace(each.plan, records=tuple(r for r in each.plan.records if is_new(each.row, r)))
        )
        for each in planned
    ]


def _time_of(record: PlanRecord) -> PlannedTime | None:
    match record:
        case NewRun(planned=time) | SkippedTime(planned=time) | SkippedRange(first=time):
            return time
        case _:
            return None


def _check(answer: Row | None, timers: int, runs: int) -> None:
    assert answer is not None
    if answer["recorded"] < runs:
        raise AlreadyRecordedError(f"{runs - answer['recorded']} planned times have their record already")
    assert answer["moved"] == timers, "another transaction moved a locked timer"


def _flatten(
    ids: Iterator[UUID],
    planned_timer: PlannedTimer,
    timers: list[tuple[Any, ...]],
    runs: list[tuple[Any, ...]],
) -> None:
    """Append one timer and its records as rows of the arrays that `fire` takes."""
    row, plan, errors = planned_timer
    number, load, fires, skips, schedule_errors = row.number, JobLoad(), 0, 0, 0
    fire_status: FireStatus | None = None
    fire_run_id: UUID | None = None
    live_run_id: UUID | None = None
    live_until: datetime | None = row.live_until
    spec, exclusive = row.rules.spec, row.rules.is_exclusive
    for record in plan.records:
        number += 1
        identity = (row.workspace_id, run_id := next(ids), row.job_id, number)
        match record:
            case NewRun(planned=planned):
                fires, fire_status, fire_run_id = fires + 1, FireStatus.QUEUED, run_id
                if record.waits_for is WaitsFor.TURN:
                    load = load.queue()
                else:  # live, even where a gate or a freeze still holds it
                    load, live_run_id = load.start(), run_id
                    live_until = record.expires_at if record.waits_for is WaitsFor.UPSTREAM else None
                runs.append((
                    *identity, None, None, None, planned.planned_for, planned.local, planned.fold, row.schedule_rev, None, None,
                    record.waits_for and record.waits_for.value, spec.queue, spec.type, spec.priority,
                    max(planned.due_at, record.not_before or planned.due_at), exclusive, spec.concurrency_key,
                    spec.limits.timeout, record.expires_at, spec.target and spec.target.text, spec.read_only,
                ))  # fmt: skip
            case SkippedTime(planned=planned):
                skips, fire_status, fire_run_id = skips + 1, FireStatus.SKIPPED, run_id
                if record.reason is SkipReason.SCHEDULER_ERROR:
                    schedule_errors, fire_status = schedule_errors + 1, FireStatus.SCHEDULER_FAILED
                note = record.note or (row.skip_next if record.reason is SkipReason.OPERATOR else None)
                runs.append((
                    *identity, "skipped", record.reason.value, note, planned.planned_for, planned.local, planned.fold,
                    row.schedule_rev, None, None, *_NOWHERE,
                ))  # fmt: skip
            case SkippedRange(first=first, last=last):
                skips += MAX_COUNTED if record.count is None else record.count
                fire_status, fire_run_id = FireStatus.SKIPPED, run_id
                runs.append((
                    *identity, "skipped", record.reason.value, record.note, first.planned_for, first.local, first.fold,
                    row.schedule_rev, last.planned_for, record.count, *_NOWHERE,
                ))  # fmt: skip
            case _:
                number -= 1
    timer = plan.timer
    timers.append((
        row.job_id, row.version, timer.cursor, timer.due_at, timer.next_at, timer.ending and timer.ending.value, *load,
        live_run_id, live_until, plan.uses_skip_next, errors, fires, number - row.number, skips, fire_status, fire_run_id, schedule_errors,
    ))  # fmt: skip


_NOWHERE = (None,) * 11  # a skipped run goes to no queue
