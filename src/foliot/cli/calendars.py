"""`foliot calendars`: named blackouts and allowed times that jobs share."""

from __future__ import annotations

from calendar import Calendar, month_name
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from foliot.cli.input_files import read_object, read_text
from foliot.cli.lookup import find_named
from foliot.cli.output import pluralize
from foliot.cli.session import FIRST_50, DryRun, Paging, Session, Yes, api_command
from foliot.cli.tables import BOLD, DIM, SHORT_ID, Block, Column, Table, facts, line, stack, styled
from foliot.cli.times import local_time_relative, local_zone, relative
from foliot.domain.errors import Invalid

if TYPE_CHECKING:
    from foliot.sdk import Client
    from foliot.wire.calendars import (
        AbsoluteRule,
        CalendarOut,
        CalendarUser,
        CalendarYearOut,
        CronRule,
        DateRule,
        WeeklyRule,
    )
    from foliot.wire.dry_run import CalendarDryRunOut, MovedJobOut

MAX_MOVED = 10  # jobs that a dry run names
DAYS_A_WEEK = 7
MONTHS_A_ROW = 3
MONTH_WIDTH = 28


class CalendarKindName(StrEnum):
    BLACKOUT = "blackout"
    ALLOW = "allow"


class OtherwiseName(StrEnum):
    SKIP = "skip"
    DEFER = "defer"


app = typer.Typer(help="Calendars: blackouts and allowed times that jobs share.", no_args_is_help=True)
CalendarRef = Annotated[
    str,
    typer.Argument(metavar="CALENDAR", help="Calendar name, id, or beginning of the id.", show_default=False),
]
File = Annotated[
    str,
    typer.Option(
        "-f",
        "--file",
        help="YAML or JSON with name, kind (blackout or allow) and rules; - is standard input.",
        metavar="FILE",
    ),
]


ForType = Annotated[
    list[str] | None, typer.Option(help="Apply it to jobs of this type; repeatable.", metavar="TYPE")
]
ForTag = Annotated[
    list[str] | None, typer.Option(help="Apply it to jobs with this tag; repeatable.", metavar="TAG")
]
ForQueue = Annotated[
    list[str] | None, typer.Option(help="Apply it to jobs of this queue; repeatable.", metavar="QUEUE")
]
ForHost = Annotated[
    list[str] | None, typer.Option(help="Apply it to jobs bound to this host; repeatable.", metavar="HOST")
]


@app.command("list")
@api_command
def list_calendars(session: Session, paging: Paging = FIRST_50) -> None:
    """List calendars by name."""
    found = paging.fetch(session.client.calendars.list)
    session.show_list(found, lambda: calendar_table(found.items))


@app.command()
@api_command
def show(
    session: Session,
    calendar: CalendarRef,
    year: Annotated[
        int | None,
        typer.Option(
            min=1970, max=2200, help="Show this year, day by day.", metavar="YEAR", show_default=False
        ),
    ] = None,
) -> None:
    """Show a calendar: its rules, and the jobs that use it; with --year, the days on which it closes."""
    found = find_calendar(session.client, calendar)
    if year is not None:
        shown = session.client.calendars.year(found.id, year)
        session.show(shown, lambda: year_page(found.name, shown))
        return
    users = session.client.calendars.jobs(found.id).items if session.is_table else []
    session.show(found, lambda: calendar_page(found, users, session.now))


