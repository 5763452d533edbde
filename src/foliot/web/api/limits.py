"""/limits: how many runs of the workspace, or with one concurrency key, are under way at once."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response

from foliot.domain.access import Permission
from foliot.services import Database
from foliot.services.dry_run import rehearsed
from foliot.services.hints import Hint
from foliot.services.identity.authentication import Caller, admit
from foliot.services.workers import limits
from foliot.web.api.dry_run import DryRun, only_tried, shown
from foliot.web.api.params import Db, Tell
from foliot.web.auth import SharedEditor, SharedViewer
from foliot.web.routes import NOT_FOUND, WITH_BODY, api_router
from foliot.wire.limits import LONGEST_KEY, LimitIn, LimitOut, LimitsOut

routes = api_router("limits")
KeyIn = Annotated[
    str | None,
    Query(
        min_length=1, max_length=LONGEST_KEY, description="A concurrency key; the whole workspace without it."
    ),
]


@routes.get("/limits")
async def list_limits(caller: SharedViewer, db: Db) -> LimitsOut:
    """The cap of the whole workspace first, where there is one, then those of concurrency keys."""
    found = await limits.list_limits(db, caller.workspace_id)
    return LimitsOut(items=[_out(each) for each in found])


@routes.put("/limits", responses=WITH_BODY)
async def set_limit(
    limit: LimitIn, caller: SharedEditor, db: Db, tell: Tell, dry_run: DryRun = False
) -> LimitOut:
    """Set the cap of a concurrency key or, as an administrator, of the workspace. What runs now runs on; what is too many waits."""
    key = _checked(caller, limit.key)

    async def act(db: Database) -> limits.Limit:
        await limits.set_limit(db, caller.scope, key, limit.cap)
        return await limits.get(db, caller.workspace_id, key)

    if dry_run:
        return _out(await rehearsed(db, caller.workspace_id, act), dry_run=True)
    after = await act(db)
    tell(Hint.READY)
    return _out(after)


@routes.delete(
    "/limits", status_code=204, response_model=None, responses={**only_tried(LimitOut), **NOT_FOUND}
)
async def remove_limit(
    caller: SharedEditor, db: Db, tell: Tell, key: KeyIn = None, dry_run: DryRun = False
) -> Response | None:
    """Take a cap away; what waited for it goes on. With `dry_run` the answer shows the cap that would go."""
    named = _checked(caller, key)
    if dry_run:
        return shown(_out(await limits.get(db, caller.workspace_id, named), dry_run=True))
    await limits.take_away(db, caller.scope, named)
    tell(Hint.READY)
    return None


def _checked(caller: Caller, key: str | None) -> str:
    """The whole workspace is its administrators' to bound."""
    if key is None:
        admit(caller, Permission.ADMIN)
    return key or limits.WHOLE


def _out(limit: limits.Limit, *, dry_run: bool = False) -> LimitOut:
    return LimitOut(
        key=limit.key or None, cap=limit.cap, in_use=limit.in_use, waiting=limit.waiting, dry_run=dry_run
    )
