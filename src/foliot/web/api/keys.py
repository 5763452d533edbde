"""/keys: one's own, and for administrators everybody's in the workspace."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Response

from foliot.domain.ids import KeyId, PrincipalId
from foliot.services import keys
from foliot.services.in_hand import no_such
from foliot.web.api.params import DEFAULT_LIMIT, Cursor, Db, Limit
from foliot.web.api.params_identity import Changed
from foliot.web.auth import Viewer
from foliot.web.present_identity import key_out, made_key_out
from foliot.web.routes import CONFLICT, NOT_FOUND, WITH_BODY, api_router
from foliot.wire.identity import KeyIn, KeyOut, KeyPatch, MadeKeyOut
from foliot.wire.instants import Id, read_id
from foliot.wire.pages import Page

routes = api_router("keys")
KeyIdIn = Annotated[str, Path(alias="key_id", json_schema_extra={"format": "uuid"})]


@routes.post("/keys", status_code=201, responses={**CONFLICT, **WITH_BODY})
async def create_key(key: KeyIn, caller: Viewer, db: Db, response: Response) -> MadeKeyOut:
    """Make a key for yourself or, as an administrator, for a member. Its secret is in this answer and nowhere else."""
    principal = None if key.principal is None else PrincipalId(key.principal)
    made = await keys.create(db, caller, keys.NewKey(key.name.strip(), principal, key.scopes, key.expires_at))
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
async def change_key(key_id: KeyIdIn, key: KeyPatch, caller: Viewer, db: Db, changed: Changed) -> KeyOut:
    """Another name, an earlier end, fewer scopes: a key is only ever narrowed."""
    wanted = keys.Changes(
        key.name and key.name.strip(), key.scopes, key.expires_at, "expires_at" in key.model_fields_set
    )
    after = await keys.change(db, caller, _key_id(key_id), wanted)
    changed()
    return key_out(after)


@routes.post("/keys/{key_id}/revoke", responses=NOT_FOUND)
async def revoke_key(key_id: KeyIdIn, caller: Viewer, db: Db, changed: Changed) -> KeyOut:
    """For good, on every node within five seconds. Doing it twice changes nothing."""
    after = await keys.revoke(db, caller, _key_id(key_id))
    changed()
    return key_out(after)


@routes.delete("/keys/{key_id}", status_code=204, responses=NOT_FOUND)
async def delete_key(key_id: KeyIdIn, caller: Viewer, db: Db, changed: Changed) -> None:
    """The same as revoke: the record stays, for the audit speaks of it."""
    await keys.revoke(db, caller, _key_id(key_id))
    changed()


def _key_id(text: str) -> KeyId:
    found = read_id(text)
    if found is None:
        raise no_such("key")
    return KeyId(found)
