"""`foliot preview`: what a schedule means and when it fires next, offline."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated
from zoneinfo import ZoneInfo

import typer

from foliot.cli.options import Output, TextFormat
from foliot.cli.output import escape_control, print_out, table
from foliot.cli.times import relative
from foliot.clock import SystemClock
from foliot.domain.errors import Invalid, Mark, ScheduleInvalid
from foliot.domain.schedule.kinds import DayMatch, Gap, OverlapTime
from foliot.domain.schedule.planned import PlannedTime


@dataclass(frozen=True, slots=True)
class Preview:
    """What the engine answered, ready to be shown."""

    words: str
    times: tuple[PlannedTime, ...]
    zone: ZoneInfo
    notes: tuple[str, ...]


def preview(
    text: Annotated[list[str], typer.Argument(metavar="SCHEDULE", hidden=True)],
    tz: Annotated[str, typer.Option(help="IANA time zone of the schedule.", metavar="ZONE")] = "UTC",
    count: Annotated[
        int, typer.Option("-n", min=1, max=1000, help="How many times to show.", metavar="N")
    ] = 5,
    after: Annotated[
        str | None,
        typer.Option(
            help="Show times later than this instant, as if the schedule were made then. Default: now.",
            metavar="INSTANT",
        ),
    ] = None,
    gap: Annotated[Gap, typer.Option(help="For a local time that the clocks skip.")] = Gap.NEXT_VALID,
    overlap: Annotated[
        OverlapTime, typer.Option(help="For a local time that happens twice.")
    ] = OverlapTime.FIRST,
    seconds: Annotated[
        bool, typer.Option("--seconds", help="Six cron fields; the first is seconds.")
    ] = False,
    day_match: Annotated[
        DayMatch, typer.Option(help="When day of month and day of week are both given.")
    ] = DayMatch.OR,
    output: Output = TextFormat.TEXT,
) -> None:
    """Say what a schedule means and list its next times. Needs no server.

    SCHEDULE is a cron expression in quotes, "0 9 * * 1-5", or words, "every weekday at 9am".
    """
    from foliot.domain.schedule.describe import say as in_words
    from foliot.domain.schedule.notes import notes_on
    from foliot.domain.schedule.parse import Reading, read_schedule
    from foliot.domain.schedule.timetable import Timetable
    from foliot.domain.schedule.timetable import preview as next_times
    from foliot.domain.schedule.words.vocabulary import WORDS
    from foliot.domain.schedule.zone import load_zone

    now = SystemClock().now().replace(microsecond=0)
    start = now if after is None else read_instant(after)
    try:
        schedule = read_schedule(" ".join(text), start, Reading(tz, seconds, day_match, gap, overlap))
    except ScheduleInvalid as error:
        if len(text) > 1 and text[0].lower() not in WORDS:
            quotes = "Put a cron expression in quotes, or the shell replaces each * by file names."
            error.hint = quotes if error.hint is None else f"{quotes} {error.hint}"
        raise
    timetable, zone = Timetable(schedule), load_zone(schedule.timezone)
    times = next_times(timetable, start, count)
    found = Preview(in_words(schedule, zone), times, zone, notes_on(timetable, start, times))
    print_out(as_json(found) if output is TextFormat.JSON else as_text(found, now))


def as_json(found: Preview) -> str:
    times = [
        {
            "local": planned.planned_for.astimezone(found.zone).isoformat(),
            "utc": planned.planned_for.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        }
        for planned in found.times
    ]
    return json.dumps({"words": found.words, "times": times, "notes": list(found.notes)}, ensure_ascii=False)


def as_text(found: Preview, now: datetime) -> str:
    parts = [escape_control(found.words)]
    if found.times:
        parts += ["", table(("LOCAL", "UTC", "FROM NOW"), rows(found.times, found.zone, now))]
    else:
        parts += ["", "It names no later time."]
    if found.notes:
        parts += ["", *(f"Note: {escape_control(note)}" for note in found.notes)]
    return "\n".join(parts)


def rows(times: Sequence[PlannedTime], zone: ZoneInfo, now: datetime) -> list[tuple[str, str, str]]:
    """Seconds are shown only where some time has them."""
    clock_face = "%H:%M:%S" if any(planned.planned_for.second for planned in times) else "%H:%M"
    return [
        (
            planned.planned_for.astimezone(zone).strftime(f"%a %d %b %Y {clock_face} %Z"),
            planned.planned_for.astimezone(UTC).strftime(f"%Y-%m-%d {clock_face}Z"),
            relative(planned.planned_for - now) + (f", skipped ({planned.skip})" if planned.skip else ""),
        )
        for planned in times
    ]


def read_instant(text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        instant = None
    if instant is None or instant.tzinfo is None:
        raise Invalid(
            "--after is not an instant." if instant is None else "--after has no time zone.",
            hint="Write it like 2027-03-13T00:00:00Z or 2027-03-13T00:00:00-05:00.",
            mark=Mark(text, 0, len(text)),
        )
    return instant.astimezone(UTC)
