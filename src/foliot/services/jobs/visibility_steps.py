"""Whether a job or a run is there for whoever asks. What is another's is as little there as what nobody has."""

from __future__ import annotations

from foliot.domain.access import Scope
from foliot.domain.ids import JobId, RunId
from foliot.services.jobs.lock_steps import not_found
from foliot.storage.runs import explain_queries, run_history
from foliot.storage.runs.run_history import RunWithRevision
from foliot.storage.tx import Tx


async def see_job(tx: Tx, job_id: JobId, scope: Scope) -> None:
    if not await explain_queries.job_exists(tx, job_id, scope.visible_owner):
        raise not_found("job")


async def see_run(tx: Tx, run_id: RunId, scope: Scope) -> RunWithRevision:
    found = await run_history.load_run(tx, run_id)
    if found is None:
        raise not_found("run")
    if scope.visible_owner is not None and not await explain_queries.job_exists(
        tx, found.run.job_id, scope.visible_owner
    ):
        raise not_found("run")
    return found
