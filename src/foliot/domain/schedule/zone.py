"""Time zones: spans in which the wall clock runs straight, and jumps between them. Data comes from the `tzdata` wheel only."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib.resources import files
from zoneinfo import ZoneInfo

import tzdata

from foliot.domain.errors import ScheduleInvalid

ZONE_DATA_VERSION: str = tzdata.IANA_VERSION
_SECOND = timedelta(seconds=1)
_DAY = timedelta(days=1)
_FIRST_YEAR = 3  # so that no offset reaches over the beginning of `datetime`


@dataclass(frozen=True, slots=True)
class Span:
    """A span of real time in which the wall clock runs straight: wall = instant + offset.

    Instants here are UTC without tzinfo, as everywhere below `timetable.py`. A border where nothing jumps has equal offsets on both sides.
    """

    start: datetime
    end: datetime
    offset: timedelta
    before: timedelta  # the offset until `start`
    after: timedelta  # the offset from `end` on


def zone_names() -> frozenset[str]:
    return frozenset(_by_lower_name().values())


@lru_cache(maxsize=1024)
def load_zone(name: str) -> ZoneInfo:
    known = _by_lower_name()
    if known.get(name.lower()) != name:
        raise ScheduleInvalid(
            f'There is no time zone "{name if name.isprintable() else ascii(name)[1:-1]}".'[:200],
            hint=_zone_hint(name),
            pointer="/schedule/timezone",
        )
    with files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as data:
        return ZoneInfo.from_file(data, key=name)


def span_at(zone: str, instant: datetime) -> Span:
    spans, starts = _spans_around(zone, max(instant.year, _FIRST_YEAR))
    return spans[max(bisect_right(starts, instant) - 1, 0)]


def wall_at(zone: str, instant: datetime) -> datetime:
    return instant + span_at(zone, instant).offset


def instant_of(zone: str, wall: datetime, *, second: bool = False) -> datetime:
    """Return the instant that shows `wall`: the end of the gap if it is skipped, the first (or second) if it occurs twice."""
    tz = load_zone(zone)
    early, late = (_utcoffset(wall.replace(tzinfo=tz, fold=fold)) for fold in (0, 1))
    if early < late:
        return span_at(zone, wall - early).start
    return wall - (late if second else early)


def naive_utc(instant: datetime) -> datetime:
    if instant.tzinfo is UTC:
        return instant.replace(tzinfo=None)
    if instant.tzinfo is None:
        raise ScheduleInvalid("An instant needs its offset from UTC, such as 2027-01-02T18:00:00Z.")
    return instant.astimezone(UTC).replace(tzinfo=None)


@lru_cache(maxsize=1)
def _by_lower_name() -> dict[str, str]:
    names = files("tzdata").joinpath("zones").read_text("ascii").split()
    return {name.lower(): name for name in names}


def _zone_hint(name: str) -> str:
    """Cheap on purpose: a wrong zone must be answered in no time, so no edit distances over 600 names."""
    known, wanted = _by_lower_name(), name.strip().lower().replace(" ", "_")[:64]
    if wanted in known:
        return f'Did you mean "{known[wanted]}"?'
    city = wanted.rpartition("/")[2]
    close = [full for lower, full in known.items() if city and lower.rpartition("/")[2] == city]
    close = close or [
        full
        for lower, full in known.items()
        if len(city) > 2 and lower.rpartition("/")[2].startswith(city[:4])
    ]
    if close:
        return "Did you mean " + " or ".join(f'"{full}"' for full in close[:3]) + "?"
    return 'Zones have IANA names such as "Europe/Paris" or "America/New_York".'


@lru_cache(maxsize=4096)
def _spans_around(zone: str, year: int) -> tuple[tuple[Span, ...], tuple[datetime, ...]]:
    """The spans of the year before, this year and the next. The neighbours are there so that every border near this year is a real one."""
    load_zone(zone)
    jumps = [jump for near in (year - 1, year, year + 1) for jump in _jumps(zone, near)]
    first = datetime(year - 1, 1, 1)
    # With no jump until the end of next year, cut in its middle: no clock change lies within a day of the cut.
    last = datetime(min(year + 1, 9999), 7, 1)
    borders = [first, *(at for at, _, _ in jumps)]
    offsets = [_offset(zone, first), *(after for _, _, after in jumps)]
    spans = []
    for i, start in enumerate(borders):
        is_final = i + 1 == len(borders)
        end = max(last, start + _DAY) if is_final else borders[i + 1]
        spans.append(
            Span(
                start,
                end,
                offsets[i],
                before=offsets[max(i - 1, 0)],
                after=offsets[i] if is_final else offsets[i + 1],
            )
        )
    return tuple(spans), tuple(borders)


@lru_cache(maxsize=65_536)
def _jumps(zone: str, year: int) -> tuple[tuple[datetime, timedelta, timedelta], ...]:
    """Return the instants of one year at which the offset changes. Looks once a day: no zone has changed twice within one."""
    if not 1 < year < 9999:
        return ()
    new_year, end = datetime(year, 1, 1), datetime(year + 1, 1, 1)
    days = (new_year + _DAY * day for day in range((end - new_year).days))
    found = []
    earlier, offset = new_year - _SECOND, _offset(zone, new_year - _SECOND)
    for later in (*days, end - _SECOND):
        if (changed := _offset(zone, later)) != offset:
            found.append((_border(zone, earlier, later, offset), offset, changed))
        earlier, offset = later, changed
    return tuple(found)


def _border(zone: str, low: datetime, high: datetime, offset: timedelta) -> datetime:
    """Return the first second after `low` whose offset is no longer `offset`."""
    while high - low > _SECOND:
        middle = low + (high - low) // _SECOND // 2 * _SECOND
        if _offset(zone, middle) == offset:
            low = middle
        else:
            high = middle
    return high


def _offset(zone: str, instant: datetime) -> timedelta:
    return _utcoffset(instant.replace(tzinfo=UTC).astimezone(load_zone(zone)))


def _utcoffset(moment: datetime) -> timedelta:
    offset = moment.utcoffset()
    assert offset is not None
    return offset
