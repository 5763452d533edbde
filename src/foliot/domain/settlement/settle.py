"""Settle a run: its final status or its next attempt, and the effects on its job.

Lost leases, expired deadlines and cancels are outcomes too; nothing else ends a run.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from uuid import UUID

from foliot.domain.definition import Rules, Spec
from foliot.domain.dependencies import satisfied_conditions
from foliot.domain.errors import ScheduleTooDear
from foliot.domain.ids import WorkspaceId
from foliot.domain.job import Counters, JobLoad, Timer
from foliot.domain.lifecycle import (
    FAILED_ATTEMPTS,
    FAILURES,
    AttemptStatus,
    JobEvent,
    JobStatus,
    RunStatus,
    advance,
    may,
)
from foliot.domain.outcomes import Cancelled, Outcome
from foliot.domain.policy import BreakerAction, OverlapRule, Retry
from foliot.domain.run import RunError, RunFacts, Trigger
from foliot.domain.run_end import NO_CHANGE, LastRun, Promotion, Settlement
from foliot.domain.schedule import Manual, planned_after
from foliot.domain.settlement.attempt_end import JobState, decide_attempt_end


def settle(run: RunFacts, outcome: Outcome, state: JobState, now: datetime, jitter: float) -> Settlement:
    """Decide the effects of an outcome on the run and its job. `jitter` is random, from 0 to 1. A finished run raises IllegalMove."""
    end = decide_attempt_end(run, outcome, state, now, jitter)
    status = advance(run.status, end.event)
    attempt = None if end.attempt is None else advance(AttemptStatus.RUNNING, end.attempt)
    retries_used, losses = run.retries_used + end.retries, run.losses + end.losses
    failed = attempt in FAILED_ATTEMPTS and status is not RunStatus.CANCELLED
    if end.retry_at is not None:
        return Settlement(
            run_id=run.id,
            status=status,
            attempt=attempt,
            error=end.error,
            note=end.note,
            retry_at=end.retry_at,
            expires_at=end.expires_at,
            retries_used=retries_used,
            losses=losses,
            counters=_ONE_FAILED_ATTEMPT if failed else NO_CHANGE,
        )
    event = _job_event(run, status, state)
    status_after = state.status if event is None else advance(state.status, event)
    timer, expires = _timer(run, status, state, status_after, event, now)
    if expires:
        event = JobEvent.EXPIRE
        status_after = advance(state.status, event)
    return Settlement(
        run_id=run.id,
        status=status,
        attempt=attempt,
        error=end.error,
        skip_reason=end.skip_reason,
        note=end.note,
        retries_used=retries_used,
        losses=losses,
        counters=_counters(run, status).plus(_ONE_FAILED_ATTEMPT if failed else NO_CHANGE),
        last_run=_last_run(run, status, end.error, now),
        event=event,
        timer=timer,
        promotes=_promotion(run, state, status_after),
        wakes=satisfied_conditions(status),
        reason=_reason(event, status, state),
    )


def settle_orphan(run: RunFacts, outcome: Outcome, now: datetime) -> Settlement:
    """Settle a run whose job has no timer any more: its end is recorded, without retries and effects."""
    job = Rules(Spec(Manual(), "")).job(run.job_id, WorkspaceId(UUID(int=0)), 0, ())
    state = JobState(replace(job, retry=Retry(0)), JobStatus.ARCHIVED, Timer(now, None, None))
    settlement = settle(run, outcome, state, now, 0)
    return settlement if settlement.is_final else settle(run, Cancelled(), state, now, 0)


def state_after(run: RunFacts, state: JobState, settlement: Settlement) -> JobState:
    """Return the state of the job after the settlement, for the next run of the same batch."""
    if not settlement.is_final:
        return state
    left = _left(run, state)
    return JobState(
        job=state.job,
        status=state.status if settlement.event is None else advance(state.status, settlement.event),
        timer=settlement.timer or state.timer,
        load=left.promote() if settlement.promotes is Promotion.OLDEST else left,
        failures_in_a_row=_streak(settlement.status, state),
    )


def _job_event(run: RunFacts, status: RunStatus, state: JobState) -> JobEvent | None:
    """Decide the change of the job's status: a breaker that fails it first, then its natural end, then a breaker that pauses it."""
    breaker = state.job.breaker
    has_tripped = status in FAILURES and _streak(status, state) >= breaker.after
    candidates: list[JobEvent] = []
    if has_tripped and breaker.action is BreakerAction.FAIL:
        candidates.append(JobEvent.FAIL)
    ending = _ending(run, status, state)
    if ending is not None and _left(run, state).is_idle:
        candidates.append(ending)
    if has_tripped and breaker.action is BreakerAction.PAUSE:
        candidates.append(JobEvent.PAUSE)
    return next((event for event in candidates if may(state.status, event)), None)


