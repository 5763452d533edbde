"""The window of a job: the times of day, on its own wall clock, at which it may run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time
from enum import StrEnum

from foliot.domain.schedule.weekly import ALL_DAYS, Weekly, next_stretch, stretch_holding


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
