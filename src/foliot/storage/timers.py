"""Timers: what is due, as planning reads it; what was planned, written in one statement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from foliot.domain.definition import Rules
from foliot.domain.ids import JobId, RunId, WorkspaceId
from foliot.domain.job import Timer
from foliot.domain.lifecycle import JobEvent, JobStatus
from foliot.domain.records import COUNTED_TO, Gap, NewRun, Plan, Record, Skip
from foliot.domain.run import WaitsFor
from foliot.domain.schedule import SkipReason
from foliot.domain.settlement import LastRun, Settlement
from foliot.storage.definitions import rules_of
from foliot.storage.queries import sql
from foliot.storage.tx import Row, Tx

_TIMER_COLUMNS = (
    "job_id", "version", "cursor_at", "due_at", "next_at", "ending", "live", "waiting", "live_run_id", "live_until",
    "uses_skip_next", "errors", "fires", "numbers", "skips",
)  # fmt: skip
_RUN_COLUMNS = (
    "run_workspace_id", "run_id", "run_job_id", "run_number", "status", "skip_reason", "note", "planned_for", "planned_key",
    "fold", "schedule_rev", "planned_until", "count", "waits_for", "queue", "type", "priority", "available_at", "exclusive",
    "concurrency_key", "timeout", "expires_at",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TimerRow:
    """A timer under its lock, with the rules of its job."""

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


@dataclass(frozen=True, slots=True)
class Planned:
    """A timer, what was planned for it, and its count of scheduler errors in a row after that."""

    row: TimerRow
    plan: Plan
    errors: int = 0


async def take_due(tx: Tx, limit: int, zone_data: str) -> list[TimerRow]:
    rows = await tx.fetch(sql.timers.take_due, {"now": tx.now, "limit": limit, "zone_data": zone_data})
    return [_timer_row(row) for row in rows]


async def next_due(tx: Tx) -> datetime | None:
    row = await tx.fetch_one(sql.timers.next_due)
    found: datetime | None = row["due_at"] if row else None
    return found


async def fire(tx: Tx, planned: Sequence[Planned]) -> int:
    """Move the timers and record what was planned; answers with how many records were made."""
    timers, runs = _flatten_all(tx, planned)
    answer = await _fire(tx, timers, runs)
    if answer["recorded"] < len(runs):
        # A planned time had its record already: new zone data, a timer set back. Its timer moves on without a run.
        raise PlannedTwice(f"{len(runs) - answer['recorded']} planned times have their record already")
    assert answer["moved"] == len(timers), "a locked timer was moved by somebody else"
    return len(runs)


class PlannedTwice(RuntimeError):
    """Some planned times have their record already; nothing was written."""


async def without_recorded(tx: Tx, planned: Sequence[Planned]) -> list[Planned]:
    """The same plans without the planned times that have their record already."""
    _, runs = _flatten_all(tx, planned)
    if not runs:
        return list(planned)
    columns = dict(zip(_RUN_COLUMNS, zip(*runs, strict=True), strict=True))
    names = ("run_job_id", "planned_key", "fold", "schedule_rev")
    rows = await tx.fetch(sql.timers.recorded_already, {name: list(columns[name]) for name in names})
    known = {(row["job_id"], row["planned_key"], row["fold"]) for row in rows}

    def is_new(row: TimerRow, record: Record) -> bool:
        match record:
            case NewRun(planned=time) | Skip(planned=time) | Gap(first=time):
                return (row.job_id, time.local, time.fold) not in known
            case _:
                return True

    return [
        replace(
            each, plan=replace(each.plan, records=tuple(r for r in each.plan.records if is_new(each.row, r)))
        )
        for each in planned
    ]


async def _fire(tx: Tx, timers: list[tuple[Any, ...]], runs: list[tuple[Any, ...]]) -> Row:
    arrays = dict(zip(_TIMER_COLUMNS, map(list, zip(*timers, strict=True)), strict=True))
    columns: Iterable[list[Any]] = map(list, zip(*runs, strict=True)) if runs else ([] for _ in _RUN_COLUMNS)
    arrays |= dict(zip(_RUN_COLUMNS, columns, strict=True))
    answer = await tx.fetch_one(sql.timers.fire, {**arrays, "now": tx.now})
    assert answer is not None
    return answer


def _flatten_all(tx: Tx, planned: Sequence[Planned]) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    timers: list[tuple[Any, ...]] = []
    runs: list[tuple[Any, ...]] = []
    for each in planned:
        _flatten(tx, each.row, each.plan, each.errors, timers, runs)
    return timers, runs


async def lock(tx: Tx, job_ids: Iterable[JobId]) -> dict[JobId, TimerRow]:
    rows = await tx.fetch(sql.timers.lock, {"job_ids": list(job_ids)})
    return {row["job_id"]: _timer_row(row) for row in rows}


async def lock_with_dependents(tx: Tx, job_ids: Iterable[JobId]) -> dict[JobId, TimerRow]:
    rows = await tx.fetch(sql.timers.lock_with_dependents, {"job_ids": list(job_ids)})
    return {row["job_id"]: _timer_row(row) for row in rows}


async def settle(tx: Tx, told: Mapping[JobId, Told]) -> None:
    if not told:
        return
    all_told = list(told.values())
    await tx.execute(
        sql.timers.settle,
        {
            "job_ids": list(told),
            "live": [each.live for each in all_told],
            "waiting": [each.waiting for each in all_told],
            "numbers": [each.numbers for each in all_told],
            "live_run_id": [each.live_run_id for each in all_told],
            "moves_timer": [each.timer is not None for each in all_told],
            "cursor_at": [each.timer and each.timer.cursor for each in all_told],
            "due_at": [each.timer and each.timer.due_at for each in all_told],
            "next_at": [each.timer and each.timer.next_at for each in all_told],
            "ending": [each.timer and each.timer.ending and each.timer.ending.value for each in all_told],
            "runs": [each.runs for each in all_told],
            "successes": [each.successes for each in all_told],
            "failures": [each.failures for each in all_told],
            "skips": [each.skips for each in all_told],
            "ends_streak": [each.ends_streak for each in all_told],
            "failures_in_a_row": [each.failures_in_a_row for each in all_told],
            "last_run_at": [each.last_run and each.last_run.at for each in all_told],
            "last_run_id": [each.last_run and each.last_run.run_id for each in all_told],
            "last_run_status": [each.last_run and each.last_run.status.value for each in all_told],
            "last_error": [
                each.last_run and each.last_run.error and each.last_run.error.message for each in all_told
            ],
            "now": tx.now,
        },
    )


def _flatten(
    tx: Tx, row: TimerRow, plan: Plan, errors: int, timers: list[tuple[Any, ...]], runs: list[tuple[Any, ...]]
) -> None:
    """One timer and its records as rows of the arrays that `fire` takes."""
    number, live, waiting, fires, skips = row.number, 0, 0, 0, 0
    live_run_id: UUID | None = None
    live_until: datetime | None = row.live_until
    spec, exclusive = row.rules.spec, row.rules.is_exclusive
    for record in plan.records:
        number += 1
        identity = (row.workspace_id, run_id := tx.new_id(), row.job_id, number)
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
                note = row.skip_next if record.reason is SkipReason.OPERATOR else record.note
                runs.append((
                    *identity, "skipped", record.reason.value, note, planned.planned_for, planned.local, planned.fold,
                    row.schedule_rev, None, None, *_NOWHERE,
                ))  # fmt: skip
            case Gap(first=first, last=last):
                skips += COUNTED_TO if record.count is None else record.count
                runs.append((
                    *identity, "skipped", record.reason.value, None, first.planned_for, first.local, first.fold,
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


def _timer_row(row: Row) -> TimerRow:
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
        errors=row["errors"],
        has_gate=row["has_gate"],
        number=row["number"],
        failures_in_a_row=row.get("failures_in_a_row", 0),
        has_dependents=row.get("has_dependents", False),
    )
