"""Clock changes read from the raw TZif files of the `tzdata` wheel (RFC 9636), the footer's POSIX rule included.

The referee's own reader: it shares nothing with the engine, and `test_oracle.py` holds it against `zoneinfo`.
"""

from __future__ import annotations

import calendar
import re
import struct
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, date, datetime
from importlib.resources import files
from pathlib import Path

ZONES = Path(str(files("tzdata"))) / "zoneinfo"
HEADER = struct.Struct(">4s c 15x 6l")
NAME = r"(?:<[+\-0-9A-Za-z]+>|[A-Za-z]+)"
CLOCK = r"[+-]?\d+(?::\d+){0,2}"
POSIX = re.compile(
    rf"{NAME}({CLOCK})(?:{NAME}({CLOCK})?(?:,([^,/]+)(?:/({CLOCK}))?,([^,/]+)(?:/({CLOCK}))?)?)?"
)


@dataclass(frozen=True, slots=True)
class Change:
    """From the UTC second `at` on, local time is UTC plus `after` seconds; until then it was UTC plus `before`."""

    at: int
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Offsets:
    """What a zone adds to UTC over a stretch of time, seconds since 1970."""

    first: int
    changes: tuple[Change, ...]

    def at(self, moment: int) -> int:
        index = bisect_right(self.changes, moment, key=lambda change: change.at)
        return self.changes[index - 1].after if index else self.first

    def within(self, start: int, end: int) -> Offsets:
        return Offsets(self.at(start), tuple(change for change in self.changes if start < change.at <= end))


def zone_names() -> list[str]:
    return (ZONES.parent / "zones").read_text().split()


def zones_by_data() -> dict[bytes, list[str]]:
    """Every zone of the wheel; links and other names with identical data come together."""
    groups: dict[bytes, list[str]] = defaultdict(list)
    for name in zone_names():
        groups[(ZONES / name).read_bytes()].append(name)
    return groups


def read_offsets(data: bytes, last_year: int = 2038) -> Offsets:
    """Changes without effect on the wall clock (a new name, another isdst) are kept: they must disturb nobody."""
    _, version, *counts = HEADER.unpack_from(data)
    start = 0
    if version >= b"2":
        start = HEADER.size + _body_size(counts, 4)
        _, _, *counts = HEADER.unpack_from(data, start)
    width = 8 if version >= b"2" else 4
    _, _, _, times, types, _ = counts
    position = start + HEADER.size
    moments = struct.unpack_from(f">{times}{'q' if width == 8 else 'l'}", data, position)
    indices = struct.unpack_from(f">{times}B", data, position + times * width)
    position += times * (width + 1)
    utoffs = [struct.unpack_from(">l", data, position + 6 * index)[0] for index in range(types)]
    changes: list[Change] = []
    current = utoffs[0]
    for moment, index in zip(moments, indices, strict=True):
        changes.append(Change(moment, current, utoffs[index]))
        current = utoffs[index]
    footer = (
        data[start + HEADER.size + _body_size(counts, width) :].strip(b"\n").decode() if width == 8 else ""
    )
    changes.extend(
        _by_rule(footer, changes[-1] if changes else Change(-(2**40), current, current), last_year)
    )
    return Offsets(utoffs[0], tuple(changes))


def _body_size(counts: list[int], width: int) -> int:
    isut, isstd, leap, times, types, chars = counts
    return times * (width + 1) + types * 6 + chars + leap * (width + 4) + isstd + isut


def _by_rule(footer: str, last: Change, last_year: int) -> list[Change]:
    match = POSIX.fullmatch(footer)
    if match is None or match[3] is None:
        return []
    standard = -_seconds(match[1])
    summer = -_seconds(match[2]) if match[2] else standard + 3600
    moments: list[tuple[int, int]] = []
    first_year = max(1970, datetime.fromtimestamp(max(last.at, 0), UTC).year)
    for year in range(first_year, last_year + 1):
        moments.append((_day(match[3], year) + _seconds(match[4] or "2") - standard, summer))
        moments.append((_day(match[5], year) + _seconds(match[6] or "2") - summer, standard))
    changes = []
    current = last.after
    for moment, offset in sorted(moments):
        if moment > last.at:
            changes.append(Change(moment, current, offset))
            current = offset
    return changes


def _seconds(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    parts = [int(part) for part in text.lstrip("+-").split(":")] + [0, 0]
    return sign * (parts[0] * 3600 + parts[1] * 60 + parts[2])


def _day(rule: str, year: int) -> int:
    """UTC second of the midnight that a POSIX date (`M3.5.0`, `J60`, `59`) names."""
    if rule.startswith("M"):
        month, week, weekday = (int(part) for part in rule[1:].split("."))
        fitting = [
            day
            for day in range(1, calendar.monthrange(year, month)[1] + 1)
            if date(year, month, day).isoweekday() % 7 == weekday
        ]
        ordinal = date(year, month, fitting[min(week, len(fitting)) - 1]).toordinal()
    elif rule.startswith("J"):
        leap_days = int(calendar.isleap(year) and int(rule[1:]) >= 60)
        ordinal = date(year, 1, 1).toordinal() + int(rule[1:]) - 1 + leap_days
    else:
        ordinal = date(year, 1, 1).toordinal() + int(rule)
    return (ordinal - date(1970, 1, 1).toordinal()) * 86400
