"""What a change means for the runs ahead."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.planning.upcoming_changes import (
    HORIZON,
    LOOKED_AT,
    Upcoming,
    UpcomingDifference,
    difference,
    nothing_ahead,
    upcoming,
)
from foliot.domain.schedule import Cron, Interval, Manual, PlannedTime, Schedule, Timetable, Window

NOW = datetime(2027, 1, 15, 12, tzinfo=UTC)


def ahead(schedule: Schedule, window: Window | None = None) -> Upcoming:
    return upcoming(Timetable(schedule, window=window), NOW, NOW)


def counts(found: UpcomingDifference) -> tuple[int, int, int, int]:
    return len(found.added), len(found.removed), len(found.moved), found.unchanged


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (Cron("0 6 * * *"), Cron("0 6 * * *"), (0, 0, 0, 30)),
        (Cron("0 6 * * *"), Cron("0 7 * * *"), (0, 0, 30, 0)),
        (Cron("0 6 * * *"), Cron("0 6,18 * * *"), (25, 0, 0, 25)),
        (Cron("0 6,18 * * *"), Cron("0 6 * * *"), (0, 25, 0, 25)),
        (Cron("0 6 * * mon"), Cron("0 6 * * tue"), (4, 4, 0, 0)),
        (Cron("0 6 * * *"), Manual(), (0, 30, 0, 0)),
        (Cron("0 6 * * *"), Cron("0 6 * * *", "Europe/Paris"), (0, 0, 30, 0)),
        (Manual(), Manual(), (0, 0, 0, 0)),
    ],
)
def test_two_schedules_are_distinguished_by_their_runs(
    before: Schedule, after: Schedule, expected: tuple[int, int, int, int]
) -> None:
    assert counts(difference(ahead(before), ahead(after))) == expected


def test_a_dense_series_is_compared_only_as_far_as_it_is_known() -> None:
    minutely = Interval(timedelta(minutes=1), anchor=NOW)
    found = difference(ahead(Cron("0 * * * *")), ahead(minutely))
    assert found.until == NOW + LOOKED_AT * timedelta(minutes=1)
    assert counts(found) == (LOOKED_AT, 0, 0, 0)


def test_a_window_that_defers_moves_the_run_though_its_planned_time_stays() -> None:
    found = difference(ahead(Cron("0 6 * * *")), ahead(Cron("0 6 * * *"), Window(time(8), time(18))))
    assert counts(found) == (0, 0, 30, 0)
    assert found.moved[0].after.due_at - found.moved[0].before.due_at == timedelta(hours=2)


def test_a_job_that_is_stopped_has_nothing_ahead() -> None:
    assert counts(difference(ahead(Cron("0 6 * * *")), nothing_ahead(NOW))) == (0, 30, 0, 0)


def planned(minutes: int) -> PlannedTime:
    at = NOW + timedelta(minutes=minutes)
    return PlannedTime(planned_for=at, local=at.replace(tzinfo=None), fold=0, due_at=at)


series = st.builds(
    lambda minutes: Upcoming(tuple(planned(each) for each in sorted(minutes)), NOW + HORIZON),
    st.sets(st.integers(1, 5_000), max_size=40),
)


@given(series, series)
def test_every_run_ahead_is_reported_once(before: Upcoming, after: Upcoming) -> None:
    found = difference(before, after)
    assert found.unchanged + len(found.moved) + len(found.removed) == len(before.times)
    assert found.unchanged + len(found.moved) + len(found.added) == len(after.times)


@given(series, series)
def test_the_way_back_is_the_same_the_other_way_round(before: Upcoming, after: Upcoming) -> None:
    there, back = difference(before, after), difference(after, before)
    assert (there.added, there.removed, there.unchanged) == (back.removed, back.added, back.unchanged)
    assert [(each.before, each.after) for each in there.moved] == [
        (each.after, each.before) for each in back.moved
    ]


@given(series)
def test_nothing_differs_from_itself(same: Upcoming) -> None:
    assert counts(difference(same, same)) == (0, 0, 0, len(same.times))


@given(series, series)
def test_what_moved_stays_on_its_day(before: Upcoming, after: Upcoming) -> None:
    for each in difference(before, after).moved:
        assert each.before.local.date() == each.after.local.date()
        assert each.before.due_at != each.after.due_at
