"""/hosts: machines that fetch their own work, their server instances, and their capacity."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query, Response

from foliot.domain.ids import HostId, InstanceId
from foliot.services import Database
from foliot.services.hints import Hint
from foliot.services.identity.authentication import Caller
from foliot.services.workers import hosts
from foliot.services.workers.hosts import Host
from foliot.web.api.params import DEFAULT_LIMIT, Announcer, Cursor, Db, Limit, PathId, id_of
from foliot.web.auth import SharedEditor, Viewer
from foliot.web.mapping.fleet import host_out, instance_out
from foliot.web.preconditions import IfMatch, read_if_match
from foliot.web.routes import CONFLICT, NOT_FOUND, STALE, WITH_BODY, api_router
from foliot.wire.fleet import HostChange, HostOut, InstanceChange, InstanceIn, InstanceOut
from foliot.wire.shape import Page

routes = api_router("hosts")


async def _host_id(host_id: PathId) -> HostId:
    return HostId(id_of("host", host_id))


async def _instance_id(instance_id: PathId) -> InstanceId:
    return InstanceId(id_of("server instance", instance_id))


HostIdIn = Annotated[HostId, Depends(_host_id)]
InstanceIdIn = Annotated[InstanceId, Depends(_instance_id)]


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
    tell: Announcer,
    response: Response,
    if_match: IfMatch = None,
) -> HostOut:
    """Change the fields that are named: labels and capacity."""
    seen = await _seen(db, caller, host_id, if_match)
    changes = change.model_dump(exclude_unset=True)
    changed = await hosts.change(db, caller.scope.expecting(seen), host_id, changes)
    tell(Hint.READY)
    return _tagged(changed, response)


@routes.delete("/hosts/{host_id}", status_code=204, responses={**NOT_FOUND, **CONFLICT, **STALE})
async def delete_host(
    host_id: HostIdIn,
    caller: SharedEditor,
    db: Db,
    force: Annotated[bool, Query(description="Also while jobs must run there: they wait.")] = False,
    if_match: IfMatch = None,
) -> None:
    """Delete the host and its instances. Refused while it is online; while jobs must run there, `force` leaves them waiting."""
    seen = await _seen(db, caller, host_id, if_match)
    await hosts.delete(db, caller.scope.expecting(seen), host_id, force=force)


@routes.post("/hosts/{host_id}/instances", status_code=201, responses={**NOT_FOUND, **CONFLICT, **WITH_BODY})
async def add_instance(host_id: HostIdIn, instance: InstanceIn, caller: SharedEditor, db: Db) -> InstanceOut:
    """Add a server instance that jobs can name as target. Hosts register their instances themselves."""
    made = await hosts.add_instance(db, caller.scope, host_id, instance.name, instance.labels)
    return instance_out(made)


@routes.patch("/hosts/{host_id}/instances/{instance_id}", responses={**NOT_FOUND, **CONFLICT, **WITH_BODY})
async def change_instance(
    host_id: HostIdIn,
    instance_id: InstanceIdIn,
    change: InstanceChange,
    caller: SharedEditor,
    db: Db,
    tell: Announcer,
) -> InstanceOut:
    """Change its labels, or move it to another host together with its waiting runs."""
    changed = await hosts.change_instance(
        db,
        caller.scope,
        host_id,
        instance_id,
        labels=change.labels,
        to=None if change.host_id is None else HostId(change.host_id),
    )
    tell(Hint.READY)
    return instance_out(changed)


@routes.delete(
    "/hosts/{host_id}/instances/{instance_id}", status_code=204, responses={**NOT_FOUND, **CONFLICT}
)
async def remove_instance(
    host_id: HostIdIn,
    instance_id: InstanceIdIn,
    caller: SharedEditor,
    db: Db,
    force: Annotated[bool, Query(description="Also while jobs must run there: they wait.")] = False,
) -> None:
    """Refused while jobs name it as target, unless `force` leaves them waiting."""
    await hosts.remove_instance(db, caller.scope, host_id, instance_id, force=force)


def _tagged(host: Host, response: Response) -> HostOut:
    response.headers["ETag"] = f'"{host.row.revision}"'
    return host_out(host)


async def _seen(db: Database, caller: Caller, host_id: HostId, if_match: str | None) -> int | None:
    """Return the revision that If-Match names; the verb checks it again under its lock."""
    if if_match is None:
        return None
    return read_if_match(if_match, (await hosts.get(db, caller.scope, host_id)).row.revision)
