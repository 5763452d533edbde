"""The four kinds of schedule as values. `timetable.py` evaluates them; `cron.py` and `words` parse them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum

ZERO = timedelta(0)


class Gap(StrEnum):
    """The policy for a wall-clock time that the clocks jump over."""

    NEXT_VALID = "next_valid"  # at the first instant after the jump
    SKIP = "skip"  # not at all; recorded as skipped (dst_gap)
    SHIFT = "shift"  # later by the length of the jump: 02:30 becomes 03:30


class OverlapTime(StrEnum):
    """The choice between two instants with the same wall-clock time."""

    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


class DayMatch(StrEnum):
    """The rule that combines day-of-month and day-of-week when both are restricted."""

    OR = "or"  # crontab(5)
    AND = "and"


class IntervalMode(StrEnum):
    FIXED_RATE = "fixed_rate"  # anchor + k * every, whatever the runs do
    FIXED_DELAY = "fixed_delay"  # `every` after the live run has ended


@dataclass(frozen=True, slots=True)
class Cron:
    """Wall-clock times in a zone, five cron fields or six with `seconds`."""

    expr: str
    timezone: str = "UTC"
    seconds: bool = False
    day_match: DayMatch = DayMatch.OR
    every_n_weeks: int = 1
    anchor: date | None = None  # any day of a week that counts, when every_n_weeks > 1
    gap: Gap = Gap.NEXT_VALID
    overlap_time: OverlapTime = OverlapTime.FIRST
    spread: timedelta = ZERO


@dataclass(frozen=True, slots=True)
class Interval:
    """A fixed span of real time; zones and clock changes do not touch it."""

    every: timedelta
    anchor: datetime | None = None  # the first planned time is anchor + every
    mode: IntervalMode = IntervalMode.FIXED_RATE
    timezone: str = "UTC"  # for windows and display
    spread: timedelta = ZERO


@dataclass(frozen=True, slots=True)
class Once:
    at: datetime
    timezone: str = "UTC"


@dataclass(frozen=True, slots=True)
class Manual:
    """A schedule without planned times: people, programs and upstream jobs create the runs."""

    timezone: str = "UTC"


Schedule = Cron | Interval | Once | Manual
