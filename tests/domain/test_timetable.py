"""The one function that names planned times, for every kind of schedule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.errors import ScheduleInvalid
from foliot.domain.schedule import (
    Cron,
    Interval,
    IntervalMode,
    Manual,
    Once,
    Timetable,
    count_between,
    latest_until,
    next_time,
    planned_after,
    preview,
    times_between,
)

START = datetime(2026, 11, 15, 10, 0, 7, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.mark.requirement("C-19", "S4-22")
def test_an_interval_counts_from_its_anchor() -> None:
    table = Timetable(Interval(10 * MINUTE, anchor=START))
    assert [planned.planned_for - START for planned in preview(table, START, 3)] == [
        10 * MINUTE,
        20 * MINUTE,
        30 * MINUTE,
    ]
    late = planned_after(table, START + timedelta(days=400, seconds=1))
    assert late is not None
    assert (late.planned_for - START) % (10 * MINUTE) == timedelta(0)


def test_before_its_anchor_an_interval_waits_for_its_first_time() -> None:
    first = next_time(Timetable(Interval(MINUTE, anchor=START)), START - timedelta(days=30))
    assert first is not None
    assert first.planned_for == START + MINUTE


def test_after_a_fixed_delay_only_one_time_is_known() -> None:
    table = Timetable(Interval(MINUTE, anchor=START, mode=IntervalMode.FIXED_DELAY))
    finished = START + timedelta(hours=3)
    assert [planned.planned_for for planned in preview(table, finished, 5)] == [finished + MINUTE]


def test_a_one_shot_is_named_once() -> None:
    table = Timetable(Once(START))
    assert [planned.planned_for for planned in preview(table, START - MINUTE, 5)] == [START]
    assert next_time(table, START) is None


def test_a_manual_job_names_no_times() -> None:
    assert next_time(Timetable(Manual()), START) is None


def test_start_and_end_bound_what_is_planned() -> None:
    noon = datetime(2026, 11, 16, 12, tzinfo=UTC)
    table = Timetable(Cron("0 * * * *"), start_at=noon, end_at=noon + timedelta(hours=2))
    assert [planned.planned_for.hour for planned in preview(table, START, 10)] == [12, 13, 14]


@pytest.mark.parametrize("is_cron", [True, False])
def test_a_time_is_planned_at_its_bounds_and_not_an_instant_beyond(is_cron: bool) -> None:
    hour, tick = timedelta(hours=1), timedelta(microseconds=1)
    noon = datetime(2026, 11, 16, 12, tzinfo=UTC)
    schedule = Cron("0 * * * *") if is_cron else Interval(hour, anchor=noon - 24 * hour)
    for by, starts, ends in ((-tick, True, False), (0 * tick, True, True), (tick, False, True)):
        first = next_time(Timetable(schedule, start_at=noon + by), noon - 5 * hour)
        assert first is not None
        assert (first.planned_for == noon) is starts
        assert (next_time(Timetable(schedule, end_at=noon + by), noon - tick) is not None) is ends


def test_an_interval_without_an_anchor_is_refused() -> None:
    with pytest.raises(ScheduleInvalid, match="anchor"):
        next_time(Timetable(Interval(MINUTE)), START)


def test_an_instant_without_an_offset_is_refused() -> None:
    with pytest.raises(ScheduleInvalid, match="offset"):
        next_time(Timetable(Cron("* * * * *")), datetime(2027, 1, 1))


def test_spread_is_stable_differs_by_job_and_never_reaches_the_next_time() -> None:
    hourly = Cron("0 * * * *", spread=timedelta(hours=2))
    offsets = set()
    for n in range(100):
        table = Timetable(hourly, seed=f"job {n}")
        times = preview(table, START, 5)
        shifts = {planned.due_at - planned.planned_for for planned in times}
        assert len(shifts) == 1
        assert all(a.due_at < b.planned_for for a, b in pairwise(times))
        offsets |= shifts
    assert len(offsets) > 80


@pytest.mark.parametrize(
    "schedule", [Cron("* * * * *", "Europe/Paris"), Cron("0 9 * * 1-5"), Interval(7 * MINUTE, anchor=START)]
)
@given(days=st.floats(0, 6))
def test_the_latest_time_is_the_last_of_all(schedule: Cron | Interval, days: float) -> None:
    table = Timetable(schedule)
    until = START + timedelta(days=days)
    planned = times_between(table, START, until)
    assert latest_until(table, START, until) == (planned[-1] if planned else None)
    assert count_between(table, START, until) == len(planned)


def test_a_count_beyond_its_cap_is_not_known() -> None:
    table = Timetable(Cron("* * * * *"))
    assert count_between(table, START, START + timedelta(days=6)) == 6 * 1440
    assert count_between(table, START, START + timedelta(days=7)) is None
    assert count_between(Timetable(Interval(MINUTE, anchor=START)), START, START + timedelta(days=7)) is None


@pytest.mark.parametrize("year", [1, 2, 1883, 1969, 9989, 9990, 9998, 9999])
@pytest.mark.parametrize(
    "schedule", [Cron("0 2 29 2 *", "America/New_York"), Cron("* * * * *"), Interval(MINUTE, anchor=START)]
)
def test_the_ends_of_the_calendar_are_answered_or_empty_never_an_overflow(
    year: int, schedule: Cron | Interval
) -> None:
    for after in (datetime(year, 1, 1, tzinfo=UTC), datetime(year, 12, 31, 23, 59, 59, tzinfo=UTC)):
        planned = next_time(Timetable(schedule), after)
        assert planned is None or planned.planned_for > after


def test_a_fixed_delay_is_counted_from_the_start_itself() -> None:
    chained = Interval(10 * MINUTE, anchor=START, mode=IntervalMode.FIXED_DELAY)
    later = START + timedelta(hours=5)
    first = planned_after(Timetable(chained, start_at=later), START)
    assert first is not None
    assert first.planned_for == later + 10 * MINUTE
