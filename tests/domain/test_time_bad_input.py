"""Nonsense in, one kind of error out, after a bounded number of steps. How long that takes is measured in `bench/`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from types import FrameType
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.errors import ScheduleInvalid
from foliot.domain.schedule import (
    Cron,
    DayMatch,
    Interval,
    Once,
    PlannedTime,
    Schedule,
    Timetable,
    next_time,
    parse_cron,
    planned_after,
    preview,
    times_between,
)
from tests.examples import examples
from tests.oracle.nonsense import NEVER_TOGETHER, REFUSED, UNKNOWN_ZONES

T = TypeVar("T")
NOW = datetime(2026, 11, 15, 12, 30, tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)
MOST_STEPS = 200_000  # lines of Python


@pytest.mark.parametrize("expr", REFUSED, ids=lambda expr: ascii(expr[:24]))
def test_a_bad_expression_is_refused_in_few_steps(expr: str) -> None:
    _refused(Cron(expr))


@pytest.mark.parametrize("expr", [f"0 {expr}" for expr in REFUSED[5:70]], ids=lambda expr: ascii(expr[:24]))
def test_a_bad_expression_with_seconds_is_refused_in_few_steps(expr: str) -> None:
    _refused(Cron(expr, seconds=True))


@pytest.mark.parametrize("expr", NEVER_TOGETHER)
def test_days_that_never_meet_are_refused_at_once(expr: str) -> None:
    _refused(Cron(expr, day_match=DayMatch.AND))


@pytest.mark.parametrize("zone", UNKNOWN_ZONES, ids=lambda zone: ascii(zone[:24]))
def test_a_zone_that_the_wheel_does_not_hold_is_refused(zone: str) -> None:
    _refused(Cron("0 9 * * *", zone))


@pytest.mark.parametrize(
    "expr", ["61 * * * *", "* 24 * * *", "* * * FEV *", "*/0 * * * *", "0 0 * * 1,9", "5-1 * * * *"]
)
def test_a_refusal_points_at_the_field_and_says_what_to_do(expr: str) -> None:
    with pytest.raises(ScheduleInvalid) as caught:
        parse_cron(expr)
    mark = caught.value.mark
    assert mark is not None
    assert mark.text == expr
    wrong = next(field for field in expr.split() if field not in ("*", "0"))
    start = expr.index(wrong)
    assert start <= mark.start < mark.end <= start + len(wrong)
    assert caught.value.hint or "it takes" in caught.value.message


def test_256_characters_are_read_and_257_are_not() -> None:
    minutes = ",".join(["5"] * 124)
    expr = f"{minutes} 0 * * *"
    assert len(expr) == 255
    assert next_time(Timetable(Cron(expr)), NOW) is not None
    assert next_time(Timetable(Cron(expr.replace(" 0 ", " 00 "))), NOW) is not None
    _refused(Cron(expr.replace(" 0 ", " 000 ")))


@pytest.mark.parametrize("weeks", [0, -1, -(10**30)])
def test_every_no_weeks_is_refused(weeks: int) -> None:
    _refused(Cron("0 9 * * MON", every_n_weeks=weeks, anchor=date(2026, 11, 16)))


@pytest.mark.parametrize("weeks", [2, 53, 1000, 10**5, 10**9, 10**30])
@pytest.mark.parametrize("expr", ["0 9 * * MON", "* * * * *", "0 0 29 2 *"])
@pytest.mark.parametrize("anchor", [None, date.min, date(2026, 11, 16), date.max])
def test_any_number_of_weeks_gets_an_answer(weeks: int, expr: str, anchor: date | None) -> None:
    _answered(lambda: _ask(Cron(expr, every_n_weeks=weeks, anchor=anchor)))


@pytest.mark.parametrize(
    "zone", ["UTC", "Pacific/Kiritimati", "Etc/GMT+12", "America/New_York", "Australia/Lord_Howe"]
)
@pytest.mark.parametrize("expr", ["* * * * *", "0 0 * * *", "59 23 31 12 *", "0 0 29 2 *", "30 2 * * SUN#5"])
@pytest.mark.parametrize(
    "after",
    [
        LAST,
        LAST - timedelta(seconds=1),
        LAST - timedelta(hours=13),
        LAST - timedelta(days=2),
        LAST - timedelta(days=400),
        datetime.min.replace(tzinfo=UTC),
        datetime.min.replace(tzinfo=UTC) + timedelta(hours=13),
        datetime(1, 1, 5, tzinfo=UTC),
        datetime(1883, 11, 18, 17, tzinfo=UTC),
    ],
    ids=lambda after: after.isoformat(),
)
def test_the_ends_of_the_calendar_are_no_cliff(zone: str, expr: str, after: datetime) -> None:
    timetable = Timetable(Cron(expr, zone))
    planned = _answered(lambda: planned_after(timetable, after))
    assert planned is None or planned.planned_for > after
    _answered(lambda: preview(timetable, after, 3))
    _answered(lambda: times_between(timetable, after, LAST, limit=3))


@pytest.mark.parametrize(
    "every", [timedelta(0), timedelta(seconds=-5), timedelta(milliseconds=999), timedelta.min]
)
def test_an_interval_under_a_second_is_refused(every: timedelta) -> None:
    _refused(Interval(every, NOW))


@pytest.mark.parametrize("every", [timedelta(seconds=1), timedelta(days=36500), timedelta.max])
@pytest.mark.parametrize("anchor", [None, datetime.min.replace(tzinfo=UTC), NOW, LAST])
@pytest.mark.parametrize("after", [datetime.min.replace(tzinfo=UTC), NOW, LAST])
def test_any_interval_and_anchor_get_an_answer(
    every: timedelta, anchor: datetime | None, after: datetime
) -> None:
    _answered(lambda: _ask(Interval(every, anchor), after))


@pytest.mark.parametrize(
    "spread", [timedelta(seconds=-1), timedelta.min, timedelta(days=4000), timedelta.max]
)
@pytest.mark.parametrize("after", [NOW, LAST - timedelta(days=3)])
def test_any_spread_gets_an_answer(spread: timedelta, after: datetime) -> None:
    _answered(lambda: _ask(Cron("0 9 * * *", "Asia/Tokyo", spread=spread), after))
    _answered(lambda: _ask(Interval(timedelta(hours=1), NOW, spread=spread), after))


def test_a_one_shot_at_the_end_of_the_calendar_is_still_one_time() -> None:
    planned = _answered(lambda: _ask(Once(LAST, "Pacific/Kiritimati")))
    assert planned is not None
    assert planned.planned_for == LAST


@given(st.text(max_size=300))
@examples(300)
def test_any_text_is_read_or_refused(text: str) -> None:
    _answered(lambda: parse_cron(text))
    _answered(lambda: parse_cron(text, seconds=True, seed=text))


@given(
    st.text("0123456789*/-,#LWH()?@ MONFRIJASU\u0663", max_size=60), st.booleans(), st.sampled_from(DayMatch)
)
@examples(500)
def test_any_text_in_the_letters_of_cron_is_read_or_refused(
    text: str, seconds: bool, match: DayMatch
) -> None:
    _answered(lambda: _ask(Cron(text, "Europe/Paris", seconds=seconds, day_match=match)))


@given(
    st.lists(st.text("0123456789*/-,#LWHMON", min_size=1, max_size=6), min_size=5, max_size=5),
    st.sampled_from(DayMatch),
)
@examples(500)
def test_any_five_fields_are_read_or_refused(fields: list[str], match: DayMatch) -> None:
    _answered(lambda: _ask(Cron(" ".join(fields), "America/St_Johns", day_match=match)))


@given(st.text(max_size=40))
@examples(200)
def test_any_text_as_a_zone_is_known_or_refused(zone: str) -> None:
    _answered(lambda: _ask(Cron("0 9 * * *", zone)))


def _ask(schedule: Schedule, after: datetime = NOW) -> PlannedTime | None:
    return planned_after(Timetable(schedule), after)


def _refused(schedule: Schedule) -> None:
    def must_fail() -> None:
        with pytest.raises(ScheduleInvalid) as caught:
            _ask(schedule)
        assert caught.value.message

    assert _answered(must_fail) is None


def _answered(do: Callable[[], T]) -> T | None:
    """Its answer, or None where it was refused; any other error, or too many steps, fails the test."""
    steps = 0

    def count(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal steps
        if "/foliot/domain/" not in frame.f_code.co_filename:
            return None
        steps += 1
        if steps > MOST_STEPS:
            raise AssertionError(f"still searching after {MOST_STEPS} steps")
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        return do()
    except ScheduleInvalid:
        return None
    finally:
        sys.settrace(before)
