"""Timers: what is due, as planning reads it; what was planned, written in one statement."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from foliot.domain.definition import Rules
from foliot.domain.dependencies import On
from foliot.domain.ids import JobId, RunId, WorkspaceId
from foliot.domain.job import Timer
from foliot.domain.lifecycle import JobEvent, JobStatus
from foliot.domain.records import COUNTED_TO, Gap, NewRun, Plan, Record, Skip
from foliot.domain.run import WaitsFor
from foliot.domain.schedule import PlannedTime, SkipReason
from foliot.domain.settlement import LastRun, Settlement
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
from foliot.storage.definitions import NO_SPEC, Unreadable, rules_of
from foliot.storage.queries import sql
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
    "expires_at": instants,
}  # fmt: skip
_TOLD_COLUMNS: dict[str, Packer] = {
    "job_ids": uuids, "live": ints, "waiting": ints, "numbers": ints, "live_run_id": uuids, "moves_timer": booleans, "cursor_at": instants, "due_at": instants,
    "next_at": instants, "ending": texts, "runs": ints, "successes": ints, "failures": ints, "skips": ints,
    "ends_streak": booleans, "failures_in_a_row": ints, "last_run_at": instants, "last_run_id": uuids,
    "last_run_status": texts, "last_error": texts, "success_id": uuids, "failure_id": uuids, "end_id": uuids,
}  # fmt: skip
_STATUSES = {status.value: status for status in JobStatus}


class TimerRow(NamedTuple):
    """A timer under its lock, with the rules of its job. A tuple, since a tick makes thousands of them a second."""

    workspace_id: WorkspaceId
    job_id: JobId
    status: JobStatus
    rules: Rules
    schedule_rev: int
    version: int
    timer: Timer
    runs_created: int
    live: int
    waiting: int
    live_until: datetime | None
    live_run_id: RunId | None
    skip_next: str | None
    skip_until: datetime | None
    errors: int
    has_gate: bool
    number: int
    failures_in_a_row: int = 0
    has_dependents: bool = False


@dataclass(slots=True)
class Told:
    """What a batch of settlements adds up to for one job."""

    live: int = 0
    waiting: int = 0
    numbers: int = 0  # runs made beside the schedule
    live_run_id: RunId | None = None
    timer: Timer | None = None
    runs: int = 0
    successes: int = 0
    failures: int = 0
    skips: int = 0
    failures_in_a_row: int = 0
    ends_streak: bool = False
    last_run: LastRun | None = None
    success_id: RunId | None = None  # the last of its kind; one batch may hold several ends of one job
    failure_id: RunId | None = None
    end_id: RunId | None = None

    def add(self, settlement: Settlement) -> None:
        counters = settlement.counters
        self.runs += counters.runs
        self.successes += counters.successes
        self.failures += counters.failures
        self.skips += counters.skips
        if counters.ends_streak:
            self.failures_in_a_row, self.ends_streak = 0, True
        self.failures_in_a_row += counters.failures_in_a_row
        self.timer = settlement.timer or self.timer
        self.last_run = settlement.last_run or self.last_run
        # What dependents read later is what they were woken by.
        if On.SUCCESS in settlement.wakes:
            self.success_id = settlement.run_id
        if On.FAILURE in settlement.wakes:
            self.failure_id = settlement.run_id
        if On.ANY in settlement.wakes:
            self.end_id = settlement.run_id


class Planned(NamedTuple):
    """A timer, what was planned for it, and its count of scheduler errors in a row after that."""

    row: TimerRow
    plan: Plan
    errors: int = 0


class PlannedTwice(RuntimeError):
    """Some planned times have their record already: new zone data, a timer set back. Nothing was written."""


async def take_missed(tx: Tx, limit: int) -> list[TimerRow]:
    rows = await tx.fetch_tuples(sql.timers.take_missed, {"now": tx.now, "limit": limit})
    return [timer_row(*row) for row in rows]


async def missed(tx: Tx, limit: int) -> list[JobId]:
    """The jobs of the same, unread and without a lock."""
    rows = await tx.fetch_tuples(sql.timers.missed, {"now": tx.now, "limit": limit})
    return [job_id for (job_id,) in rows]


async def next_due(tx: Tx) -> datetime | None:
    row = await tx.fetch_one(sql.timers.next_due)
    found: datetime | None = row["due_at"] if row else None
    return found


async def next_due_after(tx: Tx, after: datetime) -> datetime | None:
    row = await tx.fetch_one(sql.timers.next_due_after, {"after": after})
    found: datetime | None = row["due_at"] if row else None
    return found


async def fire(tx: Tx, planned: Sequence[Planned]) -> int:
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
        raise PlannedTwice(f"{len(runs) - answer['recorded']} planned times have their record already")
    assert answer["moved"] == len(timers), "a locked timer was moved by somebody else"
    return len(runs)


async def without_recorded(tx: Tx, planned: Sequence[Planned]) -> list[Planned]:
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

    def is_new(row: TimerRow, record: Record) -> bool:
        time = _time_of(record)
        return time is None or (row.job_id, time.local, time.fold) not in known

    return [
        each._replace(
            plan=replace(each.plan, records=tuple(r for r in each.plan.records if is_new(each.row, r)))
        )
        for each in planned
    ]


def _time_of(record: Record) -> PlannedTime | None:
    match record:
        case NewRun(planned=time) | Skip(planned=time) | Gap(first=time):
            return time
        case _:
            return None


async def read(tx: Tx, job_ids: Iterable[JobId]) -> list[TimerRow]:
    """As they are, without a lock: to tell, not to decide."""
    rows = await tx.fetch_tuples(sql.timers.read, {"job_ids": uuids(list(job_ids))})
    return [timer_row(*row) for row in rows]


async def lock(tx: Tx, job_ids: Collection[JobId]) -> dict[JobId, TimerRow]:
    if not job_ids:
        return {}
    rows = await tx.fetch_tuples(sql.timers.lock, {"job_ids": uuids(list(job_ids))})
    return {row.job_id: row for row in (timer_row(*row) for row in rows)}


async def lock_unread(tx: Tx, job_id: JobId) -> TimerRow | None:
    """A due timer without its rules, and with nothing else that might be unreadable: enough to set it aside."""
    row = await tx.fetch_one(sql.timers.lock_unread, {"job_id": job_id, "now": tx.now})
    if row is None:
        return None
    return TimerRow(
        workspace_id=row["workspace_id"],
        job_id=job_id,
        status=JobStatus(row["status"]),
        rules=Unreadable(NO_SPEC, "nobody has looked"),
        schedule_rev=row["schedule_rev"],
        version=row["version"],
        timer=Timer(row["cursor_at"], row["due_at"], None),
        runs_created=0,
        live=row["live"],
        waiting=row["waiting"],
        live_until=row["live_until"],
        live_run_id=row["live_run_id"],
        skip_next=None,
        skip_until=None,
        errors=row["errors"],
        has_gate=False,
        number=row["number"],
    )


async def lock_with_dependents(tx: Tx, job_ids: Iterable[JobId]) -> dict[JobId, TimerRow]:
    job_ids = list(job_ids)
    rows = await tx.fetch_tuples(sql.timers.lock_with_dependents, {"job_ids": uuids(job_ids)})
    found = {row.job_id: row for row in (timer_row(*row) for row in rows)}
    while any(row.has_dependents for row in found.values()):
        # An edge may have been made while we waited for a lock. It counts, though its job comes late in the order of locks.
        ending = {*job_ids, *(row.job_id for row in found.values() if row.rules.cancels_running)}
        known = await tx.fetch(sql.dependencies.of_upstreams, {"job_ids": list(ending)})
        missing = await lock(tx, {row["job_id"] for row in known} - found.keys())
        if not missing:
            break
        found |= missing
    return found


async def lock_for_reports(tx: Tx, job_ids: Iterable[JobId]) -> set[JobId]:
    """The same locks as `lock_with_dependents`; answers with the jobs for which a success changes nothing but counters."""
    rows = await tx.fetch_tuples(sql.timers.lock_for_reports, {"job_ids": uuids(list(job_ids))})
    return {job_id for job_id, is_quiet in rows if is_quiet}


async def settle(tx: Tx, told: Mapping[JobId, Told]) -> None:
    if not told:
        return
    rows = [(job_id, *_told(each)) for job_id, each in told.items()]
    await tx.execute(sql.timers.settle, {**packed(_TOLD_COLUMNS, rows), "now": tx.now})


def _told(told: Told) -> tuple[Any, ...]:
    timer, last = told.timer, told.last_run
    return (
        told.live, told.waiting, told.numbers, told.live_run_id, timer is not None,
        *((None,) * 4 if timer is None else (timer.cursor, timer.due_at, timer.next_at, timer.ending and timer.ending.value)),
        told.runs, told.successes, told.failures, told.skips, told.ends_streak, told.failures_in_a_row,
        *((None,) * 4 if last is None else (last.at, last.run_id, last.status.value, last.error and last.error.message)),
        told.success_id, told.failure_id, told.end_id,
    )  # fmt: skip


async def reset(tx: Tx, planned: Mapping[JobId, Timer]) -> None:
    """Set timers to what planning said anew. Needs their locks."""
    if not planned:
        return
    found = list(planned.values())
    await tx.execute(
        sql.timers.reset,
        {
            "job_ids": list(planned),
            "due_at": [timer.due_at for timer in found],
            "next_at": [timer.next_at for timer in found],
            "ending": [timer.ending and timer.ending.value for timer in found],
        },
    )


def _flatten(
    ids: Iterator[UUID],
    row: TimerRow,
    plan: Plan,
    errors: int,
    timers: list[tuple[Any, ...]],
    runs: list[tuple[Any, ...]],
) -> None:
    """One timer and its records as rows of the arrays that `fire` takes."""
    number, live, waiting, fires, skips = row.number, 0, 0, 0, 0
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
                    waiting += 1
                else:  # first in line, even where a gate or a freeze still holds it
                    live, live_run_id = live + 1, run_id
                    live_until = record.expires_at if record.waits_for is WaitsFor.UPSTREAM else None
                runs.append((
                    *identity, None, None, None, planned.planned_for, planned.local, planned.fold, row.schedule_rev, None, None,
                    record.waits_for and record.waits_for.value, spec.queue, spec.type, spec.priority,
                    max(planned.due_at, record.not_before or planned.due_at), exclusive, spec.concurrency_key,
                    spec.limits.timeout, record.expires_at,
                ))  # fmt: skip
            case Skip(planned=planned):
                skips += 1
                note = record.note or (row.skip_next if record.reason is SkipReason.OPERATOR else None)
                runs.append((
                    *identity, "skipped", record.reason.value, note, planned.planned_for, planned.local, planned.fold,
                    row.schedule_rev, None, None, *_NOWHERE,
                ))  # fmt: skip
            case Gap(first=first, last=last):
                skips += COUNTED_TO if record.count is None else record.count
                runs.append((
                    *identity, "skipped", record.reason.value, record.note, first.planned_for, first.local, first.fold,
                    row.schedule_rev, last.planned_for, record.count, *_NOWHERE,
                ))  # fmt: skip
            case _:
                number -= 1
    timer = plan.timer
    timers.append((
        row.job_id, row.version, timer.cursor, timer.due_at, timer.next_at, timer.ending and timer.ending.value, live, waiting,
        live_run_id, live_until, plan.uses_skip_next, errors, fires, number - row.number, skips,
    ))  # fmt: skip


_NOWHERE = (None,) * 9  # a skipped run goes to no queue


def timer_row(
    workspace_id: WorkspaceId,
    job_id: JobId,
    status: str,
    spec: str,
    schedule_rev: int,
    version: int,
    cursor_at: datetime,
    due_at: datetime | None,
    next_at: datetime | None,
    ending: str | None,
    *others: Any,
) -> TimerRow:
    """From the columns of `take_due` and `lock`, in their order."""
    timer = Timer(cursor_at, due_at, next_at, None if ending is None else JobEvent(ending))
    return TimerRow(
        workspace_id, job_id, _STATUSES[status], rules_of(spec), schedule_rev, version, timer, *others
    )
