"""Describe the time of day: clock times, a step, or hours and minutes one by one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import time

from foliot.domain.schedule.describe.cron_shape import DescribedField, DescribedFields, Hashed
from foliot.domain.schedule.describe.english import counted, listed, numbers, ordinal

MOST_TIMES = 12
ANY = Hashed(None, None, None)


@dataclass(frozen=True, slots=True)
class TimeOfDay:
    text: str
    is_clock: bool = False  # "at 09:00", which follows the days; anything else goes before them
    is_counted: bool = False  # "every 15 minutes", which alone would be an interval


def time_of_day(fields: DescribedFields, *, any_day: bool) -> TimeOfDay:
    """With `any_day`, describe hours across midnight; on chosen days that would spill into the next day."""
    second, minute, hour = fields.second, fields.minute, fields.hour
    is_whole = second.values == (0,)
    if _is_plain(minute) and _is_plain(hour) and len(minute.values) * len(hour.values) <= MOST_TIMES:
        return TimeOfDay(f"at {_clock_times(second, minute, hour)}", is_clock=True)
    if _divides(second.star_step, 60) and minute.is_free and hour.is_free:
        return TimeOfDay(_every(second.step, "second"), is_counted=True)
    described = (
        _chosen(minute, hour)
        or _all_day(minute, hour, is_whole=is_whole)
        or _window(minute, hour, any_day=any_day)
        or TimeOfDay(_literal(minute, hour))
    )
    return described if is_whole else TimeOfDay(f"{_seconds(second)} of these minutes: {described.text}")


def _is_plain(field: DescribedField) -> bool:
    return len(field.values) == 1 or (bool(field.values) and not (field.is_range or field.is_open))


def _clock_times(second: DescribedField, minute: DescribedField, hour: DescribedField) -> str:
    """09:00 and 17:00; with few seconds 09:00:30, with many "every second of 09:00"."""
    minutes = [time(h, m) for h in hour.values for m in minute.values]
    if second.values == (0,):
        return listed([f"{at:%H:%M}" for at in minutes])
    if second.values and len(minutes) * len(second.values) <= MOST_TIMES:
        return listed([f"{at:%H:%M}:{s:02}" for at in minutes for s in second.values])
    return f"{_seconds(second).removeprefix('at ')} of {listed([f'{at:%H:%M}' for at in minutes])}"


def _clock(hour: int, minute: int) -> str:
    return f"{hour:02}:{minute:02}"


def _chosen(minute: DescribedField, hour: DescribedField) -> TimeOfDay | None:
    if minute.hashed == ANY and hour.hashed == ANY:
        return TimeOfDay("at a time chosen per job", is_clock=True)
    if minute.hashed == ANY and hour.is_free:
        return TimeOfDay("every hour at a minute chosen per job")
    return TimeOfDay(_literal(minute, hour)) if minute.hashed or hour.hashed else None


def _all_day(minute: DescribedField, hour: DescribedField, *, is_whole: bool) -> TimeOfDay | None:
    if hour.is_free and _divides(minute.star_step, 60):
        return TimeOfDay(_every(minute.step, "minute"), is_counted=minute.step > 1)
    if not _divides(hour.star_step, 24) or not _is_plain(minute) or len(minute.values) > MOST_TIMES:
        return None
    past = "" if minute.values == (0,) and is_whole else " at " + listed([f":{m:02}" for m in minute.values])
    return TimeOfDay(_every(hour.step, "hour") + past, is_counted=hour.step > 1)


def _divides(step: int, whole: int) -> bool:
    return step > 0 and whole % step == 0


def _window(minute: DescribedField, hour: DescribedField, *, any_day: bool) -> TimeOfDay | None:
    """Steps from a first to a last time, both included."""
    if hour.is_open:
        return None
    bounds = _bounds(hour.values, 1, 24 if any_day else None)
    pace = _pace(minute.values, is_one_hour=len(hour.values) == 1)
    if bounds is None and len(minute.values) == 1 and (bounds := _bounds(hour.values, hour.step, None)):
        pace = _every(hour.step, "hour")
    elif len(minute.values) == 1:
        pace = "every hour"
    if bounds is None or pace is None:
        return None
    return TimeOfDay(
        f"{pace} from {_clock(bounds[0], minute.values[0])} to {_clock(bounds[1], minute.values[-1])}"
    )


def _pace(minutes: tuple[int, ...], *, is_one_hour: bool) -> str | None:
    """Minutes that repeat evenly from hour to hour, or evenly within one hour."""
    step = minutes[1] - minutes[0] if len(minutes) > 1 else 60
    is_even = minutes == tuple(range(minutes[0], minutes[-1] + 1, step))
    return _every(step, "minute") if is_even and (is_one_hour or len(minutes) * step == 60) else None


def _bounds(values: tuple[int, ...], step: int, circle: int | None) -> tuple[int, int] | None:
    """First and last of evenly spaced values, perhaps round a circle: 22, 23, 0, 1."""
    if values == tuple(range(values[0], values[-1] + 1, step)):
        return values[0], values[-1]
    starts = [value for value in values if circle and (value - 1) % circle not in values]
    return (
        (starts[0], next(value for value in values if (value + 1) % 24 not in values))
        if len(starts) == 1
        else None
    )


def _every(count: int, noun: str) -> str:
    return f"every {noun}" if count == 1 else f"every {counted(count, noun)}"


def _literal(minute: DescribedField, hour: DescribedField) -> str:
    return f"{_minutes(minute)} {'of' if minute.is_full else 'past'} {_hours(hour)}"


def _seconds(second: DescribedField) -> str:
    if second.hashed:
        return f"at {chosen(second.hashed, 'second')}"
    if second.is_full:
        return "every second"
    return f"at {'second' if len(second.values) == 1 else 'seconds'} {numbers(second.values)}"


def _minutes(minute: DescribedField) -> str:
    if minute.hashed:
        return f"at {chosen(minute.hashed, 'minute')}"
    if minute.is_full:
        return "every minute"
    if minute.step > 1 and len(minute.values) > 2:
        return f"at every {ordinal(minute.step)} minute from {minute.values[0]} to {minute.values[-1]}"
    return f"at {'minute' if len(minute.values) == 1 else 'minutes'} {numbers(minute.values)}"


def _hours(hour: DescribedField) -> str:
    if hour.hashed:
        return chosen(hour.hashed, "hour")
    if hour.is_full:
        return "every hour"
    bounds = _bounds(hour.values, 1, None)
    if bounds is not None and bounds[0] < bounds[1]:
        return f"every hour from {bounds[0]:02}:00 to {bounds[1]:02}:59"
    return ("hour " if len(hour.values) == 1 else "hours ") + numbers(hour.values)


def chosen(hashed: Hashed, noun: str) -> str:
    """Return a minute chosen per job."""
    within = f" from {hashed.first} to {hashed.last}" if hashed.first is not None else ""
    if hashed.step:
        return f"every {ordinal(hashed.step)} {noun}{within} from a start chosen per job"
    return f"{'an' if noun == 'hour' else 'a'} {noun}{within} chosen per job"
