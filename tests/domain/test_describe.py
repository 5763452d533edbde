"""Schedule -> sentence, and back again where words can say it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from foliot.domain.errors import ScheduleInvalid
from foliot.domain.schedule.cron import wall_times
from foliot.domain.schedule.describe import say
from foliot.domain.schedule.kinds import (
    Cron,
    DayMatch,
    Gap,
    Interval,
    IntervalMode,
    Manual,
    Once,
    OverlapTime,
    Schedule,
)
from foliot.domain.schedule.words import read_words
from foliot.domain.schedule.zone import load_zone

NOW = datetime(2026, 6, 3, 10, tzinfo=UTC)
ZONES = st.sampled_from(
    ["UTC", "Europe/Paris", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Etc/GMT+5", "Japan"]
)

CRON = {
    "* * * * *": "Every minute",
    "*/15 * * * *": "Every 15 minutes by the clock",
    "*/7 * * * *": "At every 7th minute from 0 to 56 past every hour",
    "*/15,7 * * * *": "At minutes 0, 7, 15, 30 and 45 past every hour",
    "0 * * * *": "Every hour",
    "15 * * * *": "Every hour at :15",
    "0 */6 * * *": "Every 6 hours by the clock",
    "30 */2 * * 1-5": "Every 2 hours at :30 on weekdays",
    "0 */5 * * *": "At minute 0 past hours 0, 5, 10, 15 and 20",
    "0 9 * * MON-FRI": "Every weekday at 09:00",
    "0 9,17 * * *": "Every day at 09:00 and 17:00",
    "0 9 * * 7": "Every Sunday at 09:00",
    "0 9 * * 5-7": "Every Friday, Saturday and Sunday at 09:00",
    "5,20,35 9-17 * jan mon": "At minutes 5, 20 and 35 past every hour from 09:00 to 17:59 on Mondays, in January",
    "0 9 13 * 5": "On the 13th of the month or on Fridays at 09:00",
    "0 9 13 * 0-6": "On the 13th of the month or on any day of the week at 09:00",
    "0 9 */2 * 1": "On every 2nd day of the month from the 1st to the 31st at 09:00, only when that is a Monday",
    "0 9 1,2,3,11,12,13,21,22,23,31 * *": "On the 1st to 3rd, 11th to 13th, 21st to 23rd and 31st of the month at 09:00",
    "0 9 * * 1#1,1#3": "On the first and third Monday of the month at 09:00",
    "0 9 * * MON#2,5L": "On the second Monday of the month and the last Friday of the month at 09:00",
    "0 12 L * ?": "On the last day of the month at 12:00",
    "0 12 LW * *": "On the last weekday of the month at 12:00",
    "0 12 1 3 *": "Every year on 1 March at 12:00",
    "0 9 1 1,4,7,10 *": "On the 1st of the month at 09:00, in January, April, July and October",
    "0 9-17 * * 1-5": "Every hour from 09:00 to 17:00 on weekdays",
    "0 9-17/2 * * *": "Every 2 hours from 09:00 to 17:00",
    "*/15 9-16 * * 1-5": "Every 15 minutes from 09:00 to 16:45 on weekdays",
    "*/15 9,12 * * *": "At every 15th minute from 0 to 45 past hours 9 and 12",
    "0 0-6,22,23 * * *": "Every hour from 22:00 to 06:00",
    "0 0-6,22,23 * * 1": "At minute 0 past hours 0 to 6, 22 and 23 on Mondays",
    "H * * * *": "Every hour at a minute chosen per job",
    "H H * * *": "Every day at a time chosen per job",
    "H H * * H": "On a day of the week chosen per job at a time chosen per job",
    "H(0-29) 9 * * *": "At a minute from 0 to 29 chosen per job past hour 9",
    "H/15 * * * *": "At every 15th minute from a start chosen per job past every hour",
    "0 H H H *": "At minute 0 past an hour chosen per job on a day of the month chosen per job, in a month chosen per job",
    "@daily": "Every day at 00:00",
    "@hourly": "Every hour",
    "@weekly": "Every Sunday at 00:00",
    "@monthly": "On the 1st of the month at 00:00",
    "@yearly": "Every year on 1 January at 00:00",
    "0 9 15W * *": "Cron '0 9 15W * *'",
    "what ever": "Cron 'what ever'",
}  # fmt: skip


@pytest.mark.parametrize("expr", CRON)
def test_a_cron_expression_is_reported_in_words(expr: str) -> None:
    assert say(Cron(expr, "Europe/Paris")) == f"{CRON[expr]}, Europe/Paris"


@pytest.mark.parametrize(
    "schedule, sentence",
    [
        (Cron("0 9 13 * 5", day_match=DayMatch.AND), "On the 13th of the month at 09:00, only when that is a Friday, UTC"),
        (Cron("*/10 * * * * *", seconds=True), "Every 10 seconds by the clock, UTC"),
        (Cron("30 0 9 * * *", seconds=True), "Every day at 09:00:30, UTC"),
        (Cron("* */5 * * * 1", seconds=True), "Every second of these minutes: every 5 minutes on Mondays, UTC"),
        (Cron("*/20 0 9 * * *", seconds=True), "Every day at 09:00:00, 09:00:20 and 09:00:40, UTC"),
        (Cron("* 0 9,17 * * 1", seconds=True), "Every Monday at every second of 09:00 and 17:00, UTC"),
        (Cron("0-30 0 9 * * *", seconds=True), "Every day at seconds 0 to 30 of 09:00, UTC"),
        (Cron("* 0 * * * *", seconds=True), "Every second of these minutes: every hour at :00, UTC"),
        (Cron("0 9 * * \u017fun"), "Cron '0 9 * * \u017fun', UTC"),
        (Cron("0 0 9 * * 1", seconds=True), "Every Monday at 09:00, UTC"),
        (Cron("0 0 9 * * 1"), "Cron '0 0 9 * * 1', UTC"),
        (
            Cron("30 14 * * 2", every_n_weeks=2, anchor=date(2026, 6, 9)),
            "Every other Tuesday at 14:30, counting from 9 June 2026, UTC",
        ),
        (
            Cron("*/5 14 * * 2", every_n_weeks=3, anchor=date(2026, 6, 9)),
            "Every 5 minutes from 14:00 to 14:55 on Tuesdays, only in every 3rd week, counting from 9 June 2026, UTC",
        ),
        (
            Cron("30 2 * * *", gap=Gap.SKIP, overlap_time=OverlapTime.BOTH, spread=timedelta(minutes=5)),
            "Every day at 02:30, UTC; skipped where the clocks jump over it; both times where the clocks are set back; spread over 5 minutes",
        ),
        (Interval(timedelta(minutes=10)), "Every 10 minutes"),
        (Interval(timedelta(seconds=1)), "Every second"),
        (Interval(timedelta(hours=1)), "Every 1 hour"),
        (Interval(timedelta(seconds=90)), "Every 1 minute and 30 seconds"),
        (Interval(timedelta(minutes=5), mode=IntervalMode.FIXED_DELAY), "5 minutes after each run has ended"),
        (Interval(timedelta(minutes=5), anchor=NOW, spread=timedelta(seconds=9)), "Every 5 minutes; spread over 9 seconds"),
        (Manual(), "Manually"),
    ],
)  # fmt: skip
def test_a_schedule_is_reported_with_all_that_bends_it(schedule: Schedule, sentence: str) -> None:
    assert say(schedule) == sentence


def test_a_one_shot_is_reported_in_local_time_where_the_zone_is_at_hand() -> None:
    paris = load_zone("Europe/Paris")
    once = Once(datetime(2027, 3, 3, 8, tzinfo=UTC), "Europe/Paris")
    assert say(once, paris) == "Once on Wednesday 3 March 2027 at 09:00, Europe/Paris"
    assert say(once) == "Once at 2027-03-03T08:00:00Z, Europe/Paris"
    second_half_past_two = Once(datetime(2027, 10, 31, 1, 30, tzinfo=UTC), "Europe/Paris")
    assert say(second_half_past_two, paris) == "Once at 2027-10-31T01:30:00Z, Europe/Paris"


def reread(schedule: Schedule) -> Schedule:
    zone = load_zone(schedule.timezone)
    return read_words(say(schedule, zone), now=NOW, timezone=schedule.timezone, tz=zone)


@given(st.integers(1, 100 * 365 * 86400), ZONES)
def test_every_interval_comes_back_from_its_sentence(seconds: int, zone: str) -> None:
    schedule = Interval(timedelta(seconds=seconds), timezone=zone)
    assert reread(schedule) == schedule


@given(st.datetimes(datetime(2026, 6, 4), datetime(9999, 12, 30)), ZONES)
def test_every_one_shot_comes_back_from_its_sentence(at: datetime, zone: str) -> None:
    schedule = Once(at.replace(tzinfo=UTC), zone)
    assert reread(schedule) == schedule


def plain(values: st.SearchStrategy[int], most: int) -> st.SearchStrategy[str]:
    return st.sets(values, min_size=1, max_size=most).map(lambda found: ",".join(map(str, sorted(found))))


TIMES = st.one_of(
    st.tuples(plain(st.integers(0, 59), 3), plain(st.integers(0, 23), 4)).map(" ".join),
    st.tuples(plain(st.integers(0, 59), 12), st.sampled_from(["*", "*/2", "*/12"])).map(" ".join),
    st.sampled_from(
        [
            "* *",
            "*/5 *",
            "*/30 *",
            "*/15 9",
            "* 9-11",
            "*/20 0-23",
            "0 9-17",
            "59 0-22/2",
            "7 0,1,23",
            "0 0-2,22,23",
        ]
    ),
)
DAYS = st.one_of(
    st.sampled_from(
        [
            "* * 1-5",
            "* * 0,6",
            "* * 0-4",
            "* 2-4,9 *",
            "1,15,L * *",
            "LW * *",
            "29 2 *",
            "* * *",
            "* * 1#1,1#5,1L",
        ]
    ),
    plain(st.integers(1, 31), 6).map("{} * *".format),
    plain(st.integers(1, 28), 1).map("{} 7 *".format),
    st.integers(0, 6).map("* * {}".format),
    st.tuples(st.integers(0, 6), st.integers(1, 5)).map(lambda nth: f"* 1,2 {nth[0]}#{nth[1]}"),
)


@given(TIMES, DAYS, ZONES)
def test_what_words_can_say_comes_back_from_its_sentence(times: str, days: str, zone: str) -> None:
    assume(not (times == "0 0-2,22,23" and days != "* * *"))  # across midnight only on any day
    schedule = Cron(f"{times} {days}", zone)
    assert reread(schedule) == schedule


@given(plain(st.integers(0, 6), 2), st.integers(2, 520), st.dates(date(1000, 1, 1)), ZONES)
def test_counted_weeks_come_back_from_their_sentence(
    weekdays: str, weeks: int, anchor: date, zone: str
) -> None:
    schedule = Cron(f"30 14 * * {weekdays}", zone, every_n_weeks=weeks, anchor=anchor)
    assert reread(schedule) == schedule


def field(low: int, high: int, *extra: str) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    step = st.sampled_from(["", "", "/2", "/7", "/15", "/61"])
    ranges = st.tuples(number, number).map(lambda ends: f"{min(ends)}-{max(ends)}")
    item = st.one_of(
        number.map(str), st.tuples(st.one_of(st.just("*"), ranges), step).map("".join), *map(st.just, extra)
    )
    return st.one_of(
        st.just("*"), st.just("0" if low == 0 else "1"), st.lists(item, min_size=1, max_size=3).map(",".join)
    )


EXPRESSIONS = st.tuples(
    field(0, 59, "*/15", "H"), field(0, 23, "*/6", "9-17", "H"), field(1, 31, "L", "LW", "?"), field(1, 12, "JAN", "MAR-JUN"),
    field(0, 7, "MON-FRI", "5L", "1#2", "TUE#5", "?"),
).map(" ".join)  # fmt: skip


@given(EXPRESSIONS, st.sampled_from(DayMatch))
def test_every_expression_has_a_sentence_and_none_that_reads_as_something_else(
    expr: str, day_match: DayMatch
) -> None:
    schedule = Cron(expr, day_match=day_match)
    sentence = say(schedule)
    assert sentence.endswith(", UTC")
    try:
        again = read_words(sentence, now=NOW, timezone="UTC", tz=UTC)
    except ScheduleInvalid:
        return
    assert isinstance(again, Cron)
    try:
        meant = wall_times(schedule)
    except ScheduleInvalid:
        return
    reported = wall_times(again)
    assert (reported.hours, reported.minutes, reported.is_open) == (meant.hours, meant.minutes, meant.is_open)
    assert all(
        reported.days.of(2027 + n // 12, n % 12 + 1) == meant.days.of(2027 + n // 12, n % 12 + 1)
        for n in range(48)
    )


@given(st.text(max_size=60), st.booleans())
def test_even_what_is_no_expression_has_a_sentence(expr: str, seconds: bool) -> None:
    assert say(Cron(expr, seconds=seconds))
