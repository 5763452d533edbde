"""Compare the runs ahead before and after a change: two series of planned times, and what was added, removed or moved between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import takewhile, zip_longest

from foliot.domain.schedule import PlannedTime, Timetable, preview

LOOKED_AT = 50  # times of each series
HORIZON = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Upcoming:
    """The runs ahead of a job, all of them up to `until`."""

    times: tuple[PlannedTime, ...]
    until: datetime


@dataclass(frozen=True, slots=True)
class MovedTime:
    before: PlannedTime
    after: PlannedTime


@dataclass(frozen=True, slots=True)
class UpcomingDifference:
    """Up to `until`. What goes off at the same instant is unchanged; what goes off on the same day at another time has moved."""

    added: tuple[PlannedTime, ...]
    removed: tuple[PlannedTime, ...]
    moved: tuple[MovedTime, ...]
    unchanged: int
    until: datetime


def nothing_ahead(now: datetime) -> Upcoming:
    return Upcoming((), now + HORIZON)


def upcoming(timetable: Timetable, after: datetime, now: datetime, most: int | None = None) -> Upcoming:
    """As far as is looked at: so many times, or so many days. `most` is what the job may still run."""
    end = now + HORIZON
    wanted = LOOKED_AT if most is None else min(LOOKED_AT, most)
    found = preview(timetable, after, wanted)
    times = tuple(takewhile(lambda planned: planned.due_at <= end, found))
    is_cut = len(times) == LOOKED_AT
    return Upcoming(times, times[-1].due_at if is_cut else end)


def difference(before: Upcoming, after: Upcoming) -> UpcomingDifference:
    until = min(before.until, after.until)
    old, new = _by_instant(before.times, until), _by_instant(after.times, until)
    gone = [planned for at, planned in old.items() if at not in new]
    come = [planned for at, planned in new.items() if at not in old]
    gone_on, come_on = _by_day(gone), _by_day(come)
    added: list[PlannedTime] = []
    removed: list[PlannedTime] = []
    moved: list[MovedTime] = []
    for day in sorted(gone_on.keys() | come_on.keys()):
        for was, becomes in zip_longest(gone_on.get(day, ()), come_on.get(day, ())):
            if was is None:
                added.append(becomes)
            elif becomes is None:
                removed.append(was)
            else:
                moved.append(MovedTime(was, becomes))
    return UpcomingDifference(tuple(added), tuple(removed), tuple(moved), len(old) - len(gone), until)


def _by_instant(times: Iterable[PlannedTime], until: datetime) -> dict[datetime, PlannedTime]:
    """By when they start: a window or a spread moves a run, though its planned time stays."""
    return {planned.due_at: planned for planned in times if planned.due_at <= until}


def _by_day(times: Sequence[PlannedTime]) -> dict[date, list[PlannedTime]]:
    days: dict[date, list[PlannedTime]] = {}
    for planned in times:
        days.setdefault(planned.local.date(), []).append(planned)
    return days
