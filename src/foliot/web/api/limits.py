"""/limits: how many runs of the workspace, or with one concurrency key, may be under way at once."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response

from foliot.domain.access import Permission
from foliot.services import Database
from foliot.services.hints import Hint
from foliot.services.identity.authentication import Caller, require_permission
from foliot.services.workers import limits
from foliot.web.api.params import Db
from foliot.web.api.writes import Writing, dry_run_response
from foliot.web.auth import SharedEditor, SharedViewer
from foliot.web.mapping.fleet import limit_out, limit_preview
from foliot.web.routes import NOT_FOUND, WITH_BODY, api_router
from foliot.wire.fleet import LONGEST_KEY, LimitIn, LimitOut, LimitsOut

routes = api_router("limits")
KeyIn = Annotated[
    str | None,
    Query(
        min_length=1, max_length=LONGEST_KEY, description="A concurrency key; the whole workspace without it."
    ),
]


@routes.get("/limits")
async def list_limits(caller: SharedViewer, db: Db) -> LimitsOut:
    """List the cap of the workspace first, if there is one, then those of concurrency keys."""
    found = await limits.list_limits(db, caller.workspace_id)
    return LimitsOut(items=[limit_out(each) for each in found])


@routes.put("/limits", responses=WITH_BODY)
async def set_limit(limit: LimitIn, caller: SharedEditor, write: Writing) -> LimitOut:
    """Set the cap of a concurrency key or, as an administrator, of the workspace. Runs that are under way continue; more of them wait."""
    key = _checked(caller, limit.key)

    async def verb(db: Database) -> limits.Limit:
        await limits.set_limit(db, caller.scope, key, limit.cap)
        return await limits.get(db, caller.workspace_id, key)

    return await write.apply_or_preview(verb, limit_out, limit_preview, Hint.READY)


@routes.delete(
    "/limits", status_code=204, response_model=None, responses={**dry_run_response(LimitOut), **NOT_FOUND}
)
async def remove_limit(caller: SharedEditor, write: Writing, key: KeyIn = None) -> Response | None:
    """Remove a cap; runs that waited for it start. With `dry_run` the answer shows the cap that would go."""
    named = _checked(caller, key)

    async def verb(db: Database) -> limits.Limit:
        found = await limits.get(db, caller.workspace_id, named)
        await limits.take_away(db, caller.scope, named)
        return found

    return await write.delete_or_preview(verb, limit_preview, Hint.READY)


def _checked(caller: Caller, key: str | None) -> str:
    """Return the key to store. Only administrators limit the whole workspace."""
    if key is None:
        require_permission(caller, Permission.ADMIN)
    return key or limits.WHOLE
