"""Named calendars: shared time spans in which jobs must not run (blackout) or may only run (allow)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import TypeVar

from foliot.domain.errors import Invalid
from foliot.domain.schedule.cron import parse_cron
from foliot.domain.schedule.dst import TICK, nominal_after
from foliot.domain.schedule.kinds import Gap, OverlapTime
from foliot.domain.schedule.window import ALL_DAYS, Otherwise, Weekly, next_stretch, stretch_holding
from foliot.domain.schedule.zone import instant_of, load_zone, naive_utc, wall_at

LONGEST_NAME = 200
MOST_RULES = 1_000
LONGEST_STRETCH = timedelta(days=366)
_A_DAY_AND_MORE = timedelta(hours=36)  # holds a whole day of any zone, from midnight to midnight
_MOST_JOINED = 10_000
T = TypeVar("T")


class CalendarKind(StrEnum):
    BLACKOUT = "blackout"
    ALLOW = "allow"


@dataclass(frozen=True, slots=True)
class Absolute:
    """One span of real time, from an instant up to another."""

    start: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class CronStretch:
    """Starts whenever the cron expression fires and lasts for `duration`."""

    expr: str
    duration: timedelta


Rule = Weekly | Absolute | CronStretch


@dataclass(frozen=True, slots=True)
class Calendar:
    name: str
    kind: CalendarKind
    rules: tuple[Rule, ...]
    timezone: str = "UTC"
    otherwise: Otherwise = Otherwise.SKIP


def check_calendar(calendar: Calendar) -> None:
    """Raise ScheduleInvalid for a calendar that cannot be evaluated or has no effect."""
    if not 1 <= len(calendar.name.strip()) <= LONGEST_NAME:
        raise Invalid(f"A calendar has a name of at most {LONGEST_NAME} characters.", pointer="/name")
    _pointed(lambda: load_zone(calendar.timezone), "/timezone")
    if not 1 <= len(calendar.rules) <= MOST_RULES:
        raise Invalid(f"A calendar has between 1 and {MOST_RULES:,} rules.", pointer="/rules")
    for place, rule in enumerate(calendar.rules):
        _check_rule(rule, f"/rules/{place}")


def calendar_closed_until(calendar: Calendar, instant: datetime) -> datetime | None:
    """Return None if the calendar allows `instant`, else the next instant to check; `datetime.max` means never."""
    ends = [
        end for rule in calendar.rules if (end := _held_until(rule, calendar.timezone, instant)) is not None
    ]
    if calendar.kind is CalendarKind.BLACKOUT:
        return max(ends, default=None)
    if ends:
        return None
    return min(
        (_next_start(rule, calendar.timezone, instant) for rule in calendar.rules), default=datetime.max
    )


def calendar_closes_at(calendar: Calendar, instant: datetime) -> datetime | None:
    """Return when a calendar that allows `instant` closes next, or None."""
    if calendar.kind is CalendarKind.BLACKOUT:
        start = min(_next_start(rule, calendar.timezone, instant) for rule in calendar.rules)
        return None if start == datetime.max else start
    for _ in range(_MOST_JOINED):  # one allowed span may begin before another ends
        ends = (_held_until(rule, calendar.timezone, instant) for rule in calendar.rules)
        end = max((end for end in ends if end is not None), default=None)
        if end is None or end == datetime.max:
            return instant if end is None else None
        instant = end
    return None


def _check_rule(rule: Rule, pointer: str) -> None:
    match rule:
        case Weekly():
            if not rule.days or not rule.days <= ALL_DAYS:
                raise Invalid(
                    "A weekly rule names days from 0 (Monday) to 6 (Sunday).", pointer=f"{pointer}/days"
                )
        case Absolute():
            start, end = (
                _pointed(lambda: naive_utc(rule.start), f"{pointer}/start"),
                _pointed(lambda: naive_utc(rule.end), f"{pointer}/end"),
            )
            if end <= start:
                raise Invalid("A stretch ends after it starts.", pointer=f"{pointer}/end")
        case CronStretch():
            _pointed(lambda: parse_cron(rule.expr), f"{pointer}/expr")
            if not timedelta(0) < rule.duration <= LONGEST_STRETCH:
                raise Invalid(
                    f"A stretch lasts longer than nothing and at most {LONGEST_STRETCH.days} days.",
                    pointer=f"{pointer}/duration",
                )


def _pointed(read: Callable[[], T], pointer: str) -> T:
    """Point the parser's error at the field of the calendar instead of a schedule."""
    try:
        return read()
    except Invalid as refused:
        refused.pointer = pointer
        raise


def _held_until(rule: Rule, zone: str, instant: datetime) -> datetime | None:
    match rule:
        case Weekly():
            held = stretch_holding(rule, zone, instant, with_end=False)
            return None if held is None else held[1]
        case Absolute():
            return naive_utc(rule.end) if naive_utc(rule.start) <= instant < naive_utc(rule.end) else None
        case CronStretch():
            started = _cron_start(rule, zone, instant - rule.duration)
            return _joined_end(rule, zone, started) if started is not None and started <= instant else None


def _next_start(rule: Rule, zone: str, instant: datetime) -> datetime:
    match rule:
        case Weekly():
            return next_stretch(rule, zone, instant) or datetime.max
        case Absolute():
            return start if (start := naive_utc(rule.start)) > instant else datetime.max
        case CronStretch():
            return _cron_start(rule, zone, instant) or datetime.max


def _cron_start(rule: CronStretch, zone: str, after: datetime) -> datetime | None:
    found = nominal_after(
        parse_cron(rule.expr), zone, Gap.NEXT_VALID, OverlapTime.FIRST, max(after, datetime.min + TICK)
    )
    return None if found is None else found.at


@lru_cache(maxsize=16_384)
def _joined_end(rule: CronStretch, zone: str, started: datetime) -> datetime:
    """Return the real end of the span that began at `started`: overlapping spans may extend it for hours, days or for ever."""
    end, since = started + rule.duration, started
    for _ in range(_MOST_JOINED):
        following = _cron_start(rule, zone, started)
        if following is None or following > end:
            return end
        started, end = following, following + rule.duration
        if end - since > _A_DAY_AND_MORE:
            # No hole in a whole day: the next one is where the first day without any start lies.
            day = parse_cron(rule.expr).first_day_off(wall_at(zone, started).date())
            if day is None:
                return datetime.max
            midnight = instant_of(zone, datetime.combine(day, time()))
            last = _last_start(rule, zone, started, midnight)
            started, end, since = last, last + rule.duration, last
    return datetime.max


def _last_start(rule: CronStretch, zone: str, known: datetime, before: datetime) -> datetime:
    """Return the last start before `before`, at or after `known`."""
    found = max(known, before - _A_DAY_AND_MORE)
    while (following := _cron_start(rule, zone, found)) is not None and following < before:
        known = found = following
    return known
