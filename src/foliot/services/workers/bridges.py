"""Handing over: what a bridge to another queue engine tells and asks while it holds the lease of a run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from foliot.domain.ids import RunId, WorkspaceId
from foliot.storage.identity import workspaces
from foliot.storage.queue import run_queue
from foliot.storage.tx import Database, Role


class HandedOver(NamedTuple):
    """A run under its fence, and what the engine calls it."""

    run_id: RunId
    fence: int
    external_id: str


async def handed_over(database: Database, handed: Sequence[HandedOver]) -> None:
    """For people to see. What a crash of the server takes of it, the bridge's own notes still have."""
    async with database.tx(Role.ENGINE, relaxed=True) as tx:
        await run_queue.set_external_ids(tx, handed)


async def slugs(database: Database, workspace_ids: Collection[WorkspaceId]) -> dict[WorkspaceId, str]:
    """What queues are named after. A workspace keeps its slug for life."""
    async with database.tx(Role.ENGINE) as tx:
        return await workspaces.load_slugs(tx, workspace_ids)
