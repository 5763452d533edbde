"""Prune: a walk over all jobs, a few hundred at a time, that takes away what lies beyond each job's retention.

Its statistics stay: a record goes only when `daily` has counted it. The walk goes round for ever; how often is the janitor's affair.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from foliot.storage import pruning, sweeps
from foliot.storage.sweeps import START, Walk
from foliot.storage.tx import Database, Role

log = logging.getLogger(__name__)

JOBS = 500  # looked at in one step
MOST = 2_000  # runs deleted in one step


@dataclass(frozen=True, slots=True)
class Pruned:
    """`is_round` is True when the walk has come past the last job."""

    runs: int = 0
    attempts: int = 0
    is_round: bool = True


async def prune(database: Database, jobs: int = JOBS, most: int = MOST) -> Pruned:
    """One bounded step, in one transaction. It touches only ended runs and waits for no lock, so firing never waits for it."""
    async with database.tx(Role.ENGINE) as tx:
        sweep = await sweeps.take(tx, Walk.PRUNE)
        if sweep is None:
            return Pruned()
        found = await pruning.next_jobs(tx, sweep.position, jobs)
        rich = [job for job in found if job.may_have_too_much]
        runs, attempts = await pruning.prune(tx, rich, most) if rich else (0, 0)
        is_round = len(found) < jobs
        if runs < most:  # else the same jobs have more to lose: look at them again
            await sweeps.leave(tx, Walk.PRUNE, START if is_round else found[-1].job_id)
    if runs:
        log.info("runs.pruned", extra={"runs": runs, "attempts": attempts})
    return Pruned(runs, attempts, is_round=is_round and runs < most)
