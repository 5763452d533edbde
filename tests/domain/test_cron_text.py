"""Cron text is read strictly, and what is wrong is pointed at."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise

import pytest

from foliot.domain.errors import ScheduleInvalid
from foliot.domain.schedule import DayMatch, parse_cron

NOON = datetime(2026, 11, 15, 12)


@pytest.mark.parametrize(
    ("expr", "message", "marked"),
    [
        ("61 * * * *", "The minute field has 61; it takes 0-59.", "61"),
        ("0 24 * * *", "The hour field has 24; it takes 0-23.", "24"),
        ("0 0 32 * *", "The day of month field has 32; it takes 1-31.", "32"),
        ("0 0 0 * *", "The day of month field has 0; it takes 1-31.", "0"),
        ("0 0 * 13 *", "The month field has 13; it takes 1-12.", "13"),
        ("0 0 * * 8", "The day of week field has 8; it takes 0-7.", "8"),
        ("*/0 * * * *", "A step of 0 in the minute field names no times.", "/0"),
        (
            "*/61 * * * *",
            "A step of 61 in the minute field reaches past 59, so it would only ever match 0.",
            "/61",
        ),
        ("0 0 * * MONDAY", 'The day of week field has "MONDAY"; it takes 0-7 or SUN-SAT.', "MONDAY"),
        ("0 0 * * L", 'The day of week field has "L"; it takes 0-7 or SUN-SAT.', "L"),
        ("0 0 15W * *", 'The day of month field has "15W"; it takes 1-31.', "15W"),
        ("0 22-4 * * *", 'The hour range "22-4" runs backwards.', "22-4"),
        ("0 0 * * FRI-MON", 'The day of week range "FRI-MON" runs backwards.', "FRI-MON"),
        ("1,,2 * * * *", "The minute field has an empty place in its list.", "1,,2"),
        ("? * * * *", '"?" stands only in the day fields, not in the minute field.', "?"),
        ("0 0 * * 1#6", '"1#6" should end in #1 to #5.', "1#6"),
        ("H(40-70) * * * *", "The range of H(40-70) must lie in 0-59.", "H(40-70)"),
        ("H(1 * * * *", 'Foliot cannot read "H(1".', "H(1"),
        ("0 9 * * mon,xyz", 'The day of week field has "xyz"; it takes 0-7 or SUN-SAT.', "xyz"),
        ("0 9 11,0 * *", "The day of month field has 0; it takes 1-31.", "0"),
        (
            "0 9 * * mon,\u017fun",
            'The day of week field has "\u017fun"; it takes 0-7 or SUN-SAT.',
            "\u017fun",
        ),
        ("@wee\u212aly", "Foliot does not know this @ name.", "@wee\u212aly"),
        ("-1 * * * *", 'The minute field has "-1"; it takes 0-59, nothing negative.', "-1"),
        ("0 9 1- * *", 'The day of month range "1-" lacks its end.', "1-"),
        ("0 9 * * -fri", 'The day of week range "-fri" lacks its start.', "-fri"),
        ("/5 * * * *", '"/5" does not say through what the minute field steps.', "/5"),
        ("0 9 * * #2", '"#2" lacks its weekday.', "#2"),
        ("1٣ * * * *", 'The minute field has "1٣"; it takes 0-59.', "1٣"),
    ],
)
def test_a_wrong_field_is_named_and_marked(expr: str, message: str, marked: str) -> None:
    with pytest.raises(ScheduleInvalid) as refused:
        parse_cron(expr)
    assert refused.value.message == message
    assert refused.value.mark is not None
    mark = refused.value.mark
    assert mark.text[mark.start : mark.end] == marked


@pytest.mark.parametrize(
    ("expr", "hint"),
    [
        ("0 25 * * *", 'Did you mean "25 0 …" (00:25)? Minutes come first.'),
        ("0 0 * * MONDAY", 'Did you mean "MON"? Names have three letters.'),
        ("0 0 * * L", '"5L" is the last Friday of the month'),
        ("0 9 L-3 * *", "nothing can be counted from it"),
        ("0 9 L3 * *", "nothing can be counted from it"),
        ("0 9 15,L/2 * *", "nothing can be counted from it"),
        ("/5 * * * *", 'Write "*/5".'),
        ("0 22-4 * * *", 'Write it in two parts: "22-23,0-4".'),
        ("0 0 0 1 1 ?", "Six fields start with seconds"),
        ("@every 5m", "Use an interval instead"),
        ("@reboot", "manual job"),
        ("@dialy", "@daily"),
        ("* * * *", "minute hour day-of-month month day-of-week"),
    ],
)
def test_an_error_says_what_to_write(expr: str, hint: str) -> None:
    with pytest.raises(ScheduleInvalid) as refused:
        parse_cron(expr)
    assert refused.value.hint is not None
    assert hint in refused.value.hint


def test_a_word_that_begins_with_l_is_no_last_day() -> None:
    with pytest.raises(ScheduleInvalid) as refused:
        parse_cron("0 9 LICENSE * *")
    assert refused.value.hint is None


@pytest.mark.parametrize("expr", ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 31 2-2 ?", "0 0 */3 2 MON#5"])
def test_an_impossible_date_is_refused_at_once(expr: str) -> None:
    with pytest.raises(ScheduleInvalid, match="never fires"):
        parse_cron(expr)


@pytest.mark.parametrize("expr", ["0 0 1 * MON#5", "0 0 1-7 * 5L", "0 0 30 2 1"])
def test_days_that_can_never_meet_are_refused_when_both_must_match(expr: str) -> None:
    with pytest.raises(ScheduleInvalid, match="never fires"):
        parse_cron(expr, day_match=DayMatch.AND)


@pytest.mark.requirement("S0-4", "S1-FR-001", "S2-1")
@pytest.mark.parametrize(
    ("expr", "first"),
    [
        ("@daily", datetime(2026, 11, 16, 0)),
        ("@hourly", datetime(2026, 11, 15, 12)),
        ("@weekly", datetime(2026, 11, 22, 0)),
        ("@monthly", datetime(2026, 12, 1, 0)),
        ("@yearly", datetime(2027, 1, 1, 0)),
        ("0 9 L * *", datetime(2026, 11, 30, 9)),
        ("0 9 LW * *", datetime(2026, 11, 30, 9)),
        ("0 9 LW 5 *", datetime(2027, 5, 31, 9)),
        ("0 9 LW 10 ?", datetime(2027, 10, 29, 9)),  # 31 October 2027 is a Sunday
        ("0 9 * * 5L", datetime(2026, 11, 27, 9)),
        ("0 9 * * MON#5", datetime(2026, 11, 30, 9)),
        ("0 9 * * 7", datetime(2026, 11, 22, 9)),
        ("0 13 13 * FRI", datetime(2026, 11, 20, 13)),  # the 13th or a Friday
        ("5/20 * * * *", datetime(2026, 11, 15, 12, 5)),
        ("0 0 29 2 *", datetime(2028, 2, 29)),
        ("*/60 * * * *", datetime(2026, 11, 15, 12)),
        ("0 */24 * * *", datetime(2026, 11, 16)),
        ("0 0 */2 * MON", datetime(2026, 11, 23)),  # a field that starts with * does not turn the OR on
    ],
)
def test_an_expression_names_this_time_next(expr: str, first: datetime) -> None:
    assert parse_cron(expr).first_from(NOON) == first


def test_both_day_fields_must_match_when_asked() -> None:
    assert parse_cron("0 13 13 * FRI", day_match=DayMatch.AND).first_from(NOON) == datetime(2027, 8, 13, 13)


def test_a_hashed_field_is_stable_for_a_job_and_differs_between_jobs() -> None:
    minutes = {parse_cron("H H * * *", seed=f"job {n}").minutes for n in range(200)}
    assert len(minutes) > 40
    assert parse_cron("H H * * *", seed="job 1").minutes == parse_cron("H H * * *", seed="job 1").minutes
    assert all(
        number in range(30)
        for n in range(50)
        for number in parse_cron("H(0-29) * * * *", seed=str(n)).minutes
    )
    quarter = parse_cron("H/15 * * * *", seed="job").minutes
    assert len(quarter) == 4
    assert {b - a for a, b in pairwise(quarter)} == {15}
    assert all(
        parse_cron("0 0 H * *", seed=str(n)).days.day.numbers <= frozenset(range(1, 29)) for n in range(100)
    )
