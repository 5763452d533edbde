"""What a schedule means and when it would fire, without making a job of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from foliot.domain.schedule import PlannedTime, Schedule, Timetable, preview
from foliot.domain.schedule.notes import notes_on
from foliot.domain.schedule.warnings import cautions


@dataclass(frozen=True, slots=True)
class Previewed:
    schedule: Schedule
    times: tuple[PlannedTime, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]


def previewed(schedule: Schedule, after: datetime, n: int) -> Previewed:
    timetable = Timetable(schedule)
    times = preview(timetable, after, n)
    return Previewed(schedule, times, notes_on(timetable, after, times), cautions(schedule))
