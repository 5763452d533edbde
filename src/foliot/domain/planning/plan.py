"""Plan a due job: which records to write, and the next time of its timer. Every planned time gets exactly one record.

The tick calls `plan`; creating or editing a job calls `plan_start`, resuming it `plan_resume`; a job whose planning failed gets
`plan_error`. All are total: whatever comes in, the timer advances past what was recorded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Concatenate, ParamSpec

from foliot.domain.errors import FoliotError
from foliot.domain.job import Timer
from foliot.domain.lifecycle import STOPPED, JobEvent, JobStatus
from foliot.domain.planning.due_job import DueJob
from foliot.domain.planning.fast_path import find_shared_plan
from foliot.domain.planning.missed import record_dropped
from foliot.domain.planning.walk import PlanningWalk
from foliot.domain.run_plan import Plan, SkippedRange, SkippedTime
from foliot.domain.schedule import PlannedTime, SkipReason, planned_after
from foliot.domain.schedule.work_budget import work_budget

ERROR_RETRY_DELAYS = (timedelta(minutes=1), timedelta(minutes=5))  # a third error in a row fails the job
UNEXPECTED = "an unexpected error, which is in the server's log under this job's id"
P = ParamSpec("P")


def _within_budget(planner: Callable[Concatenate[DueJob, P], Plan]) -> Callable[Concatenate[DueJob, P], Plan]:
    """Let one job spend one work budget in all. Jobs without window and calendars need none."""

    def bounded(due: DueJob, /, *args: P.args, **kwargs: P.kwargs) -> Plan:
        if not due.job.timetable.is_gated:
            return planner(due, *args, **kwargs)
        with work_budget():
            return planner(due, *args, **kwargs)

    bounded.__doc__ = planner.__doc__
    return bounded


@_within_budget
def plan(due: DueJob, now: datetime) -> Plan:
    """Plan what the tick records now: nothing before the job is due, nothing while it is paused, nothing twice."""
    due_at = due.timer.due_at
    if due_at is None or due_at > now:
        return Plan((), due.timer)
    if (shared := find_shared_plan(due, now)) is not None:
        return shared
    if due.status is JobStatus.ACTIVE:
        return PlanningWalk(due, now).tick()
    if due.status is JobStatus.PENDING:
        start_at = due.job.timetable.start_at
        if start_at is not None and start_at > now:
            return plan_start(due, now)
        return PlanningWalk(due, now, (JobEvent.START,)).tick()
    return Plan((), replace(due.timer, due_at=None, next_at=None))


@_within_budget
def plan_start(due: DueJob, now: datetime, events: tuple[JobEvent, ...] = ()) -> Plan:
    """Set the timer of a new, edited or resumed job from its cursor; record nothing.

    Planned times count from the cursor on: the instant of creation or of the edit.
    """
    timetable = due.job.timetable
    if due.status is JobStatus.PENDING and timetable.start_at is not None and timetable.start_at > now:
        first = planned_after(timetable, due.timer.cursor)
        return Plan(
            (), Timer(due.timer.cursor, timetable.start_at, None if first is None else first.due_at), events
        )
    return PlanningWalk(due, now, events).start()


@_within_budget
def plan_resume(due: DueJob, now: datetime, *, catch_up: bool = False) -> Plan:
    """Record the planned times that passed while the job was stopped as one record; only `catch_up` runs any of them."""
    start_at = due.job.timetable.start_at
    if start_at is not None and start_at > now:
        later = plan_start(replace(due, status=JobStatus.PENDING), now, (JobEvent.RESUME, JobEvent.POSTPONE))
        # A run may wait from before the start was postponed.
        return replace(later, promotes=due.load.live == 0 and due.load.waiting > 0)
    return PlanningWalk(due, now, (JobEvent.RESUME,)).resume(catch_up=catch_up)


@_within_budget
def plan_closing(due: DueJob, now: datetime) -> Plan:
    """Record everything that the schedule has planned up to `now`, since an edit replaces it.

    Planned times that were deferred past `now` do not run: they belong to the old schedule.
    """
    if due.status in STOPPED:
        left = plan_resume(due, now)
        done = Plan(left.records, Timer(left.timer.cursor, None, None, due.timer.ending))
    elif due.status is JobStatus.ACTIVE:
        done = plan(due, now)
    else:
        return plan(due, now)
    made, timetable = done.counters.fires, due.job.timetable
    is_full = due.job.max_runs is not None and due.runs_created + made >= due.job.max_runs
    is_awaited = due.job.is_chained and (made > 0 or not due.load.is_idle)
    record = None if is_full or is_awaited else record_dropped(timetable, done.timer.cursor, now)
    if record is None:
        return done
    last = record.last if isinstance(record, SkippedRange) else record.planned
    return replace(done, records=(*done.records, record), timer=replace(done.timer, cursor=last.planned_for))


@_within_budget
def plan_missed(due: DueJob, now: datetime) -> Plan:
    """Record the planned times that passed while no tick ran as one record, because the operator chose to skip them."""
    if due.status is not JobStatus.ACTIVE:
        return plan(due, now)
    return PlanningWalk(due, now).resume(reason=SkipReason.OPERATOR)


def plan_error(timer: Timer, now: datetime, errors_before: int, error: Exception | None = None) -> Plan:
    """Record the planned time of a job whose planning failed as scheduler_error with the reason, and set the timer to try again later.

    The record stands for everything up to the due time, since what lies before it cannot be computed.
    """
    at = timer.due_at or now
    lost = PlannedTime(at, at.astimezone(UTC).replace(tzinfo=None), 0, at)
    note = error.message if isinstance(error, FoliotError) else None if error is None else UNEXPECTED
    records = (SkippedTime(lost, SkipReason.SCHEDULER_ERROR, note),)
    cursor = max(at, timer.cursor)
    if errors_before >= len(ERROR_RETRY_DELAYS):
        return Plan(records, Timer(cursor, None, None), (JobEvent.FAIL,))
    again = now + ERROR_RETRY_DELAYS[errors_before]
    return Plan(records, Timer(cursor, again, again))
