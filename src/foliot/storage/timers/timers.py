"""Timers: locked and read, set anew, and told what settlements add up to. What is planned for them is written in `fires.py`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from foliot.domain.dependencies import On
from foliot.domain.ids import JobId, RunId
from foliot.domain.job import Timer
from foliot.domain.lifecycle import JobStatus
from foliot.domain.settlement.settle import LastRun, Settlement
from foliot.storage.arrays import (
    Packer,
    booleans,
    instants,
    ints,
    packed,
    texts,
    uuids,
)
from foliot.storage.jobs.definitions import NO_SPEC, Unreadable
from foliot.storage.queries import sql
from foliot.storage.timers.timer_rows import TimerRow, timer_row
from foliot.storage.tx import Tx

# How each column of a batch crosses to `sql/timers.sql`, in the order in which `_told` makes its tuples.
_TOLD_COLUMNS: dict[str, Packer] = {
    "job_ids": uuids, "live": ints, "waiting": ints, "numbers": ints, "live_run_id": uuids, "moves_timer": booleans, "cursor_at": instants, "due_at": instants,
    "next_at": instants, "ending": texts, "runs": ints, "successes": ints, "failures": ints, "skips": ints,
    "ends_streak": booleans, "failures_in_a_row": ints, "last_run_at": instants, "last_run_id": uuids,
    "last_run_status": texts, "last_error": texts, "success_id": uuids, "failure_id": uuids, "end_id": uuids,
}  # fmt: skip


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
