"""What an outcome means for its run and its job, as tables; and what holds for every settlement."""

from __future__ import annotations

from dataclasses import replace
from datetime import time, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.dependencies import EdgeCondition
from foliot.domain.errors import IllegalMove
from foliot.domain.job import Counters, Job, JobLoad, Timer
from foliot.domain.lifecycle import (
    FAILURES,
    TERMINAL,
    AttemptStatus,
    JobEvent,
    JobStatus,
    RunEvent,
    RunStatus,
    advance,
)
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
from foliot.domain.policy import Backoff, Breaker, BreakerAction, Limits, OnLost, Overlap, OverlapRule, Retry
from foliot.domain.run import RunError, RunFacts, Trigger
from foliot.domain.run_end import Promotion
from foliot.domain.schedule import (
    Calendar,
    CalendarKind,
    Interval,
    IntervalMode,
    Once,
    Otherwise,
    SkipReason,
    Weekly,
    Window,
)
from foliot.domain.settlement.attempt_end import TIMED_OUT, WORKER_LOST, JobState
from foliot.domain.settlement.settle import settle, state_after
from tests.domain.builders import HOUR, MINUTE, at, every, job_id, make_job, run_id
from tests.examples import examples

NOW = at("08:00:30")
ERROR = RunError("handler_error", "It broke.")
NO_RETRY = Retry(0)


def a_run(**rest: Any) -> RunFacts:
    return RunFacts(run_id(1), job_id(1), **rest)


def facts(job: Job | None = None, **rest: Any) -> JobState:
    timer = rest.pop("timer", Timer(at("08:00"), at("09:00"), at("09:00")))
    load = JobLoad(rest.pop("live", 1), rest.pop("waiting", 0))
    return JobState(job or make_job(), rest.pop("status", JobStatus.ACTIVE), timer, load, **rest)


@pytest.mark.requirement("S4-20")
def test_success_ends_the_run_and_the_streak() -> None:
    settled = settle(a_run(started_at=at("08:00")), Succeeded(), facts(failures_in_a_row=2), NOW, 0.5)
    assert (settled.status, settled.attempt, settled.is_final) == (
        RunStatus.SUCCEEDED,
        AttemptStatus.SUCCEEDED,
        True,
    )
    assert settled.counters == Counters(runs=1, successes=1, ends_streak=True)
    assert settled.wakes == (EdgeCondition.SUCCESS, EdgeCondition.ANY)
    assert settled.last_run is not None
    assert (settled.last_run.at, settled.last_run.error) == (at("08:00"), None)
    assert (settled.event, settled.timer, settled.promotes) == (None, None, None)


def test_a_failed_attempt_waits_for_its_retry_and_nothing_else_happens() -> None:
    settled = settle(a_run(), Failed(ERROR), facts(), NOW, 0.0)
    assert (settled.status, settled.attempt) == (RunStatus.READY, AttemptStatus.FAILED)
    assert (settled.retry_at, settled.retries_used, settled.error) == (NOW + 5 * MINUTE, 1, ERROR)
    assert settled.counters == Counters(failed_attempts=1)
    assert (settled.reason, settled.wakes, settled.last_run, settled.promotes) == (None, (), None, None)


@pytest.mark.requirement("S0-25", "S3-11")
@pytest.mark.parametrize(
    ("outcome", "status", "attempt"),
    [
        (Failed(ERROR), RunStatus.FAILED, AttemptStatus.FAILED),
        (TimedOut(), RunStatus.TIMED_OUT, AttemptStatus.TIMED_OUT),
        (AskedRetry(MINUTE), RunStatus.FAILED, AttemptStatus.FAILED),
    ],
)
def test_when_no_retry_is_left_the_run_ends_as_its_last_attempt_did(
    outcome: Outcome, status: RunStatus, attempt: AttemptStatus
) -> None:
    settled = settle(a_run(attempt_count=4, retries_used=3), outcome, facts(), NOW, 0.0)
    assert (settled.status, settled.attempt) == (status, attempt)
    assert settled.counters == Counters(runs=1, failures=1, failures_in_a_row=1, failed_attempts=1)
    assert settled.wakes == (EdgeCondition.FAILURE, EdgeCondition.ANY)


@pytest.mark.requirement("S3-21")
def test_a_timed_out_attempt_retries_like_any_failure() -> None:
    assert settle(a_run(), TimedOut(), facts(), NOW, 0.0).retry_at == NOW + 5 * MINUTE


