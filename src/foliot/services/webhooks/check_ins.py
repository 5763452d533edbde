"""Check-ins: a program elsewhere reports the start and the end of its work, and its silence is a failure of the run that was planned.

The schedule of a job of type `check_in` makes runs as for every job. No worker claims them: a check-in does, under the lease of a worker
that is always there, so that timeouts, ends, incidents and history are those of every run.

Why: docs/decisions/913-webhooks.md
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from foliot.domain.ids import JobId, RunId, WorkspaceId
from foliot.domain.lifecycle import JobStatus
from foliot.domain.outcomes import Failed, Outcome, Succeeded
from foliot.domain.run import RunError, Trigger
from foliot.domain.webhooks import (
    CHECK_INS,
    NO_CHECK_IN,
    START_WITHIN,
    CheckInState,
    IncomingWebhook,
    is_early_for,
)
from foliot.services.jobs.lock_steps import LockedJob, lock_job
from foliot.services.runs.new_run_steps import RunRequest, create_runs
from foliot.services.settlement.dependent_steps import finish_settlement
from foliot.services.settlement.settle_steps import lock_for_settlement
from foliot.storage.queue import leases, run_queue
from foliot.storage.queue.leases import LeaseKey
from foliot.storage.timers import timers
from foliot.storage.tx import Database, Role, Tx
from foliot.storage.webhooks import incoming_webhooks

log = logging.getLogger(__name__)

BATCH = 200
LONGEST_MESSAGE = 2_000
_RUNNING = (JobStatus.ACTIVE, JobStatus.PENDING)
UNREPORTED = Failed(RunError(NO_CHECK_IN, "No check-in came in time."), permanent=True)


@dataclass(frozen=True, slots=True)
class CheckIn:
    """The result of a check-in. Without a run it was not recorded, and `sentence` says why."""

    run_id: RunId | None
    sentence: str


async def check_in(
    database: Database,
    workspace_id: WorkspaceId,
    webhook: IncomingWebhook,
    state: CheckInState,
    message: str = "",
) -> CheckIn:
    """Start or end the run that the check-in means: the one under way, the one that waits, or a new one."""
    job_id = webhook.definition.job_id
    async with database.tx(Role.APP, workspace_id) as tx:
        await incoming_webhooks.record_call(tx, webhook.id)
        locked = await lock_job(tx, job_id, dependents=True)
        if locked.row.status not in _RUNNING:
            return CheckIn(None, f"The job is {locked.row.status.value}; nothing was recorded.")
        held = await incoming_webhooks.find_lease(tx, job_id)
        if held is None:
            locked, held = await _start(tx, locked, webhook)
            if held is None:
                return CheckIn(None, "Another run of the job waits; nothing was recorded.")
        elif state is CheckInState.START:
            return CheckIn(held.run_id, "The run is under way already.")
        if state is CheckInState.START:
            return CheckIn(held.run_id, "The run has started.")
        await _end(tx, locked, held, state, message)
        return CheckIn(held.run_id, f"The run {_SAID[state]}.")


_SAID = {CheckInState.SUCCESS: "succeeded", CheckInState.FAIL: "failed"}


async def end_unreported(database: Database, limit: int = BATCH) -> int:
    """Fail the runs whose check-in has not come in time; return how many."""
    async with database.tx(Role.ENGINE) as tx:
        found = await incoming_webhooks.list_unreported(tx, START_WITHIN, limit)
        if not found:
            return 0
        writer = await lock_for_settlement(tx, (job_id for _, job_id in found))
        due = await incoming_webhooks.lock_unreported(tx, [run_id for run_id, _ in found], START_WITHIN)
        keys = [
            LeaseKey(each.run_id, each.fence, CHECK_INS)
            for each in await run_queue.claim_locked(tx, CHECK_INS, due)
        ]
        for lease in (await leases.lock(tx, keys)).values():
            writer.end_leased(lease, UNREPORTED, None)
        await finish_settlement(writer)
        return len(keys)


async def _start(tx: Tx, locked: LockedJob, webhook: IncomingWebhook) -> tuple[LockedJob, LeaseKey | None]:
    """Lease the oldest run that waits; without one, a new run. One that comes shortly before a planned time stands for it."""
    job_id = locked.row.job_id
    run_id = await incoming_webhooks.find_open_run(tx, locked.row)
    if run_id is None:
        timer = locked.row.timer
        if is_early_for(timer.next_at, timer.cursor, tx.now) and locked.row.skip_next is None:
            await timers.set_skip_next(tx, job_id, f"The check-in came at {tx.now:%H:%M:%S} UTC, before it.")
        asked = RunRequest(Trigger.WEBHOOK, tx.now, f"webhook {webhook.definition.name}", override=True)
        [run_id] = await create_runs(tx, locked, [asked])
        locked = await lock_job(tx, JobId(job_id), dependents=True)  # its counts have changed
    claimed = await run_queue.claim_locked(tx, CHECK_INS, [run_id])
    return locked, LeaseKey(run_id, claimed[0].fence, CHECK_INS) if claimed else None


async def _end(tx: Tx, locked: LockedJob, held: LeaseKey, state: CheckInState, message: str) -> None:
    said = message.strip()[:LONGEST_MESSAGE]
    outcome: Outcome = Succeeded()
    if state is CheckInState.FAIL:
        outcome = Failed(
            RunError("reported_failure", said or "The check-in reported a failure."), permanent=True
        )
    writer = locked.writer(tx)
    for lease in (await leases.lock(tx, [held])).values():
        writer.end_leased(lease, outcome, {"message": said} if said else None)
    await finish_settlement(writer)
