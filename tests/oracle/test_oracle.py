"""The referee itself, judged by a person's dates and by `zoneinfo`: a wrong referee proves nothing."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from foliot.domain.schedule import Dst, Gap, OverlapTime, SkipReason, times_between
from tests.oracle import compare
from tests.oracle.expect import EPOCH, expected, watch, zone
from tests.oracle.fields import Matcher, Pattern, numbers
from tests.oracle.tzif import read_offsets, zones_by_data

SECOND = timedelta(seconds=1)


def test_the_changes_read_from_the_raw_files_are_those_zoneinfo_shows() -> None:
    for data, names in zones_by_data().items():
        tz = zone(names[0])
        previous = None
        for change in read_offsets(data).changes:
            at = EPOCH + timedelta(seconds=change.at)
            if not 1990 <= at.year <= 2037:
                continue
            shown = [_seconds_east(at + step, tz) for step in (-SECOND, SECOND - SECOND)]
            assert shown == [change.before, change.after], (names[0], at)
            if previous is not None:  # and nothing moves in between
                middle = previous + (at - previous) / 2
                assert _seconds_east(middle, tz) == change.before, (names[0], middle)
            previous = at


def test_between_the_changes_no_zone_moves_its_clock() -> None:
    for data, names in zones_by_data().items():
        offsets = read_offsets(data)
        tz = zone(names[0])
        for day in range(7305, 24837, 31):  # 1990 to 2037, once a month
            assert _seconds_east(EPOCH + timedelta(days=day), tz) == offsets.at(day * 86400), (names[0], day)


@pytest.mark.parametrize(
    "text,low,high,found",
    [
        ("*/20", 0, 59, {0, 20, 40}),
        ("5/25", 0, 59, {5, 30, 55}),
        ("1-9/4,3", 0, 59, {1, 5, 9, 3}),
        ("*", 1, 3, {1, 2, 3}),
    ],
)
def test_a_field_is_a_set_of_numbers(text: str, low: int, high: int, found: set[int]) -> None:
    assert numbers(text, low, high) == found


@pytest.mark.parametrize(
    "pattern,days",
    [
        (Pattern("0 0 13 * FRI"), {2, 9, 13, 16, 23, 30}),
        (Pattern("0 0 13 * FRI", both_days=True), set()),
        (Pattern("0 0 */10 * FRI"), set()),
        (Pattern("0 0 L * ?"), {31}),
        (Pattern("0 0 LW * *"), {30}),
        (Pattern("0 0 * * SAT#5,SUN#1"), {31, 4}),
        (Pattern("0 0 * * 5L"), {30}),
        (Pattern("0 0 * * 6-7"), {3, 4, 10, 11, 17, 18, 24, 25, 31}),
        (Pattern("0 0 * * 1", every_n_weeks=2, anchor=date(2026, 10, 11)), {5, 19}),
        (Pattern("0 0 1 JAN-sep *"), set()),
    ],
)
def test_october_2026_has_these_days(pattern: Pattern, days: set[int]) -> None:
    matcher = Matcher(pattern)
    assert {day for day in range(1, 32) if matcher.matches_day(date(2026, 10, day).toordinal())} == days


def test_a_gap_in_new_york_is_seen_as_wall_minutes_that_were_never_shown() -> None:
    clock = watch("America/New_York", datetime(2027, 3, 13, tzinfo=UTC), datetime(2027, 3, 15, tzinfo=UTC))
    (gap,) = clock.gaps
    assert [wall % 1440 for wall in gap] == [120, 180]
    daily = Matcher(Pattern("30 2 * * *"))
    gapped = [expected(daily, clock, gap, OverlapTime.FIRST)[1] for gap in Gap]
    assert [planned.planned_for.hour * 60 + planned.planned_for.minute for planned in gapped] == [
        420,
        420,
        450,
    ]
    assert [planned.skip for planned in gapped] == [None, SkipReason.DST_GAP, None]
    assert {(planned.local, planned.dst) for planned in gapped} == {(datetime(2027, 3, 14, 2, 30), Dst.GAP)}


def test_an_overlap_in_new_york_is_seen_as_wall_minutes_shown_twice() -> None:
    clock = watch("America/New_York", datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 11, 2, tzinfo=UTC))
    assert len(clock.second) == 60
    daily = Matcher(Pattern("30 1 * * *"))
    seen = {
        overlap: [
            (planned.planned_for.hour, planned.fold, planned.dst)
            for planned in expected(daily, clock, Gap.SKIP, overlap)
        ]
        for overlap in OverlapTime
    }
    assert seen == {
        OverlapTime.FIRST: [(5, 0, Dst.FIRST)],
        OverlapTime.SECOND: [(6, 1, Dst.SECOND)],
        OverlapTime.BOTH: [(5, 0, Dst.FIRST), (6, 1, Dst.SECOND)],
    }


def test_an_engine_that_loses_one_time_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "times_between", lambda *args, **more: times_between(*args, **more)[1:])
    (case,) = compare.cases(2026, 2026, ["Asia/Gaza"])[:1]
    _, (difference,) = compare.compare(case, [Pattern("0 * * * *")])
    assert len(difference.missing) == 1
    assert difference.extra == ()
    assert "./dev oracle --zones '^Asia/Gaza$' --years 2026-2026 --expr '0 * * * *'" in str(difference)


def _seconds_east(moment: datetime, tz: object) -> int:
    offset = moment.astimezone(tz).utcoffset()  # type: ignore[arg-type]
    assert offset is not None
    return int(offset.total_seconds())
