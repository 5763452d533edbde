"""Warnings about schedules that often differ from what the author means. They never refuse a schedule."""

from __future__ import annotations

from collections.abc import Iterator

from foliot.domain.schedule.describe.cron_shape import DescribedFields, read_fields
from foliot.domain.schedule.kinds import Cron, DayMatch, Schedule


def cautions(schedule: Schedule) -> tuple[str, ...]:
    if not isinstance(schedule, Cron):
        return ()
    fields = read_fields(schedule.expr, seconds=schedule.seconds)
    return () if fields is None else tuple(_cautions(schedule, fields))


def _cautions(schedule: Cron, fields: DescribedFields) -> Iterator[str]:
    days, weekdays = fields.dom, fields.dow
    if schedule.day_match is DayMatch.OR and not days.is_open and not weekdays.is_open:
        yield (
            "Day of month and day of week are both given: it runs on days that match either. "
            'Set day_match to "and" for days that match both.'
        )
    if fields.minute.is_free and not fields.hour.is_open:
        yield "The minute is *: it runs every minute of the hours named. Write 0 for once an hour."
    if days.values and min(days.values) > 28 and not days.last_day and weekdays.is_free:
        yield f"Months without a day {min(days.values)} are passed over. Write L for the last day of every month."