def test_a_job_may_end_a_run_whose_attempt_timed_out_and_still_retry_failures() -> None:
    state = facts(make_job(retry_timeouts=False))
    settled = settle(a_run(), TimedOut(), state, NOW, 0.0)
    assert (settled.status, settled.note) == (
        RunStatus.TIMED_OUT,
        "This job does not retry attempts that timed out.",
    )
    assert settle(a_run(), Failed(ERROR), state, NOW, 0.0).retry_at == NOW + 5 * MINUTE


def test_a_permanent_failure_is_not_retried() -> None:
    assert settle(a_run(), Failed(ERROR, permanent=True), facts(), NOW, 0.0).status is RunStatus.FAILED


def test_a_handler_names_its_own_wait() -> None:
    settled = settle(a_run(), AskedRetry(7 * MINUTE), facts(), NOW, 0.0)
    assert (settled.retry_at, settled.retries_used) == (NOW + 7 * MINUTE, 1)


def test_a_retry_that_would_meet_the_next_planned_time_is_not_made() -> None:
    soon = Timer(at("08:00"), at("08:01"), at("08:01"))
    settled = settle(a_run(), Failed(ERROR), facts(timer=soon), NOW, 0.0)
    assert (settled.status, settled.retry_at) == (RunStatus.FAILED, None)
    assert settled.note is not None
    assert "next planned time" in settled.note


@pytest.mark.requirement("S3-13")
def test_interval_backoff_grows_from_the_schedules_own_interval() -> None:
    job = make_job(every(60), retry=Retry(3, Backoff.INTERVAL_EXPONENTIAL, past_next=True))
    waits = [
        settle(a_run(retries_used=used), Failed(ERROR), facts(job), NOW, 0.0).retry_at for used in range(3)
    ]
    assert waits == [NOW + timedelta(seconds=n) for n in (60, 120, 240)]


def test_a_lost_attempt_repeats_at_once_and_spends_no_retry() -> None:
    settled = settle(a_run(retries_used=3, attempt_count=4), Lost(), facts(), NOW, 0.25)
    assert (settled.status, settled.attempt) == (RunStatus.READY, AttemptStatus.LOST)
    assert (settled.retry_at, settled.retries_used, settled.losses) == (NOW + timedelta(seconds=0.25), 3, 1)


def test_the_third_loss_interrupts_the_run() -> None:
    assert settle(a_run(losses=1), Lost(), facts(), NOW, 0.0).status is RunStatus.READY
    settled = settle(a_run(losses=2, attempt_count=3), Lost(), facts(), NOW, 0.0)
    assert (settled.status, settled.error) == (RunStatus.INTERRUPTED, WORKER_LOST)
    assert settled.counters.failures_in_a_row == 1


def test_on_lost_fail_interrupts_at_the_first_loss() -> None:
    job = make_job(limits=Limits(on_lost=OnLost.FAIL))
    assert settle(a_run(), Lost(), facts(job), NOW, 0.0).status is RunStatus.INTERRUPTED


def test_a_run_handed_back_spends_nothing() -> None:
    settled = settle(a_run(retries_used=1, losses=1), HandedBack(), facts(), NOW, 0.9)
    assert (settled.status, settled.retry_at, settled.retries_used, settled.losses) == (
        RunStatus.READY,
        NOW,
        1,
        1,
    )


@pytest.mark.parametrize(
    "outcome", [Failed(ERROR), TimedOut(), Lost(), AskedRetry(MINUTE), HandedBack(), Cancelled()]
)
def test_after_a_cancel_request_whatever_is_not_a_success_is_cancelled(outcome: Outcome) -> None:
    settled = settle(a_run(cancel_requested=True), outcome, facts(), NOW, 0.0)
    assert (settled.status, settled.is_final) == (RunStatus.CANCELLED, True)
    assert settled.counters == Counters(runs=1)


def test_a_success_that_came_first_stands_against_a_cancel_request() -> None:
    assert settle(a_run(cancel_requested=True), Succeeded(), facts(), NOW, 0.0).status is RunStatus.SUCCEEDED


@pytest.mark.requirement("C-7")
def test_a_skip_touches_no_counter_but_its_own() -> None:
    settled = settle(a_run(), AskedSkip(SkipReason.HOST_OFFLINE, "h1"), facts(failures_in_a_row=4), NOW, 0.0)
    assert (settled.status, settled.skip_reason, settled.note) == (
        RunStatus.SKIPPED,
        SkipReason.HOST_OFFLINE,
        "h1",
    )
    assert settled.counters == Counters(skips=1)
    assert (settled.last_run, settled.wakes, settled.event) == (None, (), None)


