"""What was planned, written in one statement: timers move, and runs, skips and gaps get their records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from foliot.domain.job import JobLoad
from foliot.domain.run import WaitsFor
from foliot.domain.run_plan import MAX_COUNTED, NewRun, Plan, PlanRecord, SkippedRange, SkippedTime
from foliot.domain.schedule import PlannedTime, SkipReason
from foliot.storage.arrays import (
    Packer,
    bigints,
    booleans,
    durations,
    instants,
    ints,
    packed,
    smallints,
    texts,
    uuids,
    wall_times,
)
from foliot.storage.queries import sql
from foliot.storage.timers.timers import TimerRow
from foliot.storage.tx import Tx

# How each column of a batch crosses to `sql/timers.sql`, in the order in which `_flatten` makes its tuples.
_TIMER_COLUMNS: dict[str, Packer] = {
    "job_id": uuids, "version": bigints, "cursor_at": instants, "due_at": instants, "next_at": instants, "ending": texts,
    "live": ints, "waiting": ints, "live_run_id": uuids, "live_until": instants, "uses_skip_next": booleans,
    "errors": smallints, "fires": ints, "numbers": ints, "skips": bigints,
}  # fmt: skip
_RUN_COLUMNS: dict[str, Packer] = {
    "run_workspace_id": uuids, "run_id": uuids, "run_job_id": uuids, "run_number": bigints, "status": texts,
    "skip_reason": texts, "note": texts, "planned_for": instants, "planned_key": wall_times, "fold": smallints,
    "schedule_rev": ints, "planned_until": instants, "count": ints, "waits_for": texts, "queue": texts, "type": texts,
    "priority": smallints, "available_at": instants, "exclusive": booleans, "concurrency_key": texts, "timeout": durations,
    "expires_at": instants, "target": texts, "read_only": booleans,
}  # fmt: skip


class PlannedTimer(NamedTuple):
    """A timer, what was planned for it, and its count of scheduler errors in a row after that."""

    row: TimerRow
    plan: Plan
    errors: int = 0


class AlreadyRecordedError(RuntimeError):
    """Some planned times have their record already: new zone data, a timer set back. Nothing was written."""


async def fire(tx: Tx, planned: Sequence[PlannedTimer]) -> int:
    """Move the timers and record what was planned; answers with how many records were made."""
    timers: list[tuple[Any, ...]] = []
    runs: list[tuple[Any, ...]] = []
    ids = iter(tx.new_ids(sum(len(each.plan.records) for each in planned)))
    for each in planned:
        _flatten(ids, each.row, each.plan, each.errors, timers, runs)
    arrays = packed(_TIMER_COLUMNS, timers) | packed(_RUN_COLUMNS, runs)
    answer = await tx.fetch_one(sql.timers.fire, {**arrays, "now": tx.now})
    assert answer is not None
    if answer["recorded"] < len(runs):
        raise AlreadyRecordedError(
            f"{len(runs) - answer['recorded']} planned times have their record already"
        )
    assert answer["moved"] == len(timers), "a locked timer was moved by somebody else"
    return len(runs)


async def without_recorded(tx: Tx, planned: Sequence[PlannedTimer]) -> list[PlannedTimer]:
    """The same plans without the planned times that have their record already: their timers move on without a run."""
    asked = [
        (each.row, time) for each in planned for record in each.plan.records if (time := _time_of(record))
    ]
    if not asked:
        return list(planned)
    rows = await tx.fetch(
        sql.timers.recorded_already,
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


def _flatten(
    ids: Iterator[UUID],
    row: TimerRow,
    plan: Plan,
    errors: int,
    timers: list[tuple[Any, ...]],
    runs: list[tuple[Any, ...]],
) -> None:
    """One timer and its records as rows of the arrays that `fire` takes."""
    number, load, fires, skips = row.number, JobLoad(), 0, 0
    live_run_id: UUID | None = None
    live_until: datetime | None = row.live_until
    spec, exclusive = row.rules.spec, row.rules.is_exclusive
    for record in plan.records:
        number += 1
        identity = (row.workspace_id, run_id := next(ids), row.job_id, number)
        match record:
            case NewRun(planned=planned):
                fires += 1
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
                skips += 1
                note = record.note or (row.skip_next if record.reason is SkipReason.OPERATOR else None)
                runs.append((
                    *identity, "skipped", record.reason.value, note, planned.planned_for, planned.local, planned.fold,
                    row.schedule_rev, None, None, *_NOWHERE,
                ))  # fmt: skip
            case SkippedRange(first=first, last=last):
                skips += MAX_COUNTED if record.count is None else record.count
                runs.append((
                    *identity, "skipped", record.reason.value, record.note, first.planned_for, first.local, first.fold,
                    row.schedule_rev, last.planned_for, record.count, *_NOWHERE,
                ))  # fmt: skip
            case _:
                number -= 1
    timer = plan.timer
    timers.append((
        row.job_id, row.version, timer.cursor, timer.due_at, timer.next_at, timer.ending and timer.ending.value, *load,
        live_run_id, live_until, plan.uses_skip_next, errors, fires, number - row.number, skips,
    ))  # fmt: skip


_NOWHERE = (None,) * 11  # a skipped run goes to no queue
