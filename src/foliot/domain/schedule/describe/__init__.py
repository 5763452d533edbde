"""Describe a schedule in one sentence.

If the schedule can be written in words, the sentence uses those words, so that parsing the sentence gives the schedule back. Other
schedules are described literally; an expression that cannot be described is quoted. `words` is the opposite direction.

    cron_shape.py  the parts of a cron expression
    times.py       the time of day
    days.py        the days and months
    english.py     lists, ordinals, names
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import assert_never

from foliot.domain.schedule.describe.cron_shape import read_fields
from foliot.domain.schedule.describe.days import days_of_year
from foliot.domain.schedule.describe.english import full_date, lasting, weekday_names
from foliot.domain.schedule.describe.times import time_of_day
from foliot.domain.schedule.kinds import (
    ZERO,
    Cron,
    Gap,
    Interval,
    IntervalMode,
    Manual,
    Once,
    OverlapTime,
    Schedule,
)

__all__ = ["say"]

GAPS = {
    Gap.SKIP: "skipped where the clocks jump over it",
    Gap.SHIFT: "later by the jump where the clocks jump over it",
}
OVERLAPS = {
    OverlapTime.SECOND: "the second time where the clocks are set back",
    OverlapTime.BOTH: "both times where the clocks are set back",
}


def say(schedule: Schedule, tz: tzinfo | None = None) -> str:
    """Describe the schedule in one sentence. `tz` is its zone; without it a one-shot is shown in UTC."""
    match schedule:
        case Cron():
            text = _say_cron(schedule)
        case Interval():
            text = _say_interval(schedule)
        case Once():
            text = _say_once(schedule, tz)
        case Manual():
            text = "manually"
        case _:
            assert_never(schedule)
    return text[0].upper() + text[1:]


@lru_cache(maxsize=10_000)  # a list shows many jobs, and few of their schedules differ
def _say_cron(schedule: Cron) -> str:
    fields = read_fields(schedule.expr, seconds=schedule.seconds)
    if fields is None:
        text = f"cron {schedule.expr!r}"
        if schedule.every_n_weeks > 1:
            text += f", only in every {schedule.every_n_weeks} weeks"
    else:
        days = days_of_year(fields, schedule)
        time = time_of_day(fields, any_day=days.is_any)
        if time.is_clock:
            text = f"{days.before} {time.text}{days.tail}{days.weeks}"
        else:
            clock = " by the clock" if time.is_counted and days.is_any else ""
            text = f"{time.text}{clock}{' ' if days.after else ''}{days.after}{days.tail}{days.weeks_after}"
    notes = [GAPS.get(schedule.gap), OVERLAPS.get(schedule.overlap_time)]
    if schedule.spread > ZERO:
        notes.append(f"spread over {lasting(schedule.spread)}")
    return "; ".join([f"{text}, {schedule.timezone}", *(note for note in notes if note)])


def _say_interval(schedule: Interval) -> str:
    length = lasting(schedule.every)
    if schedule.mode is IntervalMode.FIXED_DELAY:
        text = f"{length} after each run has ended"
    else:
        text = "every second" if length == "1 second" else f"every {length}"
    return text if schedule.spread == ZERO else f"{text}; spread over {lasting(schedule.spread)}"


def _say_once(schedule: Once, tz: tzinfo | None) -> str:
    at = schedule.at.astimezone(tz or UTC)
    is_first = at.fold == 0 and at.microsecond == 0
    if (tz is None and schedule.timezone != "UTC") or not is_first:
        return f"once at {_stamp(schedule.at)}, {schedule.timezone}"
    clock = f"{at:%H:%M:%S}" if at.second else f"{at:%H:%M}"
    return (
        f"once on {weekday_names([at.isoweekday() % 7])[0]} {full_date(at)} at {clock}, {schedule.timezone}"
    )


def _stamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
