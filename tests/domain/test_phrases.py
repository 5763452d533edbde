"""Phrases as people write them, with their meaning: cron fields, seconds of an interval, one instant, or refused.

A person read the meaning of each line beside its phrase; it was not worked out without the parser.

It is Wednesday 3 June 2026, noon in Paris. At least five of six are understood, and none is misread.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from foliot.domain.errors import ScheduleInvalid
from foliot.domain.schedule.describe import say
from foliot.domain.schedule.kinds import Cron, Interval, Once, Schedule
from foliot.domain.schedule.words import read_words
from foliot.domain.schedule.zone import load_zone

PARIS = "Europe/Paris"
NOW = datetime(2026, 6, 3, 10, tzinfo=UTC)
TABLE = """
every 15 minutes between 9am and 5pm = */15 9-16 * * *
every business day at 8am = 0 8 * * 1-5
everyday at 9am = 0 9 * * *
end of month at 11pm = 0 23 L * *
every day except sunday = 0 0 * * 1-6
every day except sunday at 9am = 0 9 * * 1-6
every day at 9am except weekends = 0 9 * * 1-5
9am EST = refused
every day at 9am EST = 0 9 * * * America/New_York
every other hour = every 7200
mon/wed/fri at 7am = 0 7 * * 1,3,5
every mon/wed/fri at 7am = 0 7 * * 1,3,5
every night at 2am = 0 2 * * *
every night at 11 = 0 23 * * *
every morning at 8 = 0 8 * * *
every evening at 6:30pm = 30 18 * * *
every morning at 9pm = refused
twice a day at 8am and 8pm = 0 8,20 * * *
twice daily at 9am and 5pm = 0 9,17 * * *
twice a day = refused
three times a day at 8am, 2pm and 8pm = 0 8,14,20 * * *
once a day at 9am = 0 9 * * *
once a week on monday at 9am = 0 9 * * 1
once a month on the 1st at 9am = 0 9 1 * *
once an hour = 0 * * * *
every half hour = every 1800
half hourly = every 1800
every hour on the hour = 0 * * * *
at the top of every hour = 0 * * * *
top of the hour = refused
15 minutes past every hour = 15 * * * *
at 15 minutes past every hour = 15 * * * *
every hour at minute 15 = 15 * * * *
at minute 15 of every hour = 15 * * * *
on day 15 of the month at 9am = 0 9 15 * *
every fortnight on monday at 9am = 0 9 * * 1 x2w
alternate mondays at 9am = 0 9 * * 1 x2w
every alternate monday at 9am = 0 9 * * 1 x2w
every 30 minutes from 8 to 18 on weekdays = */30 8-17 * * 1-5
every hour from 9 to 17 = 0 9-17 * * *
every day at 9.30am = 30 9 * * *
weekdays at 9am exactly = 0 9 * * 1-5
tuesdays & thursdays at 4pm = 0 16 * * 2,4
run this job every day at 9am = 0 9 * * *
schedule it daily at 6pm = 0 18 * * *
weekdays only at 9am = 0 9 * * 1-5
daily at 9am sharp = 0 9 * * *
last business day of the month at 5pm = 0 17 LW * *
first of the month at 9am = 0 9 1 * *
start of the month at 9am = 0 9 1 * *
beginning of each month at 00:30 = 30 0 1 * *
every midnight = 0 0 * * *
every noon = 0 12 * * *
on december 24 at 6pm = refused
every day at 6 in the morning = 0 6 * * *
tomorrow morning at 9 = once 2026-06-04T07:00:00+00:00
every friday evening at 6pm = 0 18 * * 5
at night = refused
every other day = every 172800
every other day at 9am = refused
every other month on the 1st at 9am = refused
every 10 minutes except weekends = */10 * * * 1-5
every weekday except friday at 9am = 0 9 * * 1-4
every 5 minutes on weekdays between 8am and 6pm = */5 8-17 * * 1-5
every day at 9am CST = refused
every day at 5pm pacific time = 0 17 * * * America/Los_Angeles
every day but sunday at 9am = 0 9 * * 1-6
9am daily = 0 9 * * *
daily 9am = 0 9 * * *
noon every day = 0 12 * * *
every day at 9 = refused
every monday morning at 8:30am = 30 8 * * 1
every saturday night at 11pm = 0 23 * * 6
every 2 hours between 8am and 6pm = 0 8-18/2 * * *
every day of the week at 9am = 0 9 * * *
every day of the month at noon = 0 12 * * *
work days at 7:30 = 30 7 * * 1-5
every minute = * * * * *
every 5 minutes = every 300
every 10 mins = every 600
every hour = 0 * * * *
hourly = 0 * * * *
every 2 hours = every 7200
every 6 hours = every 21600
every 90 minutes = every 5400
every 1 hour and 30 minutes = every 5400
every 45 seconds = every 45
every second = every 1
every day = 0 0 * * *
daily = 0 0 * * *
every day at noon = 0 12 * * *
every day at midnight = 0 0 * * *
every day at 6am = 0 6 * * *
every day at 18:30 = 30 18 * * *
every day at 6am and 6pm = 0 6,18 * * *
each day at 5pm = 0 17 * * *
at 9am every day = 0 9 * * *
at 18:00 daily = 0 18 * * *
nightly at 2am = 0 2 * * *
weekdays at 9am = 0 9 * * 1-5
every weekday at 8:30am = 30 8 * * 1-5
every weekday at 9am and 5pm = 0 9,17 * * 1-5
weekends at 10am = 0 10 * * 0,6
every weekend at 10am = 0 10 * * 0,6
every saturday and sunday at 10am = 0 10 * * 0,6
monday to friday at 9am = 0 9 * * 1-5
monday through friday at 9am = 0 9 * * 1-5
mon-fri at 9am = 0 9 * * 1-5
from monday to friday at 7am = 0 7 * * 1-5
every monday at 9am = 0 9 * * 1
mondays at 9am = 0 9 * * 1
every monday and thursday at 7:15pm = 15 19 * * 1,4
every monday, wednesday and friday at 7am = 0 7 * * 1,3,5
on fridays at 6pm = 0 18 * * 5
at 6pm on fridays = 0 18 * * 5
every other tuesday at 14:30 = 30 14 * * 2 x2w
every 2 weeks on monday at 9am = 0 9 * * 1 x2w
every other week on friday at noon = 0 12 * * 5 x2w
fortnightly on friday at 5pm = 0 17 * * 5 x2w
weekly on sunday at 3am = 0 3 * * 0
every week on monday at 9am = 0 9 * * 1
weekly = refused
monthly on the 1st at 9am = 0 9 1 * *
monthly = refused
every month on the 15th at 9am = 0 9 15 * *
on the 1st and 15th of the month at 9am = 0 9 1,15 * *
1st of every month at midnight = 0 0 1 * *
15th of each month at 6pm = 0 18 15 * *
the last day of the month at noon = 0 12 L * *
last day of each month at 23:00 = 0 23 L * *
first monday of the month at 8:00 = 0 8 * * 1#1
every first monday of the month at 8am = 0 8 * * 1#1
third friday of the month at noon = 0 12 * * 5#3
last friday of every month at 5pm = 0 17 * * 5L
every month on the last friday at 5pm = 0 17 * * 5L
first and third monday of the month at 9am = 0 9 * * 1#1,1#3
quarterly on the 1st at 9am = 0 9 1 1,4,7,10 *
every quarter on the first day at 9am = 0 9 1 1,4,7,10 *
every year on 1 march at noon = 0 12 1 3 *
yearly on december 25 at 8am = 0 8 25 12 *
every december 25 at 8am = 0 8 25 12 *
annually on jan 1 at midnight = 0 0 1 1 *
every january 1st at 00:05 = 5 0 1 1 *
every 15 minutes from 9:00 to 16:45 = */15 9-16 * * *
every 15 minutes from 9am to 5pm on weekdays = */15 9-16 * * 1-5
every 30 minutes between 8am and 6pm on weekdays = */30 8-17 * * 1-5
every 20 minutes from 6:00 to 22:00 = refused
every hour from 9am to 5pm = 0 9-17 * * *
every hour between 9am and 5pm on weekdays = 0 9-17 * * 1-5
hourly from 8am to 8pm = 0 8-20 * * *
hourly on weekdays = 0 * * * 1-5
every 10 minutes on weekends = */10 * * * 0,6
every hour at :15 = 15 * * * *
every hour at :00 and :30 = 0,30 * * * *
every hour at half past = 30 * * * *
every hour at quarter past = 15 * * * *
every 2 hours at :30 = 30 */2 * * *
every day at 7am in january = 0 7 * 1 *
on the 1st of the month at 9am in january and july = 0 9 1 1,7 *
every monday at 9am in june to august = 0 9 * 6-8 1
in 2 hours = once 2026-06-03T12:00:00+00:00
in 30 minutes = once 2026-06-03T10:30:00+00:00
in half an hour = once 2026-06-03T10:30:00+00:00
in 3 days at 9am = once 2026-06-06T07:00:00+00:00
2 hours from now = once 2026-06-03T12:00:00+00:00
tomorrow at 6pm = once 2026-06-04T16:00:00+00:00
tonight at 9pm = once 2026-06-03T19:00:00+00:00
today at 11pm = once 2026-06-03T21:00:00+00:00
next friday at noon = once 2026-06-05T10:00:00+00:00
this friday at 5pm = once 2026-06-05T15:00:00+00:00
on 3 march 2027 at 9am = once 2027-03-03T08:00:00+00:00
on 2027-03-03 at 9am = once 2027-03-03T08:00:00+00:00
2027-03-03T09:00:00Z = once 2027-03-03T09:00:00+00:00
manually = manual
every day at 9am UTC = 0 9 * * * UTC
every weekday at 9am America/New_York = 0 9 * * 1-5 America/New_York
every monday at 8am CET = 0 8 * * 1 CET
tue/thu at 4pm = 0 16 * * 2,4
every tue & thu at 4pm = 0 16 * * 2,4
every sat + sun at 11am = 0 11 * * 0,6
every working day at 6pm = 0 18 * * 1-5
every sunday at 7:45 in the evening = 45 19 * * 0
every day at 10 at night = 0 22 * * *
every afternoon at 3 = 0 15 * * *
every weekday morning at 8 = 0 8 * * 1-5
each morning at 7:30am = 30 7 * * *
each night at 1am = 0 1 * * *
please run every day at 9 a.m. = 0 9 * * *
execute the task every hour = 0 * * * *
at month end at 10pm = 0 22 L * *
at the end of every month at 6pm = 0 18 L * *
every 1st at 9am = refused
every 2 days = every 172800
every 3 days at 9am = refused
biweekly on monday at 9am = refused
bimonthly = refused
every now and then = refused
every day at 25:00 = refused
every day at 9 or 10am = refused
from 9 to 5 = refused
every day around 9am = refused
every day at 9am until friday = refused
every day at 9am except holidays = refused
every 3 months on the 1st at 9am = refused
on 3/4/2027 at 9am = refused
every hour except between 12 and 1pm = refused
friday = refused
at 9am = refused
every day at 8 o'clock = refused
every 1.5 hours = refused
"""
PHRASES = [tuple(line.split(" = ")) for line in TABLE.strip().splitlines()]


def read(text: str) -> Schedule:
    return read_words(text, now=NOW, timezone=PARIS, tz=load_zone(PARIS), zone_named=load_zone)


def meaning(schedule: Schedule) -> str:
    match schedule:
        case Cron():
            said = schedule.expr + (f" x{schedule.every_n_weeks}w" if schedule.every_n_weeks > 1 else "")
        case Interval():
            said = f"every {int(schedule.every.total_seconds())}"
        case Once():
            said = f"once {schedule.at.isoformat()}"
        case _:
            said = "manual"
    return said if schedule.timezone == PARIS else f"{said} {schedule.timezone}"


@pytest.mark.parametrize(("text", "means"), PHRASES)
def test_a_phrase_means_what_a_person_means(text: str, means: str) -> None:
    if means == "refused":
        with pytest.raises(ScheduleInvalid) as refused:
            read(text)
        assert refused.value.hint
        return
    schedule = read(text)
    assert meaning(schedule) == means
    assert read(say(schedule, load_zone(schedule.timezone))) == schedule


def test_most_of_the_phrases_are_understood() -> None:
    understood = sum(means != "refused" for _, means in PHRASES)
    assert len(PHRASES) >= 181
    assert understood / len(PHRASES) >= 150 / 181


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("on december 24 at 6pm", "'on december 24 2026 at 6pm'"),
        ("on march 3 at 6pm", "'on march 3 2027 at 6pm'"),
        ("every other month on the 1st at 9am", "months are named"),
        ("every 1st at 9am", "'on the 1st of the month at 9am'"),
    ],
)
def test_a_hint_does_not_mislead(text: str, hint: str) -> None:
    with pytest.raises(ScheduleInvalid) as refused:
        read(text)
    assert hint in (refused.value.hint or "")


def test_a_delay_ends_on_a_whole_second_and_never_early() -> None:
    now = NOW.replace(second=7, microsecond=408_389)
    found = read_words("in 2 hours", now=now, timezone="UTC", tz=load_zone("UTC"))
    assert isinstance(found, Once)
    assert found.at == datetime(2026, 6, 3, 12, 0, 8, tzinfo=UTC)
    assert say(found, load_zone("UTC")) == "Once on Wednesday 3 June 2026 at 12:00:08, UTC"
