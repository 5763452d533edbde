"""A calendar's days: whole days in its zone, the year day by day, and the days of iCalendar files."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

import pytest

from foliot.domain.errors import Invalid, ScheduleTooDear
from foliot.domain.schedule import (
    Calendar,
    CalendarKind,
    Cron,
    CronStretch,
    Days,
    Timetable,
    Weekly,
    check_calendar,
    next_time,
)
from foliot.domain.schedule.calendar_year import MOST_SPANS, DayState, closed_days
from foliot.domain.schedule.ics import MOST_EVENTS, read_ics

CHRISTMAS = Days(date(2027, 12, 24), date(2027, 12, 26), "Christmas")


def calendar(
    *rules: Days | Weekly | CronStretch,
    kind: CalendarKind = CalendarKind.BLACKOUT,
    zone: str = "Europe/Madrid",
) -> Calendar:
    return Calendar("days", kind, rules, zone)


def test_a_day_is_a_day_of_the_calendars_zone_also_when_clocks_change() -> None:
    """The 28th of March 2027 has 23 hours in Madrid, and the 31st of October 25."""
    for day, hours in ((date(2027, 3, 28), 23), (date(2027, 10, 31), 25)):
        spans = calendar(Days(day)).spans
        start = datetime(day.year, day.month, day.day) - timedelta(hours=1 if hours == 23 else 2)
        assert spans.end_of(start - timedelta(seconds=1)) is None
        assert spans.end_of(start) == start + timedelta(hours=hours)


def test_a_job_skips_the_days_of_its_calendar() -> None:
    nightly = Timetable(Cron("0 9 * * *", "Europe/Madrid"), calendars=(calendar(CHRISTMAS),))
    planned = next_time(nightly, datetime(2027, 12, 23, 12, tzinfo=UTC))
    assert planned is not None
    assert f"{planned.local:%Y-%m-%d %H:%M}" == "2027-12-27 09:00"


def test_a_year_lists_closed_days_with_names_and_parts_with_times() -> None:
    nights = Weekly(time(22), time(6), frozenset({4}))
    found = {each.date: each for each in closed_days(calendar(CHRISTMAS, nights), 2027)}
    assert found[date(2027, 12, 25)].state is DayState.CLOSED
    assert found[date(2027, 12, 25)].names == ("Christmas",)
    friday, saturday = found[date(2027, 1, 1)], found[date(2027, 1, 2)]
    assert (friday.state, friday.spans) == (DayState.PART, ((time(22), time(0)),))
    assert saturday.spans == ((time(0), time(6)),)
    assert date(2027, 1, 4) not in found


def test_in_a_year_of_allowed_times_all_other_days_are_closed() -> None:
    found = closed_days(calendar(Days(date(2027, 5, 3)), kind=CalendarKind.ALLOW), 2027)
    assert len(found) == 364
    assert {each.state for each in found} == {DayState.CLOSED}


def test_the_spans_of_a_day_and_the_work_of_a_year_are_bounded() -> None:
    often = closed_days(calendar(CronStretch("*/5 * * * *", timedelta(minutes=1))), 2027)
    assert {len(each.spans) for each in often} == {MOST_SPANS}
    starts = [CronStretch(f"{minute} * * * *", timedelta(seconds=1)) for minute in range(60)]
    dear = calendar(*starts, *starts[:59])
    with pytest.raises(ScheduleTooDear):
        closed_days(dear, 2027)


@pytest.mark.parametrize(
    ("rule", "pointer"),
    [
        (Days(date(2027, 1, 2), date(2027, 1, 1)), "/rules/0/last"),
        (Days(date(2027, 1, 1), date(2029, 1, 1)), "/rules/0/last"),
        (Days(date(1800, 1, 1)), "/rules/0/date"),
        (Days(date(9999, 12, 31)), "/rules/0/date"),
    ],
)
def test_days_that_make_no_sense_are_refused(rule: Days, pointer: str) -> None:
    with pytest.raises(Invalid) as refused:
        check_calendar(calendar(rule))
    assert refused.value.pointer == pointer


def ics(*lines: str) -> str:
    return "\r\n".join(("BEGIN:VCALENDAR", "BEGIN:VEVENT", *lines, "END:VEVENT", "END:VCALENDAR"))


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (["DTSTART;VALUE=DATE:20270101"], "2027-01-01"),
        (["DTSTART;VALUE=DATE:20271224", "DTEND;VALUE=DATE:20271227"], "2027-12-24..2027-12-26"),
        (["DTSTART:20271224T180000Z", "DTEND:20271225T120000Z"], "2027-12-24..2027-12-25"),
        (["DTSTART;VALUE=DATE:20271224", "DURATION:P1W"], "2027-12-24..2027-12-30"),
        (["DTSTART;VALUE=DATE:20201126", "RRULE:FREQ=YEARLY;BYMONTH=11;BYDAY=4TH"], "2027-11-25 2028-11-23"),
        (["DTSTART;VALUE=DATE:20200531", "RRULE:FREQ=YEARLY;BYMONTH=5;BYDAY=-1MO"], "2027-05-31 2028-05-29"),
        (["DTSTART;VALUE=DATE:20200229", "RRULE:FREQ=YEARLY"], "2028-02-29"),
        (["DTSTART;VALUE=DATE:20260101", "RRULE:FREQ=YEARLY;COUNT=2"], "2027-01-01"),
        (["DTSTART;VALUE=DATE:20260101", "RRULE:FREQ=YEARLY;UNTIL=20271231"], "2027-01-01"),
        (["DTSTART;VALUE=DATE:20260101", "RRULE:FREQ=YEARLY", "EXDATE;VALUE=DATE:20270101"], "2028-01-01"),
    ],
)
def test_the_days_of_an_icalendar_file_are_read(lines: list[str], found: str) -> None:
    days = read_ics(ics(*lines), 2027, 2028)
    assert " ".join(f"{each.first}" + (f"..{each.last}" if each.last else "") for each in days) == found


def test_names_are_unfolded_and_alarms_and_cancelled_events_left_out() -> None:
    alarm = ("BEGIN:VALARM", "SUMMARY:wrong", "DTSTART:20200101", "END:VALARM")
    text = ics("DTSTART;VALUE=DATE:20270101", *alarm, "SUMMARY:New Year\\, the first", " \x07 day")
    text += ics("DTSTART;VALUE=DATE:20270106", "STATUS:CANCELLED")
    assert read_ics(text, 2027, 2027) == (Days(date(2027, 1, 1), None, "New Year, the first day"),)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "BEGIN:VEVENT\nEND:VEVENT",
        ics("DTSTART:2027"),
        ics("DTSTART:20271332"),
        ics("DTSTART:20270101", "DTEND:20290101"),
        ics("DTSTART:20270101", "RRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"),
        ics("DTSTART:20270101", "RRULE:FREQ=YEARLY;INTERVAL=0"),
        ics("DTSTART:20270101", "RRULE:FREQ=YEARLY;BYMONTH=13"),
        ics("DTSTART:20270101", "RRULE:FREQ=YEARLY;BYDAY=MO"),
        ics("DTSTART:20270101") * (MOST_EVENTS + 1),
    ],
)
def test_a_file_that_is_not_understood_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        read_ics(text, 2027, 2028)
