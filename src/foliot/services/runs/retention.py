"""Delete run records beyond each job's retention, in rounds over all jobs.

Statistics stay: a record goes only after the daily sums include it. The janitor decides when to call this.

Why: docs/decisions/500-daily-figures-and-pruning.md
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from foliot.storage import scans
from foliot.storage.runs import retention
from foliot.storage.scans import START, Scan
from foliot.storage.tx import Database, Role

log = logging.getLogger(__name__)

JOBS = 2_000  # jobs in one step
MOST = 2_000  # runs deleted in one step


@dataclass(frozen=True, slots=True)
class Pruned:
    """`is_complete`: the round has passed the last job."""

    runs: int = 0
    attempts: int = 0
    is_complete: bool = True

    @property
    def is_more(self) -> bool:
        """Continue at once. A round that finds nothing may wait."""
        return self.runs > 0 and not self.is_complete


async def prune(database: Database, jobs: int = JOBS, most: int = MOST) -> Pruned:
    """Prune one batch in one transaction. It touches only ended runs and waits for no lock, so firing never waits for it."""
    async with database.tx(Role.ENGINE) as tx:
        reached = await scans.lock_position(tx, Scan.PRUNE)
        if reached is None:
            return Pruned()
        found = await retention.next_jobs(tx, reached.position, jobs)
        rich = [job for job in found if job.may_have_too_much]
        runs, attempts = await retention.prune(tx, rich, most) if rich else (0, 0)
        is_complete = len(found) < jobs
        if runs < most:  # otherwise the same jobs have more to delete
            await scans.store_position(tx, Scan.PRUNE, START if is_complete else found[-1].job_id)
    if runs:
        log.info("runs.pruned", extra={"runs": runs, "attempts": attempts})
    return Pruned(runs, attempts, is_complete=is_complete and runs < most)
