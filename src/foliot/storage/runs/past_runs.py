"""Runs and state of another scheduler, recorded with the jobs that were imported from it."""

from __future__ import annotations

from collections.abc import Mapping

from psycopg.types.json import Jsonb

from foliot.domain.ids import JobId, RunId
from foliot.domain.past_run import PastRun, PastState
from foliot.storage.queries import sql
from foliot.storage.timers.timers import TimerRow
from foliot.storage.tx import Tx


async def insert(tx: Tx, row: TimerRow, runs: Mapping[RunId, PastRun], triggered_by: str) -> frozenset[RunId]:
    """Record the runs of a job; return those that are new. Needs the lock of its timer."""
    found = list(runs.values())
    rows = await tx.fetch_tuples(
        sql.past_runs.insert,
        {
            "workspace_id": row.workspace_id,
            "job_id": row.job_id,
            "number": row.number,
            "schedule_rev": row.schedule_rev,
            "triggered_by": triggered_by,
            "id": list(runs),
            "started_at": [each.started_at for each in found],
            "finished_at": [each.finished_at for each in found],
            "status": [each.status.value for each in found],
            "note": [each.note for each in found],
            "output": [None if each.output is None else Jsonb(dict(each.output)) for each in found],
            "error": [
                None
                if each.error is None
                else Jsonb({"code": each.error.code, "message": each.error.message})
                for each in found
            ],
        },
    )
    new = frozenset(RunId(run_id) for (run_id,) in rows)
    await tx.execute(sql.past_runs.count_numbers, {"job_id": row.job_id, "count": len(new)})
    return new


async def set_last_run(tx: Tx, job_id: JobId, run_id: RunId, run: PastRun) -> None:
    """Make it the last run of the job, unless a later one is known."""
    error = run.error and run.error.message
    params = {
        "job_id": job_id,
        "run_id": run_id,
        "at": run.started_at,
        "status": run.status.value,
        "error": error,
    }
    await tx.execute(sql.past_runs.set_last_run, params)


async def copy_state(tx: Tx, job_id: JobId, state: PastState) -> None:
    await tx.execute(
        sql.past_runs.copy_state,
        {
            "job_id": job_id,
            "last_run_at": state.last_run_at,
            "last_run_status": state.last_run_status and state.last_run_status.value,
            "last_error": state.last_error,
            "failures_in_a_row": state.failures_in_a_row,
            "schedule_errors": state.schedule_errors,
        },
    )
