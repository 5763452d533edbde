"""Merged spans of a calendar: they say the same as its rules one by one, and a thousand rules cost as little as one."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.errors import Invalid, ScheduleTooDear
from foliot.domain.schedule import (
    Absolute,
    Calendar,
    CalendarKind,
    Cron,
    CronStretch,
    Days,
    Interval,
    Otherwise,
    Timetable,
    Weekly,
    check_calendar,
    next_time,
    parse_cron,
    planned_after,
    preview,
)
from foliot.domain.schedule.calendar import calendar_closed_until, calendar_closes_at
from foliot.domain.schedule.dst import TICK, nominal_after
from foliot.domain.schedule.kinds import Gap, OverlapTime
from foliot.domain.schedule.merged_spans import MOST_STARTS, NEVER, MergedSpans, Rule
from foliot.domain.schedule.window import stretch_holding
from foliot.domain.schedule.work_budget import MOST_WORK, WorkBudget, work_budget
from foliot.domain.schedule.zone import naive_utc, wall_at

ZONES = ("UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata")
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
# At the clock changes of 2027, and a plain week.
BASES = (
    datetime(2027, 3, 13, 22),
    datetime(2027, 3, 28, 0),
    datetime(2027, 10, 31, 0),
    datetime(2027, 11, 7, 3),
    datetime(2027, 6, 5, 9),
)


def is_held(rule: Rule, zone: str, at: datetime) -> bool:
    """The plain reading of one rule."""
    match rule:
        case Weekly():
            return stretch_holding(rule, zone, at, with_end=False) is not None
        case Absolute():
            return naive_utc(rule.start) <= at < naive_utc(rule.end)
        case CronStretch():
            start = nominal_after(
                parse_cron(rule.expr), zone, Gap.NEXT_VALID, OverlapTime.FIRST, at - rule.duration
            )
            return start is not None and start.at <= at
        case Days():
            return rule.first <= wall_at(zone, at).date() < rule.end


days = st.builds(
    lambda base, offset, length: Days((base + offset * DAY).date(), (base + (offset + length) * DAY).date()),
    st.sampled_from(BASES),
    st.integers(-4, 4),
    st.integers(0, 3),
)
times = st.builds(time, st.integers(0, 23), st.sampled_from((0, 15, 30, 59)))
weeklies = st.builds(Weekly, times, times, st.frozensets(st.integers(0, 6), min_size=1))
absolutes = st.builds(
    lambda base, hours, length: Absolute(
        (base + hours * HOUR).replace(tzinfo=UTC), (base + (hours + length) * HOUR).replace(tzinfo=UTC)
    ),
    st.sampled_from(BASES),
    st.integers(-60, 60),
    st.integers(1, 400),
)
crons = st.builds(
    CronStretch,
    st.sampled_from(
        (
            "0 9 * * 1-5",
            "30 1 * * *",
            "*/20 * * * *",
            "15 2 * * SUN",
            "0 0-23 * * *",
            "0 0 1 * *",
            "*/7 1-3 * * *",
            "0 12 29 2 *",
        )
    ),
    st.sampled_from((5 * MINUTE, 20 * MINUTE, HOUR, 3 * HOUR, 25 * HOUR, 6 * DAY, 40 * DAY)),
)


@given(
    st.lists(st.one_of(weeklies, absolutes, crons, days), min_size=1, max_size=4),
    st.sampled_from(ZONES),
    st.sampled_from(BASES),
    st.integers(-4000, 4000),
)
def test_merged_spans_hold_what_one_of_the_rules_holds(
    rules: list[Rule], zone: str, base: datetime, minutes: int
) -> None:
    spans = MergedSpans(rules, zone)
    at = base + minutes * MINUTE
    held = any(is_held(rule, zone, at) for rule in rules)
    end = spans.end_of(at)
    assert (end is not None) == held
    if end is not None and end != NEVER:
        assert not any(is_held(rule, zone, end) for rule in rules)
        steps = min((end - at) // MINUTE, 2_000)
        sampled = (min(at + (end - at) / (steps + 1) * step, end - TICK) for step in range(steps + 1))
        assert all(any(is_held(rule, zone, each) for rule in rules) for each in sampled)
    if not held:
        start = spans.next_start(at)
        until = min(start - TICK, at + 20 * DAY)
        sampled = (min(at + (until - at) / 500 * step, until) for step in range(501))
        assert not any(is_held(rule, zone, each) for each in sampled for rule in rules)
        if start != NEVER:
            assert any(is_held(rule, zone, start) for rule in rules)


def test_rules_that_leave_no_moment_open_never_end() -> None:
    halves = (Weekly(time(0), time(12)), Weekly(time(12), time(0)))
    assert MergedSpans(halves, "Europe/Paris").end_of(datetime(2027, 1, 1)) == NEVER
    minutes = (CronStretch("* * * * *", MINUTE),)
    assert MergedSpans(minutes, "Europe/Paris").end_of(datetime(2027, 1, 1)) == NEVER
    months = (CronStretch("0 0 1 * *", 32 * DAY),)
    assert MergedSpans(months, "Europe/Paris").end_of(datetime(2027, 1, 1)) == NEVER
    workdays = (Weekly(time(0), time(0), frozenset(range(5))),)
    assert MergedSpans(workdays, "UTC").end_of(datetime(2027, 1, 4)) == datetime(2027, 1, 9)


def test_a_rare_start_is_found_years_ahead() -> None:
    leap = Calendar("leap", CalendarKind.ALLOW, (CronStretch("0 0 29 2 *", DAY),))
    assert calendar_closed_until(leap, datetime(2096, 3, 1)) == datetime(2104, 2, 29)
    assert calendar_closes_at(leap, datetime(2104, 2, 29, 5)) == datetime(2104, 3, 1)


def dense(kind: CalendarKind = CalendarKind.BLACKOUT, otherwise: Otherwise = Otherwise.SKIP) -> Calendar:
    """A thousand weekly rules: of every ten minutes the first five, in many pieces."""
    rules = tuple(
        Weekly(time(at // 60, at % 60), time((at + 5) % 1440 // 60, (at + 5) % 60))
        for at in (10 * n % 1440 for n in range(1_000))
    )
    return Calendar("dense", kind, rules, "Europe/Paris", otherwise)


def test_a_thousand_rules_cost_as_many_steps_as_one_and_a_share_for_each_week() -> None:
    every_five_seconds = Interval(timedelta(seconds=5), datetime(2027, 1, 1, tzinfo=UTC))
    start = datetime(2027, 3, 1, tzinfo=UTC)
    for otherwise in Otherwise:
        with work_budget(WorkBudget()) as budget:
            timetable = Timetable(every_five_seconds, calendars=(dense(otherwise=otherwise),))
            assert len(preview(timetable, start, 100)) == 100
        assert MOST_WORK - budget.left < 10_000


def test_an_evaluation_that_takes_too_many_steps_is_refused_and_not_made() -> None:
    minutes = [
        CronStretch(f"{start}-59/2 * * * *", MINUTE) for start in (0, 1)
    ]  # one is closed when the other opens
    calendars = tuple(
        Calendar(f"{n}", CalendarKind.BLACKOUT, (minutes[n % 2],), "UTC", Otherwise.DEFER) for n in range(100)
    )
    daily = Timetable(Cron("0 0 * * *"), calendars=calendars)
    with pytest.raises(ScheduleTooDear, match=f"more than {MOST_WORK:,} steps"):
        next_time(daily, datetime(2027, 1, 1, tzinfo=UTC))


def test_rules_that_start_too_often_are_refused_where_they_are_written_and_where_they_are_read() -> None:
    rules = tuple(CronStretch("*/5 * * * *", timedelta(seconds=1 + n)) for n in range(100))
    calendar = Calendar("cron", CalendarKind.BLACKOUT, rules)
    with pytest.raises(Invalid) as refused:
        check_calendar(calendar)
    assert (refused.value.pointer, "201,600 times a week" in refused.value.message) == ("/rules", True)
    assert f"{MOST_STARTS:,}" in refused.value.message
    with pytest.raises(ScheduleTooDear):
        planned_after(Timetable(Cron("0 0 * * *"), calendars=(calendar,)), datetime(2027, 1, 1, tzinfo=UTC))


def test_budgets_within_a_budget_share_it() -> None:
    with work_budget(WorkBudget(3)) as outer:
        with work_budget() as inner:
            inner.spend(2)
        assert outer.left == 1
        with pytest.raises(ScheduleTooDear):
            outer.spend(2)
