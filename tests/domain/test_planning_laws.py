"""What holds for every plan, whatever the schedule, the policies and the time."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.admission import NeverOpens, find_opening
from foliot.domain.freeze import Freeze, FreezePolicy
from foliot.domain.ids import FreezeId
from foliot.domain.job import JobLoad
from foliot.domain.lifecycle import JobStatus, RunStatus
from foliot.domain.planning.due_job import DueJob
from foliot.domain.planning.plan import plan, plan_resume
from foliot.domain.planning.walk import MAX_RECORDS
from foliot.domain.policy import Misfire, MisfireRule, Overlap, OverlapRule
from foliot.domain.run import WaitsFor
from foliot.domain.run_plan import (
    MAX_COUNTED,
    EndGateWait,
    NewRun,
    Plan,
    PlanRecord,
    SkippedRange,
    SkippedTime,
)
from foliot.domain.schedule import (
    Calendar,
    CalendarKind,
    Cron,
    Otherwise,
    PlannedTime,
    Schedule,
    SkipReason,
    Weekly,
    Window,
    count_between,
    planned_after,
    times_between,
)
from tests.domain.builders import DAY, HOUR, MINUTE, at, every, make_due_job, make_job, make_uuid
from tests.examples import examples

START = at("2027-03-13 00:00")  # New York's clocks jump the next night
FEW = timedelta(hours=36)

schedules: st.SearchStrategy[Schedule] = st.one_of(
    st.sampled_from([97, 60, 600, 3600, 5400, 40_000]).map(every),
    st.sampled_from(["*/10 * * * *", "0 * * * *", "30 2 * * *", "*/7 1-5 * * *", "15 6,18 * * 1-5"]).flatmap(
        lambda expr: st.builds(
            Cron,
            st.just(expr),
            st.sampled_from(["UTC", "America/New_York", "Australia/Lord_Howe"]),
            spread=st.sampled_from([timedelta(0), 4 * MINUTE]),
        )
    ),
)
otherwise = st.sampled_from(Otherwise)
hours = st.integers(0, 23)
# Open for eight hours at least and closed for six at most: what is never open is the time engine's own test.
windows = st.none() | st.builds(
    lambda start, lasts, other: Window(time(start), time((start + lasts) % 24), otherwise=other),
    hours,
    st.integers(8, 20),
    otherwise,
)
calendars = st.lists(
    st.builds(
        lambda start, lasts, other: Calendar(
            "c", CalendarKind.BLACKOUT, (Weekly(time(start), time((start + lasts) % 24)),), otherwise=other
        ),
        hours,
        st.integers(1, 3),
        otherwise,
    ),
    max_size=2,
).map(tuple)
misfires = st.builds(
    Misfire,
    st.sampled_from(MisfireRule),
    st.sampled_from([timedelta(0), MINUTE, HOUR, DAY]),
    st.integers(1, 12),
)
overlaps = st.builds(Overlap, st.sampled_from(OverlapRule), st.integers(1, 4))
moments = st.timedeltas(timedelta(0), FEW).map(lambda gone: START + gone)
freezes = st.lists(
    st.builds(
        lambda start, lasts, after: Freeze(FreezeId(make_uuid(3)), start, start + lasts, after),
        moments, st.timedeltas(MINUTE, DAY), st.sampled_from(FreezePolicy),
    ),
    max_size=2,
).map(tuple)  # fmt: skip


@st.composite
def due_jobs(draw: st.DrawFn) -> DueJob:
    job = make_job(
        draw(schedules),
        seed="job",
        window=draw(windows),
        calendars=draw(calendars),
        end_at=draw(st.none() | moments),
        misfire=draw(misfires),
        overlap=draw(overlaps),
        max_runs=draw(st.none() | st.integers(1, 30)),
    )
    return make_due_job(
        job,
        START,
        load=JobLoad(draw(st.integers(0, 1)), draw(st.integers(0, 2))),
        runs_created=draw(st.integers(0, 3)),
        skip_next=draw(st.booleans()),
        skip_until=draw(st.none() | moments),
        freezes=draw(freezes),
    )


@examples(300)
@given(due_jobs(), moments)
def test_every_planned_time_consumed_is_recorded_exactly_once(job: DueJob, now: datetime) -> None:
    made = plan(job, now)
    if made.timer.cursor == job.timer.cursor:
        assert made.records == ()
        return
    timetable = job.job.timetable
    owned = [
        record.planned.planned_for for record in made.records if isinstance(record, NewRun | SkippedTime)
    ]
    gaps = [record for record in made.records if isinstance(record, SkippedRange)]
    assert len(set(owned)) == len(owned)
    assert all(job.timer.cursor < when <= made.timer.cursor for when in owned)
    for gap in gaps:
        assert gap.first.planned_for < gap.last.planned_for
        assert {gap.first.planned_for, gap.last.planned_for}.isdisjoint(owned)
    nominal = replace(timetable, window=None, calendars=())
    planned = count_between(nominal, job.timer.cursor, made.timer.cursor, 1_000_000)
    assert planned is not None
    counts = [gap.count for gap in gaps if gap.count is not None]
    if len(counts) == len(gaps):
        assert planned == len(owned) + sum(counts)
        assert all(count <= MAX_COUNTED for count in counts)
    else:
        assert planned > MAX_COUNTED


@examples(200)
@given(due_jobs(), moments)
def test_nothing_runs_before_it_is_due_nor_more_often_than_max_runs(job: DueJob, now: datetime) -> None:
    made = plan(job, now)
    for run in made.runs:
        assert run.planned.due_at <= now
        assert run.planned.skip is None
        assert (run.status is RunStatus.WAITING) == (run.waits_for is not None)
        assert run.expires_at is None or run.expires_at > now or run.waits_for is WaitsFor.WINDOW
    if job.job.max_runs is not None:
        assert len(made.runs) <= max(0, job.job.max_runs - job.runs_created)
    if job.job.overlap.rule is not OverlapRule.CONCURRENT:
        starting = [run for run in made.runs if run.waits_for is not WaitsFor.TURN]
        assert len(starting) <= job.load.is_idle


@pytest.mark.requirement("X-2")
@examples(200)
@given(due_jobs(), moments)
def test_ticking_again_comes_to_rest_and_then_records_nothing(job: DueJob, now: datetime) -> None:
    for _ in range(200):
        made = plan(job, now)
        assert made.timer.cursor >= job.timer.cursor
        if made.records:
            assert made.timer.cursor > job.timer.cursor or all(
                isinstance(one, EndGateWait) for one in made.records
            )
        job = carried(job, made)
        if made.timer.due_at is None or made.timer.due_at > now:
            break
    else:
        raise AssertionError("it never came to rest")
    again = plan(job, now)
    assert (again.records, again.timer) == ((), job.timer)


@examples(200)
@given(
    st.sampled_from([7, 60, 600]).map(every),
    st.sampled_from([OverlapRule.SKIP, OverlapRule.QUEUE, OverlapRule.QUEUE_ONE, OverlapRule.CONCURRENT]),
    st.none() | st.integers(1, 20),
    st.lists(st.timedeltas(timedelta(0), 20 * MINUTE), min_size=2, max_size=2).map(sorted),
)
def test_two_ticks_within_grace_record_what_one_would(
    schedule: Schedule, rule: OverlapRule, max_runs: int | None, gone: list[timedelta]
) -> None:
    job = make_job(schedule, overlap=Overlap(rule, 3), misfire=Misfire(grace=DAY), max_runs=max_runs)
    early, late = START + gone[0], START + gone[1]
    whole = plan(make_due_job(job, START), late)
    first = plan(make_due_job(job, START), early)
    second = plan(carried(make_due_job(job, START), first), late)
    # Behind a run of the same walk a time is late, behind one of an earlier walk it overlaps: the reasons differ.
    assert [*map(without_reason, first.records + second.records)] == [*map(without_reason, whole.records)]
    assert second.timer == whole.timer


@examples(150)
@given(due_jobs(), moments, st.booleans())
def test_a_resumed_job_accounts_for_the_time_it_was_away(job: DueJob, now: datetime, catch_up: bool) -> None:
    made = plan_resume(replace(job, status=JobStatus.PAUSED, freezes=()), now, catch_up=catch_up)
    nominal = replace(job.job.timetable, window=None, calendars=())
    times = times_between(nominal, job.timer.cursor, made.timer.cursor, 100_000)
    reported = sum(
        record.count or MAX_COUNTED if isinstance(record, SkippedRange) else 1 for record in made.records
    )
    assert reported == len(times) or any(
        isinstance(one, SkippedRange) and one.count is None for one in made.records
    )
    assert len([one for one in made.records if isinstance(one, SkippedRange)]) <= 1
    assert catch_up or not made.runs


@examples(200)
@given(due_jobs(), moments)
def test_what_runs_is_what_walking_through_every_time_would_choose(job: DueJob, now: datetime) -> None:
    """The halving that finds the newest late times agrees with looking at each of them."""
    calm = replace(job.job, max_runs=None, overlap=Overlap(OverlapRule.CONCURRENT))
    job = replace(job, job=calm, freezes=(), skip_next=False)
    made = plan(job, now)
    expected = by_walking(job, now)
    if isinstance(find_opening(calm.timetable, now), NeverOpens):
        assert not made.runs
    elif len(made.records) < MAX_RECORDS:
        assert [run.planned for run in made.runs] == expected


def without_reason(record: PlanRecord) -> PlanRecord:
    if isinstance(record, SkippedTime) and record.reason in (SkipReason.OVERLAP, SkipReason.MISFIRE):
        return SkippedTime(record.planned, SkipReason.OVERLAP)
    return record


def by_walking(job: DueJob, now: datetime) -> list[PlannedTime]:
    due_now: list[PlannedTime] = []
    upcoming = planned_after(job.job.timetable, job.timer.cursor)
    while upcoming is not None and upcoming.due_at <= now:
        due_now.append(upcoming)
        upcoming = planned_after(job.job.timetable, upcoming.planned_for)
    newest_of = {planned.due_at: planned for planned in due_now if planned.skip is None}
    misfire = job.job.misfire
    late = [planned for due_at, planned in newest_of.items() if due_at < now - misfire.grace]
    on_time = [planned for due_at, planned in newest_of.items() if due_at >= now - misfire.grace]
    kept = {MisfireRule.SKIP: 0, MisfireRule.LATEST: 1, MisfireRule.ALL: misfire.max_catch_up}[misfire.rule]
    return late[len(late) - min(kept, len(late)) :] + on_time


def carried(job: DueJob, made: Plan) -> DueJob:
    """The same job as the next tick finds it, when nothing has settled in between."""
    turn = [run for run in made.runs if run.waits_for is WaitsFor.TURN]
    return replace(
        job,
        timer=made.timer,
        load=JobLoad(job.load.live + len(made.runs) - len(turn), job.load.waiting + len(turn)),
        runs_created=job.runs_created + len(made.runs),
        skip_next=job.skip_next and not made.uses_skip_next,
    )
