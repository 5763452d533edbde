"""Read, lock and change timers. `fires.py` writes their plans."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from foliot.domain.definition import Definition, Rules
from foliot.domain.dependencies import EdgeMode
from foliot.domain.ids import JobId, RunId, WorkspaceId
from foliot.domain.job import JobLoad, Timer
from foliot.domain.lifecycle import JobEvent, JobStatus
from foliot.domain.run_end import TimerDelta
from foliot.storage.arrays import (
    Packer,
    booleans,
    instants,
    ints,
    packed,
    texts,
    uuids,
)
from foliot.storage.jobs.definitions import NO_SPEC, UnreadableRules, rules_of, spec_text
from foliot.storage.queries import sql
from foliot.storage.tx import Params, Tx

# The arrays of `timers.settle`, in the order of `_delta_values`.
_DELTA_COLUMNS: dict[str, Packer] = {
    "job_ids": uuids, "live": ints, "waiting": ints, "numbers": ints, "live_run_id": uuids, "moves_timer": booleans, "cursor_at": instants, "due_at": instants,
    "next_at": instants, "ending": texts, "runs": ints, "successes": ints, "failures": ints, "skips": ints, "failed_attempts": ints,
    "ends_streak": booleans, "failures_in_a_row": ints, "last_run_at": instants, "last_run_id": uuids,
    "last_run_status": texts, "last_error": texts, "success_id": uuids, "failure_id": uuids, "end_id": uuids,
}  # fmt: skip


async def lock_missed(tx: Tx, limit: int) -> list[TimerRow]:
    rows = await tx.fetch_tuples(sql.timers.lock_missed, {"limit": limit})
    return [timer_row(*row) for row in rows]


async def missed_jobs(tx: Tx, limit: int) -> list[JobId]:
    """Return the jobs of the same timers, without reading or locking them."""
    rows = await tx.fetch_tuples(sql.timers.missed_jobs, {"limit": limit})
    return [job_id for (job_id,) in rows]


async def count_due(tx: Tx, most: int = 100_000) -> int:
    return await tx.fetch_value(int, sql.timers.count_due, {"most": most})


async def count_planned(tx: Tx, most: int = 100_000) -> int:
    return await tx.fetch_value(int, sql.timers.count_planned, {"most": most})


async def next_due(tx: Tx) -> datetime | None:
    row = await tx.fetch_one(sql.timers.next_due)
    found: datetime | None = row["due_at"] if row else None
    return found


async def next_due_after(tx: Tx, after: datetime) -> datetime | None:
    row = await tx.fetch_one(sql.timers.next_due_after, {"after": after})
    found: datetime | None = row["due_at"] if row else None
    return found


async def read(tx: Tx, job_ids: Iterable[JobId]) -> list[TimerRow]:
    """Read timers without a lock: for answers, not for decisions."""
    rows = await tx.fetch_tuples(sql.timers.read, {"job_ids": uuids(list(job_ids))})
    return [timer_row(*row) for row in rows]


async def lock(tx: Tx, job_ids: Collection[JobId]) -> dict[JobId, TimerRow]:
    if not job_ids:
        return {}
    rows = await tx.fetch_tuples(sql.timers.lock, {"job_ids": uuids(list(job_ids))})
    return {row.job_id: row for row in (timer_row(*row) for row in rows)}


async def lock_unread(tx: Tx, job_id: JobId) -> TimerRow | None:
    """Lock a due timer without reading its rules or anything else that may be unreadable."""
    row = await tx.fetch_one(sql.timers.lock_unread, {"job_id": job_id})
    if row is None:
        return None
    return TimerRow(
        workspace_id=row["workspace_id"],
        job_id=job_id,
        status=JobStatus(row["status"]),
        rules=UnreadableRules(NO_SPEC, "they were not read"),
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


async def settle(tx: Tx, deltas: Mapping[JobId, TimerDelta]) -> None:
    """Add deltas to timers. Needs their locks."""
    if not deltas:
        return
    rows = [(job_id, *_delta_values(delta)) for job_id, delta in deltas.items()]
    await tx.execute(sql.timers.settle, packed(_DELTA_COLUMNS, rows))


def _delta_values(delta: TimerDelta) -> tuple[Any, ...]:
    timer, last, counters = delta.timer, delta.last_run, delta.counters
    return (
        *delta.load, delta.numbers, delta.live_run_id, timer is not None,
        *((None,) * 4 if timer is None else (timer.cursor, timer.due_at, timer.next_at, timer.ending and timer.ending.value)),
        counters.runs, counters.successes, counters.failures, counters.skips, counters.failed_attempts, counters.ends_streak, counters.failures_in_a_row,
        *((None,) * 4 if last is None else (last.at, last.run_id, last.status.value, last.error and last.error.message)),
        delta.success_id, delta.failure_id, delta.end_id,
    )  # fmt: skip


async def reset(tx: Tx, planned: Mapping[JobId, Timer]) -> None:
    """Set timers to a new plan. Needs their locks."""
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


_STATUSES = {status.value: status for status in JobStatus}


class TimerRow(NamedTuple):
    """A timer with the rules of its job. A tuple: a tick makes thousands of them a second."""

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
    is_fast_path: bool = False  # known of due timers alone
    has_incident: bool = False  # known of timers locked for a settlement

    @property
    def load(self) -> JobLoad:
        return JobLoad(self.live, self.waiting)

    def with_load(self, load: JobLoad) -> TimerRow:
        return self._replace(live=load.live, waiting=load.waiting)


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
    """Read the columns of `take_due` and `lock`, in their order."""
    timer = Timer(cursor_at, due_at, next_at, None if ending is None else JobEvent(ending))
    return TimerRow(
        workspace_id, job_id, _STATUSES[status], rules_of(spec), schedule_rev, version, timer, *others
    )


async def store_edit(tx: Tx, job_id: JobId, definition: Definition, schedule_rev: int, timer: Timer) -> None:
    """Store an edited definition and the timer that it leads to."""
    await tx.execute(
        sql.timers.store_edit,
        {
            "job_id": job_id,
            "spec": spec_text(definition.spec),
            "schedule_rev": schedule_rev,
            "cursor_at": timer.cursor,
            "due_at": timer.due_at,
            "next_at": timer.next_at,
            "ending": timer.ending and timer.ending.value,
            "has_gate": any(edge.mode is EdgeMode.GATE for edge in definition.depends_on),
        },
    )


async def clear_due(tx: Tx, *job_ids: JobId) -> None:
    """Make nothing due any more; the cursor stays."""
    await tx.execute(sql.timers.clear_due, {"job_ids": list(job_ids)})


async def reset_failures(tx: Tx, job_id: JobId) -> None:
    """Set the counts of failures and scheduler errors in a row to zero."""
    await tx.execute(sql.timers.reset_failures, {"job_id": job_id})


async def set_skip_next(tx: Tx, job_id: JobId, reason: str | None, until: datetime | None = None) -> None:
    """Skip planned times up to `until`; without it, the next one alone. Without a reason, skip none."""
    await tx.execute(sql.timers.set_skip_next, {"job_id": job_id, "reason": reason, "until": until})


def queue_address(row: TimerRow) -> Params:
    """Return the columns by which `ready` is searched for the runs of a job: it has no index by job."""
    spec = row.rules.spec
    return {
        "queue": spec.queue,
        "target": spec.target and spec.target.text,
        "workspace_id": row.workspace_id,
        "job_id": row.job_id,
    }
