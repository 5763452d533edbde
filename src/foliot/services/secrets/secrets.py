"""Secrets of a workspace: create, replace, give to agents, delete. Values go in and never come out."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from uuid import UUID

from foliot.domain.access import Scope
from foliot.domain.errors import Conflict, Invalid, refuse_stale, require_found
from foliot.domain.ids import FIRST_ID, JobId, PrincipalId, SecretId, WorkspaceId
from foliot.domain.quotas import Quotas, check_secrets
from foliot.services.cursors import ListPage, cut_page, read_cursor, text
from foliot.services.identity.audit_steps import append_audit
from foliot.services.secrets.master_key import check_key
from foliot.services.secrets.vault import Vault, purpose
from foliot.storage.content import secrets
from foliot.storage.content.secrets import SecretRow
from foliot.storage.identity import workspaces
from foliot.storage.tx import Database, Role, Tx

__all__ = ["SecretRow"]

NAMED = 5  # names in a refusal


async def create(
    database: Database, vault: Vault, scope: Scope, name: str, value: str, agents: Sequence[PrincipalId] = ()
) -> SecretId:
    plain = _bytes(value)
    await check_key(database, vault, scope.actor)
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        given = await _known(tx, agents)
        secret_id = SecretId(tx.new_id())
        key_id, box = vault.seal(purpose(scope.workspace_id, secret_id, 1), plain)
        await secrets.insert(tx, secret_id, name, given, key_id, box)
        await _check_open(tx, scope.workspace_id)
        await _check_quota(tx, scope.actor.quotas)
        after = {"name": name, "version": 1, "agents": _agent_ids(given)}
        await append_audit(tx, "secret.created", ("secret", secret_id), scope.actor, after=after)
    return secret_id


async def replace(database: Database, vault: Vault, scope: Scope, secret_id: SecretId, value: str) -> None:
    """Replace the value. Attempts that start from now on get the new one."""
    plain = _bytes(value)
    await check_key(database, vault, scope.actor)
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = await _lock_secret(tx, secret_id, scope.expected_revision)
        version = found.version + 1
        key_id, box = vault.seal(purpose(scope.workspace_id, secret_id, version), plain)
        await secrets.reseal(tx, secret_id, version, key_id, box)
        before, after = ({"name": found.name, "version": each} for each in (found.version, version))
        await append_audit(
            tx, "secret.replaced", ("secret", secret_id), scope.actor, before=before, after=after
        )


async def give(database: Database, scope: Scope, secret_id: SecretId, agents: Sequence[PrincipalId]) -> None:
    """Let these agents, and no others, name the secret in jobs they write from now on."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = await _lock_secret(tx, secret_id, scope.expected_revision)
        given = await _known(tx, agents)
        await secrets.set_agents(tx, secret_id, given)
        before, after = ({"name": found.name, "agents": _agent_ids(each)} for each in (found.agents, given))
        await append_audit(tx, "secret.given", ("secret", secret_id), scope.actor, before=before, after=after)


async def delete(database: Database, scope: Scope, secret_id: SecretId, *, force: bool = False) -> None:
    """Delete the secret. Refused while something names it, unless `force`: that then fails until the name exists again."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = await _lock_secret(tx, secret_id, scope.expected_revision)
        # Under this lock no job can start to name it.
        users = await secrets.list_users(tx, found.name, FIRST_ID, NAMED + 1)
        others = await secrets.list_other_users(tx, [found.name])
        named_by = [*(f'"{name}"' for _, name in users), *others.get(found.name, ())]
        if named_by and not force:
            raise _in_use(found.name, named_by)
        await secrets.delete(tx, secret_id)
        before = {"name": found.name, "version": found.version}
        await append_audit(tx, "secret.deleted", ("secret", secret_id), scope.actor, before=before)


async def get(database: Database, scope: Scope, secret_id: SecretId) -> SecretRow:
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = require_found(await secrets.get(tx, secret_id, scope.visible_owner), "secret")
        return (await _with_others(tx, scope, [found]))[0]


async def page(
    database: Database, scope: Scope, cursor: str | None = None, limit: int = 50, *, name: str | None = None
) -> ListPage[SecretRow]:
    """List secrets by name. An agent sees those that were given to it."""
    [after] = read_cursor(cursor, text) or [""]
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = await secrets.page(tx, after, limit + 1, name=name, agent=scope.visible_owner)
        found = await _with_others(tx, scope, found)
    return cut_page(found, limit, lambda last: [last.name])


async def users(
    database: Database, scope: Scope, secret_id: SecretId, cursor: str | None = None, limit: int = 50
) -> ListPage[tuple[JobId, str]]:
    """List the jobs that name the secret, as id and name, by id. An agent sees its own jobs."""
    [after] = read_cursor(cursor, UUID) or [FIRST_ID]
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = require_found(await secrets.get(tx, secret_id, scope.visible_owner), "secret")
        users = await secrets.list_users(tx, found.name, after, limit + 1, scope.visible_owner)
    return cut_page(users, limit, lambda last: [last[0]])


async def _with_others(tx: Tx, scope: Scope, rows: Sequence[SecretRow]) -> list[SecretRow]:
    """Add the channels, webhooks and rooms that name these secrets. An agent does not see them."""
    if scope.visible_owner is not None:
        return list(rows)
    others = await secrets.list_other_users(tx, [row.name for row in rows])
    return [dataclasses.replace(row, others=others.get(row.name, ())) for row in rows]


async def _lock_secret(tx: Tx, secret_id: SecretId, expected: int | None) -> SecretRow:
    found = require_found(await secrets.lock(tx, secret_id), "secret")
    refuse_stale("secret", found.version, expected, word="version")
    return found


async def _check_open(tx: Tx, workspace_id: WorkspaceId) -> None:
    """Refuse in an archived workspace. The insert's foreign key has waited for a concurrent archiving."""
    home = await workspaces.get(tx, workspace_id)
    if home is None or home.archived_at is not None:
        raise Conflict("This workspace is archived.", hint="Make a new one.")


async def _check_quota(tx: Tx, quotas: Quotas) -> None:
    """Check the quota after the insert, under a lock, so that two writers cannot take the last place."""
    if quotas.secrets is not None:
        await workspaces.lock_quota(tx)
        check_secrets(quotas, await secrets.count(tx))


async def _known(tx: Tx, agents: Sequence[PrincipalId]) -> tuple[PrincipalId, ...]:
    wanted = tuple(dict.fromkeys(agents))
    there = await secrets.list_agents(tx, wanted) if wanted else set()
    for place, each in enumerate(agents):
        if each not in there:
            raise Invalid(
                "There is no such agent.",
                pointer=f"/agents/{place}",
                hint="Members who are not agents may use secrets by their role.",
            )
    return wanted


def _bytes(value: str) -> bytes:
    if "\0" in value:
        raise Invalid("A secret has no NUL characters.", pointer="/value", hint="Keep binary ones as base64.")
    try:
        return value.encode()
    except UnicodeEncodeError:
        # The original message would quote part of the value.
        raise Invalid(
            "This is not text in Unicode.", pointer="/value", hint="Keep binary ones as base64."
        ) from None


def _in_use(name: str, users: list[str]) -> Conflict:
    shown = ", ".join(users[:NAMED])
    more = " and others" if len(users) > NAMED else ""
    return Conflict(
        f'The secret "{name}" is used by {shown}{more}.',
        hint="force=true deletes it anyway; those who use it then fail until a secret with that name exists.",
    )


def _agent_ids(agents: Sequence[PrincipalId]) -> list[str]:
    return [str(each) for each in agents]
