"""Runs that are ready and that no live worker could take: they would wait for ever, so they say so."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from foliot.domain.ids import WorkspaceId
from foliot.domain.target import Target
from foliot.storage import unserved as rows
from foliot.storage.tx import Database, Role

PATIENCE = timedelta(minutes=1)
MOST = 100


@dataclass(frozen=True, slots=True)
class Unserved:
    queue: str
    type: str
    runs: int
    since: datetime  # when the oldest could have started
    target: Target | None = None

    @property
    def sentence(self) -> str:
        if self.target is not None:
            return f'No host is online that does type "{self.type}" for {self.target.words}.'
        return f'No live worker serves type "{self.type}" on queue "{self.queue}".'


async def unserved(
    database: Database, workspace_id: WorkspaceId, patience: timedelta = PATIENCE
) -> list[Unserved]:
    """By queue and type, the longest waiting first."""
    async with database.tx(Role.APP, workspace_id) as tx:
        found = await rows.groups(tx, tx.now - patience, MOST)
    return [Unserved(*group) for group in found]
