"""Whether a job or a run is there for whoever asks. What is another's is as little there as what nobody has."""

from __future__ import annotations

from foliot.domain.ids import JobId, PrincipalId, RunId
from foliot.services.jobs.lock_steps import not_found
from foliot.storage.runs import explain_queries, ledger
from foliot.storage.runs.ledger import Entry
from foliot.storage.tx import Tx


async def see_job(tx: Tx, job_id: JobId, only_owner: PrincipalId | None = None) -> None:
    if not await explain_queries.is_there(tx, job_id, only_owner):
        raise not_found("job")


async def see_run(tx: Tx, run_id: RunId, only_owner: PrincipalId | None = None) -> Entry:
    found = await ledger.one(tx, run_id)
    if found is None:
        raise not_found("run")
    if only_owner is not None and not await explain_queries.is_there(tx, found.run.job_id, only_owner):
        raise not_found("run")
    return found
