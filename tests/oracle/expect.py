"""The brute force: every real minute around a clock change is converted to wall time, then matched.

A wall minute between the first and the last one seen that no real minute ever showed fell into a gap; one that was
shown twice lies in an overlap. Nothing here knows how the engine finds its answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

from foliot.domain.schedule.kinds import Gap, OverlapTime
from foliot.domain.schedule.planned import Dst, PlannedTime, SkipReason
from tests.oracle.fields import Matcher
from tests.oracle.tzif import ZONES

DAY = 24 * 60  # wall minutes count from `date.toordinal` zero, real minutes from 1970
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MARGIN = timedelta(
    hours=25
)  # no clock has moved further at once: a change just outside the window still reaches into it


@dataclass(frozen=True, slots=True)
class Clock:
    """What the wall clock showed from `start` to `end`: for each wall minute the real minutes that showed it."""

    start: datetime
    end: datetime
    first: dict[int, int]
    second: dict[int, int]
    gaps: tuple[tuple[int, int], ...]  # wall minutes never shown: from, to (exclusive)
    earliest: int
    latest: int

    def gap_of(self, wall: int) -> tuple[int, int]:
        return next(gap for gap in self.gaps if gap[0] <= wall < gap[1])


@cache
def zone(name: str) -> ZoneInfo:
    with (ZONES / name).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def watch(zone_name: str, start: datetime, end: datetime) -> Clock:
    """Stand before the wall clock of a zone from `start` to `end`, whole minutes, with a margin on both sides."""
    tz = zone(zone_name)
    first: dict[int, int] = {}
    second: dict[int, int] = {}
    minute = int((start - MARGIN - EPOCH).total_seconds()) // 60
    last = int((end + MARGIN - EPOCH).total_seconds()) // 60
    for real in range(minute, last + 1):
        shown = datetime.fromtimestamp(real * 60, tz)
        wall = shown.toordinal() * DAY + shown.hour * 60 + shown.minute
        if shown.second:
            raise ValueError(f"{zone_name} is off by seconds at {shown}: whole minutes cannot judge it")
        if wall in second:
            raise ValueError(f"{zone_name} shows {shown} three times")
        (second if wall in first else first)[wall] = real
    return Clock(start, end, first, second, tuple(_never_shown(first)), min(first), max(first))


def _never_shown(first: dict[int, int]) -> Iterator[tuple[int, int]]:
    gap = None
    for wall in range(min(first), max(first) + 1):
        if wall not in first:
            gap = wall if gap is None else gap
        elif gap is not None:
            yield gap, wall
            gap = None


def expected(matcher: Matcher, clock: Clock, gap: Gap, overlap: OverlapTime) -> tuple[PlannedTime, ...]:
    """Planned times in (start, end], skips included, in order of `planned_for`."""
    named = (
        _by_real_time(matcher, clock)
        if matcher.pattern.is_open
        else _by_wall_time(matcher, clock, gap, overlap)
    )
    landed: dict[int, Name] = dict(
        named
    )  # names come in wall order: of several on one instant the last stays
    start, end = (int((moment - EPOCH).total_seconds()) for moment in (clock.start, clock.end))
    return tuple(_planned(at, landed[at]) for at in sorted(landed) if start < at <= end)


class Name(NamedTuple):
    """The wall-clock time that names an instant."""

    wall: int
    second: int
    fold: int = 0
    dst: Dst | None = None
    skip: SkipReason | None = None


def _by_real_time(matcher: Matcher, clock: Clock) -> Iterator[tuple[int, Name]]:
    """An open schedule: whatever the wall clock shows, as often as it shows it."""
    for wall, second in _nominal(matcher, clock):
        if wall in clock.first:
            dst = Dst.FIRST if wall in clock.second else None
            yield clock.first[wall] * 60 + second, Name(wall, second, dst=dst)
        if wall in clock.second:
            yield clock.second[wall] * 60 + second, Name(wall, second, 1, Dst.SECOND)


def _by_wall_time(
    matcher: Matcher, clock: Clock, gap: Gap, overlap: OverlapTime
) -> Iterator[tuple[int, Name]]:
    """A closed schedule: every nominal wall time, placed by the two policies where it is not shown exactly once."""
    for wall, second in _nominal(matcher, clock):
        if wall in clock.second:
            if overlap is not OverlapTime.SECOND:
                yield clock.first[wall] * 60 + second, Name(wall, second, 0, Dst.FIRST)
            if overlap is not OverlapTime.FIRST:
                yield clock.second[wall] * 60 + second, Name(wall, second, 1, Dst.SECOND)
        elif wall in clock.first:
            yield clock.first[wall] * 60 + second, Name(wall, second)
        else:
            begin, end = clock.gap_of(wall)
            if gap is Gap.SHIFT:
                yield clock.first[wall + end - begin] * 60 + second, Name(wall, second, 0, Dst.GAP)
            else:
                skip = SkipReason.DST_GAP if gap is Gap.SKIP else None
                yield clock.first[end] * 60, Name(wall, second, 0, Dst.GAP, skip)


def _nominal(matcher: Matcher, clock: Clock) -> Iterator[tuple[int, int]]:
    for day in range(clock.earliest // DAY, clock.latest // DAY + 1):
        if matcher.matches_day(day):
            for minute in matcher.minutes_of_day:
                if clock.earliest <= (wall := day * DAY + minute) <= clock.latest:
                    for second in matcher.seconds:
                        yield wall, second


def _planned(at: int, name: Name) -> PlannedTime:
    instant = datetime.fromtimestamp(at, UTC)
    day, minute = divmod(name.wall, DAY)
    local = datetime.fromordinal(day).replace(hour=minute // 60, minute=minute % 60, second=name.second)
    return PlannedTime(instant, local, name.fold, instant, name.skip, name.dst)
