"""The rules of a calendar, and their spans merged. Computed once per calendar and week, so that a walk costs the same for one rule and for a thousand."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import TypeVar

from foliot.domain.errors import ScheduleTooDear
from foliot.domain.schedule.cron import parse_cron
from foliot.domain.schedule.dst import TICK, nominal_after
from foliot.domain.schedule.kinds import Gap, OverlapTime
from foliot.domain.schedule.wall_times import WallTimes
from foliot.domain.schedule.window import Weekly
from foliot.domain.schedule.work_budget import current_budget
from foliot.domain.schedule.zone import instant_of, naive_utc, span_at, wall_at

MOST_STARTS = 20_000  # spans of a calendar that begin in one week
NEVER = datetime.max
_WEEK = timedelta(days=7)
_DAY = timedelta(days=1)
_MONDAY = datetime(1970, 1, 5)
_LAST_WEEK = (datetime(9990, 1, 1) - _MONDAY) // _WEEK
_WEEKS_WITHOUT_OPENING = 522  # ten years: a calendar closed for so long does not open again
_KEPT_WEEKS = 60  # of one calendar: a year, and some weeks
_STARTS_A_STEP = 16

Instants = tuple[datetime, datetime]
Offsets = tuple[timedelta, timedelta]
T = TypeVar("T", datetime, timedelta)


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


@dataclass(frozen=True, slots=True)
class Days:
    """Whole days in the calendar's zone, from `first` through `last`; without `last`, one day."""

    first: date
    last: date | None = None
    name: str = ""

    @property
    def end(self) -> date:
        """The day after the last one."""
        return (self.last or self.first) + _DAY

    def dates_of(self, year: int) -> Iterator[date]:
        day = max(self.first, date(year, 1, 1))
        while day < self.end and day.year == year:
            yield day
            day += _DAY


Rule = Weekly | Absolute | CronStretch | Days


def starts_a_week(rule: Rule) -> int:
    """Return how many spans of this rule begin in one week, at most."""
    match rule:
        case Weekly():
            return len(rule.days)
        case Absolute() | Days():
            return 0
        case CronStretch():
            walls = parse_cron(rule.expr)
            return 7 * len(walls.hours) * len(walls.minutes)


