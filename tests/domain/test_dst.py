"""Clock changes with names. The instants were worked out on paper from the zones' published rules, not by running anything.

How to read a line is written in `tests/oracle/night.py`.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from foliot.domain.schedule import Gap, OverlapTime
from tests.oracle.night import Night

NEXT_VALID, SKIP, SHIFT = Gap.NEXT_VALID, Gap.SKIP, Gap.SHIFT
FIRST, SECOND, BOTH = OverlapTime.FIRST, OverlapTime.SECOND, OverlapTime.BOTH


def test_new_york_leaves_summer_time_on_2026_11_01() -> None:
    # 01:59 EDT, then 01:00 EST at 06:00Z
    night = Night("America/New_York", "2026-11-01T04:00Z", "2026-11-02T07:00Z")
    next_day = "2026-11-02T06:30Z | 2026-11-02T01:30"
    assert night.has("30 1 * * *") == ["2026-11-01T05:30Z | 2026-11-01T01:30", next_day]
    assert night.has("30 1 * * *", overlap=SECOND) == [
        "2026-11-01T06:30Z | 2026-11-01T01:30 second",
        next_day,
    ]
    assert night.has("30 1 * * *", overlap=BOTH) == [
        "2026-11-01T05:30Z | 2026-11-01T01:30",
        "2026-11-01T06:30Z | 2026-11-01T01:30 second",
        next_day,
    ]


@pytest.mark.requirement("X-7")
def test_new_york_enters_summer_time_on_2027_03_14() -> None:
    # 01:59 EST, then 03:00 EDT at 07:00Z
    days = Night("America/New_York", "2027-03-13T00:00Z", "2027-03-16T00:00Z")
    before, after = "2027-03-13T07:30Z | 2027-03-13T02:30", "2027-03-15T06:30Z | 2027-03-15T02:30"
    assert days.has("30 2 * * *") == [before, "2027-03-14T07:00Z | 2027-03-14T02:30 gap", after]
    assert days.has("30 2 * * *", gap=SHIFT) == [before, "2027-03-14T07:30Z | 2027-03-14T02:30 gap", after]
    assert days.has("30 2 * * *", gap=SKIP) == [
        before,
        "2027-03-14T07:00Z | 2027-03-14T02:30 gap skipped",
        after,
    ]


@pytest.mark.parametrize(
    "gap,lines",
    [
        (NEXT_VALID, ["2027-03-14T07:00Z | 2027-03-14T02:45 gap"]),
        (SKIP, ["2027-03-14T07:00Z | 2027-03-14T02:45 gap skipped"]),
        (
            SHIFT,
            [
                "2027-03-14T07:00Z | 2027-03-14T02:00 gap",
                "2027-03-14T07:15Z | 2027-03-14T02:15 gap",
                "2027-03-14T07:30Z | 2027-03-14T02:30 gap",
                "2027-03-14T07:45Z | 2027-03-14T02:45 gap",
            ],
        ),
    ],
)
def test_four_times_in_one_gap_are_one_planned_time_unless_shifted(gap: Gap, lines: list[str]) -> None:
    assert (
        Night("America/New_York", "2027-03-14T05:00Z", "2027-03-15T04:00Z").has("*/15 2 * * *", gap=gap)
        == lines
    )


@pytest.mark.parametrize(
    "overlap,lines",
    [
        (FIRST, ["2026-11-01T05:00Z | 2026-11-01T01:00", "2026-11-01T05:30Z | 2026-11-01T01:30"]),
        (
            SECOND,
            ["2026-11-01T06:00Z | 2026-11-01T01:00 second", "2026-11-01T06:30Z | 2026-11-01T01:30 second"],
        ),
        (
            BOTH,
            [
                "2026-11-01T05:00Z | 2026-11-01T01:00",
                "2026-11-01T05:30Z | 2026-11-01T01:30",
                "2026-11-01T06:00Z | 2026-11-01T01:00 second",
                "2026-11-01T06:30Z | 2026-11-01T01:30 second",
            ],
        ),
    ],
)
def test_half_hours_in_an_overlap_come_once_or_twice_as_asked(overlap: OverlapTime, lines: list[str]) -> None:
    night = Night("America/New_York", "2026-11-01T04:00Z", "2026-11-02T05:00Z")
    assert night.has("*/30 1 * * *", overlap=overlap) == lines


@pytest.mark.parametrize("gap", list(Gap))
def test_a_gap_that_ends_on_a_planned_time_is_absorbed_by_it(gap: Gap) -> None:
    night = Night("America/New_York", "2027-03-14T05:00Z", "2027-03-15T04:00Z")
    assert night.has("0 1,2,3 * * *", gap=gap) == [
        "2027-03-14T06:00Z | 2027-03-14T01:00",
        "2027-03-14T07:00Z | 2027-03-14T03:00",
    ]


def test_a_shifted_time_may_run_after_one_with_a_later_name() -> None:
    night = Night("Australia/Lord_Howe", "2026-10-03T13:30Z", "2026-10-04T13:00Z")
    assert night.has("15,40 2 * * *", gap=SHIFT) == [
        "2026-10-03T15:40Z | 2026-10-04T02:40",
        "2026-10-03T15:45Z | 2026-10-04T02:15 gap",
    ]


def test_shifted_times_that_land_on_planned_ones_are_one_with_them() -> None:
    night = Night("America/New_York", "2027-03-14T05:00Z", "2027-03-15T04:00Z")
    assert night.has("15,45 2-3 * * *", gap=SHIFT) == [
        "2027-03-14T07:15Z | 2027-03-14T03:15",
        "2027-03-14T07:45Z | 2027-03-14T03:45",
    ]


def test_every_two_hours_is_open_when_the_hour_starts_with_a_star_and_closed_when_it_is_a_range() -> None:
    morning = Night("America/New_York", "2027-03-14T04:00Z", "2027-03-14T10:00Z")
    assert morning.has("0 */2 * * *") == [
        "2027-03-14T05:00Z | 2027-03-14T00:00",
        "2027-03-14T08:00Z | 2027-03-14T04:00",
        "2027-03-14T10:00Z | 2027-03-14T06:00",
    ]
    assert morning.has("0 0-23/2 * * *") == [
        "2027-03-14T05:00Z | 2027-03-14T00:00",
        "2027-03-14T07:00Z | 2027-03-14T02:00 gap",
        "2027-03-14T08:00Z | 2027-03-14T04:00",
        "2027-03-14T10:00Z | 2027-03-14T06:00",
    ]


@pytest.mark.parametrize("overlap", list(OverlapTime))
def test_hourly_follows_real_time_and_a_list_of_hours_follows_the_wall(overlap: OverlapTime) -> None:
    night = Night("America/New_York", "2026-11-01T03:59Z", "2026-11-01T07:00Z")
    assert night.has("0 * * * *", overlap=overlap) == [
        "2026-11-01T04:00Z | 2026-11-01T00:00",
        "2026-11-01T05:00Z | 2026-11-01T01:00",
        "2026-11-01T06:00Z | 2026-11-01T01:00 second",
        "2026-11-01T07:00Z | 2026-11-01T02:00",
    ]
    assert night.has("0 0-23 * * *", overlap=FIRST) == [
        "2026-11-01T04:00Z | 2026-11-01T00:00",
        "2026-11-01T05:00Z | 2026-11-01T01:00",
        "2026-11-01T07:00Z | 2026-11-01T02:00",
    ]


@pytest.mark.parametrize("gap", list(Gap))
def test_an_open_schedule_drops_what_a_gap_drops_under_every_policy(gap: Gap) -> None:
    night = Night("America/New_York", "2027-03-14T06:00Z", "2027-03-14T07:30Z")
    assert night.has("*/30 * * * *", gap=gap) == [
        "2027-03-14T06:30Z | 2027-03-14T01:30",
        "2027-03-14T07:00Z | 2027-03-14T03:00",
        "2027-03-14T07:30Z | 2027-03-14T03:30",
    ]


def test_lord_howe_jumps_half_an_hour_forward() -> None:
    # 02:00 becomes 02:30 at 15:30Z
    night = Night("Australia/Lord_Howe", "2026-10-03T13:30Z", "2026-10-04T13:00Z")
    assert night.has("0 2 * * *") == ["2026-10-03T15:30Z | 2026-10-04T02:00 gap"]
    assert night.has("15 2 * * *") == ["2026-10-03T15:30Z | 2026-10-04T02:15 gap"]
    assert night.has("15 2 * * *", gap=SHIFT) == ["2026-10-03T15:45Z | 2026-10-04T02:15 gap"]
    assert night.has("30 2 * * *") == ["2026-10-03T15:30Z | 2026-10-04T02:30"]
    assert night.has("0,30 2 * * *", gap=SKIP) == ["2026-10-03T15:30Z | 2026-10-04T02:30"]
    assert night.has("15,45 2 * * *", gap=SHIFT) == ["2026-10-03T15:45Z | 2026-10-04T02:45"]
    assert night.has("15 * * * *")[:3] == [
        "2026-10-03T13:45Z | 2026-10-04T00:15",
        "2026-10-03T14:45Z | 2026-10-04T01:15",
        "2026-10-03T16:15Z | 2026-10-04T03:15",
    ]


def test_lord_howe_falls_half_an_hour_back() -> None:
    # 02:00 becomes 01:30 at 15:00Z
    night = Night("Australia/Lord_Howe", "2026-04-04T14:00Z", "2026-04-05T13:30Z")
    assert night.has("45 1 * * *") == ["2026-04-04T14:45Z | 2026-04-05T01:45"]
    assert night.has("45 1 * * *", overlap=SECOND) == ["2026-04-04T15:15Z | 2026-04-05T01:45 second"]
    assert night.has("15 1 * * *", overlap=SECOND) == ["2026-04-04T14:15Z | 2026-04-05T01:15"]
    assert night.has("0 2 * * *", overlap=BOTH) == ["2026-04-04T15:30Z | 2026-04-05T02:00"]
    assert night.has("*/15 * * * *")[:6] == [
        "2026-04-04T14:15Z | 2026-04-05T01:15",
        "2026-04-04T14:30Z | 2026-04-05T01:30",
        "2026-04-04T14:45Z | 2026-04-05T01:45",
        "2026-04-04T15:00Z | 2026-04-05T01:30 second",
        "2026-04-04T15:15Z | 2026-04-05T01:45 second",
        "2026-04-04T15:30Z | 2026-04-05T02:00",
    ]


def test_troll_jumps_two_hours() -> None:
    # 01:00 becomes 03:00 at 01:00Z
    spring = Night("Antarctica/Troll", "2027-03-28T00:00Z", "2027-03-28T22:00Z")
    assert spring.has("30 1,2 * * *") == ["2027-03-28T01:00Z | 2027-03-28T02:30 gap"]
    assert spring.has("30 1,2 * * *", gap=SHIFT) == [
        "2027-03-28T01:30Z | 2027-03-28T01:30 gap",
        "2027-03-28T02:30Z | 2027-03-28T02:30 gap",
    ]
    assert spring.has("0 1,3 * * *", gap=SHIFT) == ["2027-03-28T01:00Z | 2027-03-28T03:00"]
    # 03:00 becomes 01:00 at 01:00Z
    autumn = Night("Antarctica/Troll", "2026-10-24T22:00Z", "2026-10-25T23:59Z")
    assert autumn.has("0 2 * * *", overlap=BOTH) == [
        "2026-10-25T00:00Z | 2026-10-25T02:00",
        "2026-10-25T02:00Z | 2026-10-25T02:00 second",
    ]
    assert autumn.has("0 3 * * *", overlap=SECOND) == ["2026-10-25T03:00Z | 2026-10-25T03:00"]


@pytest.mark.parametrize(
    "zone,at,local_day,before,after",
    [
        ("America/Santiago", "2026-09-06T04:00Z", "2026-09-06", "2026-09-05T04:{}Z", "2026-09-07T03:{}Z"),
        ("Asia/Beirut", "2027-03-27T22:00Z", "2027-03-28", "2027-03-26T22:{}Z", "2027-03-28T21:{}Z"),
        ("Africa/Cairo", "2027-04-29T22:00Z", "2027-04-30", "2027-04-28T22:{}Z", "2027-04-30T21:{}Z"),
    ],
)
def test_no_day_is_lost_where_midnight_does_not_exist(
    zone: str, at: str, local_day: str, before: str, after: str
) -> None:
    for minute in ("00", "30"):
        days = Night(zone, _a_minute_before(before.format(minute)), after.format(minute))
        lines = days.has(f"{minute} 0 * * *")
        assert [line.split(" | ")[0] for line in lines] == [before.format(minute), at, after.format(minute)]
        assert lines[1] == f"{at} | {local_day}T00:{minute} gap"


@pytest.mark.parametrize(
    "zone,first,second,local,midnight",
    [
        (
            "America/Santiago",
            "2027-04-04T02:30Z",
            "2027-04-04T03:30Z",
            "2027-04-03T23:30",
            "2027-04-04T04:00Z",
        ),
        ("Asia/Beirut", "2026-10-24T20:30Z", "2026-10-24T21:30Z", "2026-10-24T23:30", "2026-10-24T22:00Z"),
        ("Africa/Cairo", "2026-10-29T20:30Z", "2026-10-29T21:30Z", "2026-10-29T23:30", "2026-10-29T22:00Z"),
    ],
)
def test_the_hour_before_midnight_repeats_and_midnight_comes_once(
    zone: str, first: str, second: str, local: str, midnight: str
) -> None:
    night = Night(zone, _a_minute_before(first), midnight)
    assert night.has("30 23 * * *") == [f"{first} | {local}"]
    assert night.has("30 23 * * *", overlap=SECOND) == [f"{second} | {local} second"]
    (line,) = night.has("0 0 * * *", overlap=BOTH)
    assert line.startswith(midnight)


def test_apia_loses_the_whole_of_2011_12_30() -> None:
    # 12-30 00:00 becomes 12-31 00:00 at 10:00Z
    days = Night("Pacific/Apia", "2011-12-29T09:00Z", "2011-12-31T12:00Z")
    before, after = "2011-12-29T19:00Z | 2011-12-29T09:00", "2011-12-30T19:00Z | 2011-12-31T09:00"
    assert days.has("0 9 * * *") == [before, "2011-12-30T10:00Z | 2011-12-30T09:00 gap", after]
    assert days.has("0 9 * * *", gap=SKIP) == [
        before,
        "2011-12-30T10:00Z | 2011-12-30T09:00 gap skipped",
        after,
    ]
    assert days.has("0 9 * * *", gap=SHIFT) == [before, after]
    assert days.has("0 0 * * *") == [
        "2011-12-29T10:00Z | 2011-12-29T00:00",
        "2011-12-30T10:00Z | 2011-12-31T00:00",
        "2011-12-31T10:00Z | 2012-01-01T00:00",
    ]
    assert days.has("0 9 30 12 *") == ["2011-12-30T10:00Z | 2011-12-30T09:00 gap"]
    assert days.has("0 12 * * FRI", gap=SHIFT) == ["2011-12-30T22:00Z | 2011-12-30T12:00 gap"]
    assert days.has("0 */6 30,31 12 *")[:2] == [
        "2011-12-30T10:00Z | 2011-12-31T00:00",
        "2011-12-30T16:00Z | 2011-12-31T06:00",
    ]


def test_casablanca_turns_its_clock_back_for_ramadan_and_forward_after_it() -> None:
    # 03:00 becomes 02:00 at 02:00Z
    begins = Night("Africa/Casablanca", "2026-02-15T00:00Z", "2026-02-16T03:00Z")
    assert begins.has("30 2 * * *") == [
        "2026-02-15T01:30Z | 2026-02-15T02:30",
        "2026-02-16T02:30Z | 2026-02-16T02:30",
    ]
    assert begins.has("30 2 * * *", overlap=SECOND)[0] == "2026-02-15T02:30Z | 2026-02-15T02:30 second"
    # 02:00 becomes 03:00 at 02:00Z
    ends = Night("Africa/Casablanca", "2026-03-22T00:00Z", "2026-03-23T03:00Z")
    assert ends.has("30 2 * * *") == [
        "2026-03-22T02:00Z | 2026-03-22T02:30 gap",
        "2026-03-23T01:30Z | 2026-03-23T02:30",
    ]


@pytest.mark.parametrize("zone", ["Europe/London", "Europe/Dublin"])
def test_dublin_with_its_negative_winter_time_behaves_as_london(zone: str) -> None:
    # 01:00 becomes 02:00 at 01:00Z
    spring = Night(zone, "2027-03-28T00:00Z", "2027-03-29T00:00Z")
    assert spring.has("0 1 * * *") == [
        "2027-03-28T01:00Z | 2027-03-28T01:00 gap",
        "2027-03-29T00:00Z | 2027-03-29T01:00",
    ]
    assert spring.has("30 1 * * *", gap=SHIFT) == ["2027-03-28T01:30Z | 2027-03-28T01:30 gap"]
    assert spring.has("0 2 * * *", gap=SKIP) == ["2027-03-28T01:00Z | 2027-03-28T02:00"]
    # 02:00 becomes 01:00 at 01:00Z
    autumn = Night(zone, "2026-10-24T23:00Z", "2026-10-25T23:00Z")
    assert autumn.has("30 1 * * *", overlap=BOTH) == [
        "2026-10-25T00:30Z | 2026-10-25T01:30",
        "2026-10-25T01:30Z | 2026-10-25T01:30 second",
    ]


def _a_minute_before(instant: str) -> str:
    return f"{datetime.fromisoformat(instant) - timedelta(minutes=1):%Y-%m-%dT%H:%MZ}"
