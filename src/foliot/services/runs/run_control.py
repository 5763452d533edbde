"""Manual actions on runs: run now, cancel, retry, skip the next planned times.

Why: docs/decisions/207-manual-runs-cancel-and-skip.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from foliot.domain.access import Scope
from foliot.domain.errors import Conflict, Invalid
from foliot.domain.ids import JobId, RunId
from foliot.domain.lifecycle import JobStatus, RunEvent, RunStatus, advance
from foliot.domain.outcomes import Cancelled
from foliot.domain.quotas import check_size
from foliot.domain.run import Trigger
from foliot.domain.schedule import PlannedTime, preview
from foliot.services.evaluation import evaluate
from foliot.services.identity.audit_steps import append_audit
from foliot.services.jobs.lock_steps import LockedJob, lock_job
from foliot.services.runs.new_run_steps import RunRequest, create_runs
from foliot.services.runs.run_steps import check_may_run, lock_run, request_run
from foliot.services.settlement.dependent_steps import finish_settlement
from foliot.storage.queue import leases, run_queue
from foliot.storage.runs import run_records
from foliot.storage.timers import timers
from foliot.storage.tx import Database, Role

MOST_SKIPPED = 1_000
MOST_LOOKS = 3


class CancelResult(StrEnum):
    ENDED = "ended"  # no worker has it
    REQUESTED = "requested"  # its worker receives the request to stop


@dataclass(frozen=True, slots=True)
class SkippedTimes:
    """The planned times to skip, and the reason; `following` is the first that runs."""

    planned_at: datetime
    reason: str
    times: tuple[PlannedTime, ...] = ()
    following: PlannedTime | None = None


async def run_now(
    database: Database,
    scope: Scope,
    job_id: JobId,
    *,
    input: Mapping[str, Any] | None = None,  # noqa: A002  # the word of the API
    override: bool = False,
) -> RunId:
    """Run the job now; its status and next time stay. `input` overlays the payload."""
    check_size(scope.actor.quotas, "input", input)
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        return await request_run(tx, job_id, scope, input=input, override=override)


async def retry_run(
    database: Database,
    scope: Scope,
    run_id: RunId,
    *,
    input: Mapping[str, Any] | None = None,  # noqa: A002  # the word of the API
    override: bool = False,
) -> RunId:
    """Run a finished run again as a new run: same planned time and input, overlaid by `input`."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        locked, run = await lock_run(tx, run_id, scope)
        if run.status is None:
            raise Conflict("This run has not ended yet.", hint="Cancel it first, or wait for its end.")
        if run.planned_until is not None:
            raise Conflict(
                "This record stands for several planned times that did not run.",
                hint="Backfill their range, skipped times included.",
            )
        check_may_run(tx, locked, override=override)
        given = run.input
        if input is not None:
            given = {**(run.input or {}), **input}
        asked = RunRequest(
            Trigger.RETRY,
            run.planned_for,
            scope.actor.name,
            given,
            run_id,
            run.planned_local,
            run.fold,
            run.schedule_rev,
            override,
        )
        [new_id] = await create_runs(tx, locked, [asked])
        after = {"retry_of": str(run_id), "override": override, "input": input is not None}
        await append_audit(tx, "run.retried", ("run", new_id), scope.actor, after=after)
        return new_id


async def cancel_run(
    database: Database, scope: Scope, run_id: RunId, *, reason: str | None = None, force: bool = False
) -> CancelResult:
    """Cancel a run. An unclaimed run ends at once; the worker of a running one receives the request to stop, or with `force` loses it."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        locked, run = await lock_run(tx, run_id, scope, dependents=True)
        writer, outcome, held = locked.writer(tx), Cancelled(reason or ""), None
        for _ in range(MOST_LOOKS):  # a claim or a limit may move the run between two looks
            ended = await writer.end_unclaimed([run_id], outcome)
            held = None if ended else await leases.find(tx, run_id)
            if ended or held is not None or run.status is not None:
                break
        if ended:
            answer = CancelResult.ENDED
        elif held is None:
            advance(run.status or RunStatus.RUNNING, RunEvent.CANCEL)
            raise Conflict("This run is in no queue and has no end; the sweeper will repair it.")
        elif force:
            writer.end_leased((await leases.lock(tx, [held]))[run_id], outcome, None)
            answer = CancelResult.ENDED
        else:
            await run_queue.request_cancel(tx, [run_id])
            await run_records.set_note(tx, run_id, reason)
            answer = CancelResult.REQUESTED
        await finish_settlement(writer)
        after = {"cancelling": answer.value, "reason": reason, "force": force}
        await append_audit(tx, "run.cancelled", ("run", run_id), scope.actor, after=after)
        return answer


async def skip_next(
    database: Database, scope: Scope, job_id: JobId, *, reason: str, n: int = 1, until: datetime | None = None
) -> SkippedTimes:
    """Record the next `n` planned times, or those up to `until`, as skipped (operator) instead of running them."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        locked = await lock_job(tx, job_id, scope)
        row = locked.row
        if row.timer.next_at is None or row.status not in (JobStatus.ACTIVE, JobStatus.PENDING):
            raise Conflict(
                "Nothing is planned for this job.", hint="Only the next planned time can be skipped."
            )
        times, following = await evaluate(locked.job.timetable, lambda: _to_pass(locked, n, until))
        last = times[-1].planned_for if len(times) > 1 else None
        await timers.set_skip_next(tx, job_id, reason, last)
        after = {
            "reason": reason,
            "planned_at": row.timer.next_at.isoformat(),
            "count": len(times),
            "until": last and last.isoformat(),
        }
        await append_audit(
            tx,
            "job.skip_next_set",
            ("job", job_id),
            scope.actor,
            before={"reason": row.skip_next},
            after=after,
        )
        return SkippedTimes(row.timer.next_at, reason, times, following)


async def undo_skip_next(database: Database, scope: Scope, job_id: JobId) -> None:
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        row = (await lock_job(tx, job_id, scope)).row
        if row.skip_next is None:
            raise Conflict(
                "No planned time of this job is marked to be skipped.", hint="It may have passed already."
            )
        await timers.set_skip_next(tx, job_id, None)
        await append_audit(
            tx, "job.skip_next_undone", ("job", job_id), scope.actor, before={"reason": row.skip_next}
        )


def _to_pass(
    locked: LockedJob, n: int, until: datetime | None
) -> tuple[tuple[PlannedTime, ...], PlannedTime | None]:
    """Return the planned times to skip and the one after them."""
    job, after = locked.job, locked.row.timer.cursor
    if job.is_chained and (n > 1 or until is not None):
        raise Conflict(
            "After a fixed delay only the next time is known.", hint="Skip one, or pause the job until then."
        )
    times = preview(job.timetable, after, (n if until is None else MOST_SKIPPED) + 1)
    if until is not None:
        n = sum(each.planned_for <= until for each in times)
    if n == 0:
        raise Invalid("Nothing is planned until then.", pointer="/until")
    if n > MOST_SKIPPED:
        raise Invalid(
            f"More than {MOST_SKIPPED:,} planned times lie before that.",
            pointer="/until",
            hint="Pause the job until then.",
        )
    return times[:n], times[n] if len(times) > n else None