class MergedSpans:
    """The union of the spans of `rules`. All instants are UTC without tzinfo; a span holds its start and not its end."""

    __slots__ = (
        "_absolute",
        "_absolute_starts",
        "_crons",
        "_is_always",
        "_kept",
        "_price",
        "_weekly",
        "_zone",
    )

    def __init__(self, rules: Sequence[Rule], zone: str) -> None:
        starts = sum(map(starts_a_week, rules))
        if starts > MOST_STARTS:
            raise ScheduleTooDear(
                f"The rules of this calendar start {starts:,} times a week; at most {MOST_STARTS:,} are allowed.",
                hint="Use fewer rules, or longer spans that start less often.",
                pointer="/rules",
            )
        self._zone = zone
        self._price = 1 + starts // _STARTS_A_STEP
        self._weekly = _merge(
            span for rule in rules if isinstance(rule, Weekly) for span in _weekly_offsets(rule)
        )
        self._absolute = _merge(_fixed_spans(rules, zone))
        self._absolute_starts = [start for start, _ in self._absolute]
        self._crons = [_CronSpans(rule, zone) for rule in rules if isinstance(rule, CronStretch)]
        self._is_always = _covers_a_week(self._weekly) or any(cron.is_always for cron in self._crons)
        self._kept: dict[int, tuple[list[Instants], list[datetime]]] = {}

    def end_of(self, instant: datetime) -> datetime | None:
        """Return the end of the span that holds `instant`; None if there is none, NEVER if it has no end."""
        if self._is_always:
            return NEVER
        end, at, weeks = None, instant, 0
        while (until := self._held_until(at)) is not None:
            if until >= _start_of(_LAST_WEEK) or weeks > _WEEKS_WITHOUT_OPENING:
                return NEVER
            weeks += 1
            end = at = until
        return end

    def next_start(self, instant: datetime) -> datetime:
        """Return the first start after `instant`, which lies in no span; NEVER if there is none."""
        if self._is_always:
            return NEVER
        place = bisect_right(self._absolute_starts, instant)
        absolute = self._absolute_starts[place] if place < len(self._absolute) else NEVER
        return min(absolute, self._next_recurring(instant))

    def _held_until(self, at: datetime) -> datetime | None:
        """Return the end of a span that holds `at`, as far as one week and the absolute spans tell."""
        held = None
        place = bisect_right(self._absolute_starts, at)
        if place and self._absolute[place - 1][1] > at:
            held = self._absolute[place - 1][1]
        if self._weekly or self._crons:
            spans, starts = self._week(_week_of(at))
            place = bisect_right(starts, at)
            if place and (end := spans[place - 1][1]) > at:
                held = end if held is None else max(held, end)
        return held

    def _next_recurring(self, instant: datetime) -> datetime:
        if not self._weekly and not self._crons:
            return NEVER
        week = _week_of(instant)
        while week <= _LAST_WEEK:
            _, starts = self._week(week)
            place = bisect_right(starts, instant)
            # A start at the border may continue a span of the week before, but then `instant` lay in that span.
            if place < len(starts):
                return starts[place]
            week += 1
            if not self._weekly:
                week = max(week, self._week_of_next_start(max(instant, _start_of(week) - TICK)))
        return NEVER

    def _week_of_next_start(self, after: datetime) -> int:
        """Return the week of the next start of a cron rule: years may lie between."""
        current_budget().spend(len(self._crons))
        found = [start for cron in self._crons if (start := cron.start_after(after)) is not None]
        return _week_of(min(found)) if found else _LAST_WEEK + 1

    def _week(self, week: int) -> tuple[list[Instants], list[datetime]]:
        if week > _LAST_WEEK:
            return [], []
        current_budget().spend_week(id(self), week, self._price)
        kept = self._kept.get(week)
        if kept is None:
            low = _start_of(week)
            high = low + _WEEK
            found = [*self._weekly_between(low, high)]
            for cron in self._crons:
                found += cron.between(low, high)
            spans = [
                (max(start, low), min(end, high))
                for start, end in _merge(found)
                if start < high and end > low
            ]
            if len(self._kept) >= _KEPT_WEEKS:
                self._kept.clear()
            kept = self._kept[week] = spans, [start for start, _ in spans]
        return kept

    def _weekly_between(self, low: datetime, high: datetime) -> Iterator[Instants]:
        if not self._weekly:
            return
        first = wall_at(self._zone, low).date()
        monday = datetime.combine(first - timedelta(days=first.weekday() + 7), time())
        offset = _straight_offset(self._zone, low - 2 * _WEEK, high + 2 * _WEEK)
        for base in (monday, monday + _WEEK, monday + 2 * _WEEK):
            for start, end in self._weekly:
                if offset is not None:
                    yield base + start - offset, base + end - offset
                else:  # the outer edges of a repeated hour
                    yield (
                        instant_of(self._zone, base + start),
                        instant_of(self._zone, base + end, second=True),
                    )


def _fixed_spans(rules: Sequence[Rule], zone: str) -> Iterator[Instants]:
    """Yield the spans of the rules that happen once."""
    for rule in rules:
        if isinstance(rule, Absolute):
            yield naive_utc(rule.start), naive_utc(rule.end)
        elif isinstance(rule, Days):
            start = instant_of(zone, datetime.combine(rule.first, time()))
            yield start, instant_of(zone, datetime.combine(rule.end, time()), second=True)


