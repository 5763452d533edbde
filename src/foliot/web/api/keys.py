"""/keys: one's own, and for administrators everybody's in the workspace."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

from fastapi import Path, Query, Response

from foliot.domain.ids import KeyId, PrincipalId
from foliot.services import Database
from foliot.services.dry_run import rehearsed
from foliot.services.identity import keys
from foliot.services.identity.authentication import Caller
from foliot.web.api.dry_run import DryRun, only_tried, shown
from foliot.web.api.params import DEFAULT_LIMIT, Changed, Cursor, Db, Limit, id_of
from foliot.web.auth import Viewer
from foliot.web.mapping.identity import key_out, made_key_out, revoked_key_out
from foliot.web.routes import CONFLICT, NOT_FOUND, WITH_BODY, api_router
from foliot.wire.dry_run import KeyDryRunOut
from foliot.wire.identity import KeyIn, KeyOut, KeyPatch, MadeKeyOut, RevokedKeyOut
from foliot.wire.instants import Id
from foliot.wire.pages import Page

routes = api_router("keys")
KeyIdIn = Annotated[str, Path(alias="key_id", json_schema_extra={"format": "uuid"})]
MadeToo = Annotated[
    bool, Query(description="Every key that it made too, and those that these made: for one that has leaked.")
]
Thing = TypeVar("Thing")


@routes.post("/keys", status_code=201, responses={**only_tried(KeyDryRunOut), **CONFLICT, **WITH_BODY})
async def create_key(
    key: KeyIn, caller: Viewer, db: Db, response: Response, dry_run: DryRun = False
) -> MadeKeyOut | KeyDryRunOut:
    """Make a key for yourself or, as an administrator, for a member. Its secret is in this answer and nowhere else."""
    principal = None if key.principal is None else PrincipalId(key.principal)
    wanted = keys.NewKey(key.name.strip(), principal, key.scopes, key.expires_at)
    if dry_run:
        response.status_code = 200
        tried = await _tried(db, caller, lambda stage: keys.create(stage, caller, wanted))
        return KeyDryRunOut(key=key_out(tried.key))
    made = await keys.create(db, caller, wanted)
    response.headers["Location"] = f"/api/v1/keys/{made.key.id}"
    response.headers["Cache-Control"] = "no-store"
    return made_key_out(made)


@routes.get("/keys")
async def list_keys(
    caller: Viewer,
    db: Db,
    principal: Annotated[Id | None, Query(description="Of this principal.")] = None,
    revoked: Annotated[bool | None, Query(description="Only those, or only the others.")] = None,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[KeyOut]:
    """Your own keys; for an administrator, all keys of the workspace. Newest first."""
    page = await keys.listed(
        db,
        caller,
        principal_id=None if principal is None else PrincipalId(principal),
        is_revoked=revoked,
        cursor=cursor,
        limit=limit,
    )
    return Page[KeyOut](items=[key_out(each) for each in page.items], next_cursor=page.next_cursor)


@routes.get("/keys/{key_id}", responses=NOT_FOUND)
async def get_key(key_id: KeyIdIn, caller: Viewer, db: Db) -> KeyOut:
    return key_out(await keys.get(db, caller, _key_id(key_id)))


@routes.patch("/keys/{key_id}", responses={**NOT_FOUND, **CONFLICT, **WITH_BODY})
async def change_key(
    key_id: KeyIdIn, key: KeyPatch, caller: Viewer, db: Db, changed: Changed, dry_run: DryRun = False
) -> KeyOut | KeyDryRunOut:
    """Another name, an earlier end, fewer scopes: a key is only ever narrowed."""
    wanted = keys.Changes(
        key.name and key.name.strip(), key.scopes, key.expires_at, "expires_at" in key.model_fields_set
    )
    found = _key_id(key_id)
    if dry_run:
        tried = await _tried(db, caller, lambda stage: keys.change(stage, caller, found, wanted))
        return KeyDryRunOut(key=key_out(tried))
    after = await keys.change(db, caller, found, wanted)
    changed()
    return key_out(after)


@routes.post("/keys/{key_id}/revoke", responses=NOT_FOUND)
async def revoke_key(
    key_id: KeyIdIn,
    caller: Viewer,
    db: Db,
    changed: Changed,
    made_too: MadeToo = False,
    dry_run: DryRun = False,
) -> RevokedKeyOut | KeyDryRunOut:
    """For good, on every node within five seconds. Keys that it made go on, unless `made_too` ends them with it; the answer counts
    them. Doing it twice changes nothing.
    """
    found = _key_id(key_id)
    if dry_run:
        return await _tried_revocation(db, caller, found, made_too=made_too)
    ended = await keys.revoke(db, caller, found, made_too=made_too)
    changed()
    return revoked_key_out(ended)


@routes.delete(
    "/keys/{key_id}",
    status_code=204,
    response_model=None,
    responses={**only_tried(KeyDryRunOut), **NOT_FOUND},
)
async def delete_key(
    key_id: KeyIdIn,
    caller: Viewer,
    db: Db,
    changed: Changed,
    made_too: MadeToo = False,
    dry_run: DryRun = False,
) -> Response | None:
    """The same as revoke: the record stays, for the audit speaks of it."""
    found = _key_id(key_id)
    if dry_run:
        return shown(await _tried_revocation(db, caller, found, made_too=made_too))
    await keys.revoke(db, caller, found, made_too=made_too)
    changed()
    return None


async def _tried_revocation(db: Database, caller: Caller, key_id: KeyId, *, made_too: bool) -> KeyDryRunOut:
    tried = await _tried(db, caller, lambda stage: keys.revoke(stage, caller, key_id, made_too=made_too))
    return KeyDryRunOut(key=key_out(tried.key), made_valid=tried.made_valid, made_revoked=len(tried.made_too))


async def _tried(db: Database, caller: Caller, act: Callable[[Database], Awaitable[Thing]]) -> Thing:
    return await rehearsed(db, caller.workspace_id, act, system=caller.holder.principal.is_system)


def _key_id(text: str) -> KeyId:
    return KeyId(id_of("key", text))
