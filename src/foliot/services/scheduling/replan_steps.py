"""Plan timers again from their cursors, because a calendar or a freeze has changed. Records nothing; the tick does that."""

from __future__ import annotations

from collections.abc import Iterable

from foliot.domain.errors import ScheduleTooDear
from foliot.domain.job import Timer
from foliot.domain.lifecycle import JobStatus
from foliot.domain.planning.due_job import DueJob
from foliot.domain.planning.plan import plan_start
from foliot.services.evaluation import evaluate
from foliot.services.jobs.context_steps import load_job_context
from foliot.storage.timers import timers
from foliot.storage.timers.timers import TimerRow
from foliot.storage.tx import Tx

_PLANNED = frozenset({JobStatus.ACTIVE, JobStatus.PENDING})


async def replan_timers(tx: Tx, rows: Iterable[TimerRow]) -> int:
    """Set locked timers to the time they should have; return how many had another.

    A time in the past is due at once, and the tick decides about it.
    """
    rows = [row for row in rows if row.status in _PLANNED and row.timer.ending is None]
    context = await load_job_context(tx, rows)
    changed = {}
    for row in rows:
        due = DueJob(
            job=context.job(row),
            status=row.status,
            timer=row.timer,
            runs_created=row.runs_created,
            load=row.load,
        )
        try:
            plan = await evaluate(due.job.timetable, lambda due=due: plan_start(due, tx.now))  # type: ignore[misc]
        except ScheduleTooDear:  # its timer stays; the tick meets the same error and records it
            continue
        if not plan.events and _differs(row.timer, plan.timer):
            changed[row.job_id] = plan.timer
    await timers.reset(tx, changed)
    return len(changed)


def _differs(old: Timer, new: Timer) -> bool:
    return (old.due_at, old.next_at, old.ending) != (new.due_at, new.next_at, new.ending)
