"""/calendars: named blackouts and allowed times, for the jobs that name one and those in its scope. A change counts at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Query, Response

from foliot.domain.ids import CalendarId
from foliot.domain.schedule.calendar import CalendarScope
from foliot.domain.schedule.ics import read_ics
from foliot.services import Database
from foliot.services.dry_run import MOST_JOBS, CalendarPreview, preview_calendar
from foliot.services.evaluation import evaluate_in_thread
from foliot.services.hints import Hint
from foliot.services.identity.authentication import Caller
from foliot.services.jobs import calendars
from foliot.services.jobs.holiday_days import country_days, supported_countries
from foliot.web.api.params import DEFAULT_LIMIT, Cursor, Db, Limit, path_id
from foliot.web.api.writes import Write, Writing, dry_run_response, preview_response
from foliot.web.auth import SharedEditor, Viewer
from foliot.web.mapping.calendars import (
    calendar_changes_from,
    calendar_from,
    calendar_out,
    date_rule_out,
    year_out,
)
from foliot.web.mapping.dry_run import calendar_preview_out
from foliot.web.preconditions import IfMatch, expecting
from foliot.web.routes import CONFLICT, NOT_FOUND, STALE, WITH_BODY, api_router
from foliot.wire.calendars import (
    MOST_YEARS,
    YEARS,
    CalendarChange,
    CalendarIn,
    CalendarOut,
    CalendarUser,
    CalendarYearOut,
    CountriesOut,
    CountryOut,
    DateRulesOut,
    IcsIn,
)
from foliot.wire.dry_run import CalendarDryRunOut
from foliot.wire.shape import Page

routes = api_router("calendars")
CalendarIdIn = Annotated[CalendarId, path_id("calendar_id")]
# The second argument bounds the jobs that are planned again: a preview locks their timers.
CalendarVerb = Callable[[Database, int | None], Awaitable[CalendarId]]


@routes.post(
    "/calendars", status_code=201, responses={**dry_run_response(CalendarDryRunOut), **CONFLICT, **WITH_BODY}
)
async def create_calendar(
    calendar: CalendarIn, caller: SharedEditor, write: Writing
) -> CalendarOut | CalendarDryRunOut:
    """Create a calendar."""
    new = calendar_from(calendar, caller.workspace.default_timezone)

    async def verb(db: Database, most: int | None) -> CalendarId:
        return await calendars.create(db, caller.scope, new, most=most)

    return await _write_calendar(write, verb, new_scope=new.scope)


@routes.get("/calendars")
async def list_calendars(
    caller: Viewer, db: Db, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> Page[CalendarOut]:
    """List them by name."""
    page = await calendars.page(db, caller.workspace_id, cursor, limit)
    return Page[CalendarOut](items=[calendar_out(each) for each in page.items], next_cursor=page.next_cursor)


@routes.post("/calendars/ics", responses=WITH_BODY)
async def read_ics_file(file: IcsIn, caller: SharedEditor) -> DateRulesOut:
    """Read the days of an iCalendar file as rules for a calendar. Nothing is stored."""
    first = file.first_year or caller.at.year
    found = await evaluate_in_thread(lambda: read_ics(file.text, first, first + file.years - 1))
    return DateRulesOut(rules=[date_rule_out(each) for each in found])


@routes.get("/calendars/countries")
async def list_holiday_countries(caller: Viewer) -> CountriesOut:
    """List the countries whose public holidays are known."""
    found = await evaluate_in_thread(supported_countries)
    return CountriesOut(
        items=[CountryOut(country=code, subdivisions=list(parts)) for code, parts in found.items()]
    )


@routes.get("/calendars/holidays")
async def list_holidays(
    caller: Viewer,
    country: Annotated[str, Query(pattern=r"^[A-Za-z]{2,3}$", description="Its code, such as ES.")],
    subdivision: Annotated[
        str | None, Query(max_length=40, description="A part of the country, such as MD.")
    ] = None,
    first_year: Annotated[int | None, Query(ge=1970, le=2200, description="Default: this year.")] = None,
    years: Annotated[int, Query(ge=1, le=MOST_YEARS)] = YEARS,
) -> DateRulesOut:
    """List the public holidays of a country as rules for a calendar. Nothing is stored."""
    first = first_year or caller.at.year
    found = await evaluate_in_thread(lambda: country_days(country, subdivision, first, years))
    return DateRulesOut(rules=[date_rule_out(each) for each in found])


@routes.get("/calendars/{calendar_id}", responses=NOT_FOUND)
async def get_calendar(calendar_id: CalendarIdIn, caller: Viewer, db: Db, response: Response) -> CalendarOut:
    """Get a calendar."""
    return await _get(db, caller, calendar_id, response)


@routes.get("/calendars/{calendar_id}/year", responses=NOT_FOUND)
async def get_calendar_year(
    calendar_id: CalendarIdIn,
    caller: Viewer,
    db: Db,
    year: Annotated[
        int | None, Query(ge=1970, le=2200, description="Default: this year in the calendar's zone.")
    ] = None,
) -> CalendarYearOut:
    """Get the days of a year on which it closes, whole or in part."""
    return year_out(*await calendars.year(db, caller.workspace_id, calendar_id, year))


@routes.get("/calendars/{calendar_id}/jobs", responses=NOT_FOUND)
async def list_jobs_of_calendar(
    calendar_id: CalendarIdIn, caller: Viewer, db: Db, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> Page[CalendarUser]:
    """List the jobs that name it or are in its scope."""
    page = await calendars.users(db, caller.scope, calendar_id, cursor, limit)
    items = [CalendarUser(id=job_id, name=name) for job_id, name in page.items]
    return Page[CalendarUser](items=items, next_cursor=page.next_cursor)


@routes.put("/calendars/{calendar_id}", responses={**NOT_FOUND, **CONFLICT, **STALE, **WITH_BODY})
async def replace_calendar(
    calendar_id: CalendarIdIn,
    calendar: CalendarIn,
    caller: SharedEditor,
    db: Db,
    write: Writing,
    if_match: IfMatch = None,
) -> CalendarOut | CalendarDryRunOut:
    """Replace the calendar; the jobs that use it are planned again at once."""
    new = calendar_from(calendar, caller.workspace.default_timezone)
    scope = await expecting(
        caller.scope, if_match, lambda: calendars.get(db, caller.workspace_id, calendar_id)
    )

    async def verb(db: Database, most: int | None) -> CalendarId:
        await calendars.edit(db, scope, calendar_id, new, most=most)
        return calendar_id

    return await _write_calendar(write, verb, calendar_id, new.scope)


@routes.patch("/calendars/{calendar_id}", responses={**NOT_FOUND, **CONFLICT, **STALE, **WITH_BODY})
async def change_calendar(
    calendar_id: CalendarIdIn,
    change: CalendarChange,
    caller: SharedEditor,
    db: Db,
    write: Writing,
    if_match: IfMatch = None,
) -> CalendarOut | CalendarDryRunOut:
    """Change the fields that are named; `rules` is one field."""
    scope = await expecting(
        caller.scope, if_match, lambda: calendars.get(db, caller.workspace_id, calendar_id)
    )
    changes = calendar_changes_from(change)

    async def verb(db: Database, most: int | None) -> CalendarId:
        await calendars.change(db, scope, calendar_id, changes, most=most)
        return calendar_id

    return await _write_calendar(write, verb, calendar_id, changes.get("scope"))


@routes.delete(
    "/calendars/{calendar_id}",
    status_code=204,
    response_model=None,
    responses={**dry_run_response(CalendarDryRunOut), **NOT_FOUND, **CONFLICT, **STALE},
)
async def delete_calendar(
    calendar_id: CalendarIdIn,
    caller: SharedEditor,
    db: Db,
    write: Writing,
    force: Annotated[bool, Query(description="Remove it from the jobs that use it.")] = False,
    if_match: IfMatch = None,
) -> Response | None:
    """Refused while jobs use it, unless `force` removes it from them."""
    scope = await expecting(
        caller.scope, if_match, lambda: calendars.get(db, caller.workspace_id, calendar_id)
    )

    async def verb(db: Database, most: int | None) -> CalendarId:
        await calendars.delete(db, scope, calendar_id, detach=force, most=most)
        return calendar_id

    if write.dry_run:
        return preview_response(await _preview(write, verb, calendar_id, deletes=True))
    await verb(db, None)
    write.announce(Hint.TIMERS)
    return None


async def _write_calendar(
    write: Write,
    verb: CalendarVerb,
    calendar_id: CalendarId | None = None,
    new_scope: CalendarScope | None = None,
) -> CalendarOut | CalendarDryRunOut:
    if write.dry_run:
        return await _preview(write, verb, calendar_id, new_scope)
    written = await verb(write.db, None)
    if calendar_id is None:
        write.set_location(f"calendars/{written}")
    if calendar_id is not None or new_scope is not None:
        write.announce(Hint.TIMERS)
    return await _get(write.db, write.caller, written, write.response)


async def _preview(
    write: Write,
    verb: CalendarVerb,
    calendar_id: CalendarId | None,
    new_scope: CalendarScope | None = None,
    *,
    deletes: bool = False,
) -> CalendarDryRunOut:
    async def preview(stage: Database) -> CalendarPreview:
        return await preview_calendar(
            stage,
            write.caller.workspace_id,
            lambda db: verb(db, MOST_JOBS),
            calendar_id,
            new_scope=new_scope,
            deletes=deletes,
        )

    return calendar_preview_out(await write.roll_back(preview))


async def _get(db: Database, caller: Caller, calendar_id: CalendarId, response: Response) -> CalendarOut:
    row = await calendars.get(db, caller.workspace_id, calendar_id)
    response.headers["ETag"] = f'"{row.revision}"'
    return calendar_out(row)
