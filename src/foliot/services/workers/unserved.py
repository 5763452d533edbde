"""Runs that are ready and that no live worker could take: they would wait for ever, so they say so."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from foliot.domain.ids import WorkspaceId
from foliot.domain.target import Target
from foliot.storage.tx import Database, Role
from foliot.storage.workers import overview as rows

PATIENCE = timedelta(minutes=1)
MOST = 100
OFF_BY_DEFAULT = "command"
BRIDGED = {  # what a worker needs to hand runs over
    "celery": "FOLIOT_CELERY_BROKER_URL and FOLIOT_CELERY_RESULT_URL",
    "rq": "FOLIOT_BRIDGE_REDIS_URL",
    "bullmq": "FOLIOT_BRIDGE_REDIS_URL",
}


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
        return nobody_serves(self.queue, self.type)


async def unserved(
    database: Database, workspace_id: WorkspaceId, patience: timedelta = PATIENCE
) -> list[Unserved]:
    """By queue and type, the longest waiting first."""
    async with database.tx(Role.APP, workspace_id) as tx:
        found = await rows.list_unserved(tx, tx.now - patience, MOST)
    return [Unserved(*group) for group in found]


def nobody_serves(queue: str, kind: str) -> str:
    return f'No live worker serves type "{kind}" on queue "{queue}".'


def remedy(queue: str, kind: str) -> str:
    if kind == OFF_BY_DEFAULT:
        return f"Commands are off unless a worker allows them: start one that serves queue {queue} with FOLIOT_ALLOW_COMMANDS=yes."
    if kind in BRIDGED:
        return (
            f"Start a worker that serves queue {queue} with {BRIDGED[kind]} set and foliot[{kind}] installed."
        )
    return f"Start a worker that serves queue {queue} and has a handler for {kind}."
