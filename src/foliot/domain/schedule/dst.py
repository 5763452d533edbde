"""Map wall-clock times to instants across clock changes.

The code walks real time span by span (see `zone.Span`). Inside a span every matching wall-clock time is one instant. At a border the
clocks jump forward or back. Forward: a closed schedule moves the skipped times by its gap policy. Back: the overlap policy chooses
the first pass, the second, or both. Open schedules (hour field `*`) follow real time: nothing is moved, nothing is dropped.

Why: docs/decisions/101-clock-changes-are-borders-between-spans.md
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from foliot.domain.schedule.kinds import Gap, OverlapTime
from foliot.domain.schedule.planned import Dst
from foliot.domain.schedule.wall_times import LAST_YEAR, WallTimes
from foliot.domain.schedule.zone import Span, span_at

TICK = timedelta(microseconds=1)
# Wall clocks are at most 15 hours from UTC and jump at most a day (Samoa, 2011).
_MARGIN = timedelta(days=2)
_BEGINNING = datetime(3, 1, 1)  # earlier instants would reach over the edge of `datetime`


class Nominal(NamedTuple):
    """An instant (UTC, no tzinfo) and the wall-clock time that names it."""

    at: datetime
    local: datetime
    fold: int
    dst: Dst | None
    is_skipped: bool = False


@lru_cache(maxsize=65_536)
def nominal_after(
    walls: WallTimes, zone: str, gap: Gap, overlap_time: OverlapTime, after: datetime
) -> Nominal | None:
    """Return the first planned instant after `after`. Jobs with the same expression and zone share the answer."""
    if after.year > LAST_YEAR:
        return None
    after = max(after, _BEGINNING)
    span = span_at(zone, after + TICK)
    while True:
        found = _first_in(span, walls, gap, overlap_time, after)
        if found is not None:
            return found
        unseen = span.end + min(span.offset, span.after)
        wall = walls.first_from(unseen)
        if wall is None:
            return None
        # Nothing matches until the wall clock shows `wall`: leap there instead of walking every span between.
        span = span_at(zone, max(span.end, wall - _MARGIN))
        after = max(after, span.start - TICK)


def _first_in(
    span: Span, walls: WallTimes, gap: Gap, overlap_time: OverlapTime, after: datetime
) -> Nominal | None:
    opens, closes = span.start + span.offset, span.end + span.offset
    second_pass_ends = span.start + span.before if span.offset < span.before else None
    first_pass_starts = span.end + span.after if span.after < span.offset else None
    carried = None
    if not walls.is_open:
        if second_pass_ends is not None and overlap_time is OverlapTime.FIRST:
            opens = second_pass_ends
        if first_pass_starts is not None and overlap_time is OverlapTime.SECOND:
            closes = first_pass_starts
        if span.offset > span.before:
            carried = _carried(span, walls, gap, after)
    own = walls.first_from(max(opens, after + span.offset + TICK))
    if own is None or own >= closes or (carried is not None and carried.at < own - span.offset):
        return carried
    if second_pass_ends is not None and own < second_pass_ends:
        return Nominal(own - span.offset, own, 1, Dst.SECOND)
    if first_pass_starts is not None and own >= first_pass_starts:
        return Nominal(own - span.offset, own, 0, Dst.FIRST)
    return Nominal(own - span.offset, own, 0, None)


def _carried(span: Span, walls: WallTimes, gap: Gap, after: datetime) -> Nominal | None:
    """Return the skipped wall-clock times that a closed schedule runs at the start of this span."""
    low, high = span.start + span.before, span.start + span.offset
    if gap is Gap.SHIFT:
        shifted = walls.first_from(max(low, after + span.before + TICK))
        return (
            None
            if shifted is None or shifted >= high
            else Nominal(shifted - span.before, shifted, 0, Dst.GAP)
        )
    if after >= span.start:
        return None
    last = walls.last_before(low, high)
    return None if last is None else Nominal(span.start, last, 0, Dst.GAP, gap is Gap.SKIP)
