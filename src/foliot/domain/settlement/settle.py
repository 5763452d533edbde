"""What an outcome means: the run's final status or its next attempt, and what follows for the job.

A lost lease, an expired deadline and a cancelled run come through this door too; nothing else ends a run.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from foliot.domain.definition import Rules, Spec
from foliot.domain.dependencies import satisfied_conditions
from foliot.domain.ids import RunId, WorkspaceId
from foliot.domain.job import Counters, JobLoad, Timer
from foliot.domain.lifecycle import (
    FAILURES,
    AttemptStatus,
    JobEvent,
    JobStatus,
    RunStatus,
    advance,
    may,
)
from foliot.domain.notice import Notice, NoticeKind
from foliot.domain.outcomes import Cancelled, Outcome
from foliot.domain.policy import BreakerAction, OverlapRule, Retry
from foliot.domain.run import RunError, RunFacts, Trigger, WaitsFor
from foliot.domain.run_end import NO_CHANGE, LastRun, Promotion, Settlement, TimerDelta
from foliot.domain.schedule import Manual, planned_after
from foliot.domain.settlement.attempt_end import AttemptEnd, JobState, decide_attempt_end


def settle(run: RunFacts, outcome: Outcome, facts: JobState, now: datetime, jitter: float) -> Settlement:
    """Decide what a reported outcome means. `jitter` is chance from 0 to 1. A finished run raises IllegalMove."""
    judged = decide_attempt_end(run, outcome, facts, now, jitter)
    status = advance(run.status, judged.event)
    attempt = None if judged.attempt is None else advance(AttemptStatus.RUNNING, judged.attempt)
    retries_used, losses = run.retries_used + judged.retries, run.losses + judged.losses
    if judged.retry_at is not None:
        return Settlement(
            run_id=run.id,
            status=status,
            attempt=attempt,
            error=judged.error,
            note=judged.note,
            retry_at=judged.retry_at,
            expires_at=judged.expires_at,
            retries_used=retries_used,
            losses=losses,
        )
    event = _job_event(run, status, facts)
    stopped = facts.status if event is None else advance(facts.status, event)
    timer, expires = _timer(run, status, facts, stopped, event, now)
    if expires:
        event = JobEvent.EXPIRE
        stopped = advance(facts.status, event)
    return Settlement(
        run_id=run.id,
        status=status,
        attempt=attempt,
        error=judged.error,
        skip_reason=judged.skip_reason,
        note=judged.note,
        retries_used=retries_used,
        losses=losses,
        counters=_counters(run, status),
        last_run=_last_run(run, status, judged.error, now),
        event=event,
        timer=timer,
        promotes=_promotion(run, facts, stopped),
        wakes=satisfied_conditions(status),
        notices=_notices(status, judged, event, facts),
    )


def settle_orphan(run: RunFacts, outcome: Outcome, now: datetime) -> Settlement:
    """The end of a run whose job has no timer any more: what came of it is kept, nothing follows, and nothing is tried again."""
    nobody = Rules(Spec(Manual(), "")).job(run.job_id, WorkspaceId(UUID(int=0)), 0, ())
    facts = JobState(replace(nobody, retry=Retry(0)), JobStatus.ARCHIVED, Timer(now, None, None))
    settlement = settle(run, outcome, facts, now, 0)
    return settlement if settlement.is_final else settle(run, Cancelled(), facts, now, 0)


def state_after(run: RunFacts, facts: JobState, settlement: Settlement) -> JobState:
    """The job as the next run of the same batch finds it."""
    if not settlement.is_final:
        return facts
    left = _left(run, facts)
    return JobState(
        job=facts.job,
        status=facts.status if settlement.event is None else advance(facts.status, settlement.event),
        timer=settlement.timer or facts.timer,
        load=left.promote() if settlement.promotes is Promotion.OLDEST else left,
        failures_in_a_row=_streak(settlement.status, facts),
    )


@dataclass(slots=True)
class JobSettlement:
    """One locked job while its runs end, start and move: its state now, and what its timer does not hold yet."""

    state: JobState
    stored_load: JobLoad
    live_run_id: RunId | None
    number: int
    promotion: Promotion | None = None
    _delta: TimerDelta = field(default_factory=TimerDelta)

    def settle(self, run: RunFacts, outcome: Outcome, now: datetime, jitter: float) -> Settlement:
        """Decide the outcome of one of its runs, and apply the decision."""
        settlement = settle(run, outcome, self.state, now, jitter)
        self.state = state_after(run, self.state, settlement)
        if settlement.is_final:
            self._delta.add(settlement)
            self.promotion = settlement.promotes or self.promotion
        return settlement

    def next_number(self) -> int:
        """Number a run that is made beside the schedule."""
        self._delta.numbers += 1
        self.number += 1
        return self.number

    def add_run(self, run_id: RunId, waits_for: WaitsFor | None) -> None:
        """Count a run that is made beside the schedule."""
        if waits_for is WaitsFor.TURN:
            self._set_load(self.state.load.queue())
        else:
            self._set_load(self.state.load.start())
            self.set_live(run_id)

    def add_skip(self) -> None:
        self._delta.counters = self._delta.counters.plus(_SKIPPED)

    def set_live(self, run_id: RunId) -> None:
        """Name the live run. It waits at no gate, or no longer."""
        self._delta.live_run_id = self.live_run_id = run_id

    def promote_oldest(self) -> None:
        """Promote the oldest waiting run, although no end of a run asks for it."""
        if self.promotion is None and self.state.load.waiting > 0:
            self.promotion = Promotion.OLDEST
            self._set_load(self.state.load.promote())

    def promote_manual(self) -> None:
        """Promote the oldest run that a person requested, where the job is stopped and no run of it is live."""
        if self.promotion is None and self.state.load.live == 0 and self.state.load.waiting > 0:
            self.promotion = Promotion.MANUAL

    def promoted(self, promotion: Promotion, run_id: RunId | None) -> None:
        """Apply a promotion to the run that was found for it, if one was found."""
        if run_id is None and promotion is Promotion.OLDEST:  # counted when it was decided
            self._set_load(self.state.load.requeue())
        elif run_id is not None:
            if promotion is Promotion.MANUAL:
                self._set_load(self.state.load.promote())
            self.set_live(run_id)

    def requeue(self, runs: int = 1) -> None:
        """Make live runs wait for their turn again, because the job is stopped."""
        self._set_load(self.state.load.requeue(runs))

    def take_delta(self) -> TimerDelta | None:
        """Return what the timer does not hold yet; from here on it does."""
        delta, self._delta = self._delta, TimerDelta()
        delta.load, self.stored_load = self.state.load.since(self.stored_load), self.state.load
        return None if delta == _NOTHING else delta

    def _set_load(self, load: JobLoad) -> None:
        self.state = replace(self.state, load=load)


_NOTHING = TimerDelta()


def _job_event(run: RunFacts, status: RunStatus, facts: JobState) -> JobEvent | None:
    """A breaker that fails the job comes first, then the job's natural end, then a breaker that pauses it."""
    breaker = facts.job.breaker
    has_tripped = status in FAILURES and _streak(status, facts) >= breaker.after
    wanted: list[JobEvent] = []
    if has_tripped and breaker.action is BreakerAction.FAIL:
        wanted.append(JobEvent.FAIL)
    ending = _ending(run, status, facts)
    if ending is not None and _left(run, facts).is_idle:
        wanted.append(ending)
    if has_tripped and breaker.action is BreakerAction.PAUSE:
        wanted.append(JobEvent.PAUSE)
    return next((event for event in wanted if may(facts.status, event)), None)


