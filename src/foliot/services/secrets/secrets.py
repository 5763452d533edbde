"""Secrets of a workspace: made, given a new value, given to agents, deleted. Their values go in and never come out here."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from foliot.domain.access import Actor
from foliot.domain.errors import Conflict, Invalid, StaleRevision
from foliot.domain.ids import FIRST_ID, JobId, PrincipalId, SecretId, WorkspaceId
from foliot.domain.quotas import Quotas, check_secrets
from foliot.services.jobs.lock_steps import append_audit, not_found
from foliot.services.secrets.master_key import check_key
from foliot.services.secrets.vault import Vault, purpose
from foliot.storage.content import secrets
from foliot.storage.content.secrets import SecretRow
from foliot.storage.identity import workspaces
from foliot.storage.outbox import webhooks
from foliot.storage.tx import Database, Role, Tx

__all__ = ["SecretRow", "create", "delete", "get", "give", "page", "replace", "users"]

NAMED = 5  # jobs told in a refusal


async def create(
    database: Database,
    vault: Vault,
    workspace_id: WorkspaceId,
    name: str,
    value: str,
    by: Actor,
    agents: Sequence[PrincipalId] = (),
) -> SecretId:
    plain = _bytes(value)
    await check_key(database, vault, by)
    async with database.tx(Role.APP, workspace_id) as tx:
        given = await _known(tx, agents)
        secret_id = SecretId(tx.new_id())
        key_id, box = vault.seal(purpose(workspace_id, secret_id, 1), plain)
        await secrets.insert(tx, secret_id, name, given, key_id, box)
        await _check_open(tx, workspace_id)
        await _check_room(tx, by.quotas)
        after = {"name": name, "version": 1, "agents": _told(given)}
        await append_audit(tx, "secret.created", ("secret", secret_id), by, after=after)
    return secret_id


async def replace(
    database: Database,
    vault: Vault,
    workspace_id: WorkspaceId,
    secret_id: SecretId,
    value: str,
    by: Actor,
    expected_version: int | None = None,
) -> None:
    """A new version takes the place of the last, which is gone. Attempts that begin from here on get it."""
    plain = _bytes(value)
    await check_key(database, vault, by)
    async with database.tx(Role.APP, workspace_id) as tx:
        found = await _in_hand(tx, secret_id, expected_version)
        version = found.version + 1
        key_id, box = vault.seal(purpose(workspace_id, secret_id, version), plain)
        await secrets.reseal(tx, secret_id, version, key_id, box)
        told = [{"name": found.name, "version": each} for each in (found.version, version)]
        await append_audit(tx, "secret.replaced", ("secret", secret_id), by, before=told[0], after=told[1])


async def give(
    database: Database,
    workspace_id: WorkspaceId,
    secret_id: SecretId,
    agents: Sequence[PrincipalId],
    by: Actor,
    expected_version: int | None = None,
) -> None:
    """These agents, and no others, may name it in the jobs that they write from here on."""
    async with database.tx(Role.APP, workspace_id) as tx:
        found = await _in_hand(tx, secret_id, expected_version)
        given = await _known(tx, agents)
        await secrets.give(tx, secret_id, given)
        told = [{"name": found.name, "agents": _told(each)} for each in (found.agents, given)]
        await append_audit(tx, "secret.given", ("secret", secret_id), by, before=told[0], after=told[1])


async def delete(
    database: Database,
    workspace_id: WorkspaceId,
    secret_id: SecretId,
    by: Actor,
    expected_version: int | None = None,
    *,
    force: bool = False,
) -> None:
    """Refused while jobs or webhooks name it; by `force` it goes, and these fail until there is one of that name again."""
    async with database.tx(Role.APP, workspace_id) as tx:
        found = await _in_hand(tx, secret_id, expected_version)
        # Under its lock nobody begins to name it.
        named_by = [name for _, name in await secrets.users(tx, found.name, FIRST_ID, NAMED + 1)]
        named_by += await webhooks.rooms_signing_with(tx, found.name, NAMED + 1)
        if named_by and not force:
            raise _in_use(found.name, named_by)
        await secrets.delete(tx, secret_id)
        before = {"name": found.name, "version": found.version}
        await append_audit(tx, "secret.deleted", ("secret", secret_id), by, before=before)


async def get(
    database: Database, workspace_id: WorkspaceId, secret_id: SecretId, agent: PrincipalId | None = None
) -> SecretRow:
    async with database.tx(Role.APP, workspace_id) as tx:
        found = await secrets.get(tx, secret_id, agent)
    if found is None:
        raise not_found("secret")
    return found


async def page(
    database: Database,
    workspace_id: WorkspaceId,
    after: str = "",
    limit: int = 50,
    *,
    name: str | None = None,
    agent: PrincipalId | None = None,
) -> list[SecretRow]:
    """In the order of their names, those behind `after`. An agent sees those that it was given."""
    async with database.tx(Role.APP, workspace_id) as tx:
        return await secrets.page(tx, after, limit, name=name, agent=agent)


async def users(
    database: Database,
    workspace_id: WorkspaceId,
    secret_id: SecretId,
    after: UUID = FIRST_ID,
    limit: int = 50,
    agent: PrincipalId | None = None,
) -> list[tuple[JobId, str]]:
    """The jobs that name it, by id and name, in the order of their ids; for an agent, its own."""
    async with database.tx(Role.APP, workspace_id) as tx:
        found = await secrets.get(tx, secret_id, agent)
        if found is None:
            raise not_found("secret")
        return await secrets.users(tx, found.name, after, limit, agent)


async def _in_hand(tx: Tx, secret_id: SecretId, expected: int | None) -> SecretRow:
    found = await secrets.lock(tx, secret_id)
    if found is None:
        raise not_found("secret")
    if expected not in (None, found.version):
        raise StaleRevision(
            f"This secret is at version {found.version} by now.",
            hint="Read it again, and repeat the change on what you find.",
            revision=found.version,
        )
    return found


async def _check_open(tx: Tx, workspace_id: WorkspaceId) -> None:
    """After the insert, whose foreign key has waited for whoever archives the workspace and destroys its secrets."""
    home = await workspaces.by_id(tx, workspace_id)
    if home is None or home.archived_at is not None:
        raise Conflict("This workspace is archived.", hint="Make a new one.")


async def _check_room(tx: Tx, quotas: Quotas) -> None:
    """After the insert. Those who make secrets of one workspace go one after the other from here on, so that two cannot share the last place."""
    if quotas.secrets is not None:
        await workspaces.lock_room(tx)
        check_secrets(quotas, await secrets.counted(tx))


async def _known(tx: Tx, agents: Sequence[PrincipalId]) -> tuple[PrincipalId, ...]:
    wanted = tuple(dict.fromkeys(agents))
    there = await secrets.agents_among(tx, wanted) if wanted else set()
    for place, each in enumerate(agents):
        if each not in there:
            raise Invalid(
                "There is no such agent.",
                pointer=f"/agents/{place}",
                hint="Members who are no agents may use secrets by their role.",
            )
    return wanted


def _bytes(value: str) -> bytes:
    if "\0" in value:
        raise Invalid("A secret has no NUL characters.", pointer="/value", hint="Keep binary ones as base64.")
    try:
        return value.encode()
    except UnicodeEncodeError:
        # Its own message would quote a piece of the value.
        raise Invalid(
            "This is not text in Unicode.", pointer="/value", hint="Keep binary ones as base64."
        ) from None


def _in_use(name: str, users: list[str]) -> Conflict:
    shown = ", ".join(f'"{each}"' for each in users[:NAMED])
    more = " and others" if len(users) > NAMED else ""
    return Conflict(
        f'The secret "{name}" is used by {shown}{more}.',
        hint="With force=true it is deleted all the same; runs of these jobs and webhooks of these rooms then fail until there is one of that name again.",
    )


def _told(agents: Sequence[PrincipalId]) -> list[str]:
    return [str(each) for each in agents]
