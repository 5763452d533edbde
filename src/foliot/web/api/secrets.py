"""/secrets: values that jobs use by name, written and never read; /master-key: the keys that seal them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Query, Request, Response

from foliot.domain.ids import PrincipalId, SecretId
from foliot.services import Database
from foliot.services.dry_run import preview_secret
from foliot.services.identity.authentication import Caller
from foliot.services.secrets import master_key, secrets
from foliot.services.secrets.vault import Vault
from foliot.web.api.params import DEFAULT_LIMIT, Cursor, Db, Limit, path_id
from foliot.web.api.writes import Write, Writing, dry_run_response, preview_response
from foliot.web.auth import Admin, System, Viewer
from foliot.web.mapping.identity import master_key_out, rotated_out, secret_out
from foliot.web.preconditions import IfMatch, read_if_match
from foliot.web.routes import CONFLICT, NOT_FOUND, STALE, WITH_BODY, api_router
from foliot.wire.dry_run import RotationDryRunOut, SecretDryRunOut
from foliot.wire.secrets import (
    MasterKeyOut,
    RotatedOut,
    RotateIn,
    SecretChange,
    SecretIn,
    SecretOut,
    SecretUser,
    SecretValueIn,
)
from foliot.wire.shape import Page

routes = api_router("secrets")


async def _vault(request: Request) -> Vault:
    vault: Vault = request.app.state.vault
    return vault


SecretIdIn = Annotated[SecretId, path_id("secret_id")]
TheVault = Annotated[Vault, Depends(_vault)]
SecretVerb = Callable[[Database, Vault], Awaitable[SecretId]]


@routes.post(
    "/secrets", status_code=201, responses={**dry_run_response(SecretDryRunOut), **CONFLICT, **WITH_BODY}
)
async def create_secret(
    secret: SecretIn, caller: Admin, vault: TheVault, write: Writing
) -> SecretOut | SecretDryRunOut:
    """Store a value. Jobs use it by `{"secret": "<name>"}` anywhere in their config."""
    agents = [PrincipalId(each) for each in secret.agents]

    async def verb(db: Database, vault: Vault) -> SecretId:
        return await secrets.create(db, vault, caller.scope, secret.name, secret.value, agents)

    return await _write_secret(write, vault, verb, creates=True)


@routes.get("/secrets")
async def list_secrets(
    caller: Viewer,
    db: Db,
    vault: TheVault,
    name: Annotated[str | None, Query(max_length=100, description="Only the secret of this name.")] = None,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[SecretOut]:
    """List secrets by name; an agent sees those that list it."""
    page = await secrets.page(db, caller.scope, cursor, limit, name=name)
    items = [secret_out(each, vault, caller.visible_owner) for each in page.items]
    return Page[SecretOut](items=items, next_cursor=page.next_cursor)


@routes.get("/secrets/{secret_id}", responses=NOT_FOUND)
async def get_secret(
    secret_id: SecretIdIn, caller: Viewer, db: Db, vault: TheVault, response: Response
) -> SecretOut:
    """Get a secret, without its value."""
    return await _get(db, vault, caller, secret_id, response)


@routes.get("/secrets/{secret_id}/jobs", responses=NOT_FOUND)
async def list_jobs_of_secret(
    secret_id: SecretIdIn, caller: Viewer, db: Db, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> Page[SecretUser]:
    """List the jobs that name it."""
    page = await secrets.users(db, caller.scope, secret_id, cursor, limit)
    items = [SecretUser(id=job_id, name=name) for job_id, name in page.items]
    return Page[SecretUser](items=items, next_cursor=page.next_cursor)


@routes.put("/secrets/{secret_id}", responses={**NOT_FOUND, **STALE, **WITH_BODY})
async def replace_secret(
    secret_id: SecretIdIn,
    secret: SecretValueIn,
    caller: Admin,
    db: Db,
    vault: TheVault,
    write: Writing,
    if_match: IfMatch = None,
) -> SecretOut | SecretDryRunOut:
    """Replace the value, as the next version. Attempts that start from now on get it; the old value is deleted."""
    scope = caller.scope.expecting(await _seen(db, caller, secret_id, if_match))

    async def verb(db: Database, vault: Vault) -> SecretId:
        await secrets.replace(db, vault, scope, secret_id, secret.value)
        return secret_id

    return await _write_secret(write, vault, verb)


@routes.patch("/secrets/{secret_id}", responses={**NOT_FOUND, **STALE, **WITH_BODY})
async def give_secret(
    secret_id: SecretIdIn,
    change: SecretChange,
    caller: Admin,
    db: Db,
    vault: TheVault,
    write: Writing,
    if_match: IfMatch = None,
) -> SecretOut | SecretDryRunOut:
    """Set which agents may name it in their jobs."""
    scope = caller.scope.expecting(await _seen(db, caller, secret_id, if_match))
    agents = [PrincipalId(each) for each in change.agents]

    async def verb(db: Database, _vault: Vault) -> SecretId:
        await secrets.give(db, scope, secret_id, agents)
        return secret_id

    return await _write_secret(write, vault, verb)


@routes.delete(
    "/secrets/{secret_id}",
    status_code=204,
    response_model=None,
    responses={**dry_run_response(SecretDryRunOut), **NOT_FOUND, **CONFLICT, **STALE},
)
async def delete_secret(
    secret_id: SecretIdIn,
    caller: Admin,
    db: Db,
    write: Writing,
    force: Annotated[bool, Query(description="Also while something names it, which then fails.")] = False,
    if_match: IfMatch = None,
) -> Response | None:
    """Refused while a job, channel, webhook or room names it, unless `force`."""
    scope = caller.scope.expecting(await _seen(db, caller, secret_id, if_match))

    async def preview(stage: Database) -> SecretDryRunOut:
        users = (await secrets.get(stage, caller.scope, secret_id)).users
        await secrets.delete(stage, scope, secret_id, force=force)
        return SecretDryRunOut(secret=None, jobs=users)

    if write.dry_run:
        return preview_response(await write.roll_back(preview))
    await secrets.delete(db, scope, secret_id, force=force)
    return None


async def _write_secret(
    write: Write, vault: Vault, verb: SecretVerb, *, creates: bool = False
) -> SecretOut | SecretDryRunOut:
    caller = write.caller
    if write.dry_run:
        write.response.status_code = 200
        row = await preview_secret(write.db, vault, caller.scope, verb)
        secret = secret_out(row, vault).model_copy(update={"readable": True})
        return SecretDryRunOut(secret=secret, jobs=row.users)
    secret_id = await verb(write.db, vault)
    if creates:
        write.set_location(f"secrets/{secret_id}")
    return await _get(write.db, vault, caller, secret_id, write.response)


async def _get(
    db: Database, vault: Vault, caller: Caller, secret_id: SecretId, response: Response
) -> SecretOut:
    row = await secrets.get(db, caller.scope, secret_id)
    response.headers["ETag"] = f'"{row.version}"'
    return secret_out(row, vault, caller.visible_owner)


async def _seen(db: Database, caller: Caller, secret_id: SecretId, if_match: str | None) -> int | None:
    """Return the version that If-Match names; the verb checks it again under its lock."""
    if if_match is None:
        return None
    return read_if_match(if_match, (await secrets.get(db, caller.scope, secret_id)).version)


@routes.get("/master-key")
async def get_master_key(caller: System, db: Db, vault: TheVault) -> MasterKeyOut:
    """How many secrets, of all workspaces, the keys of the answering node can read."""
    return master_key_out(await master_key.standing(db, vault))


@routes.post("/master-key/rotate", responses={**CONFLICT, **WITH_BODY})
async def rotate_master_key(
    wanted: RotateIn, caller: System, db: Db, vault: TheVault, write: Writing
) -> RotatedOut | RotationDryRunOut:
    """Seal with the present key what older keys have sealed, up to a thousand secrets; repeat while some are left."""
    if write.dry_run:
        # A new master key is a file, which no rollback removes: the preview counts instead.
        counted = await master_key.try_rotation(
            db, vault, new_key=wanted.new_key, accept_loss=wanted.accept_loss
        )
        return RotationDryRunOut(rotated=counted.rotated, unreadable=counted.unreadable)
    done = await master_key.rotate(
        db, vault, caller.actor, new_key=wanted.new_key, accept_loss=wanted.accept_loss
    )
    return rotated_out(done)
