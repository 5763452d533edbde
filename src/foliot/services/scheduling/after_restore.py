"""Release the jobs of a restored database, which wait until the operator decides about the planned times they missed."""

from __future__ import annotations

import logging

from foliot.domain.errors import Unavailable
from foliot.domain.planning.plan import plan_missed
from foliot.services.evaluation import evaluate_in_thread
from foliot.services.identity import installation
from foliot.services.jobs.context_steps import load_job_context
from foliot.services.scheduling.fire_steps import write_plans
from foliot.services.scheduling.single_job import fire_one_by_one
from foliot.services.scheduling.tick import BATCH
from foliot.storage.installation import MissedChoice
from foliot.storage.timers import fires, timers
from foliot.storage.timers.fires import PlannedTimer
from foliot.storage.tx import Database, Role

log = logging.getLogger(__name__)


async def release(database: Database, choice: MissedChoice) -> None:
    """Release the jobs. `catch_up` leaves missed times to each job's misfire policy; `skip` records them as skipped first."""
    await installation.require_hold(database)
    if choice is MissedChoice.SKIP:
        while await _skip_some(database):
            pass
    await installation.release_hold(database, choice)


async def _skip_some(database: Database) -> int:
    """Skip a batch of missed times; return how many jobs. Fail where a job can neither be skipped nor get a scheduler error."""
    try:
        return await _skip_together(database)
    except Unavailable:
        raise
    except Exception:
        log.exception("skip.failed")
        if helped := await _skip_one_by_one(database):
            return helped
        raise


async def _skip_one_by_one(database: Database) -> int:
    async with database.tx(Role.ENGINE) as tx:
        job_ids = await timers.missed_jobs(tx, BATCH)
    await fire_one_by_one(database, job_ids, plan_missed)
    async with database.tx(Role.ENGINE) as tx:
        return len(set(job_ids).difference(await timers.missed_jobs(tx, BATCH)))


async def _skip_together(database: Database) -> int:
    async with database.tx(Role.ENGINE) as tx:
        rows = await timers.lock_missed(tx, BATCH)
        if rows:
            context = await load_job_context(tx, rows, gates=True)
            planned = await evaluate_in_thread(
                lambda: [PlannedTimer(row, plan_missed(context.due(row), tx.now)) for row in rows],
                is_tick=True,
            )
            await write_plans(tx, context, await fires.without_recorded(tx, planned))
        return len(rows)
