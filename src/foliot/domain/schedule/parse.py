"""Turn user input into a complete, valid schedule: parse, check, anchor."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import assert_never

from foliot.domain.errors import ScheduleInvalid
from foliot.domain.schedule.cron import wall_times
from foliot.domain.schedule.kinds import (
    ZERO,
    Cron,
    DayMatch,
    Gap,
    Interval,
    Manual,
    Once,
    OverlapTime,
    Schedule,
)
from foliot.domain.schedule.timetable import Timetable, planned_after
from foliot.domain.schedule.wall_times import HORIZON_YEARS, LAST_YEAR
from foliot.domain.schedule.words import read_words
from foliot.domain.schedule.zone import load_zone, wall_at

_CRON_FIELD = re.compile(r"[\d*?,/\-HhLlWw()#]+", re.ASCII)
_SHORTEST = timedelta(seconds=1)
_LONGEST = timedelta(days=366 * 100)


@dataclass(frozen=True, slots=True)
class ParseOptions:
    """The choices that the text of a schedule does not make itself."""

    timezone: str = "UTC"
    seconds: bool = False
    day_match: DayMatch = DayMatch.OR
    gap: Gap = Gap.NEXT_VALID
    overlap_time: OverlapTime = OverlapTime.FIRST


def read_schedule(text: str, now: datetime, reading: ParseOptions = ParseOptions()) -> Schedule:  # noqa: B008  # frozen
    """Parse cron text or words; check the schedule and anchor it at `now`."""
    zone = load_zone(reading.timezone)
    if looks_like_cron(text):
        schedule: Schedule = Cron(
            text.strip(), timezone=reading.timezone, seconds=reading.seconds, day_match=reading.day_match
        )
    else:
        schedule = read_words(text, now=now, timezone=reading.timezone, tz=zone, zone_named=load_zone)
    if isinstance(schedule, Cron):
        schedule = replace(schedule, gap=reading.gap, overlap_time=reading.overlap_time)
    return settled(schedule, now)


def settled(schedule: Schedule, now: datetime) -> Schedule:
    """Return the schedule as a job created at `now` stores it: checked, anchored, with at least one future time."""
    check_schedule(schedule)
    schedule = anchored(schedule, now)
    if isinstance(schedule, Cron) and planned_after(Timetable(schedule), now) is None:
        if now.year + HORIZON_YEARS > LAST_YEAR:
            raise ScheduleInvalid(
                f"The calendar ends with the year {LAST_YEAR}: after {now.date()} this schedule names no more times.",
                hint="Start from an earlier instant.",
                pointer="/schedule",
            )
        raise ScheduleInvalid(
            f"This schedule never fires in the next {HORIZON_YEARS} years.",
            hint="Name more days, or a smaller every_n_weeks.",
            pointer="/schedule",
        )
    return schedule


def looks_like_cron(text: str) -> bool:
    fields = text.split()
    if not fields:
        return False
    if fields[0].startswith("@"):
        return True
    return len(fields) > 1 and all(_CRON_FIELD.fullmatch(field) is not None for field in fields[:2])


def check_schedule(schedule: Schedule) -> None:
    """Raise ScheduleInvalid for a schedule that cannot be evaluated; `planned_after` never fails on the others."""
    load_zone(schedule.timezone)
    match schedule:
        case Cron():
            wall_times(schedule)
            _check_spread(schedule.spread)
        case Interval():
            if not _SHORTEST <= schedule.every <= _LONGEST:
                raise ScheduleInvalid(
                    "An interval is at least one second and at most 100 years.", pointer="/schedule/every"
                )
            _check_spread(schedule.spread)
        case Once() | Manual():
            pass
        case _:
            assert_never(schedule)


def anchored(schedule: Schedule, now: datetime) -> Schedule:
    """Fix what counts from creation: an interval's anchor, and the first week of `every_n_weeks`."""
    match schedule:
        case Interval(anchor=None):
            return replace(schedule, anchor=now)
        case Cron(anchor=None) if schedule.every_n_weeks > 1:
            first = planned_after(Timetable(replace(schedule, every_n_weeks=1)), now)
            at = now if first is None else first.planned_for
            return replace(
                schedule, anchor=wall_at(schedule.timezone, at.astimezone(UTC).replace(tzinfo=None)).date()
            )
        case _:
            return schedule


def _check_spread(spread: timedelta) -> None:
    if not ZERO <= spread <= timedelta(days=1):
        raise ScheduleInvalid("A spread must be between 0 and one day.", pointer="/schedule/spread")
