"""/calendars: named blackouts and allowed times that jobs share. A change counts at once for every job that uses one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Query, Response

from foliot.domain.ids import CalendarId
from foliot.services import Database
from foliot.services.dry_run import MOST_JOBS, tried_calendar
from foliot.services.hints import Hint
from foliot.services.identity.authentication import Caller
from foliot.services.jobs import calendars
from foliot.web.api.dry_run import DryRun, only_tried, shown
from foliot.web.api.params import DEFAULT_LIMIT, Cursor, Db, Limit, PathId, Tell, id_of
from foliot.web.auth import SharedEditor, Viewer
from foliot.web.mapping.calendars import calendar_of, calendar_out, changes_of
from foliot.web.preconditions import IfMatch, seen_revision
from foliot.web.routes import CONFLICT, NOT_FOUND, STALE, WITH_BODY, api_router
from foliot.wire.calendars import CalendarChange, CalendarIn, CalendarOut, CalendarUser
from foliot.wire.dry_run import CalendarDryRunOut, MovedJobOut
from foliot.wire.pages import Page

routes = api_router("calendars")


def _calendar_id(calendar_id: PathId) -> CalendarId:
    return CalendarId(id_of("calendar", calendar_id))


CalendarIdIn = Annotated[CalendarId, Depends(_calendar_id)]


@routes.post(
    "/calendars", status_code=201, responses={**only_tried(CalendarDryRunOut), **CONFLICT, **WITH_BODY}
)
async def create_calendar(
    calendar: CalendarIn, caller: SharedEditor, db: Db, response: Response, dry_run: DryRun = False
) -> CalendarOut | CalendarDryRunOut:
    made = calendar_of(calendar, caller.workspace.default_timezone)

    async def act(db: Database) -> CalendarId:
        return await calendars.create(db, caller.scope, made)

    if dry_run:
        response.status_code = 200
        return await _tried(db, caller, act)
    calendar_id = await act(db)
    response.headers["Location"] = f"/api/v1/calendars/{calendar_id}"
    return await _as_it_stands(db, caller, calendar_id, response)


@routes.get("/calendars")
async def list_calendars(
    caller: Viewer, db: Db, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> Page[CalendarOut]:
    """In the order of their names."""
    page = await calendars.page(db, caller.workspace_id, cursor, limit)
    return Page[CalendarOut](items=[calendar_out(each) for each in page.items], next_cursor=page.next_cursor)


@routes.get("/calendars/{calendar_id}", responses=NOT_FOUND)
async def get_calendar(calendar_id: CalendarIdIn, caller: Viewer, db: Db, response: Response) -> CalendarOut:
    return await _as_it_stands(db, caller, calendar_id, response)


@routes.get("/calendars/{calendar_id}/jobs", responses=NOT_FOUND)
async def list_jobs_of_calendar(
    calendar_id: CalendarIdIn, caller: Viewer, db: Db, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> Page[CalendarUser]:
    """The jobs that use it."""
    page = await calendars.users(db, caller.scope, calendar_id, cursor, limit)
    items = [CalendarUser(id=job_id, name=name) for job_id, name in page.items]
    return Page[CalendarUser](items=items, next_cursor=page.next_cursor)


@routes.put("/calendars/{calendar_id}", responses={**NOT_FOUND, **CONFLICT, **STALE, **WITH_BODY})
async def replace_calendar(
    calendar_id: CalendarIdIn,
    calendar: CalendarIn,
    caller: SharedEditor,
    db: Db,
    tell: Tell,
    response: Response,
    if_match: IfMatch = None,
    dry_run: DryRun = False,
) -> CalendarOut | CalendarDryRunOut:
    """Put another in its place; the times of the jobs that use it are planned anew at once."""
    new = calendar_of(calendar, caller.workspace.default_timezone)
    seen = await _seen(db, caller, calendar_id, if_match)

    async def act(db: Database, most: int | None = MOST_JOBS) -> CalendarId:
        await calendars.edit(db, caller.scope.expecting(seen), calendar_id, new, most=most)
        return calendar_id

    if dry_run:
        return await _tried(db, caller, act, calendar_id)
    await act(db, None)
    tell(Hint.TIMERS)
    return await _as_it_stands(db, caller, calendar_id, response)


@routes.patch("/calendars/{calendar_id}", responses={**NOT_FOUND, **CONFLICT, **STALE, **WITH_BODY})
async def change_calendar(
    calendar_id: CalendarIdIn,
    change: CalendarChange,
    caller: SharedEditor,
    db: Db,
    tell: Tell,
    response: Response,
    if_match: IfMatch = None,
    dry_run: DryRun = False,
) -> CalendarOut | CalendarDryRunOut:
    """Change the fields that are named; `rules` is one field."""
    seen, changes = await _seen(db, caller, calendar_id, if_match), changes_of(change)

    async def act(db: Database, most: int | None = MOST_JOBS) -> CalendarId:
        await calendars.change(db, caller.scope.expecting(seen), calendar_id, changes, most=most)
        return calendar_id

    if dry_run:
        return await _tried(db, caller, act, calendar_id)
    await act(db, None)
    tell(Hint.TIMERS)
    return await _as_it_stands(db, caller, calendar_id, response)


@routes.delete(
    "/calendars/{calendar_id}",
    status_code=204,
    response_model=None,
    responses={**only_tried(CalendarDryRunOut), **NOT_FOUND, **CONFLICT, **STALE},
)
async def delete_calendar(
    calendar_id: CalendarIdIn,
    caller: SharedEditor,
    db: Db,
    tell: Tell,
    force: Annotated[bool, Query(description="Take it out of the jobs that use it.")] = False,
    if_match: IfMatch = None,
    dry_run: DryRun = False,
) -> Response | None:
    """Refused while jobs use it, unless `force` takes it out of them."""
    seen = await _seen(db, caller, calendar_id, if_match)

    async def act(db: Database, most: int | None = MOST_JOBS) -> CalendarId:
        await calendars.delete(db, caller.scope.expecting(seen), calendar_id, detach=force, most=most)
        return calendar_id

    if dry_run:
        return shown(await _tried(db, caller, act, calendar_id, gone=True))
    await act(db, None)
    tell(Hint.TIMERS)
    return None


async def _tried(
    db: Database,
    caller: Caller,
    act: Callable[[Database], Awaitable[CalendarId]],
    calendar_id: CalendarId | None = None,
    *,
    gone: bool = False,
) -> CalendarDryRunOut:
    tried = await tried_calendar(db, caller.workspace_id, act, calendar_id, gone=gone)
    moved = [
        MovedJobOut(job_id=each.id, job_name=each.name, before=each.before, after=each.after)
        for each in tried.moved
    ]
    return CalendarDryRunOut(
        calendar=None if tried.calendar is None else calendar_out(tried.calendar),
        jobs=tried.jobs,
        moved=moved,
        complete=tried.is_whole,
    )


async def _as_it_stands(
    db: Database, caller: Caller, calendar_id: CalendarId, response: Response
) -> CalendarOut:
    row = await calendars.get(db, caller.workspace_id, calendar_id)
    response.headers["ETag"] = f'"{row.revision}"'
    return calendar_out(row)


async def _seen(db: Database, caller: Caller, calendar_id: CalendarId, if_match: str | None) -> int | None:
    """The revision that the caller goes by; the verb looks under its lock whether the calendar is still at it."""
    if if_match is None:
        return None
    return seen_revision(if_match, (await calendars.get(db, caller.workspace_id, calendar_id)).revision)
