"""/secrets: values that jobs use by name. They are written here and never read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Query, Request, Response

from foliot.domain.ids import PrincipalId, SecretId
from foliot.services import Database
from foliot.services.dry_run import tried_secret
from foliot.services.identity.authentication import Caller
from foliot.services.secrets import secrets
from foliot.services.secrets.secrets import SecretRow
from foliot.services.secrets.vault import Vault
from foliot.web.api.dry_run import DryRun, only_tried, shown
from foliot.web.api.params import DEFAULT_LIMIT, Cursor, Db, Limit, PathId, id_of
from foliot.web.auth import Admin, Viewer
from foliot.web.preconditions import IfMatch, seen_revision
from foliot.web.routes import CONFLICT, NOT_FOUND, STALE, WITH_BODY, api_router
from foliot.wire.dry_run import SecretDryRunOut
from foliot.wire.pages import Page
from foliot.wire.secrets import SecretChange, SecretIn, SecretOut, SecretUser, SecretValueIn

routes = api_router("secrets")


def _secret_id(secret_id: PathId) -> SecretId:
    return SecretId(id_of("secret", secret_id))


def _vault(request: Request) -> Vault:
    vault: Vault = request.app.state.vault
    return vault


SecretIdIn = Annotated[SecretId, Depends(_secret_id)]
TheVault = Annotated[Vault, Depends(_vault)]


@routes.post("/secrets", status_code=201, responses={**only_tried(SecretDryRunOut), **CONFLICT, **WITH_BODY})
async def create_secret(
    secret: SecretIn, caller: Admin, db: Db, vault: TheVault, response: Response, dry_run: DryRun = False
) -> SecretOut | SecretDryRunOut:
    """Keep a value. Jobs use it by `{"secret": "<name>"}` anywhere in their config."""
    agents = [PrincipalId(each) for each in secret.agents]

    async def act(db: Database, vault: Vault) -> SecretId:
        return await secrets.create(db, vault, caller.scope, secret.name, secret.value, agents)

    if dry_run:
        response.status_code = 200
        return await _tried(db, vault, caller, act)
    secret_id = await act(db, vault)
    response.headers["Location"] = f"/api/v1/secrets/{secret_id}"
    return await _as_it_stands(db, vault, caller, secret_id, response)


@routes.get("/secrets")
async def list_secrets(
    caller: Viewer,
    db: Db,
    vault: TheVault,
    name: Annotated[str | None, Query(max_length=100, description="The one of this name alone.")] = None,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[SecretOut]:
    """In the order of their names; an agent sees those that it was given."""
    page = await secrets.page(db, caller.scope, cursor, limit, name=name)
    items = [secret_out(each, vault, caller.visible_owner) for each in page.items]
    return Page[SecretOut](items=items, next_cursor=page.next_cursor)


@routes.get("/secrets/{secret_id}", responses=NOT_FOUND)
async def get_secret(
    secret_id: SecretIdIn, caller: Viewer, db: Db, vault: TheVault, response: Response
) -> SecretOut:
    return await _as_it_stands(db, vault, caller, secret_id, response)


@routes.get("/secrets/{secret_id}/jobs", responses=NOT_FOUND)
async def list_jobs_of_secret(
    secret_id: SecretIdIn, caller: Viewer, db: Db, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> Page[SecretUser]:
    """The jobs that name it."""
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
    response: Response,
    if_match: IfMatch = None,
    dry_run: DryRun = False,
) -> SecretOut | SecretDryRunOut:
    """A new value, as its next version. Attempts that begin from now on get it; the old one is gone."""
    seen = await _seen(db, caller, secret_id, if_match)

    async def act(db: Database, vault: Vault) -> SecretId:
        await secrets.replace(db, vault, caller.scope.expecting(seen), secret_id, secret.value)
        return secret_id

    if dry_run:
        return await _tried(db, vault, caller, act)
    await act(db, vault)
    return await _as_it_stands(db, vault, caller, secret_id, response)


@routes.patch("/secrets/{secret_id}", responses={**NOT_FOUND, **STALE, **WITH_BODY})
async def give_secret(
    secret_id: SecretIdIn,
    change: SecretChange,
    caller: Admin,
    db: Db,
    vault: TheVault,
    response: Response,
    if_match: IfMatch = None,
    dry_run: DryRun = False,
) -> SecretOut | SecretDryRunOut:
    """Which agents may name it in the jobs that they write."""
    seen = await _seen(db, caller, secret_id, if_match)
    agents = [PrincipalId(each) for each in change.agents]

    async def act(db: Database, vault: Vault) -> SecretId:
        await secrets.give(db, caller.scope.expecting(seen), secret_id, agents)
        return secret_id

    if dry_run:
        return await _tried(db, vault, caller, act)
    await act(db, vault)
    return await _as_it_stands(db, vault, caller, secret_id, response)


@routes.delete(
    "/secrets/{secret_id}",
    status_code=204,
    response_model=None,
    responses={**only_tried(SecretDryRunOut), **NOT_FOUND, **CONFLICT, **STALE},
)
async def delete_secret(
    secret_id: SecretIdIn,
    caller: Admin,
    db: Db,
    vault: TheVault,
    force: Annotated[bool, Query(description="Also while jobs name it; their runs then fail.")] = False,
    if_match: IfMatch = None,
    dry_run: DryRun = False,
) -> Response | None:
    """Refused while jobs name it, unless `force`."""
    seen = await _seen(db, caller, secret_id, if_match)

    async def act(db: Database, vault: Vault) -> SecretId:
        await secrets.delete(db, caller.scope.expecting(seen), secret_id, force=force)
        return secret_id

    if dry_run:
        users = (await secrets.get(db, caller.scope, secret_id)).users
        tried = await _tried(db, vault, caller, act, gone=True)
        return shown(tried.model_copy(update={"jobs": users}))
    await act(db, vault)
    return None


async def _tried(
    db: Database,
    vault: Vault,
    caller: Caller,
    act: Callable[[Database, Vault], Awaitable[SecretId]],
    *,
    gone: bool = False,
) -> SecretDryRunOut:
    row = await tried_secret(db, vault, caller.workspace_id, act, gone=gone)
    if row is None:
        return SecretDryRunOut(secret=None, jobs=0)
    told = secret_out(row, vault).model_copy(update={"readable": True})
    return SecretDryRunOut(secret=told, jobs=row.users)


def secret_out(row: SecretRow, vault: Vault, agent: PrincipalId | None = None) -> SecretOut:
    """To an agent, other agents are not there."""
    return SecretOut(
        id=row.id,
        name=row.name,
        version=row.version,
        agents=[each for each in row.agents if agent in (None, each)],
        job_count=row.users,
        readable=vault.knows(row.key_id),
        created_at=row.created_at,
        updated_at=row.updated_at,
    )


async def _as_it_stands(
    db: Database, vault: Vault, caller: Caller, secret_id: SecretId, response: Response
) -> SecretOut:
    row = await secrets.get(db, caller.scope, secret_id)
    response.headers["ETag"] = f'"{row.version}"'
    return secret_out(row, vault, caller.visible_owner)


async def _seen(db: Database, caller: Caller, secret_id: SecretId, if_match: str | None) -> int | None:
    """The version that the caller goes by; the verb looks under its lock whether the secret is still at it."""
    if if_match is None:
        return None
    return seen_revision(if_match, (await secrets.get(db, caller.scope, secret_id)).version)
