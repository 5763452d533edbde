"""Runs that are ready and that no live worker could take: they would wait for ever, so they say so."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import get_close_matches

from foliot.domain.explain.hosts import how_to_do
from foliot.domain.ids import WorkspaceId
from foliot.domain.target import Target
from foliot.storage.jobs import job_types
from foliot.storage.runs import explain_queries
from foliot.storage.tx import Database, Role
from foliot.storage.workers import hosts
from foliot.storage.workers import overview as rows

PATIENCE = timedelta(minutes=1)
MOST = 100
OFF_BY_DEFAULT = "command"
EVERY_WORKER_HAS = frozenset({"http", "python"})
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


async def hindrance(
    database: Database, workspace_id: WorkspaceId, queue: str, kind: str, target: Target | None = None
) -> str | None:
    """Why runs of this type would wait in this queue, or for that host, as things stand, for who has just written a job.

    Of types that every worker has, and of a host that is away, only explain speaks: where no worker is up, /readyz says so already.
    """
    if kind in EVERY_WORKER_HAS and target is None:
        return None
    async with database.tx(Role.APP, workspace_id) as tx:
        workers, off = await explain_queries.list_alive_workers(tx), await job_types.list_disabled(tx)
        host = None if target is None else await hosts.resolve(tx, workspace_id, target)
    if kind in off:
        return f'Jobs of type "{kind}" are switched off in this workspace: nothing of them starts.'
    if target is not None:
        there = [] if host is None else [each for each in workers if each.host_id == host.id]
        if host is None or not there or any(each.does(host.id, kind) for each in there):
            return None
        return f'Host {host.name} does no jobs of type "{kind}". {how_to_do(kind)}'
    if any(worker.serves(queue, kind) for worker in workers):
        return None
    known = {OFF_BY_DEFAULT, *BRIDGED}.union(*(worker.types for worker in workers))
    meant = [] if kind in known else get_close_matches(kind, sorted(known), n=1, cutoff=0.7)
    do = f'Did you mean "{meant[0]}"?' if meant else remedy(queue, kind)
    return f"{nobody_serves(queue, kind)} {do}"


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
