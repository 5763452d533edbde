"""Notes about planned times: clock changes, and values that differ per job."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import assert_never

from foliot.domain.schedule.cron import hashed_values
from foliot.domain.schedule.describe.cron_shape import DescribedFields, read_fields
from foliot.domain.schedule.dst import TICK
from foliot.domain.schedule.kinds import Cron, DayMatch, Gap, Schedule
from foliot.domain.schedule.planned import Dst, PlannedTime, SkipReason
from foliot.domain.schedule.timetable import Timetable, planned_after
from foliot.domain.schedule.zone import load_zone, naive_utc, span_at


def notes_on(timetable: Timetable, after: datetime, times: tuple[PlannedTime, ...]) -> tuple[str, ...]:
    """Return every note about `times`, previewed from `after`."""
    hashed = hash_note(timetable)
    return (*(() if hashed is None else (hashed,)), *dst_notes(timetable, after, times))


def hash_note(timetable: Timetable) -> str | None:
    """Without a job there is no seed, and the numbers shown for `H` are only an example."""
    schedule = timetable.schedule
    if timetable.seed or not isinstance(schedule, Cron):
        return None
    used = [f"{name} {', '.join(values)}" for name, values in hashed_values(schedule).items()]
    if not used:
        return None
    return f"H stands for values that differ from job to job. These times show {' and '.join(used)}; a job has its own."


def dst_notes(timetable: Timetable, after: datetime, times: tuple[PlannedTime, ...]) -> tuple[str, ...]:
    """Return one sentence for each planned time that a clock change moved, doubled or dropped, up to the last of `times`."""
    schedule = timetable.schedule
    if not isinstance(schedule, Cron) or not times:
        return ()
    dropped = _dropped(timetable, schedule, after, times[-1].planned_for)
    planned = sorted({*times, *dropped}, key=lambda time: time.planned_for)
    return tuple(dict.fromkeys(note for time in planned if (note := dst_note(schedule, time)) is not None))


def _dropped(timetable: Timetable, schedule: Cron, after: datetime, until: datetime) -> Iterator[PlannedTime]:
    """Yield the times that gaps swallowed: each is recorded at the jump itself, so only the jumps are looked at."""
    if schedule.gap is not Gap.SKIP:
        return
    end = naive_utc(until)
    span = span_at(schedule.timezone, naive_utc(after))
    while span.end <= end:
        if span.after > span.offset:
            planned = planned_after(timetable, (span.end - TICK).replace(tzinfo=UTC))
            if planned is not None and planned.skip is SkipReason.DST_GAP:
                yield planned
        span = span_at(schedule.timezone, span.end)


def dst_note(schedule: Schedule, time: PlannedTime) -> str | None:
    zone = schedule.timezone
    wall = f"{time.local:%a} {time.local.day} {time.local:%b %Y %H:%M}"
    shown = time.planned_for.astimezone(load_zone(zone))
    match time.dst:
        case None:
            return None
        case Dst.GAP if time.skip is SkipReason.DST_GAP:
            return f"{wall} does not exist in {zone}: the clocks jump over it. It is skipped (gap: skip)."
        case Dst.GAP:
            return f"{wall} does not exist in {zone}: the clocks jump over it. It runs at {shown:%H:%M %Z} instead."
        case Dst.FIRST:
            return f"{wall} comes twice in {zone}: this is the first time, {shown:%Z}."
        case Dst.SECOND:
            return f"{wall} comes twice in {zone}: this is the second time, {shown:%Z}."
        case _:
            assert_never(time.dst)


def cautions(schedule: Schedule) -> tuple[str, ...]:
    if not isinstance(schedule, Cron):
        return ()
    fields = read_fields(schedule.expr, seconds=schedule.seconds)
    return () if fields is None else tuple(_cautions(schedule, fields))


def _closed(fields: DescribedFields) -> str:
    """Return the stepped day field without its star."""
    if fields.dom.is_open and not fields.dom.is_free:
        return f"1-31/{fields.dom.step} as day of month"
    return f"0-6/{fields.dow.step} as day of week"


def _cautions(schedule: Cron, fields: DescribedFields) -> Iterator[str]:
    days, weekdays = fields.dom, fields.dow
    if schedule.day_match is DayMatch.OR and not days.is_open and not weekdays.is_open:
        yield (
            "Day of month and day of week are both given: it runs on days that match either. "
            'Set day_match to "and" for days that match both.'
        )
    stepped = next((each for each in (days, weekdays) if each.is_open and not each.is_free), None)
    if stepped is not None and not days.is_free and not weekdays.is_free:
        yield (
            "A day field that begins with * does not count as restricted, as in crontab(5): it runs on days that match both. "
            f"croniter and cron-parser run on days that match either; write {_closed(fields)} for that."
        )
    if fields.minute.is_free and not fields.hour.is_open:
        yield "The minute is *: it runs every minute of the hours named. Write 0 for once an hour."
    if days.values and min(days.values) > 28 and not days.last_day and weekdays.is_free:
        yield f"Months without a day {min(days.values)} are passed over. Write L for the last day of every month."
