"""Read the days of an iCalendar file (RFC 5545): events with dates, single or yearly. Bounded, and pure.

Repetitions other than yearly ones, and events without a start, are refused with their line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta

from foliot.domain.errors import Invalid
from foliot.domain.schedule.merged_spans import Days

MOST_EVENTS = 5_000
LONGEST_NAME = 200
LONGEST_EVENT = 366  # days
_DATE = re.compile(r"(\d{4})(\d{2})(\d{2})(T(\d{2})(\d{2})(\d{2})Z?)?$", re.ASCII)
_DAYS = re.compile(r"P(?:(\d{1,3})W)?(?:(\d{1,4})D)?$", re.ASCII)
_BY_DAY = re.compile(r"([+-]?[1-5])(MO|TU|WE|TH|FR|SA|SU)$", re.ASCII)
_WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_DAY = timedelta(days=1)


@dataclass(slots=True)
class _Event:
    line: int
    values: dict[str, str] = field(default_factory=dict)
    without: set[date] = field(default_factory=set)

    def refuse(self, message: str) -> Invalid:
        return Invalid(f"{message} It is in the event of line {self.line}.", pointer="/text")


def read_ics(text: str, first_year: int, last_year: int) -> tuple[Days, ...]:
    """Return the days of all events from `first_year` through `last_year`. Events with a time of day count as whole days."""
    found: dict[tuple[date, date, str], None] = {}
    for event in _events(text):
        if event.values.get("STATUS", "").upper() == "CANCELLED":
            continue
        for day, length in _dates(event, first_year, last_year):
            name = _unescaped(event.values.get("SUMMARY", ""))[:LONGEST_NAME]
            found[day, day + length - _DAY, name] = None
    if not found:
        raise Invalid(
            f"No event of this file lies in {first_year} to {last_year}.",
            hint="Give the text of an .ics file with all-day events.",
            pointer="/text",
        )
    return tuple(Days(first, None if last == first else last, name) for first, last, name in sorted(found))


def _events(text: str) -> Iterator[_Event]:
    event: _Event | None = None
    inner = 0  # alarms within an event
    count = 0
    for number, line in _unfolded(text):
        head, _, value = line.partition(":")
        name = head.partition(";")[0].upper()
        if name == "BEGIN":
            if event is not None:
                inner += 1
            elif value.strip().upper() == "VEVENT":
                event, count = _Event(number), count + 1
                if count > MOST_EVENTS:
                    raise Invalid(f"The file has more than {MOST_EVENTS:,} events.", pointer="/text")
        elif name == "END" and event is not None:
            if inner:
                inner -= 1
            else:
                yield event
                event = None
        elif event is not None and not inner:
            if name == "EXDATE":
                event.without |= {_date(event, each) for each in value.split(",")}
            else:
                event.values.setdefault(name, value.strip())


def _unfolded(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines with their numbers; a line that begins with a space continues the one before."""
    started, line = 1, ""
    for number, each in enumerate(text.splitlines(), 1):
        if each[:1] in (" ", "\t"):
            line += each[1:]
            continue
        if line:
            yield started, line
        started, line = number, each
    if line:
        yield started, line


def _dates(event: _Event, first_year: int, last_year: int) -> Iterator[tuple[date, timedelta]]:
    if "DTSTART" not in event.values:
        raise event.refuse("An event has no start.")
    start = _date(event, event.values["DTSTART"])
    length = _length(event, start)
    for day in _repeated(event, start, last_year):
        if first_year <= day.year <= last_year and day not in event.without:
            yield day, length


def _length(event: _Event, start: date) -> timedelta:
    """Return the days that an event covers. An end at midnight does not touch its day; any other time does."""
    if end_text := event.values.get("DTEND"):
        end = _date(event, end_text)
        ends_later = "T" in end_text and end_text[9:15] != "000000"
        length = end - start + (_DAY if ends_later else timedelta(0))
    elif duration := event.values.get("DURATION"):
        match = _DAYS.match(duration)
        weeks, days = (int(part or 0) for part in match.groups()) if match else (0, 0)
        length = timedelta(weeks=weeks, days=days)
    else:
        length = _DAY
    length = max(length, _DAY)
    if length.days > LONGEST_EVENT:
        raise event.refuse(f"An event lasts at most {LONGEST_EVENT} days.")
    return length


def _repeated(event: _Event, start: date, last_year: int) -> Iterator[date]:
    rule_text = event.values.get("RRULE")
    if rule_text is None:
        yield start
        return
    rule = dict(part.partition("=")[::2] for part in rule_text.upper().split(";") if part)
    known = {"FREQ", "INTERVAL", "COUNT", "UNTIL", "BYMONTH", "BYMONTHDAY", "BYDAY", "WKST"}
    if rule.get("FREQ") != "YEARLY" or rule.keys() - known:
        raise event.refuse(f"Only yearly repetitions are understood, not {rule_text[:80]!r}.")
    try:
        step, left = int(rule.get("INTERVAL", "1")), int(rule.get("COUNT", "10000"))
        month = int(rule.get("BYMONTH", start.month))
        day = int(rule.get("BYMONTHDAY", start.day))
    except ValueError:
        raise event.refuse(f"This repetition is not understood: {rule_text[:80]!r}.") from None
    if step < 1 or not 1 <= month <= 12:
        raise event.refuse(f"This repetition is not understood: {rule_text[:80]!r}.")
    until = _date(event, rule["UNTIL"]) if "UNTIL" in rule else date(last_year, 12, 31)
    for year in range(start.year, min(until.year, last_year) + 1, step):
        found = _in_year(event, year, month, day, rule.get("BYDAY"))
        if found is None or found < start:
            continue
        if found > until or left == 0:
            return
        left -= 1
        yield found


def _in_year(event: _Event, year: int, month: int, day: int, by_day: str | None) -> date | None:
    """Return the day of the rule in this year; None where the month lacks it."""
    if by_day is None:
        try:
            return date(year, month, day)
        except ValueError:
            return None
    match = _BY_DAY.match(by_day)
    if match is None:
        raise event.refuse(f"This repetition is not understood: BYDAY={by_day[:40]}.")
    nth, weekday = int(match[1]), _WEEKDAYS.index(match[2])
    if nth > 0:
        first = date(year, month, 1)
        found = first + _DAY * ((weekday - first.weekday()) % 7 + 7 * (nth - 1))
    else:
        last = (date(year, month, 28) + 4 * _DAY).replace(day=1) - _DAY
        found = last - _DAY * ((last.weekday() - weekday) % 7 + 7 * (-nth - 1))
    return found if found.month == month else None


def _date(event: _Event, text: str) -> date:
    match = _DATE.match(text.strip())
    if match is not None:
        try:
            return date(int(match[1]), int(match[2]), int(match[3]))
        except ValueError:
            pass
    raise event.refuse(f"This is not a date: {text[:40]!r}.")


def _unescaped(text: str) -> str:
    """Return the text of a value: escaped commas and line breaks become plain, control characters go."""
    plain = re.sub(r"\\([nN,;\\])", lambda found: " " if found[1] in "nN" else found[1], text)
    return "".join(each for each in plain if each.isprintable()).strip()
