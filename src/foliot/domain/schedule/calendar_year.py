"""A year of a calendar, day by day: open, closed, or closed for a part of the day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum

from foliot.domain.schedule.calendar import Calendar, calendar_closed_until, calendar_closes_at
from foliot.domain.schedule.merged_spans import Days
from foliot.domain.schedule.work_budget import work_budget
from foliot.domain.schedule.zone import instant_of, naive_utc, wall_at

MOST_SPANS = 8  # listed of one day
_DAY = timedelta(days=1)


class DayState(StrEnum):
    CLOSED = "closed"  # nothing runs on this day
    PART = "part"  # nothing runs in a part of it


@dataclass(frozen=True, slots=True)
class ClosedDay:
    """A day on which the calendar closes, with the closed spans in wall time; an end at midnight is 00:00."""

    date: date
    state: DayState
    spans: tuple[tuple[time, time], ...] = ()
    names: tuple[str, ...] = ()


def closed_days(calendar: Calendar, year: int) -> tuple[ClosedDay, ...]:
    """Return the days of the year that are not open throughout. Raise ScheduleTooDear for rules that take too long to evaluate."""
    names: dict[date, list[str]] = {}
    for rule in calendar.rules:
        if isinstance(rule, Days) and rule.name:
            for day in rule.dates_of(year):
                names.setdefault(day, []).append(rule.name)
    found = []
    with work_budget():
        day = date(year, 1, 1)
        while day.year == year:
            closed = _closed_day(calendar, day, tuple(names.get(day, ())))
            if closed is not None:
                found.append(closed)
            day += _DAY
    return tuple(found)


def closed_spans(
    calendar: Calendar, start: datetime, end: datetime, most: int
) -> list[tuple[datetime, datetime]]:
    """Return the spans within [start, end) in which the calendar closes, the first `most` of them. All instants are UTC."""
    spans: list[tuple[datetime, datetime]] = []
    at, last = naive_utc(start), naive_utc(end)
    with work_budget():
        while at < last and len(spans) < most:
            until = calendar_closed_until(calendar, at)
            if until is not None:
                until = min(until, last)
                spans.append((at.replace(tzinfo=UTC), until.replace(tzinfo=UTC)))
                at = until
            else:
                at = calendar_closes_at(calendar, at) or last
    return spans


def _closed_day(calendar: Calendar, day: date, names: tuple[str, ...]) -> ClosedDay | None:
    start = instant_of(calendar.timezone, datetime.combine(day, time()))
    end = instant_of(calendar.timezone, datetime.combine(day + _DAY, time()))
    spans: list[tuple[time, time]] = []
    at = start
    while at < end and len(spans) < MOST_SPANS:
        until = calendar_closed_until(calendar, at)
        if until is not None:
            if at == start and until >= end:
                return ClosedDay(day, DayState.CLOSED, names=names)
            until = min(until, end)
            spans.append((wall_at(calendar.timezone, at).time(), wall_at(calendar.timezone, until).time()))
            at = until
        else:
            at = calendar_closes_at(calendar, at) or end
    return ClosedDay(day, DayState.PART, tuple(spans), names) if spans else None
