"""Whether a run may start, what held it, and what a retry meets: windows, calendars, freezes, deadlines."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from uuid import UUID

import pytest

from foliot.domain.admission import Skip, Stage, Start, StartRequest, Wait, admit, expiry_reason
from foliot.domain.dependencies import (
    ConsumedRun,
    Dependencies,
    Edge,
    EdgeCondition,
    EdgeFacts,
    EdgeMode,
    UpstreamEnd,
)
from foliot.domain.freeze import Freeze, freeze_holding
from foliot.domain.ids import FreezeId, JobId, RunId, WorkspaceId, made_at, uuid7
from foliot.domain.job import Job, Timer
from foliot.domain.lifecycle import JobStatus, RunStatus
from foliot.domain.outcomes import Cancelled, Failed, HandedBack, Lost, Outcome
from foliot.domain.policy import Limits, Retry
from foliot.domain.run import RunError, RunFacts, Trigger, asked_at
from foliot.domain.run_end import Settlement
from foliot.domain.schedule import (
    Calendar,
    CalendarKind,
    Cron,
    Otherwise,
    SkipReason,
    Timetable,
    Weekly,
    Window,
)
from foliot.domain.settlement.attempt_end import JobState
from foliot.domain.settlement.settle import settle

NOON = datetime(2027, 1, 15, 12, tzinfo=UTC)
MINUTE, HOUR, TICK = timedelta(minutes=1), timedelta(hours=1), timedelta(microseconds=1)
RUN = RunId(UUID(int=7))


def a_job(
    window: Window | None = None, retry: Retry | None = None, start_deadline: timedelta | None = None
) -> Job:
    return Job(
        JobId(UUID(int=1)),
        WorkspaceId(UUID(int=2)),
        Timetable(Cron("0 12 * * *"), window=window),
        retry=retry or Retry(),
        limits=Limits(start_deadline=start_deadline),
    )


def settled(job: Job, outcome: Outcome, next_at: datetime | None = None) -> Settlement:
    facts = JobState(job, JobStatus.ACTIVE, Timer(NOON, next_at, next_at))
    return settle(RunFacts(RUN, job.id), outcome, facts, NOON, 0.0)


def morning(otherwise: Otherwise = Otherwise.DEFER) -> Window:
    return Window(time(8), time(12, 30), otherwise=otherwise)


BROKE = Failed(RunError("boom", "It broke."))
HOURLY = Retry(delays=(HOUR,))


def test_a_retry_within_the_window_must_start_before_it_closes() -> None:
    settlement = settled(a_job(morning()), BROKE)
    assert (settlement.retry_at, settlement.expires_at) == (NOON + 5 * MINUTE, NOON + 30 * MINUTE)


def test_a_retry_beyond_the_window_waits_for_the_next_or_is_not_made() -> None:
    deferred = settled(a_job(morning(), HOURLY), BROKE)
    assert deferred.retry_at == datetime(2027, 1, 16, 8, tzinfo=UTC)
    closed = settled(a_job(morning(Otherwise.SKIP), HOURLY), BROKE)
    assert (closed.status, closed.note) == (
        RunStatus.FAILED,
        "Window or calendars leave no time for the next attempt.",
    )


def test_a_retry_deferred_beyond_the_next_planned_time_is_not_made() -> None:
    assert settled(a_job(morning(), HOURLY), BROKE, NOON + 2 * HOUR).status is RunStatus.FAILED
    opens = datetime(2027, 1, 16, 8, tzinfo=UTC)
    assert settled(a_job(morning(), HOURLY), BROKE, opens).status is RunStatus.FAILED
    assert settled(a_job(morning(), HOURLY), BROKE, opens + TICK).retry_at == opens
    outlasting = Retry(delays=(HOUR,), past_next=True)
    assert settled(a_job(morning(), outlasting), BROKE, NOON + 2 * HOUR).status is RunStatus.READY


@pytest.mark.parametrize(
    "outcome, status", [(Lost(), RunStatus.INTERRUPTED), (HandedBack(), RunStatus.SKIPPED)]
)
def test_what_comes_back_after_its_window_has_closed_ends(outcome: Outcome, status: RunStatus) -> None:
    over = Window(time(8), time(11), otherwise=Otherwise.SKIP)
    assert settled(a_job(over), outcome).status is status
    assert settled(a_job(Window(time(8), time(11))), outcome).retry_at == datetime(2027, 1, 16, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    "window, deadline, expires_at, reason",
    [
        (None, 5 * MINUTE, NOON + 5 * MINUTE, SkipReason.DEADLINE),
        (morning(), None, NOON + 30 * MINUTE, SkipReason.WINDOW),
        (morning(), 5 * MINUTE, NOON + 5 * MINUTE, SkipReason.DEADLINE),
        (morning(), HOUR, NOON + 30 * MINUTE, SkipReason.WINDOW),
    ],
)
def test_it_is_known_what_a_run_was_too_late_for(
    window: Window | None, deadline: timedelta | None, expires_at: datetime, reason: SkipReason
) -> None:
    assert expiry_reason(a_job(window, start_deadline=deadline), expires_at) is reason


def test_a_run_asked_for_during_a_freeze_is_not_held_by_it_but_by_a_later_one() -> None:
    first, later = (Freeze(FreezeId(UUID(int=n)), NOON + n * HOUR) for n in (0, 2))
    assert freeze_holding([first], NOON + HOUR, None) is first
    assert freeze_holding([first], NOON + HOUR, NOON - HOUR) is first
    assert freeze_holding([first], NOON + HOUR, NOON + MINUTE) is None
    assert freeze_holding([first], NOON + HOUR, NOON) is None, "asked for in its first instant"
    assert freeze_holding([first, later], NOON + 3 * HOUR, NOON + MINUTE) is later


@pytest.mark.parametrize("left, starts", [(-TICK, False), (0 * TICK, False), (TICK, True)])
def test_a_run_whose_turn_comes_at_its_deadline_is_skipped(left: timedelta, starts: bool) -> None:
    job = a_job(start_deadline=HOUR)
    answer = admit(StartRequest(job, NOON, stage=Stage.QUEUED, expires_at=NOON + left))
    assert answer == (Start(NOON, NOON + left) if starts else Skip(SkipReason.DEADLINE))


def test_a_run_whose_turn_comes_must_start_before_its_window_or_calendar_closes() -> None:
    windowed = admit(StartRequest(a_job(morning()), NOON, stage=Stage.QUEUED))
    assert windowed == Start(NOON, NOON + 30 * MINUTE)
    blackout = Calendar("lunch", CalendarKind.BLACKOUT, (Weekly(time(12, 10), time(13)),))
    job = a_job()
    closing = replace(job, timetable=replace(job.timetable, calendars=(blackout,)))
    assert admit(StartRequest(closing, NOON, stage=Stage.QUEUED)) == Start(NOON, NOON + 10 * MINUTE)


@pytest.mark.parametrize("stage", [Stage.NEW, Stage.QUEUED])
@pytest.mark.parametrize("is_frozen", [False, True])
def test_a_run_that_passes_its_gate_consumes_the_upstream_run(stage: Stage, is_frozen: bool) -> None:
    edge = Edge(JobId(UUID(int=3)), mode=EdgeMode.GATE)
    gate = Dependencies((EdgeFacts(edge, UpstreamEnd(RUN, NOON - HOUR)),))
    answer = admit(StartRequest(a_job(), NOON, stage=stage, gate=gate, is_frozen=is_frozen))
    assert isinstance(answer, Wait if is_frozen else Start)
    assert not isinstance(answer, Skip)
    assert answer.consumes == (ConsumedRun(edge.upstream, RUN),)


def test_an_id_tells_when_it_was_made() -> None:
    run_id = RunId(uuid7(NOON, bytes(10)))
    assert made_at(run_id) == NOON
    assert asked_at(run_id, Trigger.MANUAL) == NOON
    assert asked_at(run_id, Trigger.SCHEDULE) is None


@pytest.mark.parametrize("attempts", [0, 1])
def test_a_cancelled_run_wakes_who_waits_for_any_end_whether_it_had_begun_or_not(attempts: int) -> None:
    job = a_job()
    facts = JobState(job, JobStatus.ACTIVE, Timer(NOON, None, None))
    status = RunStatus.RUNNING if attempts else RunStatus.READY
    run = RunFacts(RUN, job.id, status=status, attempt_count=attempts)
    assert settle(run, Cancelled(), facts, NOON, 0.0).wakes == (EdgeCondition.ANY,)
