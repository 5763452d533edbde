"""Fire due jobs one by one, each in its own transaction, where a batch of them failed: one bad job must not stop the others.

Why: docs/decisions/210-scheduler-errors.md
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import datetime

from foliot.domain.errors import Unavailable
from foliot.domain.ids import JobId
from foliot.domain.lifecycle import JobEvent, may
from foliot.domain.planning.due_job import DueJob
from foliot.domain.planning.plan import plan_error
from foliot.domain.run_plan import Plan
from foliot.services.evaluation import evaluate
from foliot.services.jobs.context_steps import JobContext, load_job_context
from foliot.services.scheduling.fire_steps import write_plan
from foliot.storage.errors import is_misfit
from foliot.storage.timers import fire_quotas, timers
from foliot.storage.timers.fires import PlannedTimer
from foliot.storage.tx import Database, Role

log = logging.getLogger(__name__)
PlanFunction = Callable[[DueJob, datetime], Plan]


async def fire_one_by_one(database: Database, job_ids: Iterable[JobId], decide: PlanFunction) -> int:
    """Fire each job and record a scheduler error for each that fails; return how many records were made.

    An error that is not the job's fault is raised once all jobs have been tried.
    """
    recorded, misfit = 0, None
    for job_id in job_ids:
        try:
            recorded += await fire_job(database, job_id, decide)
        except Unavailable:
            raise
        except Exception as error:
            if is_misfit(error):
                misfit = error
                continue
            log.exception("job.not_fired", extra={"job": str(job_id)})
            recorded += await _try_record_error(database, job_id, error)
    if misfit is not None:
        raise misfit
    return recorded


async def fire_job(database: Database, job_id: JobId, decide: PlanFunction) -> int:
    async with database.tx(Role.ENGINE) as tx:
        rows = await timers.lock_with_dependents(tx, [job_id])
        row = rows.get(job_id)
        if row is None or row.timer.due_at is None or row.timer.due_at > tx.now:
            return 0  # another node has fired it
        quotas = await fire_quotas.lock(tx, [row.workspace_id], [job_id])
        context = await load_job_context(tx, rows.values(), gates=True, quotas=quotas)
        due = context.due(row)
        plan = await evaluate(due.job.timetable, lambda: decide(due, tx.now), is_tick=True)
        planned = PlannedTimer(row, plan)
        return await write_plan(tx, context, planned, dependents=rows)


async def _try_record_error(database: Database, job_id: JobId, error: Exception) -> int:
    try:
        return await record_scheduler_error(database, job_id, error)
    except Unavailable:
        raise
    except Exception:
        log.exception("job.error_not_recorded", extra={"job": str(job_id)})
        return 0


async def record_scheduler_error(database: Database, job_id: JobId, error: Exception | None = None) -> int:
    """Record the planned time as scheduler_error without reading the rules, and set the timer to try again later."""
    async with database.tx(Role.ENGINE) as tx:
        row = await timers.lock_unread(tx, job_id)
        if row is None:
            return 0  # another node has fired it
        if not may(row.status, JobEvent.FAIL):  # a job that has ended should not be due
            await timers.clear_due(tx, job_id)
            return 0
        plan = plan_error(row.timer, tx.now, row.errors, error)
        return await write_plan(tx, JobContext(), PlannedTimer(row, plan, row.errors + 1))