def test_a_run_that_nobody_started_in_time_is_skipped_but_a_failed_one_stays_failed() -> None:
    fresh = a_run(status=RunStatus.READY, attempt_count=0)
    settled = settle(fresh, Expired(SkipReason.WINDOW), facts(), NOW, 0.0)
    assert (settled.status, settled.skip_reason, settled.attempt) == (
        RunStatus.SKIPPED,
        SkipReason.WINDOW,
        None,
    )
    for error, status in ((ERROR, RunStatus.FAILED), (TIMED_OUT, RunStatus.TIMED_OUT)):
        retrying = a_run(status=RunStatus.READY, attempt_count=1, retries_used=1, last_error=error)
        settled = settle(retrying, Expired(), facts(), NOW, 0.0)
        assert (settled.status, settled.error) == (status, error)


def test_a_run_cancelled_before_it_started_is_no_run() -> None:
    settled = settle(a_run(status=RunStatus.WAITING, attempt_count=0), Cancelled(), facts(), NOW, 0.0)
    assert (settled.counters, settled.attempt, settled.last_run) == (Counters(), None, None)


@pytest.mark.requirement("C-1", "S3-5", "S4-AC-4")
@pytest.mark.parametrize(
    ("action", "before", "event", "status"),
    [
        (BreakerAction.PAUSE, 3, None, JobStatus.ACTIVE),
        (BreakerAction.PAUSE, 4, JobEvent.PAUSE, JobStatus.ACTIVE),
        (BreakerAction.FAIL, 4, JobEvent.FAIL, JobStatus.ACTIVE),
        (BreakerAction.NONE, 99, None, JobStatus.ACTIVE),
        (BreakerAction.PAUSE, 9, None, JobStatus.PAUSED),
        (BreakerAction.FAIL, 9, JobEvent.FAIL, JobStatus.PAUSED),
        (BreakerAction.PAUSE, 9, None, JobStatus.DISABLED),
    ],
)
def test_the_breaker_trips_at_its_count(
    action: BreakerAction, before: int, event: JobEvent | None, status: JobStatus
) -> None:
    job = make_job(retry=NO_RETRY, breaker=Breaker(5, action))
    settled = settle(a_run(), Failed(ERROR), facts(job, failures_in_a_row=before, status=status), NOW, 0.0)
    assert settled.event is event
    if event is not None:
        assert settled.timer is not None
        assert settled.timer.due_at is None


def test_an_auto_pause_says_so() -> None:
    settled = settle(a_run(), Failed(ERROR), facts(make_job(retry=NO_RETRY), failures_in_a_row=4), NOW, 0.0)
    assert settled.reason == "Paused after 5 failures in a row."


OVER = Timer(at("08:00"), None, None, JobEvent.COMPLETE)


@pytest.mark.requirement("S4-25", "S4-AC-8")
@pytest.mark.parametrize(
    ("outcome", "event"),
    [
        (Succeeded(), JobEvent.COMPLETE),
        (Failed(ERROR), JobEvent.FAIL),
        (Cancelled(), JobEvent.EXPIRE),
        (AskedSkip(SkipReason.QUOTA), JobEvent.EXPIRE),
    ],
)
def test_a_one_shot_ends_its_job_and_never_leaves_it_active_with_nothing_due(
    outcome: Outcome, event: JobEvent
) -> None:
    job = make_job(Once(at("08:00")), retry=NO_RETRY)
    assert settle(a_run(), outcome, facts(job, timer=OVER), NOW, 0.0).event is event


def test_a_one_shot_that_will_retry_stays_active() -> None:
    assert (
        settle(a_run(), Failed(ERROR), facts(make_job(Once(at("08:00"))), timer=OVER), NOW, 0.0).event is None
    )


@pytest.mark.requirement("S3-5")
@pytest.mark.parametrize(
    ("live", "waiting", "event"), [(1, 0, JobEvent.COMPLETE), (2, 0, None), (1, 1, None)]
)
def test_a_job_with_max_runs_completes_when_its_last_run_settles(
    live: int, waiting: int, event: JobEvent | None
) -> None:
    job = make_job(retry=NO_RETRY, max_runs=3)
    settled = settle(a_run(), Failed(ERROR), facts(job, timer=OVER, live=live, waiting=waiting), NOW, 0.0)
    assert settled.event is event


def test_past_end_at_the_last_settlement_expires_the_job() -> None:
    over = replace(OVER, ending=JobEvent.EXPIRE)
    assert settle(a_run(), Succeeded(), facts(timer=over), NOW, 0.0).event is JobEvent.EXPIRE


