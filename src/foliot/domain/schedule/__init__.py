"""The time engine. Preview, next run, explain, agenda and firing all call `timetable.py`."""

from foliot.domain.schedule.calendar import Calendar, CalendarKind, check_calendar
from foliot.domain.schedule.cron import parse_cron
from foliot.domain.schedule.kinds import (
    Cron,
    DayMatch,
    Gap,
    Interval,
    IntervalMode,
    Manual,
    Once,
    OverlapTime,
    Schedule,
)
from foliot.domain.schedule.merged_spans import Absolute, CronStretch, Days
from foliot.domain.schedule.planned import Dst, PlannedTime, SkipReason
from foliot.domain.schedule.timetable import (
    MOST_TIMES,
    Timetable,
    count_between,
    is_chained,
    latest_to_run_until,
    latest_until,
    next_time,
    planned_after,
    preview,
    times_between,
)
from foliot.domain.schedule.window import Otherwise, Weekly, Window
from foliot.domain.schedule.zone import ZONE_DATA_VERSION, load_zone, zone_names

__all__ = [
    "MOST_TIMES",
    "ZONE_DATA_VERSION",
    "Absolute",
    "Calendar",
    "CalendarKind",
    "Cron",
    "CronStretch",
    "DayMatch",
    "Days",
    "Dst",
    "Gap",
    "Interval",
    "IntervalMode",
    "Manual",
    "Once",
    "Otherwise",
    "OverlapTime",
    "PlannedTime",
    "Schedule",
    "SkipReason",
    "Timetable",
    "Weekly",
    "Window",
    "check_calendar",
    "count_between",
    "is_chained",
    "latest_to_run_until",
    "latest_until",
    "load_zone",
    "next_time",
    "parse_cron",
    "planned_after",
    "preview",
    "times_between",
    "zone_names",
]