@app.command()
@api_command
def create(
    session: Session,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Name, without --file.", show_default=False)
    ] = None,
    file: Annotated[
        str | None,
        typer.Option(
            "-f",
            "--file",
            help="YAML or JSON with name, kind (blackout or allow) and rules; - is standard input.",
            metavar="FILE",
        ),
    ] = None,
    country: Annotated[
        str | None, typer.Option(help="Public holidays of this country, such as ES.", metavar="CODE")
    ] = None,
    subdivision: Annotated[
        str | None,
        typer.Option(help="With --country: also those of this part of it, such as MD.", metavar="CODE"),
    ] = None,
    ics: Annotated[
        str | None, typer.Option(help="Days of an iCalendar file; - is standard input.", metavar="FILE")
    ] = None,
    days: Annotated[
        list[str] | None,
        typer.Option(
            "--date",
            help="A day, or a first and a last one: 2027-12-24..2027-12-26; repeatable.",
            metavar="DAY",
        ),
    ] = None,
    weekly: Annotated[
        list[str] | None,
        typer.Option(
            help="A time of the week, such as 'sun 02:00-03:00', 'sat sun' or '22:00-06:00'; repeatable.",
            metavar="TIME",
        ),
    ] = None,
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="Apply it to every job of the workspace.")
    ] = False,
    for_type: ForType = None,
    for_tag: ForTag = None,
    for_queue: ForQueue = None,
    for_host: ForHost = None,
    first_year: Annotated[
        int | None,
        typer.Option(
            min=1970, max=2200, help="First year of --country and --ics. Default: this one.", metavar="YEAR"
        ),
    ] = None,
    years: Annotated[
        int, typer.Option(min=1, max=20, help="How many years of --country and --ics.", metavar="N")
    ] = 5,
    kind: Annotated[
        CalendarKindName, typer.Option(help="Never run then, or only then.")
    ] = CalendarKindName.BLACKOUT,
    timezone: Annotated[
        str | None,
        typer.Option(
            "--timezone", "--tz", help="Zone of its days. Default: the workspace's.", metavar="ZONE"
        ),
    ] = None,
    otherwise: Annotated[
        OtherwiseName, typer.Option(help="A planned time that it blocks is skipped, or runs later.")
    ] = OtherwiseName.SKIP,
    dry_run: DryRun = False,
) -> None:
    """Create a calendar from a file, or from days, weekly times, an iCalendar file and the public holidays of a country.

    Jobs name the calendars they keep to; with --everywhere or --for-..., it also applies to jobs that do not name it.
    """
    if file is not None:
        body = read_object(file, "a calendar with name, kind and rules")
    elif name is None or not (country or ics or days or weekly):
        raise Invalid(
            "Give --file, or a name with --country, --ics, --date or --weekly.",
            hint="foliot calendars create holidays --country ES",
        )
    else:
        body = {"name": name, "kind": kind.value, "otherwise": otherwise.value}
        if timezone is not None:
            body["timezone"] = timezone
        rules: list[dict[str, object]] = [_read_days(each) for each in days or ()]
        rules += [_read_weekly(each) for each in weekly or ()]
        calendars = session.client.calendars
        if country is not None:
            found = calendars.holidays(country, subdivision=subdivision, first_year=first_year, years=years)
            rules += [each.model_dump(mode="json") for each in found.rules]
        if ics is not None:
            read = calendars.read_ics(read_text(ics, "--ics"), first_year=first_year, years=years)
            rules += [each.model_dump(mode="json") for each in read.rules]
        body["rules"] = rules
    scope = {"types": for_type, "tags": for_tag, "queues": for_queue, "hosts": for_host}
    if everywhere or any(scope.values()):
        body["scope"] = {"everything": everywhere, **{key: names for key, names in scope.items() if names}}
    if dry_run:
        tried = session.client.calendars.dry_run.create(body)
        shown = tried.calendar.name if tried.calendar else str(body.get("name"))
        session.show(tried, lambda: dry_run_page(tried, f"Would create {shown}", session.now))
        return
    made = session.client.calendars.create(body)
    session.show(made, lambda: calendar_page(made, (), session.now))


@app.command()
@api_command
def replace(session: Session, calendar: CalendarRef, file: File, dry_run: DryRun = False) -> None:
    """Replace a calendar. The jobs that use it are planned anew at once."""
    found = find_calendar(session.client, calendar)
    if dry_run:
        tried = session.client.calendars.dry_run.replace(
            found.id, read_object(file, "a calendar with name, kind and rules")
        )
        session.show(tried, lambda: dry_run_page(tried, f"Would replace {found.name}", session.now))
        return
    changed = session.client.calendars.replace(
        found.id, read_object(file, "a calendar with name, kind and rules")
    )
    session.show(changed, lambda: calendar_page(changed, (), session.now))


