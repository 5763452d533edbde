"""`foliot preview`: the meaning of a schedule and its next times, without a server."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated
from zoneinfo import ZoneInfo

import typer

from foliot.cli.output import dump_json, print_out
from foliot.cli.settings import Output, TextFormat
from foliot.cli.tables import Block, Column, Table, render, stack, styled, terminal
from foliot.cli.times import relative
from foliot.clock import SystemClock
from foliot.domain.errors import Invalid, Mark, ScheduleInvalid
from foliot.domain.schedule.kinds import DayMatch, Gap, OverlapTime
from foliot.domain.schedule.planned import PlannedTime


@dataclass(frozen=True, slots=True)
class SchedulePreview:
    """A schedule in words, its next times, and notes on them."""

    words: str
    times: tuple[PlannedTime, ...]
    zone: ZoneInfo
    notes: tuple[str, ...]


def preview(
    text: Annotated[list[str], typer.Argument(metavar="SCHEDULE", hidden=True)],
    tz: Annotated[str, typer.Option(help="IANA time zone of the schedule.", metavar="ZONE")] = "UTC",
    count: Annotated[
        int, typer.Option("-n", min=1, max=1000, help="Number of times to show.", metavar="N")
    ] = 5,
    after: Annotated[
        str | None,
        typer.Option(
            help="Show times after this instant, as if the schedule were created then. Default: now.",
            metavar="INSTANT",
        ),
    ] = None,
    gap: Annotated[Gap, typer.Option(help="For a local time that a clock change skips.")] = Gap.NEXT_VALID,
    overlap: Annotated[
        OverlapTime, typer.Option(help="For a local time that a clock change repeats.")
    ] = OverlapTime.FIRST,
    seconds: Annotated[
        bool, typer.Option("--seconds", help="Six cron fields; the first is seconds.")
    ] = False,
    day_match: Annotated[
        DayMatch, typer.Option(help="When day of month and day of week are both given.")
    ] = DayMatch.OR,
    output: Output = TextFormat.TEXT,
) -> None:
    """Describe a schedule in words and list its next times. Needs no server.

    SCHEDULE is a cron expression in quotes, "0 9 * * 1-5", or words, "every weekday at 9am".
    """
    from foliot.domain.schedule.describe import say as describe
    from foliot.domain.schedule.notes import notes_on
    from foliot.domain.schedule.parse import ParseOptions, read_schedule
    from foliot.domain.schedule.timetable import Timetable
    from foliot.domain.schedule.timetable import preview as next_times
    from foliot.domain.schedule.words.vocabulary import WORDS
    from foliot.domain.schedule.zone import load_zone
    from foliot.domain.schedule_lint import lint_schedule

    now = SystemClock().now().replace(microsecond=0)
    start = now if after is None else parse_instant(after)
    try:
        schedule = read_schedule(" ".join(text), start, ParseOptions(tz, seconds, day_match, gap, overlap))
    except ScheduleInvalid as error:
        if len(text) > 1 and text[0].lower() not in WORDS:
            quotes = "Put a cron expression in quotes, or the shell replaces each * by file names."
            error.hint = quotes if error.hint is None else f"{quotes} {error.hint}"
        raise
    timetable, zone = Timetable(schedule), load_zone(schedule.timezone)
    times = next_times(timetable, start, count)
    notes = notes_on(timetable, start, times)
    warnings = (each for each in lint_schedule(timetable, start) if not any(note in each for note in notes))
    found = SchedulePreview(describe(schedule, zone), times, zone, (*notes, *warnings))
    if output is TextFormat.JSON:
        print_out(preview_json(found))
    else:
        print_out(render(preview_page(found, now), *terminal(sys.stdout)))


def preview_json(found: SchedulePreview) -> str:
    times = [
        {
            "local": planned.planned_for.astimezone(found.zone).isoformat(),
            "utc": planned.planned_for.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        }
        for planned in found.times
    ]
    return dump_json({"words": found.words, "times": times, "notes": list(found.notes)})


def preview_page(found: SchedulePreview, now: datetime) -> Block:
    # All times with seconds, or all without.
    clock = "%H:%M:%S" if any(planned.planned_for.second for planned in found.times) else "%H:%M"
    columns: list[Column[PlannedTime]] = [
        Column("LOCAL", lambda each: f"{each.planned_for.astimezone(found.zone):%a %d %b %Y {clock} %Z}"),
        Column("UTC", lambda each: f"{each.planned_for.astimezone(UTC):%Y-%m-%d {clock}Z}"),
        Column(
            "FROM NOW",
            lambda each: relative(each.planned_for - now) + (f", skipped ({each.skip})" if each.skip else ""),
            wrap=True,
        ),
    ]
    return stack(
        styled(found.words),
        styled(""),
        Table(columns, found.times, empty="It has no later time."),
        *((styled(""),) if found.notes else ()),
        *(styled(f"Note: {note}") for note in found.notes),
    )


def parse_instant(text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        instant = None
    if instant is None or instant.tzinfo is None:
        raise Invalid(
            "--after is not an instant." if instant is None else "--after has no time zone.",
            hint="Examples: 2027-03-13T00:00:00Z, 2027-03-13T00:00:00-05:00.",
            mark=Mark(text, 0, len(text)),
        )
    return instant.astimezone(UTC)
