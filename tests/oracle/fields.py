"""A cron expression as plain sets of integers: the referee's own reading of crontab(5) plus `L`, `LW`, `5L`, `1#2` and `?`."""

from __future__ import annotations

import calendar
from dataclasses import dataclass, field
from datetime import date
from itertools import product

MONTHS = dict(
    zip(
        ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
        range(1, 13),
        strict=True,
    )
)
WEEKDAYS = dict(zip(["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"], range(7), strict=True))


@dataclass(frozen=True, slots=True)
class Pattern:
    """The question put to engine and oracle alike; `reach` hours are compared on each side of a clock change."""

    expr: str
    seconds: bool = False
    both_days: bool = False  # day_match=and
    every_n_weeks: int = 1
    anchor: date | None = None
    reach: int = 36

    @property
    def fields(self) -> list[str]:
        parts = self.expr.upper().replace("?", "*").split()
        return parts if self.seconds else ["0", *parts]

    @property
    def is_open(self) -> bool:
        return self.fields[2].startswith("*")


@dataclass(slots=True)
class Matcher:
    pattern: Pattern
    seconds: list[int] = field(init=False)
    minutes_of_day: list[int] = field(init=False)
    _days: dict[int, bool] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        second, minute, hour, *_ = self.pattern.fields
        self.seconds = sorted(numbers(second, 0, 59))
        clock = product(sorted(numbers(hour, 0, 23)), sorted(numbers(minute, 0, 59)))
        self.minutes_of_day = [hour * 60 + minute for hour, minute in clock]

    def matches_day(self, ordinal: int) -> bool:
        if ordinal not in self._days:
            self._days[ordinal] = self._judge(date.fromordinal(ordinal))
        return self._days[ordinal]

    def _judge(self, day: date) -> bool:
        _, _, _, of_month, month, of_week = self.pattern.fields
        if day.month not in numbers(month, 1, 12, MONTHS) or not self._week_counts(day):
            return False
        by_month = any(_in_month(day, item) for item in of_month.split(","))
        by_week = any(_in_week(day, item) for item in of_week.split(","))
        if self.pattern.both_days or of_month.startswith("*") or of_week.startswith("*"):
            return by_month and by_week
        return by_month or by_week

    def _week_counts(self, day: date) -> bool:
        if self.pattern.every_n_weeks == 1:
            return True
        assert self.pattern.anchor is not None
        weeks = (_monday(day) - _monday(self.pattern.anchor)) // 7
        return weeks % self.pattern.every_n_weeks == 0


def numbers(text: str, low: int, high: int, names: dict[str, int] | None = None) -> set[int]:
    """`*`, `a`, `a-b`, each with `/step`, in a list; `a/step` runs to the end of the field."""
    found: set[int] = set()
    for item in text.split(","):
        span, _, step = item.partition("/")
        first, dash, last = span.partition("-")
        if span == "*":
            start, end = low, high
        else:
            start = _number(first, names)
            end = _number(last, names) if dash else high if step else start
        if not low <= start <= end <= high:
            raise ValueError(item)
        found.update(range(start, end + 1, int(step or 1)))
    return found


def _number(text: str, names: dict[str, int] | None) -> int:
    return names[text] if names and text in names else int(text)


def _in_month(day: date, item: str) -> bool:
    length = calendar.monthrange(day.year, day.month)[1]
    if item == "L":
        return day.day == length
    if item == "LW":
        workdays = [n for n in range(1, length + 1) if day.replace(day=n).isoweekday() <= 5]
        return day.day == workdays[-1]
    return day.day in numbers(item, 1, 31)


def _in_week(day: date, item: str) -> bool:
    weekday = day.isoweekday() % 7
    if item.endswith("L"):
        length = calendar.monthrange(day.year, day.month)[1]
        return _number(item[:-1], WEEKDAYS) % 7 == weekday and day.day + 7 > length
    if "#" in item:
        name, _, nth = item.partition("#")
        return _number(name, WEEKDAYS) % 7 == weekday and (day.day - 1) // 7 + 1 == int(nth)
    return weekday in {number % 7 for number in numbers(item, 0, 7, WEEKDAYS)}


def _monday(day: date) -> int:
    return day.toordinal() - day.weekday()
