"""Lock leases and settle attempts: each settling statement ends a whole batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from psycopg.types.json import Jsonb

from foliot.domain.definition import Spec
from foliot.domain.ids import JobId, RunId, WorkerId, WorkspaceId
from foliot.domain.lifecycle import RunStatus
from foliot.domain.run import RunError, RunFacts, Trigger
from foliot.domain.run_end import Settlement
from foliot.storage.arrays import (
    Packer,
    booleans,
    durations,
    instants,
    ints,
    jsons,
    packed,
    smallints,
    texts,
    uuids,
)
from foliot.storage.queries import sql
from foliot.storage.queue.run_queue import UnclaimedRun
from foliot.storage.tx import Tx

_TRIGGERS = {trigger.value: trigger for trigger in Trigger}
# The arrays of `leases.sql`.
_HELD_COLUMNS: Mapping[str, Packer] = {"run_ids": uuids, "fences": ints, "worker_ids": uuids}
_SUCCESS_COLUMNS: Mapping[str, Packer] = {**_HELD_COLUMNS, "outputs": jsons}
_SETTLED_COLUMNS: Mapping[str, Packer] = {
    "run_ids": uuids, "statuses": texts, "skip_reasons": texts, "notes": texts, "attempts": texts, "errors": jsons,
    "retry_ats": instants, "retries": ints, "losses": ints, "expires_ats": instants, "queues": texts, "types": texts,
    "priorities": smallints, "timeouts": durations, "concurrency_keys": texts,
    "targets": texts, "read_onlys": booleans, "outputs": jsons,
}  # fmt: skip


class LeaseKey(NamedTuple):
    """A lease as its worker knows it."""

    run_id: RunId
    fence: int
    worker_id: WorkerId


class Lease(NamedTuple):
    job_id: JobId
    run: RunFacts
    workspace_id: WorkspaceId
    concurrency_key: str | None
    is_limited: bool  # its workspace has a limit


class SettledAttempt(NamedTuple):
    """The end of an attempt with its output. `spec` names the queue of a next attempt; a final end needs none."""

    settlement: Settlement
    output: Any = None
    spec: Spec | None = None


async def find(tx: Tx, run_id: RunId) -> LeaseKey | None:
    row = await tx.fetch_one(sql.leases.find, {"run_id": run_id})
    return None if row is None else LeaseKey(**row)


async def lock(tx: Tx, held: Sequence[LeaseKey]) -> dict[RunId, Lease]:
    """Lock the leases that their workers still hold, and return them."""
    rows = await tx.fetch_tuples(sql.leases.lock, packed(_HELD_COLUMNS, held))
    return {
        run_id: Lease(job_id, _run_facts(run_id, job_id, *facts), workspace_id, concurrency_key, is_limited)
        for run_id, job_id, *facts, workspace_id, concurrency_key, is_limited in rows
    }


async def reported_before(
    tx: Tx, worker_id: WorkerId, reported: Sequence[tuple[RunId, int, str]]
) -> frozenset[RunId]:
    """Return the runs that this worker has reported before, under the same fence and with the same status."""
    if not reported:
        return frozenset()
    run_ids, fences, statuses = (list(column) for column in zip(*reported, strict=True))
    params = {"worker_id": worker_id, "run_ids": run_ids, "fences": fences, "statuses": statuses}
    return frozenset(row["run_id"] for row in await tx.fetch(sql.leases.reported_before, params))


async def settle_successes(
    tx: Tx, successes: Mapping[RunId, tuple[RunId, int, WorkerId, Any]], job_ids: Iterable[JobId]
) -> set[RunId]:
    """Settle the successes on the fast path, each a run, fence, worker and output; return the runs that were settled.

    Locks the timers of all `job_ids`, those of the other reports included, as `timers.lock_with_dependents` does.
    """
    if not successes:
        return set()
    arrays = packed(_SUCCESS_COLUMNS, list(successes.values()))
    left = await tx.fetch_tuples(sql.leases.settle_successes, {**arrays, "job_ids": uuids(list(job_ids))})
    return set(successes).difference(run_id for (run_id,) in left)


async def settle(tx: Tx, settled: Sequence[SettledAttempt]) -> None:
    rows = [(*_end_values(each.settlement), *_queue_values(each.spec), each.output) for each in settled]
    await tx.execute(sql.leases.settle, packed(_SETTLED_COLUMNS, rows))


async def end_unclaimed(tx: Tx, ended: Sequence[tuple[UnclaimedRun, Settlement]]) -> None:
    """Write the ends of runs that no worker had."""
    if not ended:
        return
    await tx.execute(
        sql.leases.end_unclaimed,
        {
            "run_ids": [each.run.id for each, _ in ended],
            "statuses": [settlement.status.value for _, settlement in ended],
            "skip_reasons": [s.skip_reason and s.skip_reason.value for _, s in ended],
            "notes": [settlement.note for _, settlement in ended],
            "errors": [settlement.error and Jsonb(_error_json(settlement.error)) for _, settlement in ended],
            "started_at": [each.run.started_at for each, _ in ended],
            "attempts": [each.run.attempt_count for each, _ in ended],
            "fences": [each.fence for each, _ in ended],
        },
    )


def _run_facts(
    run_id: RunId,
    job_id: JobId,
    trigger: str,
    attempts: int,
    retries: int,
    losses: int,
    started_at: datetime,
    cancel_requested_at: datetime | None,
    last_error: dict[str, str] | None,
) -> RunFacts:
    """Read the columns of `lock`, in their order."""
    return RunFacts(
        id=run_id,
        job_id=job_id,
        trigger=_TRIGGERS[trigger],
        status=RunStatus.RUNNING,
        attempt_count=attempts,
        retries_used=retries,
        losses=losses,
        started_at=started_at,
        cancel_requested=cancel_requested_at is not None,
        last_error=None if last_error is None else RunError(**last_error),
    )


def _queue_values(spec: Spec | None) -> tuple[Any, ...]:
    if spec is None:
        return (None,) * 7
    target = spec.target and spec.target.text
    return (
        spec.queue, spec.type, spec.priority, spec.limits.timeout, spec.concurrency_key, target, spec.read_only,
    )  # fmt: skip


def _end_values(settlement: Settlement) -> tuple[Any, ...]:
    skip_reason, attempt, error = settlement.skip_reason, settlement.attempt, settlement.error
    return (
        settlement.run_id,
        settlement.status.value,
        None if skip_reason is None else skip_reason.value,
        settlement.note,
        None if attempt is None else attempt.value,
        None if error is None else _error_json(error),
        settlement.retry_at,
        settlement.retries_used,
        settlement.losses,
        settlement.expires_at,
    )


def _error_json(error: RunError) -> dict[str, str]:
    found = {"code": error.code, "message": error.message}
    return found if error.traceback is None else found | {"traceback": error.traceback}
