"""What a reader of planned times should know about clock changes, in sentences."""

from __future__ import annotations

from datetime import datetime
from typing import assert_never

from foliot.domain.schedule.kinds import Cron, Schedule
from foliot.domain.schedule.planned import Dst, PlannedTime, SkipReason
from foliot.domain.schedule.timetable import Timetable, times_between
from foliot.domain.schedule.zone import load_zone

_MOST_LOOKED_AT = 500


def dst_notes(timetable: Timetable, after: datetime, times: tuple[PlannedTime, ...]) -> tuple[str, ...]:
    """One sentence for each planned time that a clock change moved, doubled or dropped, up to the last of `times`."""
    schedule = timetable.schedule
    if not isinstance(schedule, Cron) or not times:
        return ()
    planned = times_between(timetable, after, times[-1].planned_for, _MOST_LOOKED_AT)
    return tuple(dict.fromkeys(note for time in planned if (note := dst_note(schedule, time)) is not None))


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
