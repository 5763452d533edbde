"""How the agenda looks: day by day, in one zone."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import groupby

from rich.console import RenderableType
from rich.text import Text

from foliot.cli.output import pluralize
from foliot.cli.tables import QUIET, SOON, STRONG, cell, columns, stacked
from foliot.cli.times import format_duration, load_zone, local_time, local_times, relative
from foliot.wire.agenda import AgendaItemOut, AgendaOut


def agenda_page(plans: AgendaOut, zone: str, now: datetime) -> RenderableType:
    there = load_zone(zone)
    span = " to ".join(local_times((plans.start, plans.end), zone))
    if not plans.items:
        return Text(f"Nothing is planned from {span}.")
    in_seconds = any(each.starts_at.second for each in plans.items)
    clock_face = "%H:%M:%S" if in_seconds else "%H:%M"
    parts: list[RenderableType] = [Text(f"Planned from {span}:", style=STRONG)]
    for day, items in groupby(plans.items, lambda each: each.starts_at.astimezone(there).date()):
        rows = [_row(each, zone, now, clock_face) for each in items]
        parts.append(Text(f"{day:%A %d %B %Y}", style=STRONG))
        parts.append(
            columns(
                ("at", "in", "job", "takes", "note"),
                rows,
                wraps=("job", "note"),
                drops=("takes", "in"),
                indent=2,
                headed=False,
            )
        )
    if plans.truncated:
        parts.append(
            Text(
                f"There is more after {local_time(plans.complete_until, zone)}: --from goes on there.",
                style=SOON,
            )
        )
    return stacked(*parts)


def _row(item: AgendaItemOut, zone: str, now: datetime, clock_face: str) -> tuple[Text, ...]:
    local = item.starts_at.astimezone(load_zone(zone))
    takes = "" if item.expected_duration_ms is None else f"~{_lasting(item.expected_duration_ms)}"
    return (
        cell(local.strftime(clock_face)),
        cell(relative(item.starts_at - now), QUIET),
        Text.assemble(cell(item.job_name), _several(item, zone)),
        cell(takes, QUIET),
        cell("; ".join((*_fate(item), *item.notes)), SOON if item.fate != "runs" else ""),
    )


def _several(item: AgendaItemOut, zone: str) -> Text:
    if item.count == 1:
        return Text("")
    until = ""
    if item.last_for is not None:
        first, last = (each.astimezone(load_zone(zone)) for each in (item.starts_at, item.last_for))
        until = f" until {last:%H:%M}" if first.date() == last.date() else f" until {last:%a %H:%M}"
    times = "many times" if item.count is None else pluralize(item.count, "time")
    return Text(f" ({times}{until})", style=QUIET)


def _fate(item: AgendaItemOut) -> tuple[str, ...]:
    if item.fate == "runs":
        return ()
    return (f"{item.fate} ({item.reason})" if item.reason else item.fate,)


def _lasting(milliseconds: int) -> str:
    return (
        f"{milliseconds} ms"
        if milliseconds < 1_000
        else format_duration(timedelta(milliseconds=milliseconds))
    )
