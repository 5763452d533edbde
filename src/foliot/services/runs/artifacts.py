"""What runs leave behind: kept while they run, by who holds them; read by people; gone with the run."""

from __future__ import annotations

from collections.abc import AsyncIterator

from foliot.domain.access import Scope
from foliot.domain.artifacts import MOST_BYTES, Artifact, check_artifact, check_count, check_room
from foliot.domain.errors import LeaseLost, NotFound
from foliot.domain.ids import RunId, WorkspaceId
from foliot.services.jobs.visibility_steps import require_visible_run
from foliot.storage.content import artifacts
from foliot.storage.content.artifacts import Given, Stored
from foliot.storage.tx import Database, Role

__all__ = ["Given", "Stored", "content", "find", "keep", "of_run"]


async def keep(
    database: Database, given: Given, *, most_bytes: int = MOST_BYTES, room: int | None = None
) -> None:
    """`room` is what a workspace may have in all, where it has no quota of its own. Refused to who no longer holds the run."""
    check_artifact(given.name, given.media_type, len(given.data), most_bytes)
    async with database.tx(Role.ENGINE) as tx:
        holder = await artifacts.held(tx, given)
        if holder is None:
            raise LeaseLost("This run is another worker's by now, or over: nothing can be added to it.")
        check_count(await artifacts.others(tx, given))
        most = room if holder.quota is None else holder.quota
        if most is not None:
            check_room(await artifacts.used(tx, holder.workspace_id, given), len(given.data), most)
        await artifacts.keep(tx, holder.workspace_id, given)


async def of_run(database: Database, scope: Scope, run_id: RunId) -> list[Artifact]:
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        await require_visible_run(tx, run_id, scope)
        return await artifacts.of_run(tx, run_id)


async def find(
    database: Database,
    scope: Scope,
    run_id: RunId,
    name: str,
) -> Stored:
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        await require_visible_run(tx, run_id, scope)
        found = await artifacts.one(tx, run_id, name)
    if found is None:
        raise NotFound("This run has no artifact of that name.")
    return found


async def content(
    database: Database, workspace_id: WorkspaceId, stored: Stored, first: int = 0
) -> AsyncIterator[bytes]:
    """Part by part, each in a transaction of its own: a slow reader holds none open."""
    for number in range(first, stored.parts):
        async with database.tx(Role.APP, workspace_id) as tx:
            piece = await artifacts.part(tx, stored.id, number)
        if piece is None:
            raise NotFound("This artifact was removed while it was being read.")
        yield piece