def _ending(run: RunFacts, status: RunStatus, facts: JobState) -> JobEvent | None:
    """How the job will end. A one-shot ends as its own run did, whatever is run by hand after it."""
    is_its_own = facts.job.is_once and run.trigger is Trigger.SCHEDULE
    if facts.timer.ending is None or not is_its_own:
        return facts.timer.ending
    if status is RunStatus.SUCCEEDED:
        return JobEvent.COMPLETE
    return JobEvent.FAIL if status in FAILURES else JobEvent.EXPIRE


def _timer(
    run: RunFacts, status: RunStatus, facts: JobState, after: JobStatus, event: JobEvent | None, now: datetime
) -> tuple[Timer | None, bool]:
    """Where the timer goes, and whether a fixed_delay job finds here that its time is over."""
    timer = replace(facts.timer, ending=_ending(run, status, facts))
    # Of a job that stops, too, the next planned time counts from this end: resume asks for it.
    ends_link = facts.job.is_chained and run.trigger is Trigger.SCHEDULE
    stopped = replace(timer, cursor=now) if ends_link else timer
    if event is not None:
        return replace(stopped, due_at=None, next_at=None), False
    if after is not JobStatus.ACTIVE:
        return stopped if stopped != facts.timer else None, False
    if timer != facts.timer:
        return timer, False
    if not facts.job.is_chained or timer.ending is not None:
        return None, False
    is_idle = _left(run, facts).is_idle
    # A run made by hand does not move the chain, unless nothing else would ever set it going again.
    if run.trigger is not Trigger.SCHEDULE and not (timer.due_at is None and is_idle):
        return None, False
    upcoming = planned_after(facts.job.timetable, now)
    if upcoming is not None:
        return Timer(now, upcoming.due_at, upcoming.due_at), False
    return Timer(now, None, None, None if is_idle else JobEvent.EXPIRE), is_idle