class _CronSpans:
    """The spans of one cron rule."""

    __slots__ = ("_day", "_duration", "_walls", "_zone", "is_always")

    def __init__(self, rule: CronStretch, zone: str) -> None:
        self._walls: WallTimes = parse_cron(rule.expr)
        self._zone, self._duration = zone, rule.duration
        starts = (
            timedelta(hours=hour, minutes=minute)
            for hour in self._walls.hours
            for minute in self._walls.minutes
        )
        self._day = _merge((start, start + rule.duration) for start in starts)
        # Open crons follow real time through clock changes: without a hole in a plain day there is none at all.
        is_whole_day = len(self._day) == 1 and self._day[0][1] - self._day[0][0] >= _DAY
        self.is_always = (
            self._walls.is_open and is_whole_day and self._walls.first_day_off(date(2027, 1, 1)) is None
        )

    def start_after(self, after: datetime) -> datetime | None:
        found = nominal_after(
            self._walls, self._zone, Gap.NEXT_VALID, OverlapTime.FIRST, max(after, datetime.min + TICK)
        )
        return None if found is None else found.at

    def between(self, low: datetime, high: datetime) -> Iterator[Instants]:
        """Return the spans that touch [low, high)."""
        if self._duration > _DAY:
            return self._long_between(low, high)
        offset = _straight_offset(self._zone, low - 4 * _DAY, high + 2 * _DAY)
        return self._each_between(low, high) if offset is None else self._days_between(low, high, offset)

    def _days_between(self, low: datetime, high: datetime, offset: timedelta) -> Iterator[Instants]:
        day = (low + offset).date() - 2 * _DAY
        last = (high + offset).date()
        while day <= last:
            if day.day in self._walls.days_of(day.year, day.month):
                midnight = datetime.combine(day, time()) - offset
                for start, end in self._day:
                    yield midnight + start, midnight + end
            day += _DAY

    def _each_between(self, low: datetime, high: datetime) -> Iterator[Instants]:
        start = self.start_after(low - self._duration)
        while start is not None and start < high:
            yield start, start + self._duration
            start = self.start_after(start)

    def _long_between(self, low: datetime, high: datetime) -> Iterator[Instants]:
        """Spans longer than a day hold many starts: go to the last start within a span, not to the next."""
        start = self.start_after(low - self._duration)
        while start is not None and start < high:
            yield start, start + self._duration
            start = self._last_start(start, start + self._duration) or self.start_after(start)

    def _last_start(self, known: datetime, until: datetime) -> datetime | None:
        """Return the last start in (known, until], by bisection."""
        best = None
        while (later := self.start_after(known)) is not None and later <= until:
            middle = later + (until - later) / 2
            beyond = self.start_after(middle)
            if beyond is not None and beyond <= until:
                best = known = beyond
            else:
                best, known, until = later, later, middle
        return best


def _weekly_offsets(rule: Weekly) -> Iterator[Offsets]:
    """Return the spans of a weekly rule as wall-clock offsets from Monday 00:00."""
    midnight = datetime.combine(date.min, time())
    for weekday in rule.days:
        start = _DAY * weekday + (datetime.combine(date.min, rule.start) - midnight)
        end = _DAY * weekday + (datetime.combine(date.min, rule.end) - midnight)
        yield start, end if rule.end > rule.start else end + _DAY


def _merge(spans: Iterable[tuple[T, T]]) -> list[tuple[T, T]]:
    """Sort spans and join those that overlap or touch; drop empty ones."""
    merged: list[tuple[T, T]] = []
    for start, end in sorted(spans):
        if end <= start:
            continue
        if merged and start <= merged[-1][1]:
            if end > merged[-1][1]:
                merged[-1] = merged[-1][0], end
        else:
            merged.append((start, end))
    return merged


def _covers_a_week(weekly: Sequence[Offsets]) -> bool:
    """Return whether the merged weekly spans leave no moment of a week: what starts late on Sunday covers early Monday."""
    if not weekly:
        return False
    nothing = timedelta(0)
    whole = _merge([(nothing, max(weekly[-1][1] - _WEEK, nothing)), *weekly])
    return len(whole) == 1 and whole[0][0] == nothing and whole[0][1] >= _WEEK


def _straight_offset(zone: str, low: datetime, high: datetime) -> timedelta | None:
    """Return the offset of the wall clock if it does not change between two instants."""
    span = span_at(zone, low)
    while span.end < high and span.after == span.offset:
        span = span_at(zone, span.end)
    return span.offset if span.end >= high else None


def _week_of(instant: datetime) -> int:
    return (instant - _MONDAY) // _WEEK


def _start_of(week: int) -> datetime:
    return _MONDAY + _WEEK * week
