"""Backfill: create runs for past planned times that have none.

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
from foliot.services.evaluation import evaluate_in_thread
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
    """The runs that a backfill creates, or would create."""

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
    """Create runs for the planned times from `start` to `end`; with `skipped` also for those recorded as skipped.

    A dry run returns the exact count, even above `most`.
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
        timetable = locked.job.timetable
        # In a thread: it computes up to ten thousand times.
        times = await evaluate_in_thread(lambda: times_to_fill(timetable, start, end, known.has))
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
    """The planned times that have a record: by instant, since the schedule may have changed, or by wall-clock time, since zone
    data may have moved the instant.
    """

    def __init__(self, records: Sequence[RecordedTime], schedule_rev: int, *, skipped: bool) -> None:
        # A backfilled time is not filled again; a skipped time is, on request.
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
    """Stop at the cursor: later times still belong to the schedule or to a resume."""
    if end <= start:
        raise Invalid("A range ends after it starts.", pointer="/to")
    if end > now:
        raise Invalid(
            "A backfill is for past times.",
            pointer="/to",
            hint="The schedule plans future times.",
        )
    reached = now if row.status in _OVER else row.timer.cursor
    return max(start, min(end, reached + TICK))
