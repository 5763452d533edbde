"""/audit: every change, with its author."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from foliot.services.identity import audit
from foliot.web.api.params import DEFAULT_LIMIT, Cursor, Db, Limit
from foliot.web.auth import Admin
from foliot.web.mapping.identity import entry_out
from foliot.web.routes import api_router
from foliot.wire.audit import AuditOut
from foliot.wire.instants import Moment
from foliot.wire.shape import Page

routes = api_router("audit")


@routes.get("/audit")
async def list_audit(
    caller: Admin,
    db: Db,
    actor: Annotated[
        str | None,
        Query(
            max_length=200,
            pattern=r"^[A-Za-z0-9_.:@-]+$",
            description="A principal's id, or engine, operator.",
        ),
    ] = None,
    action: Annotated[
        str | None,
        Query(
            max_length=64,
            pattern=r"^[a-z_]+(\.[a-z_]+)?$",
            description="Such as job.paused; job stands for all that begin so.",
        ),
    ] = None,
    object: Annotated[  # noqa: A002  # the name on the wire
        str | None,
        Query(
            max_length=300,
            pattern=r"^[a-z_]+(:[^\x00]+)?$",
            description="A kind such as job, or kind:id.",
        ),
    ] = None,
    since: Annotated[Moment | None, Query(description="From this instant on.")] = None,
    until: Annotated[Moment | None, Query(description="Before this instant.")] = None,
    installation: Annotated[
        bool, Query(description="System keys: what belongs to no workspace, instead.")
    ] = False,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[AuditOut]:
    """Newest first, with what was there before and after."""
    kind, _, object_id = (object or "").partition(":")
    wanted = audit.AuditFilter(actor, action, kind or None, object_id or None, since, until)
    page = await audit.listed(db, caller, wanted, of_installation=installation, cursor=cursor, limit=limit)
    return Page[AuditOut](items=[entry_out(each) for each in page.items], next_cursor=page.next_cursor)
