"""`foliot calendars`: named blackouts and allowed times that jobs share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from foliot.cli.input_files import read_text
from foliot.cli.paging import All, Cursor, Limit, fetch_pages
from foliot.cli.session import DryRun, OutputFormat, Session, Yes, api_command, confirm
from foliot.domain.errors import Invalid, NotFound

if TYPE_CHECKING:
    from foliot.sdk import Client
    from foliot.wire.calendars import CalendarOut

app = typer.Typer(help="Calendars: blackouts and allowed times that jobs share.", no_args_is_help=True)
Called = Annotated[
    str,
    typer.Argument(
        metavar="CALENDAR", help="Its name, its id, or the beginning of its id.", show_default=False
    ),
]
File = Annotated[
    str,
    typer.Option(
        "-f",
        "--file",
        help="YAML or JSON: name, kind (blackout or allow), rules; - is standard input.",
        metavar="FILE",
    ),
]


@app.command("list")
@api_command
def list_calendars(
    session: Session, limit: Limit = 50, cursor: Cursor = None, everything: All = False
) -> None:
    """Calendars, by name."""
    from foliot.cli.holding_rendering import calendar_list

    found, next_cursor, _ = fetch_pages(
        lambda n, at: session.client.calendars.list(limit=n, cursor=at),
        limit=None if everything else limit,
        cursor=cursor,
    )
    session.show_list(found, lambda: calendar_list(found), next_cursor=next_cursor)


@app.command()
@api_command
def show(session: Session, calendar: Called) -> None:
    """One calendar: its rules, and the jobs that use it."""
    from foliot.cli.holding_rendering import calendar_page

    found = find_calendar(session.client, calendar)
    users = session.client.calendars.jobs(found.id).items if session.format is OutputFormat.TABLE else []
    session.show(found, lambda: calendar_page(found, users, session.now))


@app.command()
@api_command
def create(session: Session, file: File, dry_run: DryRun = False) -> None:
    """Make a calendar from a file."""
    from foliot.cli.dry_rendering import tried_calendar
    from foliot.cli.holding_rendering import calendar_page

    if dry_run:
        tried = session.client.calendars.dry_run.create(_object(file))
        name = tried.calendar.name if tried.calendar else file
        session.show(tried, lambda: tried_calendar(tried, f"Would make {name}", session.now))
        return
    made = session.client.calendars.create(_object(file))
    session.show(made, lambda: calendar_page(made, (), session.now))


@app.command()
@api_command
def replace(session: Session, calendar: Called, file: File, dry_run: DryRun = False) -> None:
    """Put another in its place. The jobs that use it are planned anew at once."""
    from foliot.cli.dry_rendering import tried_calendar
    from foliot.cli.holding_rendering import calendar_page

    found = find_calendar(session.client, calendar)
    if dry_run:
        tried = session.client.calendars.dry_run.replace(found.id, _object(file))
        session.show(tried, lambda: tried_calendar(tried, f"Would replace {found.name}", session.now))
        return
    changed = session.client.calendars.replace(found.id, _object(file))
    session.show(changed, lambda: calendar_page(changed, (), session.now))


@app.command()
@api_command
def delete(
    session: Session,
    calendar: Called,
    force: Annotated[bool, typer.Option("--force", help="Take it out of the jobs that use it.")] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
) -> None:
    """Delete a calendar. Refused while jobs use it, unless --force."""
    from foliot.cli.dry_rendering import tried_calendar
    from foliot.cli.tables import cell

    found = find_calendar(session.client, calendar)
    if dry_run:
        tried = session.client.calendars.dry_run.delete(found.id, force=force)
        session.show(tried, lambda: tried_calendar(tried, f"Would delete {found.name}", session.now))
        return
    confirm(f'Delete the calendar "{found.name}"?', yes=yes)
    session.client.calendars.delete(found.id, force=force)
    session.show({"deleted": str(found.id)}, lambda: cell(f"Deleted {found.name}."))


def find_calendar(client: Client, called: str) -> CalendarOut:
    there = list(client.calendars.each())
    low = called.strip().lower()
    found = [each for each in there if each.name == called]
    if not found and len(low) >= 4:
        found = [each for each in there if str(each.id).startswith(low)]
    if len(found) == 1:
        return found[0]
    if found:
        raise Invalid(
            f'"{called}" could be any of {len(found)} calendars.', hint="Use the id of one of them."
        )
    raise NotFound(
        f'There is no calendar called "{called}".', hint="See them all with `foliot calendars list`."
    )


def _object(file: str) -> dict[str, object]:
    from foliot.cli.apply.yaml_text import read_yaml

    found = read_yaml(read_text(file, "--file"), file)
    if not isinstance(found, dict):
        raise Invalid(f"{file} must hold a calendar: name, kind and rules.")
    return found
