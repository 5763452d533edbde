"""/hosts: machines that fetch their own work, their server instances, and their capacity."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response

from foliot.domain.ids import HostId, InstanceId
from foliot.services import Database
from foliot.services.hints import Hint
from foliot.services.workers import hosts
from foliot.services.workers.hosts import Host
from foliot.web.api.params import DEFAULT_LIMIT, Cursor, Db, Limit, path_id
from foliot.web.api.writes import Writing, dry_run_response
from foliot.web.auth import SharedEditor, Viewer
from foliot.web.mapping.fleet import host_out, instance_out
from foliot.web.preconditions import IfMatch, expecting
from foliot.web.routes import CONFLICT, NOT_FOUND, STALE, WITH_BODY, api_router
from foliot.wire.fleet import HostChange, HostOut, InstanceChange, InstanceIn, InstanceOut
from foliot.wire.shape import Page

routes = api_router("hosts")
HostIdIn = Annotated[HostId, path_id("host_id")]
InstanceIdIn = Annotated[InstanceId, path_id("instance_id", "server instance")]


@routes.get("/hosts")
async def list_hosts(
    caller: Viewer, db: Db, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> Page[HostOut]:
    """List them by name."""
    page = await hosts.page(db, caller.workspace_id, cursor, limit)
    return Page[HostOut](items=[host_out(each) for each in page.items], next_cursor=page.next_cursor)


@routes.get("/hosts/{host_id}", responses=NOT_FOUND)
async def get_host(host_id: HostIdIn, caller: Viewer, db: Db, response: Response) -> HostOut:
    """Get a host."""
    return _tagged(await hosts.get(db, caller.scope, host_id), response)


@routes.patch("/hosts/{host_id}", responses={**NOT_FOUND, **CONFLICT, **STALE, **WITH_BODY})
async def change_host(
    host_id: HostIdIn,
    change: HostChange,
    caller: SharedEditor,
    db: Db,
    write: Writing,
    if_match: IfMatch = None,
) -> HostOut:
    """Change the fields that are named: labels and capacity."""
    scope = await expecting(caller.scope, if_match, lambda: hosts.get(db, caller.scope, host_id))
    changes = change.model_dump(exclude_unset=True)
    return await write.apply_or_preview(
        lambda stage: hosts.change(stage, scope, host_id, changes),
        lambda changed: _tagged(changed, write.response),
        host_out,
        Hint.READY,
    )


@routes.delete(
    "/hosts/{host_id}",
    status_code=204,
    response_model=None,
    responses={**dry_run_response(HostOut), **NOT_FOUND, **CONFLICT, **STALE},
)
async def delete_host(
    host_id: HostIdIn,
    caller: SharedEditor,
    db: Db,
    write: Writing,
    force: Annotated[bool, Query(description="Also while jobs must run there: they wait.")] = False,
    if_match: IfMatch = None,
) -> Response | None:
    """Delete the host and its instances. Refused while it is online; while jobs must run there, `force` leaves them waiting."""
    scope = await expecting(caller.scope, if_match, lambda: hosts.get(db, caller.scope, host_id))

    async def verb(stage: Database) -> Host:
        found = await hosts.get(stage, caller.scope, host_id)
        await hosts.delete(stage, scope, host_id, force=force)
        return found

    return await write.delete_or_preview(verb, host_out)


@routes.post(
    "/hosts/{host_id}/instances",
    status_code=201,
    responses={**dry_run_response(InstanceOut), **NOT_FOUND, **CONFLICT, **WITH_BODY},
)
async def add_instance(
    host_id: HostIdIn, instance: InstanceIn, caller: SharedEditor, write: Writing
) -> InstanceOut:
    """Add a server instance that jobs can name as target. Hosts register their instances themselves."""
    return await write.apply(
        lambda db: hosts.add_instance(db, caller.scope, host_id, instance.name, instance.labels),
        instance_out,
    )


@routes.patch("/hosts/{host_id}/instances/{instance_id}", responses={**NOT_FOUND, **CONFLICT, **WITH_BODY})
async def change_instance(
    host_id: HostIdIn, instance_id: InstanceIdIn, change: InstanceChange, caller: SharedEditor, write: Writing
) -> InstanceOut:
    """Change its labels, or move it to another host together with its waiting runs."""
    to = None if change.host_id is None else HostId(change.host_id)
    return await write.apply(
        lambda db: hosts.change_instance(db, caller.scope, host_id, instance_id, labels=change.labels, to=to),
        instance_out,
        Hint.READY,
    )


@routes.delete(
    "/hosts/{host_id}/instances/{instance_id}",
    status_code=204,
    response_model=None,
    responses={**dry_run_response(HostOut), **NOT_FOUND, **CONFLICT},
)
async def remove_instance(
    host_id: HostIdIn,
    instance_id: InstanceIdIn,
    caller: SharedEditor,
    write: Writing,
    force: Annotated[bool, Query(description="Also while jobs must run there: they wait.")] = False,
) -> Response | None:
    """Refused while jobs name it as target, unless `force` leaves them waiting. With `dry_run` the answer shows the host without it."""

    async def verb(db: Database) -> Host:
        await hosts.remove_instance(db, caller.scope, host_id, instance_id, force=force)
        return await hosts.get(db, caller.scope, host_id)

    return await write.delete_or_preview(verb, host_out)


def _tagged(host: Host, response: Response) -> HostOut:
    response.headers["ETag"] = f'"{host.revision}"'
    return host_out(host)