def test_a_breaker_that_fails_comes_before_the_end_and_one_that_pauses_after_it() -> None:
    failing = make_job(retry=NO_RETRY, breaker=Breaker(1, BreakerAction.FAIL), max_runs=1)
    assert settle(a_run(), Failed(ERROR), facts(failing, timer=OVER), NOW, 0.0).event is JobEvent.FAIL
    pausing = make_job(retry=NO_RETRY, breaker=Breaker(1), max_runs=1)
    assert settle(a_run(), Failed(ERROR), facts(pausing, timer=OVER), NOW, 0.0).event is JobEvent.COMPLETE


CHAINED = Interval(HOUR, at("00:00"), IntervalMode.FIXED_DELAY)
ASLEEP = Timer(at("08:00"), None, None)


@pytest.mark.parametrize("outcome", [Succeeded(), Failed(ERROR), Cancelled(), AskedSkip(SkipReason.QUOTA)])
def test_a_fixed_delay_counts_from_the_end_of_its_run_whatever_the_outcome(outcome: Outcome) -> None:
    settled = settle(a_run(), outcome, facts(make_job(CHAINED, retry=NO_RETRY), timer=ASLEEP), NOW, 0.0)
    assert settled.timer == Timer(NOW, NOW + HOUR, NOW + HOUR)


def test_a_manual_run_does_not_move_a_fixed_delay() -> None:
    manual = a_run(trigger=Trigger.MANUAL)
    assert settle(manual, Succeeded(), facts(make_job(CHAINED)), NOW, 0.0).timer is None
    assert settle(manual, Succeeded(), facts(make_job(CHAINED), timer=ASLEEP, live=2), NOW, 0.0).timer is None


def test_a_fixed_delay_that_nothing_else_would_wake_is_set_going_again() -> None:
    settled = settle(
        a_run(trigger=Trigger.MANUAL), Succeeded(), facts(make_job(CHAINED), timer=ASLEEP), NOW, 0.0
    )
    assert settled.timer is not None
    assert settled.timer.due_at == NOW + HOUR


def test_a_fixed_delay_past_end_at_expires() -> None:
    job = make_job(CHAINED, end_at=at("08:30"))
    settled = settle(a_run(), Succeeded(), facts(job, timer=ASLEEP), NOW, 0.0)
    assert (settled.event, settled.timer) == (JobEvent.EXPIRE, Timer(NOW, None, None))


def test_a_retry_does_not_move_a_fixed_delay() -> None:
    assert settle(a_run(), Failed(ERROR), facts(make_job(CHAINED), timer=ASLEEP), NOW, 0.0).timer is None


@pytest.mark.requirement("S2-8")
@pytest.mark.parametrize(
    ("status", "live", "waiting", "promotes"),
    [
        (JobStatus.ACTIVE, 1, 0, None),
        (JobStatus.ACTIVE, 1, 2, Promotion.OLDEST),
        (JobStatus.PAUSED, 1, 2, Promotion.MANUAL),
        (JobStatus.DISABLED, 1, 1, Promotion.MANUAL),
    ],
)
def test_the_oldest_waiting_run_comes_next(
    status: JobStatus, live: int, waiting: int, promotes: Promotion | None
) -> None:
    job = make_job(overlap=Overlap(OverlapRule.QUEUE))
    settled = settle(a_run(), Succeeded(), facts(job, status=status, live=live, waiting=waiting), NOW, 0.0)
    assert settled.promotes is promotes


def test_a_breaker_that_pauses_holds_the_queue() -> None:
    job = make_job(retry=NO_RETRY, breaker=Breaker(1), overlap=Overlap(OverlapRule.QUEUE))
    assert settle(a_run(), Failed(ERROR), facts(job, waiting=3), NOW, 0.0).promotes is Promotion.MANUAL


def test_a_waiting_run_that_leaves_promotes_nobody() -> None:
    run = a_run(status=RunStatus.WAITING, is_live=False, attempt_count=0)
    assert settle(run, Cancelled(), facts(waiting=2), NOW, 0.0).promotes is None


def test_a_batch_is_settled_by_folding() -> None:
    job = make_job(retry=NO_RETRY, overlap=Overlap(OverlapRule.CONCURRENT))
    state, events = facts(job, live=6), []
    for number in range(6):
        run = RunFacts(run_id(number), job_id(1))
        settled = settle(run, Failed(ERROR), state, NOW, 0.0)
        events.append(settled.event)
        state = state_after(run, state, settled)
    assert events == [None, None, None, None, JobEvent.PAUSE, None]
    assert (state.status, state.load.live, state.failures_in_a_row) == (JobStatus.PAUSED, 0, 6)