@app.command()
@api_command
def delete(
    session: Session,
    calendar: CalendarRef,
    force: Annotated[bool, typer.Option("--force", help="Remove it from the jobs that use it.")] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Delete a calendar. Refused while jobs use it, unless --force."""
    found = find_calendar(session.client, calendar)
    session.delete(
        session.client.calendars,
        found,
        f'Delete the calendar "{found.name}"?',
        lambda tried: dry_run_page(tried, f"Would delete {found.name}", session.now),
        yes=yes,
        dry_run=dry_run,
        force=force,
    )


def calendar_table(calendars: Sequence[CalendarOut]) -> Table[CalendarOut]:
    columns: list[Column[CalendarOut]] = [
        Column("NAME", lambda each: each.name, wrap=True),
        Column("KIND", lambda each: each.kind),
        Column(
            "RULES",
            lambda each: "; ".join(map(format_rule, each.rules[:2])) + (" …" if len(each.rules) > 2 else ""),
            wrap=True,
        ),
        Column("ZONE", lambda each: each.timezone, DIM, drop=2),
        Column("ELSE", lambda each: each.otherwise, drop=1),
        Column("JOBS", lambda each: each.job_count),
        Column("ALSO", lambda each: format_scope(each) or "", drop=1, wrap=True),
        Column("ID", lambda each: str(each.id)[:SHORT_ID], DIM, drop=3),
    ]
    return Table(columns, calendars, empty="No calendars.")


def calendar_page(calendar: CalendarOut, users: Sequence[CalendarUser], now: datetime) -> Block:
    meaning = (
        "jobs do not run at these times" if calendar.kind == "blackout" else "jobs run only at these times"
    )
    names = ", ".join(each.name for each in users) + (" …" if calendar.job_count > len(users) else "")
    scope = format_scope(calendar)
    return stack(
        styled(calendar.name, BOLD),
        facts(
            (
                ("id", str(calendar.id)),
                ("kind", f"{calendar.kind}: {meaning}"),
                ("zone", calendar.timezone),
                ("otherwise", calendar.otherwise),
                *(
                    (("" if index else "rules"), format_rule(each))
                    for index, each in enumerate(calendar.rules)
                ),
                ("applies to", scope or None),
                ("jobs", names or "none" if users or not scope else None),
                ("changed", f"{relative(calendar.updated_at - now)}, revision {calendar.revision}"),
            )
        ),
    )


def format_scope(calendar: CalendarOut) -> str | None:
    """Whom it applies to without being named; None if only jobs that name it keep to it."""
    scope = calendar.scope
    if scope is None:
        return None
    if scope.everything:
        return "every job"
    named = (("type", scope.types), ("tag", scope.tags), ("queue", scope.queues), ("host", scope.hosts))
    return ", ".join(f"{word} {name}" for word, names in named for name in names)


def dry_run_page(tried: CalendarDryRunOut, summary: str, now: datetime) -> Block:
    """Show how many jobs keep to the calendar, and whose next run would move."""
    zone = local_zone()
    shown = tried.moved[:MAX_MOVED]
    more = len(tried.moved) - len(shown)
    columns: list[Column[MovedJobOut]] = [
        Column("JOB", lambda each: each.job_name, wrap=True),
        Column("RUNS NEXT", lambda each: _next_run(each.before, zone, now)),
        Column("WOULD RUN NEXT", lambda each: _next_run(each.after, zone, now)),
    ]
    effect = "No job uses it."
    if tried.jobs:
        least = "" if tried.complete else "at least "
        uses = "uses" if tried.jobs == 1 else "use"
        effect = (
            f"{pluralize(tried.jobs, 'job')} {uses} it;"
            f" the next run of {least}{len(tried.moved):,} would move."
        )
    return stack(
        line((summary, BOLD), "."),
        styled(effect),
        Table(columns, shown, indent=2) if shown else None,
        styled(f"  and {more:,} more") if more else None,
        styled("Nothing was done."),
    )


def format_rule(rule: WeeklyRule | AbsoluteRule | CronRule | DateRule) -> str:
    if rule.kind == "weekly":
        days = "every day" if len(rule.days) == DAYS_A_WEEK else " ".join(rule.days)
        return f"{days} all day" if rule.start == rule.end else f"{days} {rule.start:%H:%M}-{rule.end:%H:%M}"
    if rule.kind == "date":
        last = f" to {rule.last}" if rule.last else ""
        return f"{rule.date}{last} {rule.name}".strip()
    if rule.kind == "absolute":
        return f"{rule.start:%Y-%m-%d %H:%MZ} to {rule.end:%Y-%m-%d %H:%MZ}"
    from foliot.wire.durations import write_duration

    return f"{rule.expr} for {write_duration(rule.duration)}"


def year_page(name: str, year: CalendarYearOut) -> Block:
    """Twelve months: # marks a day on which it closes, ~ one on which it closes in part; then the days with names."""
    states = {each.date: each.state for each in year.days}
    blocks = [_month_lines(year.year, month, states) for month in range(1, 13)]
    rows = []
    for first in range(0, 12, MONTHS_A_ROW):
        chosen = blocks[first : first + MONTHS_A_ROW]
        tall = max(map(len, chosen))
        padded = [block + [" " * MONTH_WIDTH] * (tall - len(block)) for block in chosen]
        rows += ["   ".join(parts).rstrip() for parts in zip(*padded, strict=True)]
        rows.append("")
    named = [f"  {each.date}  {', '.join(each.names)}" for each in year.days if each.names]
    counts = [sum(state == wanted for state in states.values()) for wanted in ("closed", "part")]
    return stack(
        line((f"{name} {year.year}", BOLD), f", {year.timezone}"),
        styled(f"# closed ({counts[0]} days)   ~ closed in part ({counts[1]} days)", DIM),
        styled(""),
        *(styled(each) for each in [*rows, *named]),
    )


def _month_lines(year: int, month: int, states: Mapping[date, str]) -> list[str]:
    lines = [f"{month_name[month]:^{MONTH_WIDTH}}", " Mo  Tu  We  Th  Fr  Sa  Su "]
    for week in Calendar().monthdatescalendar(year, month):
        marks = {"closed": "#", "part": "~"}
        days = [
            f"{day.day:>3}{marks.get(states.get(day, ''), ' ')}" if day.month == month else "    "
            for day in week
        ]
        lines.append("".join(days))
    return lines


def _read_days(text: str) -> dict[str, object]:
    first, _, last = text.partition("..")
    return {"kind": "date", "date": first.strip(), **({"last": last.strip()} if last else {})}


def _read_weekly(text: str) -> dict[str, object]:
    """Read `sun 02:00-03:00`, `sat sun` (whole days) or `22:00-06:00` (every day)."""
    words = text.replace(",", " ").lower().split()
    times = [word for word in words if ":" in word]
    start, dash, end = times[0].partition("-") if times else ("00:00", "-", "00:00")
    if len(times) > 1 or not dash:
        raise Invalid(
            f'"{text}" is not a time of the week.', hint="Such as 'sun 02:00-03:00'.", pointer="--weekly"
        )
    days = [word[:3] for word in words if ":" not in word]
    return {"kind": "weekly", "start": start, "end": end, **({"days": days} if days else {})}


def find_calendar(client: Client, ref: str) -> CalendarOut:
    return find_named(client.calendars.each(), ref, "calendar", lambda each: each.name)


def _next_run(at: datetime | None, zone: str, now: datetime) -> str:
    return "never" if at is None else local_time_relative(at, zone, now)
