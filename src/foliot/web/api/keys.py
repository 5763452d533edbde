"""/keys: your own keys; for administrators, all keys of the workspace."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response

from foliot.domain.access import KeyBudget
from foliot.domain.ids import KeyId, PrincipalId
from foliot.services.hints import Hint
from foliot.services.identity import keys
from foliot.web.api.params import DEFAULT_LIMIT, Cursor, Db, Limit, path_id
from foliot.web.api.writes import Write, Writing, dry_run_response
from foliot.web.auth import Viewer
from foliot.web.mapping.identity import key_out, made_key_out, revocation_preview, revoked_key_out
from foliot.web.routes import CONFLICT, NOT_FOUND, WITH_BODY, api_router
from foliot.wire.dry_run import KeyDryRunOut
from foliot.wire.identity import KeyIn, KeyOut, KeyPatch, MadeKeyOut, RevokedKeyOut
from foliot.wire.instants import Id
from foliot.wire.shape import Page

routes = api_router("keys")
KeyIdIn = Annotated[KeyId, path_id("key_id")]
MadeToo = Annotated[
    bool, Query(description="Also every key that it made, and the keys that those made: for a leaked key.")
]


@routes.post("/keys", status_code=201, responses={**dry_run_response(KeyDryRunOut), **CONFLICT, **WITH_BODY})
async def create_key(key: KeyIn, caller: Viewer, write: Writing) -> MadeKeyOut | KeyDryRunOut:
    """Make a key for yourself or, as an administrator, for a member. Its secret is in this answer and nowhere else."""
    principal = None if key.principal is None else PrincipalId(key.principal)
    budget = KeyBudget(key.max_jobs, key.min_interval)
    wanted = keys.KeyRequest(key.name.strip(), principal, key.scopes, key.expires_at, key.session, budget)

    def answer(made: keys.CreatedKey) -> MadeKeyOut:
        write.set_location(f"keys/{made.key.id}")
        write.response.headers["Cache-Control"] = "no-store"
        return made_key_out(made)

    return await _scoped(write).apply_or_preview(
        lambda db: keys.create(db, caller, wanted), answer, lambda made: KeyDryRunOut(key=key_out(made.key))
    )


@routes.get("/keys")
async def list_keys(
    caller: Viewer,
    db: Db,
    principal: Annotated[Id | None, Query(description="Of this principal.")] = None,
    revoked: Annotated[bool | None, Query(description="Filter by this flag.")] = None,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[KeyOut]:
    """List your own keys; as an administrator, all keys of the workspace. Newest first."""
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
    """Get a key, without its secret."""
    return key_out(await keys.get(db, caller, key_id))


@routes.patch("/keys/{key_id}", responses={**NOT_FOUND, **CONFLICT, **WITH_BODY})
async def change_key(key_id: KeyIdIn, key: KeyPatch, caller: Viewer, write: Writing) -> KeyOut | KeyDryRunOut:
    """Change the name, bring the end forward or remove scopes: a key is only ever narrowed."""
    wanted = keys.KeyChanges(
        key.name and key.name.strip(), key.scopes, key.expires_at, "expires_at" in key.model_fields_set
    )
    return await _scoped(write).apply_or_preview(
        lambda db: keys.change(db, caller, key_id, wanted),
        key_out,
        lambda changed: KeyDryRunOut(key=key_out(changed)),
        Hint.KEYS,
    )


@routes.post("/keys/{key_id}/revoke", responses=NOT_FOUND)
async def revoke_key(
    key_id: KeyIdIn, caller: Viewer, write: Writing, made_too: MadeToo = False
) -> RevokedKeyOut | KeyDryRunOut:
    """Revoke the key for good, on every node within five seconds. Keys that it made stay valid unless `made_too`; the answer counts
    them. Revoking twice changes nothing.
    """
    return await _scoped(write).apply_or_preview(
        lambda db: keys.revoke(db, caller, key_id, made_too=made_too),
        revoked_key_out,
        revocation_preview,
        Hint.KEYS,
    )


@routes.delete(
    "/keys/{key_id}",
    status_code=204,
    response_model=None,
    responses={**dry_run_response(KeyDryRunOut), **NOT_FOUND},
)
async def delete_key(
    key_id: KeyIdIn, caller: Viewer, write: Writing, made_too: MadeToo = False
) -> Response | None:
    """The same as revoke: the record stays, because the audit refers to it."""
    return await _scoped(write).delete_or_preview(
        lambda db: keys.revoke(db, caller, key_id, made_too=made_too), revocation_preview, Hint.KEYS
    )


def _scoped(write: Write) -> Write:
    """Keys of the installation belong to no workspace."""
    is_system = write.caller.holder.principal.is_system
    return write.as_system(write.caller.workspace_id) if is_system else write
