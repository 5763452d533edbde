"""Secrets: sealed values, never plain ones, and the jobs that name them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from foliot.domain.errors import Conflict
from foliot.domain.ids import JobId, PrincipalId, SecretId, WorkspaceId
from foliot.storage.queries import sql
from foliot.storage.tx import Tx

MOST_OTHERS = 1_000  # channels, webhooks and rooms in one answer


@dataclass(frozen=True, slots=True)
class SecretRow:
    """The visible part of a secret."""

    id: SecretId
    name: str
    version: int
    agents: tuple[PrincipalId, ...]  # may name it in their jobs
    key_id: str  # of the master key
    created_at: datetime
    updated_at: datetime
    users: int  # jobs that name it
    others: tuple[str, ...] = ()  # channels, webhooks and rooms that name it: `channel "ops"`


class SealedSecret(NamedTuple):
    """A sealed value."""

    workspace_id: WorkspaceId
    id: SecretId
    version: int
    key_id: str
    sealed_value: bytes


async def insert(
    tx: Tx, secret_id: SecretId, name: str, agents: Sequence[PrincipalId], key_id: str, sealed_value: bytes
) -> None:
    params = {
        "id": secret_id,
        "name": name,
        "agents": list(agents),
        "key_id": key_id,
        "sealed_value": sealed_value,
    }
    if not await tx.execute(sql.secrets.insert, params):
        raise Conflict(
            f'There is a secret named "{name}" already.',
            hint="Put a new value in its place, or choose another name.",
        )


async def count(tx: Tx) -> int:
    return await tx.fetch_value(int, sql.secrets.count)


async def get(tx: Tx, secret_id: SecretId, agent: PrincipalId | None = None) -> SecretRow | None:
    """Load a secret; with `agent`, only if the agent may name it."""
    return await tx.fetch_one_as(SecretRow, sql.secrets.get, {"id": secret_id, "agent": agent})


async def lock(tx: Tx, secret_id: SecretId) -> SecretRow | None:
    """Lock the secret and return it, without counting its users."""
    return await tx.fetch_one_as(SecretRow, sql.secrets.lock, {"id": secret_id})


async def page(
    tx: Tx, after: str, limit: int, *, name: str | None, agent: PrincipalId | None
) -> list[SecretRow]:
    """List secrets in the order of their names."""
    params = {"after": after, "limit": limit, "name": name, "agent": agent}
    return await tx.fetch_as(SecretRow, sql.secrets.page, params)


async def reseal(tx: Tx, secret_id: SecretId, version: int, key_id: str, sealed_value: bytes) -> None:
    params = {"id": secret_id, "version": version, "key_id": key_id, "sealed_value": sealed_value}
    await tx.execute(sql.secrets.reseal, params)


async def set_agents(tx: Tx, secret_id: SecretId, agents: Sequence[PrincipalId]) -> None:
    await tx.execute(sql.secrets.set_agents, {"id": secret_id, "agents": list(agents)})


async def delete(tx: Tx, secret_id: SecretId) -> None:
    await tx.execute(sql.secrets.delete, {"id": secret_id})


async def list_users(
    tx: Tx, name: str, after: UUID, limit: int, visible_owner: PrincipalId | None = None
) -> list[tuple[JobId, str]]:
    """List ids and names of the jobs that name it, in the order of ids, without archived ones."""
    params = {"name": name, "after": after, "limit": limit, "owner_id": visible_owner}
    return await tx.fetch_pairs(JobId, str, sql.secrets.list_users, params)


async def list_other_users(tx: Tx, names: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Return the channels, webhooks and rooms that name these secrets, such as `channel "ops"`, by the secret's name."""
    params = {"names": list(names), "limit": MOST_OTHERS}
    users: dict[str, list[str]] = {}
    for row in await tx.fetch_as(_OtherUser, sql.secrets.list_other_users, params) if names else ():
        users.setdefault(row.secret, []).append(f'{row.kind} "{row.name}"')
    return {name: tuple(named) for name, named in users.items()}


async def lock_names(tx: Tx, names: Collection[str]) -> dict[str, Collection[PrincipalId]]:
    """Keep these secrets from being deleted until the transaction ends, and return the agents of each that exists."""
    params = {"names": list(names)}
    return dict(await tx.fetch_pairs(str, frozenset[PrincipalId], sql.secrets.lock_names, params))


async def list_names(tx: Tx, agent: PrincipalId | None, limit: int) -> list[str]:
    return await tx.fetch_as(str, sql.secrets.list_names, {"agent": agent, "limit": limit})


async def link(tx: Tx, job_id: JobId, names: Collection[str]) -> None:
    """Make these the secrets that a job names."""
    params = {"job_id": job_id, "names": sorted(names)}
    await tx.execute(sql.secrets.unlink, params)
    if names:
        await tx.execute(sql.secrets.link, params)


async def load_sealed(tx: Tx, names: Collection[str]) -> dict[str, SealedSecret]:
    rows = await tx.fetch_as(_NamedSecret, sql.secrets.load_sealed, {"names": list(names)})
    return {row.name: row.secret for row in rows}


async def list_agents(tx: Tx, ids: Collection[PrincipalId]) -> set[PrincipalId]:
    return set(await tx.fetch_as(PrincipalId, sql.secrets.list_agents, {"ids": list(ids)}))


async def count_by_master_key(tx: Tx) -> Mapping[str, int]:
    """Count the installation's secrets by master key. Needs a system transaction, as the functions below."""
    return dict(await tx.fetch_pairs(str, int, sql.secrets.count_by_master_key))


async def lock_sealed_by_others(
    tx: Tx, present: str, known: Collection[str], after: UUID, limit: int
) -> list[SealedSecret]:
    """Lock and list secrets sealed with another one of these keys."""
    params = {"others": [each for each in known if each != present], "after": after, "limit": limit}
    return await tx.fetch_as(SealedSecret, sql.secrets.lock_sealed_by_others, params)


async def reseal_all(tx: Tx, key_id: str, boxes: Mapping[SecretId, bytes]) -> None:
    params = {"key_id": key_id, "ids": list(boxes), "boxes": list(boxes.values())}
    await tx.execute(sql.secrets.reseal_many, params)


async def list_unreadable(tx: Tx, known: Collection[str], limit: int) -> list[tuple[str, str]]:
    """List workspace slug and name of secrets that none of these keys opens."""
    return await tx.fetch_pairs(str, str, sql.secrets.list_unreadable, {"known": list(known), "limit": limit})


async def delete_all(tx: Tx, workspace_id: WorkspaceId) -> int:
    """Delete the secrets of a workspace that is being archived."""
    return await tx.execute(sql.secrets.delete_all, {"workspace_id": workspace_id})


class _OtherUser(NamedTuple):
    secret: str
    kind: str
    name: str


class _NamedSecret(NamedTuple):
    name: str
    secret: SealedSecret
