"""What a claimed run asks its worker to do."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from foliot.services.claim import Claimer, claim_and
from foliot.storage import work
from foliot.storage.leases import Claimed
from foliot.storage.tx import Database, Tx


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
    return await claim_and(_load, database, claimer) or Found([], [])


async def _load(tx: Tx, claimed: Sequence[Claimed]) -> Found:
    jobs, inputs = await work.jobs(tx, claimed), await work.inputs(tx, claimed)
    found: list[Work] = []
    for each in claimed:
        if (job := jobs.get(each.job_id)) is not None:
            given = overlaid(job.payload or {}, inputs.get(each.run_id))
            found.append(Work(each, job.name, job.config or {}, given, each.deadline_at - tx.now))
    return Found(found, [each for each in claimed if each.job_id not in jobs])


def overlaid(payload: dict[str, Any], given: Any) -> dict[str, Any]:
    """A run's input: the job's payload, with the top-level keys that this run was given in their place."""
    return payload | given if isinstance(given, dict) else payload