outcomes: st.SearchStrategy[Outcome] = st.sampled_from(
    [
        Succeeded(),
        Failed(ERROR),
        Failed(ERROR, permanent=True),
        TimedOut(),
        Lost(),
        AskedRetry(MINUTE),
        Cancelled(),
    ]
)


@pytest.mark.parametrize("status", sorted(TERMINAL))
def test_a_finished_run_cannot_be_settled_again(status: RunStatus) -> None:
    for outcome in (Succeeded(), Failed(ERROR), Lost(), Cancelled(), HandedBack()):
        with pytest.raises(IllegalMove):
            settle(a_run(status=status), outcome, facts(), NOW, 0.0)


@examples()
@given(st.integers(0, 5), st.lists(outcomes, min_size=20, max_size=20))
def test_attempts_are_bounded_by_retries_and_losses(most: int, reports: list[Outcome]) -> None:
    job = facts(make_job(retry=Retry(most, past_next=True)))
    run, now = a_run(), NOW
    for report in reports:
        settled = settle(run, report, job, now, 0.5)
        if settled.is_final:
            assert settled.status in TERMINAL
            assert run.attempt_count <= 1 + most + 2
            assert (settled.status in FAILURES) == (settled.counters.failures == 1)
            return
        assert settled.retry_at is not None
        assert settled.retry_at >= now
        assert advance(RunStatus.READY, RunEvent.CLAIM) is RunStatus.RUNNING
        now = settled.retry_at
        run = replace(
            run, attempt_count=run.attempt_count + 1, retries_used=settled.retries_used, losses=settled.losses
        )
    raise AssertionError("it never ended")


NIGHT = Weekly(time(22), time(8, 30))


@pytest.mark.parametrize("outcome", [Failed(ERROR), TimedOut(), Lost(), HandedBack()])
def test_the_next_attempt_waits_until_a_calendar_opens(outcome: Outcome) -> None:
    closed = Calendar("nights", CalendarKind.BLACKOUT, (NIGHT,), otherwise=Otherwise.DEFER)
    settled = settle(a_run(), outcome, facts(make_job(calendars=(closed,))), NOW, 0)
    assert settled.retry_at == at("08:30")


def test_the_next_attempt_waits_for_the_next_window_and_no_longer_than_that_lasts() -> None:
    job = make_job(window=Window(time(8, 30), time(8, 45)))
    settled = settle(a_run(), Failed(ERROR), facts(job), NOW, 0)
    assert (settled.retry_at, settled.expires_at) == (at("08:30"), at("08:45"))


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (Failed(ERROR), RunStatus.FAILED),
        (TimedOut(), RunStatus.TIMED_OUT),
        (Lost(), RunStatus.INTERRUPTED),
        (HandedBack(), RunStatus.SKIPPED),
    ],
)
def test_where_a_calendar_skips_what_it_closes_there_is_no_next_attempt(
    outcome: Outcome, status: RunStatus
) -> None:
    closed = Calendar("nights", CalendarKind.BLACKOUT, (NIGHT,), otherwise=Otherwise.SKIP)
    settled = settle(a_run(), outcome, facts(make_job(calendars=(closed,))), NOW, 0)
    assert (settled.status, settled.retry_at) == (status, None)


def test_a_retry_that_opens_only_after_the_next_planned_time_is_not_made() -> None:
    closed = Calendar("nights", CalendarKind.BLACKOUT, (NIGHT,), otherwise=Otherwise.DEFER)
    soon = Timer(at("08:00"), at("08:20"), at("08:20"))
    settled = settle(a_run(), Failed(ERROR), facts(make_job(calendars=(closed,)), timer=soon), NOW, 0)
    assert settled.status is RunStatus.FAILED


def test_what_a_person_asked_for_is_retried_whatever_the_calendar_says() -> None:
    closed = Calendar("nights", CalendarKind.BLACKOUT, (NIGHT,))
    run = a_run(trigger=Trigger.MANUAL)
    settled = settle(run, Failed(ERROR), facts(make_job(calendars=(closed,))), NOW, 0)
    assert settled.retry_at == NOW + timedelta(minutes=5)


@pytest.mark.parametrize("status", [JobStatus.ACTIVE, JobStatus.PAUSED])
def test_a_fixed_delay_that_is_stopped_counts_on_from_the_end_of_its_run(status: JobStatus) -> None:
    job = make_job(Interval(HOUR, at("00:00"), IntervalMode.FIXED_DELAY), retry=NO_RETRY, breaker=Breaker(1))
    waiting_for_the_run = Timer(at("06:00"), None, None)
    settled = settle(a_run(), Failed(ERROR), facts(job, timer=waiting_for_the_run, status=status), NOW, 0)
    assert settled.timer == Timer(NOW, None, None)