def _ending(run: RunFacts, status: RunStatus, state: JobState) -> JobEvent | None:
    """Return how the job ends. A one-shot job ends like its own run, whatever manual runs follow."""
    is_its_own = state.job.is_once and run.trigger is Trigger.SCHEDULE
    if state.timer.ending is None or not is_its_own:
        return state.timer.ending
    if status is RunStatus.SUCCEEDED:
        return JobEvent.COMPLETE
    return JobEvent.FAIL if status in FAILURES else JobEvent.EXPIRE


def _timer(
    run: RunFacts, status: RunStatus, state: JobState, after: JobStatus, event: JobEvent | None, now: datetime
) -> tuple[Timer | None, bool]:
    """Return the new timer, and whether a fixed_delay job has no time left."""
    timer = replace(state.timer, ending=_ending(run, status, state))
    # A stopped job counts its next planned time from this end as well: the resume needs it.
    moves_cursor = state.job.is_chained and run.trigger is Trigger.SCHEDULE
    stopped = replace(timer, cursor=now) if moves_cursor else timer
    if event is not None:
        return replace(stopped, due_at=None, next_at=None), False
    if after is not JobStatus.ACTIVE:
        return stopped if stopped != state.timer else None, False
    if timer != state.timer:
        return timer, False
    if not state.job.is_chained or timer.ending is not None:
        return None, False
    is_idle = _left(run, state).is_idle
    # A manual run does not move a fixed delay, unless nothing else would ever set its timer again.
    if run.trigger is not Trigger.SCHEDULE and not (timer.due_at is None and is_idle):
        return None, False
    try:
        upcoming = planned_after(state.job.timetable, now)
    except (
        ScheduleTooDear
    ):  # a run must end whatever its job's calendars are: the tick meets the same error and records it
        return Timer(now, now, now), False
    if upcoming is not None:
        return Timer(now, upcoming.due_at, upcoming.due_at), False
    return Timer(now, None, None, None if is_idle else JobEvent.EXPIRE), is_idle


def _left(run: RunFacts, state: JobState) -> JobLoad:
    """Return the load of the job without this run."""
    return state.load.end(is_live=run.is_live)


def _streak(status: RunStatus, state: JobState) -> int:
    if status is RunStatus.SUCCEEDED:
        return 0
    return state.failures_in_a_row + (status in FAILURES)


def _counters(run: RunFacts, status: RunStatus) -> Counters:
    if status is RunStatus.SKIPPED:
        return _SKIPPED
    if run.attempt_count == 0:
        return NO_CHANGE
    if status is RunStatus.SUCCEEDED:
        return _ONE_SUCCESS
    return _ONE_FAILURE if status in FAILURES else _ONE_RUN


_ONE_FAILED_ATTEMPT = Counters(failed_attempts=1)
_SKIPPED = Counters(skips=1)
_ONE_RUN = Counters(runs=1)
_ONE_SUCCESS = Counters(runs=1, successes=1, ends_streak=True)
_ONE_FAILURE = Counters(runs=1, failures=1, failures_in_a_row=1)


def _last_run(run: RunFacts, status: RunStatus, error: RunError | None, now: datetime) -> LastRun | None:
    if status is RunStatus.SKIPPED or run.attempt_count == 0:
        return None
    return LastRun(run.id, status, run.started_at or now, error)


def _promotion(run: RunFacts, state: JobState, after: JobStatus) -> Promotion | None:
    left = _left(run, state)
    if left.waiting == 0 or left.live > 0 or state.job.overlap.rule is OverlapRule.CONCURRENT:
        return None
    return Promotion.OLDEST if after in (JobStatus.ACTIVE, JobStatus.PENDING) else Promotion.MANUAL


def _reason(event: JobEvent | None, status: RunStatus, state: JobState) -> str | None:
    if event is None:
        return None
    streak = _streak(status, state)
    return _REASONS[event].format(failures="1 failure" if streak == 1 else f"{streak} failures in a row")


_REASONS = {
    JobEvent.PAUSE: "Paused after {failures}.",
    JobEvent.FAIL: "The job failed for good.",
    JobEvent.COMPLETE: "The job has completed all its runs.",
    JobEvent.EXPIRE: "The job has reached its end time.",
}
