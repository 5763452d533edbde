"""Artifacts: files that a run stores while it holds its lease, and that are deleted with the run.

Why: docs/decisions/306-outputs-lines-and-artifacts.md
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

from foliot.domain.access import Scope
from foliot.domain.artifacts import MOST_BYTES, Artifact, check_artifact, check_artifact_storage, check_count
from foliot.domain.errors import LeaseLost, NotFound
from foliot.domain.ids import RunId, WorkspaceId
from foliot.services.jobs.visibility_steps import require_visible_run
from foliot.storage.content import artifacts
from foliot.storage.content.artifacts import NewArtifact, StoredArtifact
from foliot.storage.tx import Database, Role

__all__ = ["NewArtifact", "StoredArtifact"]


async def keep(
    database: Database, given: NewArtifact, *, most_bytes: int = MOST_BYTES, default_quota: int | None = None
) -> None:
    """Store an artifact. `default_quota` applies to a workspace without a storage quota of its own.

    Raise LeaseLost when the worker no longer holds the run.
    """
    check_artifact(given.name, given.media_type, len(given.data), most_bytes)
    async with database.tx(Role.ENGINE) as tx:
        holder = await artifacts.find_lease(tx, given)
        if holder is None:
            raise LeaseLost(
                "This run belongs to another worker now, or has ended: nothing can be added to it."
            )
        check_count(await artifacts.count_others(tx, given))
        most = default_quota if holder.quota is None else holder.quota
        if most is not None:
            check_artifact_storage(
                await artifacts.sum_used_bytes(tx, holder.workspace_id, given), len(given.data), most
            )
        await artifacts.store(tx, holder.workspace_id, replace(given, attempt=holder.attempt))


async def of_run(database: Database, scope: Scope, run_id: RunId) -> list[Artifact]:
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        await require_visible_run(tx, run_id, scope)
        return await artifacts.list_of_run(tx, run_id)


async def find(database: Database, scope: Scope, run_id: RunId, name: str) -> StoredArtifact:
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        await require_visible_run(tx, run_id, scope)
        found = await artifacts.get(tx, run_id, name)
    if found is None:
        raise NotFound("This run has no artifact of that name.")
    return found


async def content(
    database: Database, workspace_id: WorkspaceId, stored: StoredArtifact, first: int = 0
) -> AsyncIterator[bytes]:
    """Yield the parts, each read in its own transaction: a slow reader keeps none open."""
    for number in range(first, stored.parts):
        async with database.tx(Role.APP, workspace_id) as tx:
            piece = await artifacts.load_part(tx, stored.id, number)
        if piece is None:
            raise NotFound("This artifact was removed while it was being read.")
        yield piece
