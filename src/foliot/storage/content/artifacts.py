"""Artifacts: one row each, and their content in parts."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from uuid import UUID

from foliot.domain.artifacts import Artifact
from foliot.domain.ids import RunId, WorkerId, WorkspaceId
from foliot.storage.queries import sql
from foliot.storage.tx import Tx

PART = 512 * 1024  # bytes


@dataclass(frozen=True, slots=True)
class NewArtifact:
    """An artifact from the worker that has the run's lease."""

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
    attempt: int  # as the lease counts it, whatever the worker says
    quota: int | None  # bytes, if the workspace has a quota of its own


async def find_lease(tx: Tx, given: NewArtifact) -> ArtifactOwner | None:
    params = {"run_id": given.run_id, "fence": given.fence, "worker_id": given.worker_id}
    return await tx.fetch_one_as(ArtifactOwner, sql.artifacts.lock_lease, params)


async def count_others(tx: Tx, given: NewArtifact) -> int:
    """Count the run's artifacts with other names."""
    return await tx.fetch_value(int, sql.artifacts.count_others, {"run_id": given.run_id, "name": given.name})


async def sum_used_bytes(tx: Tx, workspace_id: WorkspaceId, given: NewArtifact) -> int:
    """Sum the bytes of the workspace's artifacts, without the one that this one replaces."""
    params = {"workspace_id": workspace_id, "run_id": given.run_id, "name": given.name}
    return await tx.fetch_value(int, sql.artifacts.sum_used_bytes, params)


async def store(tx: Tx, workspace_id: WorkspaceId, given: NewArtifact) -> None:
    """Store the artifact in place of one with the same name."""
    named = {"run_id": given.run_id, "name": given.name}
    await tx.execute(sql.artifacts.delete, named)
    made = {"workspace_id": workspace_id, "id": tx.new_id()}
    row = {
        **made,
        **named,
        "attempt": given.attempt,
        "media_type": given.media_type,
        "size": len(given.data),
        "sha256": hashlib.sha256(given.data).digest(),
    }
    await tx.execute(sql.artifacts.insert, row)
    for number, start in enumerate(range(0, len(given.data), PART)):
        await tx.execute(
            sql.artifacts.insert_part, {**made, "part": number, "data": given.data[start : start + PART]}
        )


async def list_of_run(tx: Tx, run_id: RunId) -> list[Artifact]:
    """List the run's artifacts in the order of creation."""
    return await tx.fetch_as(Artifact, sql.artifacts.list_of_run, {"run_id": run_id})


async def get(tx: Tx, run_id: RunId, name: str) -> StoredArtifact | None:
    return await tx.fetch_one_as(StoredArtifact, sql.artifacts.get, {"run_id": run_id, "name": name})


async def load_part(tx: Tx, artifact_id: UUID, number: int) -> bytes | None:
    """Load a part of the content; None if it was deleted or replaced."""
    return await tx.fetch_one_as(bytes, sql.artifacts.load_part, {"id": artifact_id, "part": number})
