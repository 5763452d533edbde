"""Windows and calendars: when a planned time may start, and what happens to it otherwise."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

import pytest

from foliot.domain.schedule import (
    Absolute,
    Calendar,
    CalendarKind,
    Cron,
    CronStretch,
    Otherwise,
    SkipReason,
    Timetable,
    Weekly,
    Window,
    next_time,
    planned_after,
    preview,
    times_between,
)

NIGHT = Window(time(22), time(4))
SATURDAY, SUNDAY = 5, 6


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def due(timetable: Timetable, after: str, n: int = 3) -> list[str]:
    return [f"{planned.due_at:%m-%d %H:%M}" for planned in preview(timetable, at(after), n)]


@pytest.mark.requirement("S0-23", "S0-7")
def test_a_time_before_the_window_moves_to_its_opening() -> None:
    table = Timetable(Cron("0 1 * * *"), window=Window(time(2), time(6)))
    assert due(table, "2027-06-01") == ["06-01 02:00", "06-02 02:00", "06-03 02:00"]
    planned = next_time(table, at("2027-06-01"))
    assert planned is not None
    assert planned.planned_for == at("2027-06-01T01:00")


def test_both_ends_of_a_window_are_inside() -> None:
    table = Timetable(Cron("0 * * * *"), window=Window(time(9), time(11)))
    assert due(table, "2027-06-01", 4) == ["06-01 09:00", "06-01 10:00", "06-01 11:00", "06-02 09:00"]


def test_a_window_across_midnight_belongs_to_the_day_it_starts_on() -> None:
    friday_night = Window(time(22), time(4), days=frozenset((4,)), otherwise=Otherwise.SKIP)
    table = Timetable(Cron("30 */3 * * *"), window=friday_night)
    # 4 June 2027 is a Friday
    assert due(table, "2027-06-01", 4) == ["06-05 00:30", "06-05 03:30", "06-12 00:30", "06-12 03:30"]


def test_times_deferred_to_one_instant_are_named_by_the_newest() -> None:
    table = Timetable(Cron("*/10 * * * *"), window=NIGHT)
    planned = next_time(table, at("2027-06-01T04:00"))
    assert planned is not None
    assert planned.due_at == planned.planned_for == at("2027-06-01T22:00")
    odd = Timetable(Cron("5-59/10 * * * *"), window=NIGHT)
    planned = next_time(odd, at("2027-06-01T04:00"))
    assert planned is not None
    assert (planned.planned_for, planned.due_at) == (at("2027-06-01T21:55"), at("2027-06-01T22:00"))


def test_a_skipping_window_records_what_falls_outside() -> None:
    table = Timetable(Cron("0 */8 * * *"), window=Window(time(7), time(9), otherwise=Otherwise.SKIP))
    planned = times_between(table, at("2027-06-01"), at("2027-06-02"))
    assert [time.skip for time in planned] == [None, SkipReason.WINDOW, SkipReason.WINDOW]


def test_a_window_that_the_clocks_jump_over_still_lets_its_time_through() -> None:
    table = Timetable(Cron("0 2 * * *", "America/New_York"), window=Window(time(2), time(3)))
    assert due(table, "2027-03-13T12:00", 2) == ["03-14 07:00", "03-15 06:00"]


@pytest.mark.requirement("S0-23")
def test_a_window_that_never_meets_the_schedule_gives_no_next_time() -> None:
    table = Timetable(Cron("0 1 * * *"), window=Window(time(2), time(3), otherwise=Otherwise.SKIP))
    assert next_time(table, at("2027-06-01")) is None


def test_a_weekly_blackout_skips_or_defers() -> None:
    sunday = (Weekly(time(2), time(3), frozenset((SUNDAY,))),)
    skipping = Calendar("sunday", CalendarKind.BLACKOUT, sunday)
    table = Timetable(Cron("30 2 * * *"), calendars=(skipping,))
    # 6 June 2027 is a Sunday
    planned = planned_after(table, at("2027-06-06"))
    assert planned is not None
    assert planned.skip is SkipReason.BLACKOUT
    assert due(table, "2027-06-05", 2) == ["06-05 02:30", "06-07 02:30"]
    deferring = Calendar("sunday", CalendarKind.BLACKOUT, sunday, otherwise=Otherwise.DEFER)
    assert due(Timetable(Cron("30 2 * * *"), calendars=(deferring,)), "2027-06-06", 1) == ["06-06 03:00"]


def test_a_blackout_ends_at_its_end() -> None:
    blackout = Calendar("sunday", CalendarKind.BLACKOUT, (Weekly(time(2), time(3)),))
    assert due(Timetable(Cron("0 3 * * *"), calendars=(blackout,)), "2027-06-06", 1) == ["06-06 03:00"]


def test_an_absolute_freeze_of_the_year_end_is_leapt_over() -> None:
    holidays = Calendar("holidays", CalendarKind.BLACKOUT, (Absolute(at("2026-12-20"), at("2027-01-02")),))
    table = Timetable(Cron("* * * * *"), calendars=(holidays,))
    assert due(table, "2026-12-19T23:58", 2) == ["12-19 23:59", "01-02 00:00"]


def test_an_allow_calendar_opens_with_its_cron_and_duration() -> None:
    maintenance = Calendar(
        "maintenance",
        CalendarKind.ALLOW,
        (CronStretch("0 1 * * SAT", timedelta(hours=2)),),
        otherwise=Otherwise.DEFER,
    )
    table = Timetable(Cron("30 */1 * * *"), calendars=(maintenance,))
    # 5 June 2027 is a Saturday
    assert due(table, "2027-06-01", 4) == ["06-05 01:00", "06-05 01:30", "06-05 02:30", "06-12 01:00"]


def test_several_allow_rules_are_a_union_and_a_blackout_wins() -> None:
    allow = Calendar("work", CalendarKind.ALLOW, (Weekly(time(9), time(10)), Weekly(time(15), time(16))))
    deny = Calendar("lunch", CalendarKind.BLACKOUT, (Weekly(time(15), time(15, 30)),))
    table = Timetable(Cron("*/30 * * * *"), calendars=(allow, deny))
    assert due(table, "2027-06-01", 4) == ["06-01 09:00", "06-01 09:30", "06-01 15:30", "06-02 09:00"]


def test_a_blackout_without_end_is_found_out_in_bounded_steps() -> None:
    always = Calendar(
        "always",
        CalendarKind.BLACKOUT,
        (CronStretch("* * * * *", timedelta(minutes=2)),),
        otherwise=Otherwise.DEFER,
    )
    table = Timetable(Cron("0 * * * *"), calendars=(always,))
    planned = planned_after(table, at("2027-06-01"))
    assert planned is not None
    assert planned.skip is SkipReason.BLACKOUT
    assert next_time(table, at("2027-06-01")) is None


@pytest.mark.parametrize(
    ("blackout", "job", "after", "first"),
    [
        (CronStretch("* 9-17 * * *", timedelta(minutes=1)), "30 9,20 * * *", "2027-06-01", "06-01 20:30"),
        (CronStretch("*/5 * * * 1-5", timedelta(minutes=5)), "30 9,20 * * *", "2027-06-01", "06-05 09:30"),
        (CronStretch("0 * * 1-11 *", timedelta(hours=1)), "30 9 * * *", "2027-01-02", "12-01 09:30"),
        (CronStretch("* * * 1-11 *", timedelta(minutes=3)), "30 9 * * *", "2027-01-02", "12-01 09:30"),
        (CronStretch("0 0 1 1 *", timedelta(days=200)), "0 9 * * *", "2027-01-02", "07-20 09:00"),
    ],
)
def test_stretches_that_touch_are_one(blackout: CronStretch, job: str, after: str, first: str) -> None:
    table = Timetable(Cron(job), calendars=(Calendar("busy", CalendarKind.BLACKOUT, (blackout,)),))
    assert due(table, after, 1) == [first]


def test_a_job_deferred_by_touching_stretches_runs_when_the_last_ends() -> None:
    office = Calendar(
        "office",
        CalendarKind.BLACKOUT,
        (CronStretch("* 9-17 * * *", timedelta(minutes=1)),),
        otherwise=Otherwise.DEFER,
    )
    assert due(Timetable(Cron("30 9 * * *"), calendars=(office,)), "2027-06-01", 2) == [
        "06-01 18:00",
        "06-02 18:00",
    ]


@pytest.mark.parametrize("zone", ["America/New_York", "Australia/Lord_Howe", "Europe/Lisbon"])
def test_a_window_is_on_the_jobs_own_wall_clock(zone: str) -> None:
    table = Timetable(Cron("0 * * * *", zone), window=Window(time(9), time(9, 30)))
    assert {planned.local.time() for planned in preview(table, at("2027-01-01"), 300)} == {time(9)}
