"""Artifacts: a row for each, and its content in parts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from uuid import UUID

from foliot.domain.artifacts import Artifact
from foliot.domain.ids import RunId, WorkerId, WorkspaceId
from foliot.storage.queries import sql
from foliot.storage.tx import Row, Tx

PART = 512 * 1024  # bytes


@dataclass(frozen=True, slots=True)
class NewArtifact:
    """An artifact on its way in, from who holds the run."""

    run_id: RunId
    fence: int
    worker_id: WorkerId
    attempt: int
    name: str
    media_type: str
    data: bytes


@dataclass(frozen=True, slots=True)
class StoredArtifact:
    id: UUID
    artifact: Artifact

    @property
    def parts(self) -> int:
        return -(-self.artifact.size // PART)


@dataclass(frozen=True, slots=True)
class ArtifactOwner:
    workspace_id: WorkspaceId
    quota: int | None  # bytes that the workspace may have, where it has a quota of its own


async def find_lease(tx: Tx, given: NewArtifact) -> ArtifactOwner | None:
    params = {"run_id": given.run_id, "fence": given.fence, "worker_id": given.worker_id}
    row = await tx.fetch_one(sql.artifacts.held, params)
    return None if row is None else ArtifactOwner(row["workspace_id"], row["quota"])


async def count_others(tx: Tx, given: NewArtifact) -> int:
    """How many the run has by other names."""
    row = await tx.fetch_one(sql.artifacts.others, {"run_id": given.run_id, "name": given.name})
    return 0 if row is None else int(row["others"])


async def sum_used_bytes(tx: Tx, workspace_id: WorkspaceId, given: NewArtifact) -> int:
    """Bytes that the workspace has, without what this one takes the place of."""
    params = {"workspace_id": workspace_id, "run_id": given.run_id, "name": given.name}
    row = await tx.fetch_one(sql.artifacts.used, params)
    return 0 if row is None else int(row["used"])


async def store(tx: Tx, workspace_id: WorkspaceId, given: NewArtifact) -> None:
    """In the place of one by the same name."""
    named = {"run_id": given.run_id, "name": given.name}
    await tx.execute(sql.artifacts.forget, named)
    made = {"workspace_id": workspace_id, "id": tx.new_id()}
    row = {
        **made,
        **named,
        "attempt": given.attempt,
        "media_type": given.media_type,
        "size": len(given.data),
        "sha256": hashlib.sha256(given.data).digest(),
        "now": tx.now,
    }
    await tx.execute(sql.artifacts.keep, row)
    for number, start in enumerate(range(0, len(given.data), PART)):
        await tx.execute(
            sql.artifacts.keep_part, {**made, "part": number, "data": given.data[start : start + PART]}
        )


async def list_of_run(tx: Tx, run_id: RunId) -> list[Artifact]:
    """In the order they came."""
    return [_stored(row).artifact for row in await tx.fetch(sql.artifacts.of_run, {"run_id": run_id})]


async def get(tx: Tx, run_id: RunId, name: str) -> StoredArtifact | None:
    row = await tx.fetch_one(sql.artifacts.one, {"run_id": run_id, "name": name})
    return None if row is None else _stored(row)


async def load_part(tx: Tx, artifact_id: UUID, number: int) -> bytes | None:
    """None where it is gone, or another content has taken its place."""
    row = await tx.fetch_one(sql.artifacts.part, {"id": artifact_id, "part": number})
    return None if row is None else bytes(row["data"])


def _stored(row: Row) -> StoredArtifact:
    told = Artifact(
        row["name"], row["media_type"], row["size"], bytes(row["sha256"]), row["attempt"], row["created_at"]
    )
    return StoredArtifact(row["id"], told)