def _left(run: RunFacts, facts: JobState) -> JobLoad:
    """Return the load of the job without this run."""
    return facts.load.end(is_live=run.is_live)


def _streak(status: RunStatus, facts: JobState) -> int:
    if status is RunStatus.SUCCEEDED:
        return 0
    return facts.failures_in_a_row + (status in FAILURES)


def _counters(run: RunFacts, status: RunStatus) -> Counters:
    if status is RunStatus.SKIPPED:
        return _SKIPPED
    if run.attempt_count == 0:
        return NO_CHANGE
    if status is RunStatus.SUCCEEDED:
        return _ONE_SUCCESS
    return _ONE_FAILURE if status in FAILURES else _ONE_RUN


_SKIPPED = Counters(skips=1)
_ONE_RUN = Counters(runs=1)
_ONE_SUCCESS = Counters(runs=1, successes=1, ends_streak=True)
_ONE_FAILURE = Counters(runs=1, failures=1, failures_in_a_row=1)


def _last_run(run: RunFacts, status: RunStatus, error: RunError | None, now: datetime) -> LastRun | None:
    if status is RunStatus.SKIPPED or run.attempt_count == 0:
        return None
    return LastRun(run.id, status, run.started_at or now, error)


def _promotion(run: RunFacts, facts: JobState, after: JobStatus) -> Promotion | None:
    left = _left(run, facts)
    if left.waiting == 0 or left.live > 0 or facts.job.overlap.rule is OverlapRule.CONCURRENT:
        return None
    return Promotion.OLDEST if after in (JobStatus.ACTIVE, JobStatus.PENDING) else Promotion.MANUAL


def _notices(
    status: RunStatus, judged: AttemptEnd, event: JobEvent | None, facts: JobState
) -> tuple[Notice, ...]:
    if status is RunStatus.SUCCEEDED and event is None:
        return _GOOD if facts.failures_in_a_row == 0 else _GOOD_AGAIN
    owed: list[Notice] = []
    if status is RunStatus.SUCCEEDED:
        owed += _GOOD if facts.failures_in_a_row == 0 else _GOOD_AGAIN
    elif status in FAILURES:
        what = judged.error.message if judged.error is not None else "It failed."
        owed.append(Notice(NoticeKind.RUN_FAILED, what))
        if facts.job.retry.may_retry:
            owed.append(Notice(NoticeKind.RETRIES_EXHAUSTED, judged.note or what))
    elif status is RunStatus.CANCELLED:
        owed.append(Notice(NoticeKind.RUN_CANCELLED, "The run was cancelled."))
    elif judged.skip_reason is not None:
        owed.append(Notice(NoticeKind.RUN_SKIPPED, f"Skipped: {judged.skip_reason.value}."))
    if event is not None:
        streak = _streak(status, facts)
        kind, text = _JOB_NOTICES[event]
        owed.append(Notice(kind, text.format(streak=streak)))
    return tuple(owed)


_GOOD = (Notice(NoticeKind.RUN_SUCCEEDED, "The run succeeded."),)
_GOOD_AGAIN = (*_GOOD, Notice(NoticeKind.RECOVERED, "The first success after failures."))
_JOB_NOTICES = {
    JobEvent.PAUSE: (NoticeKind.JOB_AUTO_PAUSED, "Paused after {streak} failures in a row."),
    JobEvent.FAIL: (NoticeKind.JOB_FAILED, "The job failed for good."),
    JobEvent.COMPLETE: (NoticeKind.JOB_COMPLETED, "The job has done all it was asked to do."),
    JobEvent.EXPIRE: (NoticeKind.JOB_EXPIRED, "The job's time is over."),
}
