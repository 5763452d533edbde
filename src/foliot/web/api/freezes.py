"""/freezes: hold many jobs for a while without touching any of them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response

from foliot.domain.errors import NotFound
from foliot.domain.ids import FreezeId
from foliot.services import Database
from foliot.services.hints import Hint
from foliot.services.scheduling import freeze_search, freezes
from foliot.web.api.params import DEFAULT_LIMIT, Cursor, Db, Limit, path_id
from foliot.web.api.writes import Writing, dry_run_response, preview_response
from foliot.web.auth import SharedOperator, Viewer
from foliot.web.mapping.calendars import freeze_from, freeze_out, freeze_preview_out
from foliot.web.routes import CONFLICT, NOT_FOUND, WITH_BODY, api_router
from foliot.wire.dry_run import FreezeLiftOut
from foliot.wire.freezes import FreezeIn, FreezeOut, FreezePreviewOut
from foliot.wire.shape import Page

routes = api_router("freezes")
FreezeIdIn = Annotated[FreezeId, path_id("freeze_id")]
LIFTING = {**dry_run_response(FreezeLiftOut), **NOT_FOUND, **CONFLICT}


@routes.post("/freezes", status_code=201, responses={**dry_run_response(FreezePreviewOut), **WITH_BODY})
async def turn_freeze_on(
    freeze: FreezeIn, caller: SharedOperator, db: Db, write: Writing
) -> FreezeOut | FreezePreviewOut:
    """Hold everything, or the jobs that it names or that have its tags or queues. No job is edited."""
    if write.dry_run:
        write.response.status_code = 200
        return await preview_freeze(freeze, caller, db)
    freeze_id = await freezes.turn_on(db, caller.scope, freeze_from(freeze))
    write.announce(Hint.CANCELS)
    write.set_location(f"freezes/{freeze_id}")
    seen = await freeze_search.one(db, caller.scope, freeze_id)
    return freeze_out(seen.items[0], seen.at)


@routes.post("/freezes/preview", responses=WITH_BODY)
async def preview_freeze(freeze: FreezeIn, caller: SharedOperator, db: Db) -> FreezePreviewOut:
    """Preview a freeze: count what it would hold. Nothing is stored."""
    return freeze_preview_out(await freezes.preview(db, caller.workspace_id, freeze_from(freeze)))


@routes.get("/freezes")
async def list_freezes(
    caller: Viewer,
    db: Db,
    ended: Annotated[bool, Query(description="Also freezes that have ended.")] = False,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[FreezeOut]:
    """List active and upcoming freezes, newest first."""
    seen = await freeze_search.listed(db, caller.scope, ended=ended, cursor=cursor, limit=limit)
    return Page[FreezeOut](
        items=[freeze_out(each, seen.at) for each in seen.items], next_cursor=seen.next_cursor
    )


@routes.get("/freezes/{freeze_id}", responses=NOT_FOUND)
async def get_freeze(freeze_id: FreezeIdIn, caller: Viewer, db: Db) -> FreezeOut:
    """Get a freeze."""
    seen = await freeze_search.one(db, caller.scope, freeze_id)
    return freeze_out(seen.items[0], seen.at)


@routes.post("/freezes/{freeze_id}/lift", status_code=204, response_model=None, responses=LIFTING)
async def lift_freeze(freeze_id: FreezeIdIn, caller: SharedOperator, write: Writing) -> Response | None:
    """End the freeze now; what it held continues as its `after` says. A freeze that has not begun is removed."""

    async def preview(db: Database) -> FreezeLiftOut:
        released = await freezes.lift(db, caller.scope, freeze_id)
        try:
            seen = await freeze_search.one(db, caller.scope, freeze_id)
        except NotFound:  # it had not begun
            return FreezeLiftOut(freeze=None, runs=released.runs, jobs=released.timers)
        lifted = freeze_out(seen.items[0], seen.at)
        return FreezeLiftOut(freeze=lifted, runs=released.runs, jobs=released.timers)

    if write.dry_run:
        return preview_response(await write.roll_back(preview))
    await freezes.lift(write.db, caller.scope, freeze_id)
    write.announce(Hint.TIMERS, Hint.READY)
    return None


@routes.delete("/freezes/{freeze_id}", status_code=204, response_model=None, responses=LIFTING)
async def remove_freeze(freeze_id: FreezeIdIn, caller: SharedOperator, write: Writing) -> Response | None:
    """The same as `lift`; the record of the freeze stays."""
    return await lift_freeze(freeze_id, caller, write)
