"""Record what another scheduler did with an imported job: its ended runs and its last state. Nothing of it is executed."""

from __future__ import annotations

from collections.abc import Sequence

from foliot.domain.access import Scope
from foliot.domain.ids import JobId, RunId
from foliot.domain.lifecycle import RunStatus
from foliot.domain.past_run import PastRun, PastState
from foliot.services.identity.audit_steps import append_audit
from foliot.services.jobs.lock_steps import lock_job
from foliot.storage.runs import past_runs
from foliot.storage.tx import Database, Role


async def record_runs(
    database: Database, scope: Scope, job_id: JobId, runs: Sequence[PastRun], source: str
) -> frozenset[RunId]:
    """Record ended runs of this job; return those that were not known. The counters and figures of the job stay."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        locked = await lock_job(tx, job_id, scope)
        known = {run.id_for(job_id): run for run in runs}
        new = await past_runs.insert(tx, locked.row, known, scope.actor.name)
        if new:
            ran = [
                (run.started_at, run_id)
                for run_id, run in known.items()
                if run.status is not RunStatus.SKIPPED
            ]
            if ran:
                _, newest = max(ran)
                await past_runs.set_last_run(tx, job_id, newest, known[newest])
            after = {"source": source, "runs": len(new)}
            await append_audit(tx, "job.history_imported", ("job", job_id), scope.actor, after=after)
        return new


async def copy_state(database: Database, scope: Scope, job_id: JobId, state: PastState) -> None:
    """Copy the last run and the failures in a row, as long as the job has not run here."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        await lock_job(tx, job_id, scope)
        await past_runs.copy_state(tx, job_id, state)
