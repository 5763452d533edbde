"""Words -> schedule. It is Wednesday 3 June 2026, noon in Paris, wherever a test does not say otherwise."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.errors import Mark, ScheduleInvalid
from foliot.domain.schedule.cron import wall_times
from foliot.domain.schedule.describe import say
from foliot.domain.schedule.kinds import Cron, Interval, Manual, Once, Schedule
from foliot.domain.schedule.words import examples, read_task, read_words
from foliot.domain.schedule.words.vocabulary import REFUSED, WORDS
from foliot.domain.schedule.zone import load_zone

PARIS = "Europe/Paris"
NOW = datetime(2026, 6, 3, 10, tzinfo=UTC)
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "words.md"


def read(text: str, *, now: datetime = NOW, timezone: str = PARIS) -> Schedule:
    return read_words(text, now=now, timezone=timezone, tz=load_zone(timezone), zone_named=load_zone)


def refusal(text: str, *, now: datetime = NOW, timezone: str = PARIS) -> ScheduleInvalid:
    with pytest.raises(ScheduleInvalid) as raised:
        read(text, now=now, timezone=timezone)
    return raised.value


CRON = {
    "every weekday at 9am": "0 9 * * 1-5",
    "Every  Weekday, at 9AM.": "0 9 * * 1-5",
    "first monday of the month at 8:00": "0 8 * * 1#1",
    "the first monday of every month at 8:00": "0 8 * * 1#1",
    "hourly": "0 * * * *",
    "every hour": "0 * * * *",
    "every minute": "* * * * *",
    "at 18:00 on fridays": "0 18 * * 5",
    "every weekday at 9am and 5pm": "0 9,17 * * 1-5",
    "every weekday at 9:30 and 17:30": "30 9,17 * * 1-5",
    "every day at 9:00, 9:30, 17:00 and 17:30": "0,30 9,17 * * *",
    "last day of the month at noon": "0 12 L * *",
    "daily": "0 0 * * *",
    "every day": "0 0 * * *",
    "daily at 18": "0 18 * * *",
    "every day at 06:30": "30 6 * * *",
    "every day at midnight": "0 0 * * *",
    "every day at 12am": "0 0 * * *",
    "every day at 12pm": "0 12 * * *",
    "nightly at 2am": "0 2 * * *",
    "please run every day at 9 a.m.": "0 9 * * *",
    "weekly on monday at 9am": "0 9 * * 1",
    "every week on monday at 9am": "0 9 * * 1",
    "every monday and thursday at 7:15pm": "15 19 * * 1,4",
    "every mon, wed and fri at 07:15": "15 7 * * 1,3,5",
    "mondays at 9am": "0 9 * * 1",
    "mon-fri at 9:00": "0 9 * * 1-5",
    "from monday to thursday at 9am": "0 9 * * 1-4",
    "friday to sunday at 9am": "0 9 * * 0,5,6",
    "every weekend at 10am": "0 10 * * 0,6",
    "every weekday and saturday at 10am": "0 10 * * 1-6",
    "monthly on the 15th at 8am": "0 8 15 * *",
    "every month on the 15th at 8am": "0 8 15 * *",
    "every 15th of the month at 8am": "0 8 15 * *",
    "on the 1st and 15th of the month at 9am": "0 9 1,15 * *",
    "on the first and last day of the month at 9am": "0 9 1,L * *",
    "on the last weekday of the month at 17:00": "0 17 LW * *",
    "last friday of the month at 17:00": "0 17 * * 5L",
    "every second tuesday of the month at 9am": "0 9 * * 2#2",
    "on the first and third monday of the month at 9am": "0 9 * * 1#1,1#3",
    "on the second, third and last monday of the month at 9am": "0 9 * * 1#2,1#3,1L",
    "every year on march 1 at noon": "0 12 1 3 *",
    "every 1 march at noon": "0 12 1 3 *",
    "yearly on the 29th of february at noon": "0 12 29 2 *",
    "quarterly on the 1st at 9am": "0 9 1 1,4,7,10 *",
    "every weekday at 9am in december": "0 9 * 12 1-5",
    "every weekday at 9am in november to february": "0 9 * 1,2,11,12 1-5",
    "every hour at :15": "15 * * * *",
    "hourly at :15": "15 * * * *",
    "every hour at 15 past": "15 * * * *",
    "every hour at quarter past": "15 * * * *",
    "every hour at half past the hour": "30 * * * *",
    "every hour at 15 minutes past the hour": "15 * * * *",
    "every hour at :00 and :30": "0,30 * * * *",
    "every hour on the hour": "0 * * * *",
    "every 2 hours at :30": "30 */2 * * *",
    "every 15 minutes on weekdays": "*/15 * * * 1-5",
    "every 15 minutes by the clock": "*/15 * * * *",
    "every 15 minutes from 9:00 to 16:45 on weekdays": "*/15 9-16 * * 1-5",
    "every 20 minutes from 9:05 to 11:45": "5,25,45 9-11 * * *",
    "every hour from 9am to 5pm on weekdays": "0 9-17 * * 1-5",
    "every hour between 9am and 5pm": "0 9-17 * * *",
    "every 2 hours from 9am to 5pm": "0 9-17/2 * * *",
    "every hour from 10pm to 6am": "0 0-6,22,23 * * *",
    "every 2 hours by the clock": "0 */2 * * *",
    "between monday and friday at 9am": "0 9 * * 1-5",
    "every hour between monday and friday": "0 * * * 1-5",
    "from monday to wednesday and friday at 9am": "0 9 * * 1-3,5",
    "every hour from 9am to 17:00": "0 9-17 * * *",
    "every hour from 22:00 to 6:00": "0 0-6,22,23 * * *",
    "every hour from 09:00 to 05:00": "0 0-5,9-23 * * *",
    "every hour from 13:00 to 17": "0 13-17 * * *",
    "nightly at 11pm": "0 23 * * *",
    "nightly at midnight": "0 0 * * *",
    "once every friday at 9am": "0 9 * * 5",
    "once daily at 9am": "0 9 * * *",
    "every day at 12 noon": "0 12 * * *",
    "every friday at 13": "0 13 * * 5",
    "every day at 17:00 and 9:00": "0 9,17 * * *",
    "every day at 09:00 and 05:00": "0 5,9 * * *",
    "every friday 9:00": "0 9 * * 5",
    "on the last day of the month at 5pm in march, june, september and december": "0 17 L 3,6,9,12 *",
    "monthly on the 15th at 9am in june to august": "0 9 15 6-8 *",
}


@pytest.mark.parametrize("text", CRON)
def test_clock_times_are_read_as_cron(text: str) -> None:
    assert read(text) == Cron(CRON[text], PARIS)


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("every 10 minutes", 600),
        ("every ten minutes", 600),
        ("every 10m", 600),
        ("every 1h30m", 5400),
        ("every 1 hour and 30 minutes", 5400),
        ("every 90 seconds", 90),
        ("every second", 1),
        ("every 1 hour", 3600),
        ("every half hour", 1800),
        ("every quarter hour", 900),
        ("every 2 days", 172800),
    ],
)
def test_a_counted_pace_is_an_interval(text: str, seconds: int) -> None:
    assert read(text) == Interval(timedelta(seconds=seconds), timezone=PARIS)


@pytest.mark.parametrize(
    "text, utc",
    [
        ("in 2 hours", "2026-06-03T12:00"),
        ("remind me in 2 hours", "2026-06-03T12:00"),
        ("2 hours from now", "2026-06-03T12:00"),
        ("in 10m", "2026-06-03T10:10"),
        ("in an hour", "2026-06-03T11:00"),
        ("in half an hour", "2026-06-03T10:30"),
        ("in 1 hour and 30 minutes", "2026-06-03T11:30"),
        ("in 3 days at 9am", "2026-06-06T07:00"),
        ("in 1 week and 1 day at 9am", "2026-06-11T07:00"),
        ("tomorrow at 00:00", "2026-06-03T22:00"),
        ("tomorrow at 6pm", "2026-06-04T16:00"),
        ("6pm tomorrow", "2026-06-04T16:00"),
        ("the day after tomorrow at 9am", "2026-06-05T07:00"),
        ("today at 18:00", "2026-06-03T16:00"),
        ("tonight at 8pm", "2026-06-03T18:00"),
        ("next friday at noon", "2026-06-05T10:00"),
        ("next wednesday at noon", "2026-06-10T10:00"),
        ("this wednesday at 18:00", "2026-06-03T16:00"),
        ("on 3 march 2027 at 9am", "2027-03-03T08:00"),
        ("on march 3rd, 2027 at 9am", "2027-03-03T08:00"),
        ("at 9am on the 3rd of march 2027", "2027-03-03T08:00"),
        ("on wednesday 3 march 2027 at 9am", "2027-03-03T08:00"),
        ("2027-03-03 09:00", "2027-03-03T08:00"),
        ("2027-03-03T09:00:00+01:00", "2027-03-03T08:00"),
        ("2027-03-03T09:00", "2027-03-03T08:00"),
        ("on 31 october 2027 at 2:30", "2027-10-31T00:30"),  # happens twice; the first, as everywhere
    ],
)
def test_one_shots_name_one_instant(text: str, utc: str) -> None:
    assert read(text) == Once(datetime.fromisoformat(utc).replace(tzinfo=UTC), PARIS)


def test_every_other_week_counts_from_the_first_match_after_now() -> None:
    def anchored(text: str) -> date | None:
        schedule = read(text)
        assert isinstance(schedule, Cron)
        assert schedule.every_n_weeks == 2
        return schedule.anchor

    assert read("every other tuesday at 14:30") == Cron(
        "30 14 * * 2", PARIS, every_n_weeks=2, anchor=date(2026, 6, 9)
    )
    assert anchored("every other wednesday at 14:30") == date(2026, 6, 3)
    assert anchored("every other wednesday at 11:30") == date(2026, 6, 10)
    assert anchored("every 2 weeks on monday and thursday at 10am") == date(2026, 6, 4)
    assert anchored("fortnightly on friday at 10am in december") == date(2026, 12, 4)
    assert anchored("every other tuesday at 14:30, counting from 2 june 2026") == date(2026, 6, 2)


def test_words_can_ask_for_no_schedule_at_all() -> None:
    assert read("manually") == Manual(PARIS)


def test_a_zone_at_the_end_replaces_the_schedules_own() -> None:
    assert read("every weekday at 9am America/New_York") == Cron("0 9 * * 1-5", "America/New_York")
    assert read("every weekday at 9am in utc") == Cron("0 9 * * 1-5", "UTC")
    assert read("tomorrow at 9am, Asia/Tokyo") == Once(datetime(2026, 6, 4, 0, tzinfo=UTC), "Asia/Tokyo")
    assert read("every day at 9am EST5EDT", timezone="EST5EDT") == Cron("0 9 * * *", "EST5EDT")
    assert refusal("every day at 9am Asia/Tokio").mark == Mark("every day at 9am Asia/Tokio", 17, 27)
    assert "The zone comes last" in refusal("every weekday Asia/Tokyo at 9am").message


def test_another_zone_is_refused_where_nobody_can_find_it() -> None:
    with pytest.raises(ScheduleInvalid, match="Asia/Tokyo"):
        read_words("every day at 9am Asia/Tokyo", now=NOW, timezone=PARIS, tz=load_zone(PARIS))


REFUSALS = {
    "daily at 6": "'6' can be morning or evening.",
    "every day at 12": "'12' can be morning or evening.",
    "every day at 9 o'clock": "'9' can be morning or evening.",
    "nightly": "'nightly' does not say at what time.",
    "every friday": "'every friday' does not say at what time.",
    "every weekday": "'every weekday' does not say at what time.",
    "tomorrow": "This does not say at what time.",
    "every month": "'every month' does not say on which day.",
    "weekly": "'weekly' does not say on which day.",
    "every 2 weeks": "'every 2 weeks' does not say on which day.",
    "every 521 weeks on monday at 9am": "Weeks are counted from 1 to 520.",
    "quarterly": "'quarterly' does not say on which day.",
    "twice a day": "'twice' does not say at what time.",
    "every morning": "'every morning' does not say at what time.",
    "biweekly": "'biweekly' can mean twice a week or every two weeks.",
    "at midnight": "'at midnight' can mean once or every day.",
    "at 9am": "'at 9am' can mean once or every day.",
    "on friday at 9am": "'friday' can mean one day or every week.",
    "monday and thursday at 9am": "'monday and thursday' can mean one day or every week.",
    "monday, tuesday and friday at 9am": "'monday, tuesday and friday' can mean one day or every week.",
    "on 3 march at 9am": "'3 march' can mean once or every year.",
    "on 29 february at 9am": "'29 february' can mean once or every year.",
    "on the 15th at 9am": "'15th' can mean one day or every month.",
    "the last monday at 9am": "'last monday' can mean one day or every month.",
    "every second tuesday at 9am": "This can mean every few weeks or once a month.",
    "every 2nd day at 9am": "This can mean every few days or one day of the month.",
    "tomorrow at midnight": "Midnight can be the start or the end of the day.",
    "tonight at 2am": "02:00 is not tonight.",
    "on 05/06/2027 at 9am": "'05/06/2027' can be read with the day or the month first.",
    "every 1.5 hours": "'1.5' is not a whole number.",
    "every weekday at 9:30 and 17:00": "Times with different minutes need a schedule of their own.",
    "every weekday at 9am and on saturdays at 10am": "What follows 'and' is a schedule of its own.",
    "every friday the 13th at 9am": "'13th' says again what was said before; one schedule says it once.",
    "every 15 minutes from 9:00 to 17:00 on weekdays": (
        "These steps are not the same minutes in each hour, which one schedule cannot say."
    ),
    "every hour from 10pm to 6am on weekdays": "A window past midnight belongs to two days.",
    "every 7 minutes on weekdays": (
        "With days, months or minutes beside it, a pace must divide the hour or the day evenly."
    ),
    "every 2 days at 9am": "A pace runs all day and has no clock time.",
    "every other day at 9am": "A pace runs all day and has no clock time.",
    "every 3 months": "Months and years differ in length, so they are named and not counted.",
    "every monday at 9am until june": "'until' is not part of the words of a schedule.",
    "today at 9am": "2026-06-03 09:00 is past: in Europe/Paris it is 2026-06-03 12:00.",
    "2020-01-01T00:00:00Z": "2020-01-01 01:00 is past: in Europe/Paris it is 2026-06-03 12:00.",
    "on 28 march 2027 at 2:30": "02:30 does not exist on 2027-03-28 in Europe/Paris: the clocks jump over it.",
    "on 30 february 2027 at 9am": "There is no such date.",
    "on the 31st of the month at 9am in february and april": "No such day ever comes in these months.",
    "on the 32nd of the month at 9am": "No month has a 32nd.",
    "on monday 3 march 2027 at 9am": "3 March 2027 is a Wednesday.",
    "every 0 minutes": "A duration is at least 1 second.",
    "every 30 minutes and 1 hour": "A duration goes from large to small: 1 hour and 30 minutes.",
    "every day at 25:00": "'25:00' is not a time of day.",
    "every day at 13pm": "There is no hour 13pm.",
    "in 10000000000 days": "This number is too large.",
    "in 999999999 days": "This is more than a hundred years.",
    "evry weekday at 9am": "Foliot does not know the word 'evry'.",
    "every weekday at 9am or so": "Foliot does not know the word 'or'.",
    "in 2": "'2' lacks its unit.",
    "every 10 minutes from friday": "'from friday' does not say up to which day.",
    "every 2 hours from monday": "'from monday' does not say up to which day.",
    "from monday at 9am": "'from monday' does not say up to which day.",
    "from monday and friday at 9am": "'from monday' does not say up to which day.",
    "from monday 9am to friday 5pm": "'from monday' does not say up to which day.",
    "between monday and wednesday and friday at 9am": "What follows 'and' is a schedule of its own.",
    "every hour from 9am and 5pm": "What follows 'and' is a schedule of its own.",
    "every year on monday 3 march at 9am": "A date falls on another weekday each year.",
    "every monday 3 march at 9am": "A date falls on another weekday each year.",
    "on monday the 3rd of march at 9am": "A date falls on another weekday each year.",
    "quarterly on the last day at 5pm": "'on the last day' does not say in which month of the quarter.",
    "quarterly on the last friday at 5pm": "'on the last friday' does not say in which month of the quarter.",
    "quarterly on the last weekday at 5pm": "'on the last weekday' does not say in which month of the quarter.",
    "every quarter on the 31st at 5pm": "'on the 31st' does not say in which month of the quarter.",
    "monthly in june on the 15th at 9am": "'in june' does not go with 'monthly'.",
    "every friday 13": "'13' can be an hour or a day.",
    "every friday 9": "'9' can be an hour or a day.",
    "every day 0": "'0' can be an hour or a day.",
    "every day in may 20": "'20' can be an hour or a day.",
    "every year on 3 march 20": "'20' can be an hour or a day.",
    "next friday 13": "'13' can be an hour or a day.",
    "at 18 20 every day": "'20' can be an hour or a day.",
    "every hour from 15 to 20 in march": "'15' can be an hour or a day.",
    "every other friday 13 at 9am": "'13' can be an hour or a day.",
    "every hour from 9:00 to 5:00": "'5:00' can be morning or evening.",
    "every hour from 1:00 to 5pm": "'1:00' can be morning or evening.",
    "every day at 1:00 and 5pm": "'1:00' can be morning or evening.",
    "every day at 9:00 and 5:00": "'5:00' can be morning or evening.",
    "every day at noon and 1:00": "'1:00' can be morning or evening.",
    "every day at 11am and 12:00": "'12:00' can be morning or evening.",
    "tonight at 8:00": "08:00 is not tonight.",
    "fridays 3 july 2026 at 9am": "'fridays' does not go with '3 july 2026'.",
    "every 15th at 8am": "This can mean every few days or one day of the month.",
    "in 2 hours at 9am": "A delay in hours or minutes already says the time.",
    "in 24 hours at 9am": "A delay in hours or minutes already says the time.",
    "in 48 hours at 9am": "A delay in hours or minutes already says the time.",
    "in 1 day and 24 hours at 9am": "A delay in hours or minutes already says the time.",
    "nightly at 2pm": "14:00 is not at night.",
    "every hour nightly": "'nightly' names one time each night.",
    "tomorrow at 12am": "Midnight can be the start or the end of the day.",
    "tomorrow at 12:00 a.m.": "Midnight can be the start or the end of the day.",
    "tonight at midnight": "Midnight can be the start or the end of the day.",
    "today at midnight": "Midnight can be the start or the end of the day.",
    "at 12am": "'at 12am' can mean once or every day.",
    "tomorrow at 12": "'12' can be morning or evening.",
    "tonight at 9": "'9' can be morning or evening.",
    "tonight": "This does not say at what time.",
    "once at 18:00 on fridays": "'once' cannot be combined with a time that repeats.",
    "three times a day": "'three times' does not say at what time.",
    "in march at 9am": "'at 9am' can mean once or every day.",
    "friday at 5pm in march": "'friday' can mean one day or every week.",
    "friday": "'friday' can mean one day or every week.",
    "every 15 minutes on friday": "'friday' can mean one day or every week.",
    "every 15 minutes on 3 march": "'3 march' can mean once or every year.",
    "every 7 days on monday": (
        "With days, months or minutes beside it, a pace must divide the hour or the day evenly."
    ),
    "every": "The phrase stops too early.",
    "": "This says nothing about when.",
    "every day at 9am\x00": "Foliot cannot read '\\x00' here.",
    "every 1\u0660 minutes": "Foliot cannot read '\u0660' here.",
    "every 10 minutes " * 700: "This is 11900 characters long; a phrase has at most 256.",
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSALS, ids=lambda text: text[:40])
def test_what_is_unclear_or_wrong_is_refused_with_the_reason_and_what_to_write(text: str) -> None:
    error = refusal(text)
    assert error.message == REFUSALS[text]
    assert error.hint
    for instead in re.findall(r"'(.+?)'", error.hint.partition("? ")[2] or error.hint):
        read(instead)


def test_the_offending_words_are_marked_in_the_users_text() -> None:
    def marked(text: str) -> str:
        mark = refusal(text).mark
        assert mark is not None
        assert mark.text == text
        return text[mark.start : mark.end]

    assert marked("  Evry weekday at 9am") == "Evry"
    assert marked("daily at 6") == "6"
    assert marked("every 15 minutes from 9:00 to 17:00 on weekdays") == "from 9:00 to 17:00"
    assert marked("every monday at 9:30, and 17:00") == "at 9:30, and 17:00"
    assert marked("every day at 9am banana") == "banana"


def test_a_misspelt_word_is_answered_with_the_nearest_one() -> None:
    assert "Did you mean 'every'?" in (refusal("evry weekday at 9am").hint or "")
    assert "Did you mean 'tuesday'?" in (refusal("every teusday at 9am").hint or "")
    assert "'every weekday at 9am'" in (refusal("evry weekday at 9am").hint or "")


def test_a_jumped_over_time_is_answered_with_the_next_that_exists() -> None:
    assert refusal("on 28 march 2027 at 2:30").hint == "The next time that exists is 03:00."
    assert (
        refusal("on 4 october 2026 at 2:10", timezone="Australia/Lord_Howe").hint
        == "The next time that exists is 02:30."
    )


def test_nothing_lies_beyond_the_calendar() -> None:
    end = datetime(9999, 12, 31, 23, tzinfo=UTC)
    for text in (
        "in 2 hours",
        "tomorrow at 9am",
        "next friday at noon",
        "every other friday at noon",
        "every day at 9am",
    ):
        assert "9999" in refusal(text, now=end, timezone="Asia/Tokyo").message
    assert "9999" in refusal("9999-12-31T23:59:00-10:00").message


@pytest.mark.parametrize("text", examples())
def test_every_example_is_understood_and_none_survives_a_stranger_in_its_midst(text: str) -> None:
    read(text)
    words = text.split()
    for at in range(len(words) + 1):
        for stranger in ("banana", "not", "unless", "or", "@", "99999", "from monday"):
            refusal(" ".join([*words[:at], stranger, *words[at:]]))


def survives(text: str) -> None:
    """Read or refused, nothing else; refused with a mark inside the text, read so that its sentence says the same."""
    schedule = None
    try:
        schedule = read(text)
    except ScheduleInvalid as error:
        refused = error
    if schedule is not None:
        assert read(say(schedule, load_zone(schedule.timezone))) == schedule
        return
    assert refused.hint
    assert refused.mark is None or 0 <= refused.mark.start <= refused.mark.end <= max(1, len(text))


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    survives(text)


SHAPES = "9am 5pm 14:30 :15 1st 15th 31st 2 10 12 60 24 2027 2027-02-29 2027-03-03T09:00:00Z 1h30m , - UTC"
SOUP = st.sampled_from([*WORDS, *REFUSED, *re.split(" ", SHAPES)])


@given(st.lists(SOUP, max_size=9))
def test_any_soup_of_known_words_is_read_or_refused(words: list[str]) -> None:
    survives(" ".join(words))


@given(st.data())
def test_any_clauses_thrown_together_are_read_or_refused(data: st.DataObject) -> None:
    clauses = [
        "every",
        *(clause for text in CRON for clause in re.split(r" (?=at |on |in |from |by )", text)),
    ]
    survives(" ".join(data.draw(st.lists(st.sampled_from(clauses), min_size=1, max_size=4))))


@given(st.integers(1, 300), st.integers(0, 1439), st.integers(0, 1439))
def test_a_window_names_exactly_its_steps_or_is_refused(pace: int, first: int, last: int) -> None:
    text = f"every {pace} minutes from {first // 60}:{first % 60:02} to {last // 60}:{last % 60:02}"
    with suppress(ScheduleInvalid):
        schedule = read(text)
        assert isinstance(schedule, Cron)
        walls = wall_times(schedule)
        until = last if last > first else last + 1440
        steps = {at % 1440 for at in range(first, until + 1, pace)}
        assert {hour * 60 + minute for hour in walls.hours for minute in walls.minutes} == steps
        assert read(say(schedule)) == schedule


def rows(heading: str) -> list[tuple[str, str]]:
    section = PAGE.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `(.+?)` \| (.+?) \|$", section, re.MULTILINE)


@pytest.mark.requirement("S4-28")
@pytest.mark.parametrize("text, sentence", rows("Accepted words"))
def test_the_page_says_what_is_understood(text: str, sentence: str) -> None:
    schedule = read(text)
    assert say(schedule, load_zone(schedule.timezone)) == sentence


@pytest.mark.parametrize("text, reason", rows("Refused words, and why"))
def test_the_page_says_what_is_refused(text: str, reason: str) -> None:
    error = refusal(text)
    assert f"{error.message} {error.hint}" == reason


@pytest.mark.requirement("S4-8")
@pytest.mark.parametrize(
    ("text", "task", "same"),
    [
        ("check the deployment every 10 minutes", "check the deployment", "every 10 minutes"),
        ("Every 10 minutes, check the deployment.", "check the deployment", "every 10 minutes"),
        ("remind me to call Ana in 2 hours", "call Ana", "in 2 hours"),
        ("remind me in 2 hours to call Ana", "call Ana", "in 2 hours"),
        ("please send the report every friday at 5pm", "send the report", "every friday at 5pm"),
        ("run the backup every night at 2am", "run the backup", "every night at 2am"),
        ("revisa el despliegue cada 10 minutos", "revisa el despliegue", "every 10 minutes"),
    ],
)
def test_a_task_beside_the_schedule_is_parted_from_it(text: str, task: str, same: str) -> None:
    assert (read_task(text), read(text)) == (task, read(same))


@pytest.mark.parametrize(
    "text",
    [
        "never check the deployment every 10 minutes",
        "do not check the deployment every 10 minutes",
        "stop the server every 10 minutes",
        "check the deployment every 10 minutes unless it is night",
        "check the deployment every 10 minutes if it is up",
        "check server 9 every 10 minutes",
        "check the logs biannually every friday at 9am",
        "check the logs fortnighly every friday at 9am",
        "send the weekly report every friday at 5pm",
        "check every 10 minutes the deployment",
        "check the deployment",
        "chek the deployment every 10 minutes",
    ],
)
def test_a_sentence_whose_task_might_say_something_about_times_is_refused(text: str) -> None:
    refusal(text)


def test_a_refusal_points_into_the_whole_sentence() -> None:
    error = refusal("check the deployment every tuesday at 9")
    assert error.mark == Mark("check the deployment every tuesday at 9", 38, 39)
    assert error.hint == "Write 'every tuesday at 9am' or 'every tuesday at 9pm'."
