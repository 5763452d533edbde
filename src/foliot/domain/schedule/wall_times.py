"""Wall-clock times as numbers: the dates and times of day that an expression names. No zones here."""

from __future__ import annotations

from bisect import bisect_left
from calendar import monthrange
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from foliot.domain.schedule.cron_fields import CronField

# Feb 29 on one weekday comes back after 40 years at the latest (across 2100); every_n_weeks stretches that.
HORIZON_YEARS = 120
LAST_YEAR = 9990  # beyond it the calendar of `datetime` itself runs out
_SECOND = timedelta(seconds=1)
_ONE_DAY = timedelta(days=1)
_DAYS_LOOKED_AT = 1_500
_EPOCH_MONDAY = date(1970, 1, 5)


@dataclass(frozen=True, slots=True)
class MatchedDays:
    """The days of a month that match."""

    months: frozenset[int]
    day: CronField
    weekday: CronField
    either: bool  # day of month OR day of week, as crontab(5) has it when both are restricted
    weeks: int = 1
    anchor: date | None = None

    def of(self, year: int, month: int) -> tuple[int, ...]:
        if month not in self.months:
            return ()
        first, length = monthrange(year, month)  # Monday is 0
        by_date, by_weekday = self._by_date(first, length), self._by_weekday(first, length)
        matching = sorted(by_date | by_weekday if self.either else by_date & by_weekday)
        if self.weeks > 1:
            matching = [day for day in matching if self._in_week(date(year, month, day))]
        return tuple(matching)

    def _by_date(self, first: int, length: int) -> set[int]:
        days = {day for day in self.day.numbers if day <= length}
        if self.day.last_day:
            days.add(length)
        if self.day.last_workday:
            days.add(length - max(0, (first + length - 1) % 7 - 4))
        return days

    def _by_weekday(self, first: int, length: int) -> set[int]:
        rule = self.weekday
        if len(rule.numbers) == 7:
            return set(range(1, length + 1))
        # The first Sunday is day (-first - 1) % 7 + 1; cron counts weekdays from there.
        starts = [(weekday - first - 1) % 7 + 1 for weekday in range(7)]
        days = {day for weekday in rule.numbers for day in range(starts[weekday], length + 1, 7)}
        days |= {day for weekday, n in rule.nth if (day := starts[weekday] + 7 * (n - 1)) <= length}
        return days | {max(range(starts[weekday], length + 1, 7)) for weekday in rule.last}

    def _in_week(self, day: date) -> bool:
        """Weeks start on Monday and are counted through, so a year with 53 weeks changes nothing."""
        anchor = self.anchor or _EPOCH_MONDAY
        return (_monday(day) - _monday(anchor)) // 7 % self.weeks == 0


def _monday(day: date) -> int:
    return day.toordinal() - day.weekday()


@dataclass(frozen=True, slots=True, eq=False)
class WallTimes:
    """The ascending wall-clock times of one expression. Compared by identity: `cron.py` makes one per expression."""

    seconds: tuple[int, ...]
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: MatchedDays
    is_open: bool
    _months: dict[tuple[int, int], tuple[int, ...]] = field(default_factory=dict)

    def first_from(self, wall: datetime) -> datetime | None:
        """Return the first matching wall-clock time at or after `wall`."""
        if wall.microsecond:
            wall = wall.replace(microsecond=0) + _SECOND
        year, month, day = wall.year, wall.month, wall.day
        if day in self.days_of(year, month):
            clock = self._clock_from(wall.hour, wall.minute, wall.second)
            if clock is not None:
                return datetime(year, month, day, *clock)
        found = self._date_from(year, month, day + 1)
        return None if found is None else datetime(*found, self.hours[0], self.minutes[0], self.seconds[0])

    def first_day_off(self, day: date) -> date | None:
        """Return the first day from `day` on that has no match at all; None when there is none for years."""
        for _ in range(_DAYS_LOOKED_AT):
            if day.day not in self.days_of(day.year, day.month):
                return day
            day += _ONE_DAY
        return None

    def last_before(self, low: datetime, high: datetime) -> datetime | None:
        """Return the last match in [low, high). Used on the hour or so that a clock change swallows."""
        found = None
        match = self.first_from(low)
        while match is not None and match < high:
            found = match
            match = self.first_from(match + _SECOND)
        return found

    def _clock_from(self, hour: int, minute: int, second: int) -> tuple[int, int, int] | None:
        h = bisect_left(self.hours, hour)
        if h == len(self.hours):
            return None
        if self.hours[h] > hour:
            return self.hours[h], self.minutes[0], self.seconds[0]
        m = bisect_left(self.minutes, minute)
        if m < len(self.minutes):
            if self.minutes[m] > minute:
                return hour, self.minutes[m], self.seconds[0]
            s = bisect_left(self.seconds, second)
            if s < len(self.seconds):
                return hour, minute, self.seconds[s]
            if m + 1 < len(self.minutes):
                return hour, self.minutes[m + 1], self.seconds[0]
        if h + 1 < len(self.hours):
            return self.hours[h + 1], self.minutes[0], self.seconds[0]
        return None

    def _date_from(self, year: int, month: int, day: int) -> tuple[int, int, int] | None:
        last = min(year + HORIZON_YEARS, LAST_YEAR)
        while year <= last:
            days = self.days_of(year, month)
            at = bisect_left(days, day)
            if at < len(days):
                return year, month, days[at]
            year, month, day = (year, month + 1, 1) if month < 12 else (year + 1, 1, 1)
        return None

    def days_of(self, year: int, month: int) -> tuple[int, ...]:
        """Return the matching days of a month."""
        known = self._months.get((year, month))
        if known is None:
            if len(self._months) > 2_000:
                self._months.clear()
            known = self._months[year, month] = self.days.of(year, month)
        return known
