"""English helpers for sentences: lists, ordinals, plurals, names of days and months."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, timedelta

from foliot.domain.schedule.words.vocabulary import DAY_NAMES, MONTH_NAMES

ORDINAL_WORDS = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth"}
UNITS = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


def listed(items: Sequence[str], joint: str = "and") -> str:
    """a; a and b; a, b and c."""
    return f"{', '.join(items[:-1])} {joint} {items[-1]}" if len(items) > 1 else "".join(items)


def ordinal(number: int) -> str:
    tail = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{tail}"


def pluralize(count: int, noun: str, nouns: str | None = None) -> str:
    """1 run, 43,200 runs."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def numbers(values: Sequence[int]) -> str:
    """5, 10 to 20 and 35: three or more in a row as a range."""
    return listed([str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs(values)])


def runs(values: Iterable[int]) -> list[list[int]]:
    """Neighbours together, but only from three on."""
    found: list[list[int]] = []
    for value in sorted(values):
        if found and value == found[-1][-1] + 1:
            found[-1].append(value)
        else:
            found.append([value])
    return [part for run in found for part in ([run] if len(run) > 2 else [[value] for value in run])]


def weekdays_in_order(values: Iterable[int]) -> list[int]:
    """Monday first, as people read a week; cron counts from Sunday."""
    return sorted(values, key=lambda value: (value - 1) % 7)


def weekday_names(values: Iterable[int], *, plural: bool = False) -> list[str]:
    return [DAY_NAMES[value] + ("s" if plural else "") for value in weekdays_in_order(values)]


def month_names(values: Iterable[int]) -> list[str]:
    return [
        MONTH_NAMES[run[0] - 1] + (f" to {MONTH_NAMES[run[-1] - 1]}" if len(run) > 1 else "")
        for run in runs(values)
    ]


def full_date(day: date) -> str:
    return f"{day.day} {MONTH_NAMES[day.month - 1]} {day.year:04}"


def lasting(length: timedelta) -> str:
    """Format as "1 hour and 30 minutes". A single unit keeps its number, because "every hour" means by the clock."""
    seconds = int(length.total_seconds())
    if length.microseconds:
        return f"{length.total_seconds()} seconds"
    parts = []
    for size, noun in UNITS:
        count, seconds = divmod(seconds, size)
        if count:
            parts.append(counted(count, noun))
    return listed(parts) or "0 seconds"
