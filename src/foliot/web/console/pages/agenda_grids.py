"""The grids of the agenda: a week by hour, a day by minute."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import groupby
from typing import Any
from zoneinfo import ZoneInfo

from foliot.web.console.pages.runs import address, instant
from foliot.web.console.site import Context, Visit
from foliot.web.console.text import parse

HOUR, MINUTE, DAY = timedelta(hours=1), timedelta(minutes=1), timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Frame:
    """The span that is drawn."""

    begin: datetime
    end: datetime
    now: datetime
    zone: ZoneInfo

    def share(self, at: datetime) -> float:
        """Where an instant lies, in percent of the width."""
        return round(min(max((at - self.begin) / (self.end - self.begin), 0.0), 1.0) * 100, 2)

    def width(self, left: float, stop: datetime) -> float:
        """How wide a mark from `left` to an instant is; the narrowest can still be seen."""
        return round(max(self.share(stop) - left, 0.35), 2)


def week_grid(
    visit: Visit,
    frame: Frame,
    planned_counts: list[int],
    summary: dict[str, Any],
    spans: list[tuple[datetime, datetime, str, str]],
) -> list[dict[str, Any]]:
    """Rows of hours, a cell for each day: planned runs ahead, recorded ones behind.

    `spans` are freezes and closings of calendars: start, end, class and words. The hours that they touch are marked.
    """
    t = visit.reader.translate
    counts: dict[tuple[date, int], list[float]] = {}
    for place, count in enumerate(planned_counts):
        local = (frame.begin + HOUR * place).astimezone(frame.zone)
        counts.setdefault((local.date(), local.hour), [0, 0, 0])[0] += count
    is_hourly = summary.get("bucket_seconds", 86_400) <= 3_600  # narrower buckets are parts of an hour
    for bucket in summary.get("buckets", []) if is_hourly else []:
        local = parse(bucket["at"]).astimezone(frame.zone)
        cell = counts.setdefault((local.date(), local.hour), [0, 0, 0])
        cell[1] += bucket["succeeded"] + bucket["failed"] + bucket["open"] + bucket["cancelled"]
        cell[2] += bucket["failed"]
    scale = Scale([sum(each[:2]) for each in counts.values()])
    first = frame.begin.astimezone(frame.zone).date()
    days = [first + DAY * n for n in range(7)]
    rows = []
    for hour in range(24):
        cells = []
        for each in days:
            planned, ran, failed = counts.get((each, hour), [0, 0, 0])
            at = datetime.combine(each, time(hour), frame.zone)
            words = [t("{count} planned", count=f"{planned:,.0f}")] if planned else []
            words += [t("{count} recorded", count=f"{ran:,.0f}")] if ran else []
            words += [t("{count} failed", count=f"{failed:,.0f}")] if failed else []
            over = [each for each in spans if each[0] < at + HOUR and each[1] > at]
            words += dict.fromkeys(said for *_, said in over)
            href = (
                address(
                    since=instant(parse(at.isoformat())),
                    until=instant(parse(at.isoformat()) + HOUR - MINUTE / 60),
                )
                if at <= frame.now
                else address("/console/agenda", view="day", date=each.isoformat())
            )
            cells.append(
                {
                    "level": scale.level(planned + ran),
                    "failed": bool(failed),
                    "css": " ".join(sorted({css for _, _, css, _ in over})),
                    "count": planned + ran,
                    "title": ", ".join(words),
                    "href": href,
                    "is_now": at <= frame.now < at + HOUR,
                }
            )
        rows.append({"hour": f"{hour:02d}", "cells": cells})
    heads = [f"{t(f'{each:%a}')} {each.day}" for each in days]
    return [{"heads": heads, "rows": rows}]


class Scale:
    """Steps of the colour: 0 for nothing, 1 for the least, 5 for the most."""

    def __init__(self, counts: list[float]) -> None:
        there = [count for count in counts if count > 0]
        self._least, self._most = min(there, default=0.0), max(there, default=0.0)

    def level(self, count: float) -> int:
        if count <= 0:
            return 0
        if self._most - self._least < 0.25 * self._most:
            return 2
        return 1 + round(4 * (count - self._least) / (self._most - self._least))


def minute_grid(visit: Visit, frame: Frame, counts: list[int]) -> Context:
    """A row for each hour, a cell for each minute; and the minutes of the hour in which least is planned."""
    t = visit.reader.translate
    minutes = [[0.0] * 60 for _ in range(24)]
    for place, planned in enumerate(counts):
        if planned:
            local = (frame.begin + MINUTE * place).astimezone(frame.zone)
            minutes[local.hour][local.minute] += planned
    scale = Scale([count for row in minutes for count in row])
    load = [sum(row[minute] for row in minutes) for minute in range(60)]
    least = min(load)
    quiet = [minute for minute in range(60) if load[minute] == least]
    busiest = sorted(range(60), key=lambda minute: -load[minute])[:3]
    rows = [
        {
            "hour": f"{hour:02d}",
            "total": sum(row),
            "cells": [
                {"x": first, "width": last - first + 1, "level": level, "title": t("{time}: {count} planned", time=_minutes(hour, first, last), count=f"{max(row[first:last + 1]):,.0f}")}
                for level, first, last in _stretches([scale.level(count) for count in row])
            ],
        }
        for hour, row in enumerate(minutes)
    ]  # fmt: skip
    return {
        "heat": rows,
        "quiet": _spread(quiet),
        "busy": [(minute, load[minute]) for minute in busiest if load[minute]],
    }


def _stretches(levels: list[int]) -> Iterator[tuple[int, int, int]]:
    """Neighbours of one level as one cell: the level, the first and the last place. A cell for each minute would weigh too much."""
    for level, group in groupby(range(len(levels)), key=lambda place: levels[place]):
        places = list(group)
        yield level, places[0], places[-1]


def _minutes(hour: int, first: int, last: int) -> str:
    return f"{hour:02d}:{first:02d}" + (f"-{hour:02d}:{last:02d}" if last > first else "")


def _spread(minutes: list[int]) -> list[int]:
    """At most six of them, over the whole hour; not the full hour and the quarters, which everybody takes."""
    usual = [each for each in minutes if each % 15] or minutes
    step = max(len(usual) / 6, 1)
    return [usual[int(place * step)] for place in range(min(6, len(usual)))]
