"""Backfill: runs for planned times of the past that have none, through the same timetable as everything else.

Why: docs/decisions/208-backfill.md
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from foliot.domain.access import Scope
from foliot.domain.errors import Invalid
from foliot.domain.ids import JobId, RunId
from foliot.domain.lifecycle import JobStatus
from foliot.domain.planning.backfill import times_to_fill
from foliot.domain.planning.missed import TICK
from foliot.domain.run import Trigger
from foliot.domain.schedule import PlannedTime
from foliot.services.identity.audit_steps import append_audit
from foliot.services.jobs.lock_steps import lock_job, require_not_archived, require_type_on
from foliot.services.runs.new_run_steps import RunRequest, create_runs
from foliot.storage.runs import run_records
from foliot.storage.runs.run_records import RecordedTime
from foliot.storage.timers.timers import TimerRow
from foliot.storage.tx import Database, Role

MOST = 1_000
_OVER = frozenset((JobStatus.COMPLETED, JobStatus.EXPIRED))


@dataclass(frozen=True, slots=True)
class Backfill:
    """What a backfill makes, or would make."""

    count: int
    first: datetime | None = None
    last: datetime | None = None
    run_ids: tuple[RunId, ...] = ()


async def backfill(
    database: Database,
    scope: Scope,
    job_id: JobId,
    start: datetime,
    end: datetime,
    *,
    dry_run: bool,
    most: int = MOST,
    oldest_first: bool = True,
    skipped: bool = False,
) -> Backfill:
    """Runs for the planned times from `start` up to `end`. `skipped` takes those too that are recorded as skipped.

    The dry run answers with the exact count, and how far over `most` it would be.
    """
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        locked = await lock_job(tx, job_id, scope)
        row = locked.row
        require_not_archived(row, "be backfilled")
        require_type_on(locked)
        end = _checked_end(row, start, end, tx.now)
        known = _Known(
            await run_records.recorded_between(tx, job_id, start, end), row.schedule_rev, skipped=skipped
        )
        times = times_to_fill(locked.job.timetable, start, end, known.has)
        first, last = (times[0].planned_for, times[-1].planned_for) if times else (None, None)
        if dry_run:
            return Backfill(len(times), first, last)
        if len(times) > most:
            raise Invalid(
                f"This range has {len(times):,} planned times to fill; one backfill makes at most {most:,}.",
                pointer="/to",
                hint="Take a shorter range, or raise the limit.",
            )
        asked = [
            RunRequest(
                Trigger.BACKFILL, each.planned_for, scope.actor.name, planned_local=each.local, fold=each.fold
            )
            for each in (times if oldest_first else reversed(times))
        ]
        made = await create_runs(tx, locked, asked) if asked else []
        after = {"start": start.isoformat(), "end": end.isoformat(), "runs": len(made), "skipped": skipped}
        await append_audit(tx, "job.backfilled", ("job", job_id), scope.actor, after=after)
        return Backfill(len(times), first, last, tuple(made))


class _Known:
    """Which planned times have their record: by instant, since the schedule may have been edited, or by wall-clock identity,
    since zone data may have moved the instant.
    """

    def __init__(self, records: Sequence[RecordedTime], schedule_rev: int, *, skipped: bool) -> None:
        # A backfill is not repeated, however its run ended; a skipped time is, where that is asked for.
        counted = [
            each for each in records if not (skipped and each.is_skipped) or each.trigger is Trigger.BACKFILL
        ]
        self._instants = {each.planned_for for each in counted if each.planned_until is None}
        self._identities = {
            (each.planned_local, each.fold)
            for each in counted
            if each.planned_until is None and each.schedule_rev == schedule_rev
        }
        self._gaps = [
            (each.planned_for, each.planned_until) for each in counted if each.planned_until is not None
        ]

    def has(self, planned: PlannedTime) -> bool:
        if planned.planned_for in self._instants or (planned.local, planned.fold) in self._identities:
            return True
        return any(first <= planned.planned_for <= last for first, last in self._gaps)


def _checked_end(row: TimerRow, start: datetime, end: datetime, now: datetime) -> datetime:
    """What lies behind the cursor is still the schedule's own to record, or resume's: a backfill stops there."""
    if end <= start:
        raise Invalid("A range ends after it starts.", pointer="/to")
    if end > now:
        raise Invalid(
            "A backfill is for times that have gone by.",
            pointer="/to",
            hint="Times ahead are the schedule's own.",
        )
    reached = now if row.status in _OVER else row.timer.cursor
    return max(start, min(end, reached + TICK))
