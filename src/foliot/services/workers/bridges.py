"""Bridges to other queue engines: store external ids, and look up slugs and priorities."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from foliot.domain.ids import RunId, WorkspaceId
from foliot.storage.identity import workspaces
from foliot.storage.queue import run_queue
from foliot.storage.tx import Database, Role


class HandedOver(NamedTuple):
    """A run with its fence, and its id in the other engine."""

    run_id: RunId
    fence: int
    external_id: str


async def handed_over(database: Database, handed: Sequence[HandedOver]) -> None:
    """Store external ids for display. After a crash of the server the bridge still has its own record."""
    async with database.tx(Role.ENGINE, relaxed=True) as tx:
        await run_queue.set_external_ids(tx, handed)


async def slugs(database: Database, workspace_ids: Collection[WorkspaceId]) -> dict[WorkspaceId, str]:
    """Return slugs, which name queues. The slug of a workspace never changes."""
    async with database.tx(Role.ENGINE) as tx:
        return await workspaces.load_slugs(tx, workspace_ids)


async def priorities(database: Database, run_ids: Collection[RunId]) -> dict[RunId, int]:
    """Return the priorities of leased runs; smaller goes first."""
    async with database.tx(Role.ENGINE) as tx:
        return await run_queue.load_priorities(tx, run_ids)
