"""Weekly spans of wall-clock time in a zone, such as Mondays 22:00 to 04:00. Windows and calendars use them.

Why: docs/decisions/102-windows-and-calendars.md
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from enum import StrEnum
from functools import lru_cache

from foliot.domain.schedule.zone import instant_of, wall_at

ALL_DAYS = frozenset(range(7))
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Weekly:
    """From `start` to `end` on each of `days` (Monday is 0). Past midnight it belongs to the day it started on; equal ends mean a whole day."""

    start: time
    end: time
    days: frozenset[int] = ALL_DAYS


def stretch_holding(
    weekly: Weekly, zone: str, instant: datetime, *, with_end: bool
) -> tuple[datetime, datetime] | None:
    """The stretch that `instant` lies in. Blackouts end before their end; windows hold it too, so an empty one still lets its time through."""
    for start, end in _stretches(weekly, zone, wall_at(zone, instant).date() - _DAY, 2):
        if start <= instant < end or (with_end and start <= instant == end):
            return start, end
    return None


def next_stretch(weekly: Weekly, zone: str, instant: datetime) -> datetime | None:
    """Return when the next stretch starts, strictly later than `instant`."""
    starts = (start for start, _ in _stretches(weekly, zone, wall_at(zone, instant).date(), 9))
    return next((start for start in starts if start > instant), None)


def _stretches(weekly: Weekly, zone: str, first: date, days: int) -> Iterator[tuple[datetime, datetime]]:
    for day in (first + _DAY * n for n in range(days)):
        if day.weekday() in weekly.days:
            yield _stretch_of(weekly, zone, day)


@lru_cache(maxsize=16_384)
def _stretch_of(weekly: Weekly, zone: str, day: date) -> tuple[datetime, datetime]:
    closing = day if weekly.end > weekly.start else day + _DAY
    # The outer edges of a repeated hour: a window that ends at 01:30 ends the second time the clock shows it.
    start = instant_of(zone, datetime.combine(day, weekly.start))
    return start, instant_of(zone, datetime.combine(closing, weekly.end), second=True)


class Otherwise(StrEnum):
    """The policy for a planned time that may not run when it is due."""

    DEFER = "defer"  # it runs at the next allowed instant
    SKIP = "skip"  # it is recorded as skipped


@dataclass(frozen=True, slots=True)
class Window:
    """From `start` to `end`, both included; may cross midnight, and then counts for the day it starts on."""

    start: time
    end: time
    days: frozenset[int] = ALL_DAYS  # Monday is 0
    otherwise: Otherwise = Otherwise.DEFER


def window_closed_until(window: Window, zone: str, instant: datetime) -> datetime | None:
    """Return None while the window is open, else when it opens next; `datetime.max` means never."""
    weekly = Weekly(window.start, window.end, window.days)
    if stretch_holding(weekly, zone, instant, with_end=True) is not None:
        return None
    return next_stretch(weekly, zone, instant) or datetime.max


def window_closes_at(window: Window, zone: str, instant: datetime) -> datetime | None:
    """Return when the span that contains `instant` ends: the last moment at which a waiting run may start."""
    held = stretch_holding(Weekly(window.start, window.end, window.days), zone, instant, with_end=True)
    return None if held is None else held[1]
