"""What there is to do in a claimed run: its job's configuration and payload, and the input it was given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from foliot.domain.ids import JobId, RunId
from foliot.domain.run import Trigger
from foliot.storage.arrays import uuids
from foliot.storage.queries import sql
from foliot.storage.queue.leases import Claimed
from foliot.storage.tx import Tx


class JobRow(NamedTuple):
    name: str
    config: dict[str, Any] | None
    payload: dict[str, Any] | None


async def jobs(tx: Tx, claimed: Sequence[Claimed]) -> dict[JobId, JobRow]:
    rows = await tx.fetch_tuples(sql.work.jobs, {"job_ids": uuids([each.job_id for each in claimed])})
    return {job_id: JobRow(name, config, payload) for job_id, name, config, payload in rows}


async def inputs(tx: Tx, claimed: Sequence[Claimed]) -> dict[RunId, Any]:
    """What the runs were given. Those of a schedule are given nothing, so that most claims need not ask."""
    given = [each.run_id for each in claimed if each.trigger is not Trigger.SCHEDULE]
    if not given:
        return {}
    return dict(await tx.fetch_tuples(sql.work.inputs, {"run_ids": uuids(given)}))
