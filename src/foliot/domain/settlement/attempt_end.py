"""Decide what an outcome means for the run itself: its end or its next attempt. `settle.py` decides the effects on the job."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import assert_never

from foliot.domain.admission import NeverOpens, Opening, find_opening_for
from foliot.domain.job import Job, JobLoad, Timer
from foliot.domain.lifecycle import AttemptEvent, JobStatus, RunEvent, RunStatus
from foliot.domain.outcomes import (
    AskedRetry,
    AskedSkip,
    Cancelled,
    Expired,
    Failed,
    HandedBack,
    Lost,
    Outcome,
    Succeeded,
    TimedOut,
)
from foliot.domain.policy import OnLost
from foliot.domain.run import RunError, RunFacts
from foliot.domain.schedule import SkipReason
from foliot.domain.settlement.retry import GiveUp, NoRetry, decide_retry

MAX_LOSSES = 3  # a run whose workers keep dying may be the cause
LOST_JITTER = timedelta(seconds=1)
WORKER_LOST = RunError("worker_lost", "The worker fell silent while this run was under way.")
TIMED_OUT = RunError("timed_out", "The attempt ran longer than the job's timeout.")
ASKED_RETRY = RunError("asked_retry", "The handler asked to be called again.")


@dataclass(frozen=True, slots=True)
class JobState:
    """The state of a job under its timer's lock. `load` counts the settled run too."""

    job: Job
    status: JobStatus
    timer: Timer
    load: JobLoad = JobLoad(1)
    failures_in_a_row: int = 0


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """The end of an attempt: how the run ends, or when its next attempt starts."""

    event: RunEvent
    attempt: AttemptEvent | None
    error: RunError | None = None
    skip_reason: SkipReason | None = None
    note: str | None = None
    retry_at: datetime | None = None
    expires_at: datetime | None = None  # of the next attempt: the end of the window in which it must start
    retries: int = 0
    losses: int = 0


_SUCCEEDED = AttemptEnd(RunEvent.SUCCEED, AttemptEvent.SUCCEED)


def decide_attempt_end(
    run: RunFacts, outcome: Outcome, state: JobState, now: datetime, jitter: float
) -> AttemptEnd:
    """Decide the end of the run or its next attempt. After a cancel request only a success that came first still counts."""
    if isinstance(outcome, Succeeded):
        return _SUCCEEDED
    if run.cancel_requested or isinstance(outcome, Cancelled):
        note = outcome.note if isinstance(outcome, Cancelled) else ""
        return AttemptEnd(RunEvent.CANCEL, _attempt_event(run, outcome), note=note or None)
    match outcome:
        case Failed(error=error, permanent=permanent, not_before=least):
            answer = GiveUp(NoRetry.PERMANENT) if permanent else _retry(run, state, now, jitter, least=least)
            return _failed(RunEvent.FAIL, AttemptEvent.FAIL, error, answer)
        case TimedOut():
            may_retry = state.job.retry_timeouts
            answer = _retry(run, state, now, jitter) if may_retry else GiveUp(NoRetry.TIMED_OUT)
            return _failed(RunEvent.TIME_OUT, AttemptEvent.TIME_OUT, TIMED_OUT, answer)
        case AskedRetry(after=after):
            return _failed(
                RunEvent.FAIL, AttemptEvent.FAIL, ASKED_RETRY, _retry(run, state, now, jitter, after)
            )
        case Lost():
            return _lost(run, state, now + LOST_JITTER * jitter)
        case HandedBack() if state.status is JobStatus.ARCHIVED:
            note = GiveUp(NoRetry.ARCHIVED).sentence
            return AttemptEnd(RunEvent.CANCEL, AttemptEvent.CANCEL, run.last_error, note=note)
        case HandedBack():
            opening = find_opening_for(run.trigger, state.job.timetable, now)
            if isinstance(opening, NeverOpens):
                return AttemptEnd(RunEvent.SKIP, AttemptEvent.CANCEL, skip_reason=opening.reason)
            return AttemptEnd(
                RunEvent.HAND_BACK, AttemptEvent.CANCEL, retry_at=opening.at, expires_at=opening.ready_until
            )
        case AskedSkip(reason=reason, note=note):
            attempt = AttemptEvent.SUCCEED if run.status is RunStatus.RUNNING else None
            return AttemptEnd(RunEvent.SKIP, attempt, skip_reason=reason, note=note or None)
        case Expired(reason=reason, note=note):
            if run.last_error is None:
                return AttemptEnd(RunEvent.SKIP, None, skip_reason=reason, note=note or None)
            event = RunEvent.TIME_OUT if run.last_error.code == TIMED_OUT.code else RunEvent.FAIL
            return AttemptEnd(event, None, run.last_error, note="its retry could not start in time")
        case _ as never:
            assert_never(never)


def _attempt_event(run: RunFacts, outcome: Outcome) -> AttemptEvent | None:
    if run.status is not RunStatus.RUNNING:
        return None
    match outcome:
        case Failed() | AskedRetry():
            return AttemptEvent.FAIL
        case TimedOut():
            return AttemptEvent.TIME_OUT
        case Lost():
            return AttemptEvent.LOSE
        case _:
            return AttemptEvent.CANCEL


def _lost(run: RunFacts, state: JobState, at: datetime) -> AttemptEnd:
    final = AttemptEnd(RunEvent.INTERRUPT, AttemptEvent.LOSE, WORKER_LOST, losses=1)
    if state.job.limits.on_lost is OnLost.FAIL or run.losses + 1 >= MAX_LOSSES:
        return final
    if state.status is JobStatus.ARCHIVED:
        return replace(final, note=GiveUp(NoRetry.ARCHIVED).sentence)
    opening = find_opening_for(run.trigger, state.job.timetable, at)
    if isinstance(opening, NeverOpens):
        return replace(final, note=GiveUp(NoRetry.CLOSED).sentence)
    again = AttemptEnd(RunEvent.RETRY, AttemptEvent.LOSE, WORKER_LOST, losses=1)
    return replace(again, retry_at=opening.at, expires_at=opening.ready_until)


def _retry(
    run: RunFacts,
    state: JobState,
    now: datetime,
    jitter: float,
    asked: timedelta | None = None,
    least: timedelta | None = None,
) -> Opening | GiveUp:
    """Decide when the next attempt may start, by the retry policy and then by window and calendars."""
    job, next_at = state.job, state.timer.next_at
    if state.status is JobStatus.ARCHIVED:
        return GiveUp(NoRetry.ARCHIVED)
    answer = decide_retry(
        job.retry,
        run.retries_used,
        now,
        jitter,
        interval=job.interval,
        next_planned_at=next_at,
        asked=asked,
        least=least,
    )
    if isinstance(answer, GiveUp):
        return answer
    opening = find_opening_for(run.trigger, job.timetable, answer.at)
    if isinstance(opening, NeverOpens):
        return GiveUp(NoRetry.CLOSED)
    if next_at is not None and not job.retry.past_next and opening.at >= next_at:
        return GiveUp(NoRetry.PAST_NEXT)
    return opening


def _failed(event: RunEvent, attempt: AttemptEvent, error: RunError, answer: Opening | GiveUp) -> AttemptEnd:
    if isinstance(answer, GiveUp):
        return AttemptEnd(event, attempt, error, note=answer.sentence)
    again = AttemptEnd(RunEvent.RETRY, attempt, error, retries=1)
    return replace(again, retry_at=answer.at, expires_at=answer.ready_until)
