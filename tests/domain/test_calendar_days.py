"""Days that are not in every month, year or week. The dates were worked out on paper."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from foliot.domain.schedule import Cron, DayMatch, Timetable, planned_after
from tests.oracle.night import Night


def test_the_29th_of_february_waits_for_leap_years_even_past_2100() -> None:
    assert (
        Night("UTC", "2026-01-01T00:00Z", "2040-01-01T00:00Z").days("0 0 29 2 *")
        == "2028-02-29 2032-02-29 2036-02-29"
    )
    assert Night("UTC", "2096-03-01T00:00Z", "2105-01-01T00:00Z").days("0 0 29 2 *") == "2104-02-29"


def test_a_leap_day_that_must_be_a_monday_is_found_up_to_forty_years_away() -> None:
    leap_monday = Timetable(Cron("0 0 29 2 MON", day_match=DayMatch.AND))
    found = []
    after = datetime(2026, 1, 1, tzinfo=UTC)
    for _ in range(3):
        planned = planned_after(leap_monday, after)
        assert planned is not None
        found.append(f"{planned.local:%Y-%m-%d}")
        after = planned.planned_for
    assert found == ["2044-02-29", "2072-02-29", "2112-02-29"]


def test_day_31_comes_in_seven_months() -> None:
    year = Night("Europe/Paris", "2026-12-31T23:00Z", "2027-12-31T23:00Z")
    assert (
        year.days("0 2 31 * *")
        == "2027-01-31 2027-03-31 2027-05-31 2027-07-31 2027-08-31 2027-10-31 2027-12-31"
    )


def test_the_last_day_and_the_last_workday_are_those_of_the_wall_calendar() -> None:
    months = Night("Pacific/Auckland", "2027-12-31T11:00Z", "2028-05-01T00:00Z")
    assert months.days("0 0 L * *") == "2028-01-31 2028-02-29 2028-03-31 2028-04-30"
    assert months.days("0 0 LW * *") == "2028-01-31 2028-02-29 2028-03-31 2028-04-28"
    assert months.days("0 0 * * 5L") == "2028-01-28 2028-02-25 2028-03-31 2028-04-28"


def test_a_fifth_monday_is_not_in_every_month() -> None:
    years = Night("UTC", "2026-01-01T00:00Z", "2027-06-01T00:00Z")
    assert years.days("0 8 * * MON#5") == "2026-03-30 2026-06-29 2026-08-31 2026-11-30 2027-03-29 2027-05-31"


@pytest.mark.parametrize(
    "anchor,tuesdays,sundays",
    [
        (date(2026, 12, 28), "2026-12-29 2027-01-12 2027-01-26", "2027-01-03 2027-01-17"),
        (
            date(2027, 1, 3),
            "2026-12-29 2027-01-12 2027-01-26",
            "2027-01-03 2027-01-17",
        ),  # the Sunday of that week
        (date(2027, 1, 4), "2026-12-22 2027-01-05 2027-01-19", "2026-12-27 2027-01-10 2027-01-24"),
        (
            date(2031, 3, 10),
            "2026-12-22 2027-01-05 2027-01-19",
            "2026-12-27 2027-01-10 2027-01-24",
        ),  # 218 weeks later
    ],
)
def test_every_other_week_counts_through_iso_week_53(anchor: date, tuesdays: str, sundays: str) -> None:
    turn = Night("Europe/Berlin", "2026-12-20T23:00Z", "2027-01-29T00:00Z")
    assert turn.days("30 14 * * TUE", every_n_weeks=2, anchor=anchor) == tuesdays
    assert turn.days("0 0 * * SUN", every_n_weeks=2, anchor=anchor) == sundays
