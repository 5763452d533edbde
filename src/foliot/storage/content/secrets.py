"""Secrets as rows: sealed values, never plain ones, and which jobs name them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from foliot.domain.errors import Conflict
from foliot.domain.ids import JobId, PrincipalId, SecretId, WorkspaceId
from foliot.storage.queries import sql
from foliot.storage.tx import Row, Tx


@dataclass(frozen=True, slots=True)
class SecretRow:
    """All that is ever shown of one."""

    id: SecretId
    name: str
    version: int
    agents: tuple[PrincipalId, ...]  # that may name it in their jobs
    key_id: str  # of the master key that sealed it
    created_at: datetime
    updated_at: datetime
    users: int  # jobs that name it


class SealedSecret(NamedTuple):
    """A value under seal."""

    workspace_id: WorkspaceId
    id: SecretId
    version: int
    key_id: str
    sealed_value: bytes


async def insert(
    tx: Tx, secret_id: SecretId, name: str, agents: Sequence[PrincipalId], key_id: str, sealed_value: bytes
) -> None:
    params = {
        "workspace_id": tx.workspace_id,
        "id": secret_id,
        "name": name,
        "agents": list(agents),
        "key_id": key_id,
        "sealed_value": sealed_value,
        "now": tx.now,
    }
    if not await tx.execute(sql.secrets.insert, params):
        raise Conflict(
            f'There is a secret named "{name}" already.',
            hint="Put a new value in its place, or choose another name.",
        )


async def count(tx: Tx) -> int:
    row = await tx.fetch_one(sql.secrets.counted, {"workspace_id": tx.workspace_id})
    return 0 if row is None else row["secrets"]


async def get(tx: Tx, secret_id: SecretId, agent: PrincipalId | None = None) -> SecretRow | None:
    """`agent`: only where it was given to this one."""
    params = {"workspace_id": tx.workspace_id, "id": secret_id, "agent": agent}
    row = await tx.fetch_one(sql.secrets.get, params)
    return None if row is None else _secret(row)


async def lock(tx: Tx, secret_id: SecretId) -> SecretRow | None:
    """Under its lock; who names it is not counted."""
    row = await tx.fetch_one(sql.secrets.lock, {"workspace_id": tx.workspace_id, "id": secret_id})
    return None if row is None else _secret(row)


async def page(
    tx: Tx, after: str, limit: int, *, name: str | None, agent: PrincipalId | None
) -> list[SecretRow]:
    """In the order of their names."""
    params = {"workspace_id": tx.workspace_id, "after": after, "limit": limit, "name": name, "agent": agent}
    return [_secret(row) for row in await tx.fetch(sql.secrets.page, params)]


async def reseal(tx: Tx, secret_id: SecretId, version: int, key_id: str, sealed_value: bytes) -> None:
    params = {
        "workspace_id": tx.workspace_id,
        "id": secret_id,
        "version": version,
        "key_id": key_id,
        "sealed_value": sealed_value,
    }
    await tx.execute(sql.secrets.reseal, {**params, "now": tx.now})


async def set_agents(tx: Tx, secret_id: SecretId, agents: Sequence[PrincipalId]) -> None:
    params = {"workspace_id": tx.workspace_id, "id": secret_id, "agents": list(agents), "now": tx.now}
    await tx.execute(sql.secrets.give, params)


async def delete(tx: Tx, secret_id: SecretId) -> None:
    await tx.execute(sql.secrets.delete, {"workspace_id": tx.workspace_id, "id": secret_id})


async def users(
    tx: Tx, name: str, after: UUID, limit: int, visible_owner: PrincipalId | None = None
) -> list[tuple[JobId, str]]:
    """The jobs that name it, in the order of their ids, each with its own name. Archived ones run no more."""
    params = {
        "workspace_id": tx.workspace_id,
        "name": name,
        "after": after,
        "limit": limit,
        "owner_id": visible_owner,
    }
    return [(row["id"], row["name"]) for row in await tx.fetch(sql.secrets.users, params)]


async def lock_names(tx: Tx, names: Collection[str]) -> dict[str, Collection[PrincipalId]]:
    """Those of these that are there, which nobody deletes until we are done; each with the agents it was given to."""
    params = {"workspace_id": tx.workspace_id, "names": list(names)}
    return {row["name"]: frozenset(row["agents"]) for row in await tx.fetch(sql.secrets.hold, params)}


async def names(tx: Tx, agent: PrincipalId | None, limit: int) -> list[str]:
    params = {"workspace_id": tx.workspace_id, "agent": agent, "limit": limit}
    return [row["name"] for row in await tx.fetch(sql.secrets.names, params)]


async def link(tx: Tx, job_id: JobId, names: Collection[str]) -> None:
    """Make these, and no others, the secrets that a job names."""
    params = {"workspace_id": tx.workspace_id, "job_id": job_id, "names": sorted(names)}
    await tx.execute(sql.secrets.unlink, params)
    if names:
        await tx.execute(sql.secrets.link, params)


async def load_sealed(tx: Tx, names: Collection[str]) -> dict[str, SealedSecret]:
    params = {"workspace_id": tx.workspace_id, "names": list(names)}
    assert tx.workspace_id is not None, "secrets belong to workspaces"
    return {
        row["name"]: SealedSecret(
            tx.workspace_id, row["id"], row["version"], row["key_id"], row["sealed_value"]
        )
        for row in await tx.fetch(sql.secrets.sealed, params)
    }


async def agents_among(tx: Tx, ids: Collection[PrincipalId]) -> set[PrincipalId]:
    params = {"workspace_id": tx.workspace_id, "ids": list(ids)}
    return {row["id"] for row in await tx.fetch(sql.secrets.principals, params)}


async def count_by_master_key(tx: Tx) -> Mapping[str, int]:
    """In a transaction of the system: how many secrets of the installation each master key has sealed."""
    return {row["key_id"]: row["secrets"] for row in await tx.fetch(sql.secrets.by_key)}


async def lock_sealed_by_others(
    tx: Tx, present: str, known: Collection[str], after: UUID, limit: int
) -> list[SealedSecret]:
    """In a transaction of the system: those that another one of these keys has sealed, under their locks."""
    params = {"others": [each for each in known if each != present], "after": after, "limit": limit}
    rows = await tx.fetch(sql.secrets.under_others, params)
    return [SealedSecret(**row) for row in rows]


async def reseal_all(tx: Tx, key_id: str, boxes: Mapping[SecretId, bytes]) -> None:
    params = {"key_id": key_id, "ids": list(boxes), "boxes": list(boxes.values())}
    await tx.execute(sql.secrets.reseal_all, params)


async def unreadable(tx: Tx, known: Collection[str], limit: int) -> list[tuple[str, str]]:
    """In a transaction of the system: (slug of the workspace, name) of those that none of these keys has sealed."""
    rows = await tx.fetch(sql.secrets.unreadable, {"known": list(known), "limit": limit})
    return [(row["slug"], row["name"]) for row in rows]


async def delete_all(tx: Tx, workspace_id: WorkspaceId) -> int:
    """In a transaction of the system, as it puts the workspace away."""
    return await tx.execute(sql.secrets.destroy, {"workspace_id": workspace_id})


def _secret(row: Row) -> SecretRow:
    return SecretRow(**{**row, "agents": tuple(row["agents"])})
