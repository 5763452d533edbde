"""What a claimed run asks its worker to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, NamedTuple

from foliot.domain.run import effective_input
from foliot.services.claim import Claimer, claim_and, queues_in_turn
from foliot.storage import work
from foliot.storage.leases import Claimed
from foliot.storage.tx import Database, Tx
from foliot.storage.workers import ANY_QUEUE

__all__ = ["Claimed", "Found", "Work", "claim_work"]


class Work(NamedTuple):
    """`left` is what the attempt may still take, by the database's clock at the moment of loading."""

    claimed: Claimed
    job: str
    config: dict[str, Any]
    input: dict[str, Any]
    left: timedelta


class Found(NamedTuple):
    """The work, and the claims whose job has been removed meanwhile."""

    work: list[Work]
    orphans: list[Claimed]


async def claim_work(database: Database, claimer: Claimer) -> Found:
    """Runs to be done, with what is to be done in them."""
    if claimer.queue != ANY_QUEUE:
        return await claim_and(_load, database, claimer) or Found([], [])
    found = Found([], [])
    for queue in await queues_in_turn(database, claimer.turns, claimer.workspace_id):
        left = claimer.permits - len(found.work) - len(found.orphans)
        if left > 0:
            more = await claim_work(database, replace(claimer, queue=queue, permits=left))
            found = Found(found.work + more.work, found.orphans + more.orphans)
            claimer.turns.queue = queue
    return found


async def _load(tx: Tx, claimed: Sequence[Claimed]) -> Found:
    jobs, inputs = await work.jobs(tx, claimed), await work.inputs(tx, claimed)
    found: list[Work] = []
    for each in claimed:
        if (job := jobs.get(each.job_id)) is not None:
            given = effective_input(job.payload or {}, inputs.get(each.run_id))
            found.append(Work(each, job.name, job.config or {}, given, each.deadline_at - tx.now))
    return Found(found, [each for each in claimed if each.job_id not in jobs])
