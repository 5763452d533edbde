"""Steps on runs within a transaction: lock a run with its job, request a run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foliot.domain.access import Scope
from foliot.domain.errors import Conflict, NotFound, not_found, require_found
from foliot.domain.freeze import freeze_at
from foliot.domain.ids import JobId, RunId
from foliot.domain.run import Trigger
from foliot.services.identity.audit_steps import append_audit
from foliot.services.jobs.lock_steps import LockedJob, lock_job, require_not_archived, require_type_on
from foliot.services.runs.new_run_steps import RunRequest, create_runs
from foliot.storage.runs import run_records
from foliot.storage.runs.run_records import StoredRun
from foliot.storage.tx import Tx


async def request_run(
    tx: Tx,
    job_id: JobId,
    scope: Scope,
    *,
    input: Mapping[str, Any] | None = None,  # noqa: A002  # the word of the API
    override: bool = False,
    trigger: Trigger = Trigger.MANUAL,
) -> RunId:
    locked = await lock_job(tx, job_id, scope)
    check_may_run(tx, locked, override=override)
    # Each attempt lays it over the payload of its own revision.
    asked = RunRequest(
        trigger, tx.now, scope.actor.name, None if input is None else dict(input), override=override
    )
    [run_id] = await create_runs(tx, locked, [asked])
    await append_audit(
        tx, "run.requested", ("run", run_id), scope.actor, after={"job": str(job_id), "override": override}
    )
    return run_id


async def lock_run(
    tx: Tx, run_id: RunId, scope: Scope, *, dependents: bool = False
) -> tuple[LockedJob, StoredRun]:
    """Lock the run's job, then read the run again: it may have changed before the lock."""
    known = await run_records.find(tx, run_id)
    if known is None or known.workspace_id != tx.workspace_id:
        raise not_found("run")
    try:
        locked = await lock_job(tx, known.job_id, scope, dependents=dependents)
    except NotFound:
        raise not_found("run") from None
    run = require_found(await run_records.find(tx, run_id), "run")
    return locked, run


def check_may_run(tx: Tx, locked: LockedJob, *, override: bool) -> None:
    require_not_archived(locked.row, "run")
    require_type_on(locked)
    freeze = freeze_at(locked.context.freezes_of(locked.row), tx.now)
    if freeze is not None and not override:
        until = "until it is lifted" if freeze.end_at is None else f"until {freeze.end_at.isoformat()}"
        why = f" ({freeze.reason})" if freeze.reason else ""
        raise Conflict(
            f"Freeze {freeze.id}{why} holds this job {until}.",
            hint="Run it with override to start it anyway.",
        )
