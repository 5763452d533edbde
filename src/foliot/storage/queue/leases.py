"""Leases: who works on which run, under which fence; and the one statement that settles a batch of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from psycopg.errors import UniqueViolation

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
from foliot.storage.tx import Tx

FIRST = UUID(int=0)  # before every workspace
_TRIGGERS = {trigger.value: trigger for trigger in Trigger}
# How each column of a batch crosses to `sql/leases.sql`.
_HELD_COLUMNS: Mapping[str, Packer] = {"run_ids": uuids, "fences": ints, "worker_ids": uuids}
_HANDED_COLUMNS: Mapping[str, Packer] = {"run_ids": uuids, "fences": ints, "external_ids": texts}
_SUCCEEDED_COLUMNS: Mapping[str, Packer] = {**_HELD_COLUMNS, "outputs": jsons}
_SETTLED_COLUMNS: Mapping[str, Packer] = {
    "run_ids": uuids, "statuses": texts, "skip_reasons": texts, "notes": texts, "attempts": texts, "errors": jsons,
    "retry_ats": instants, "retries": ints, "losses": ints, "expires_ats": instants, "queues": texts, "types": texts,
    "priorities": smallints, "timeouts": durations, "concurrency_keys": texts,
    "targets": texts, "read_onlys": booleans, "outputs": jsons,
}  # fmt: skip


class Claimed(NamedTuple):
    """A run that a worker may now do, until its deadline, under its fence. The columns of `take`, in their order."""

    workspace_id: WorkspaceId
    run_id: RunId
    job_id: JobId
    fence: int
    type: str
    planned_for: datetime
    attempt: int
    deadline_at: datetime
    trigger: Trigger


class LeaseKey(NamedTuple):
    """A lease as its holder knows it."""

    run_id: RunId
    fence: int
    worker_id: WorkerId


class Lease(NamedTuple):
    job_id: JobId
    facts: RunFacts
    workspace_id: WorkspaceId
    concurrency_key: str | None
    is_limited: bool  # some cap is set in its workspace


class SettledAttempt(NamedTuple):
    """The end of an attempt, with the output it reported. `spec` says where another attempt goes; an end needs none."""

    settlement: Settlement
    output: Any = None
    spec: Spec | None = None


class OverlapFoundError(Exception):
    """Two runs of a job that may have one at a time: one has a lease, and the other is ready all the same."""


class ServedWorkspace(NamedTuple):
    """A workspace that has work."""

    workspace_id: WorkspaceId
    is_limited: bool  # some cap is set there, or some type switched off
    is_frozen: bool = (
        False  # by a freeze that has just begun: nothing starts there until the sweeper has been
    )


async def workspaces_with_work(
    tx: Tx, worker_id: WorkerId, queue: str, after: UUID, limit: int
) -> list[ServedWorkspace]:
    params = {"worker_id": worker_id, "queue": queue, "after": after, "limit": limit, "now": tx.now}
    return [ServedWorkspace(*row) for row in await tx.fetch_tuples(sql.ready.workspaces_with_work, params)]


async def bound(tx: Tx, worker_id: WorkerId, workspace_id: WorkspaceId) -> ServedWorkspace | None:
    """The one workspace that this worker serves, if it may take work there now."""
    params = {"worker_id": worker_id, "workspace_id": workspace_id, "now": tx.now}
    rows = await tx.fetch_tuples(sql.ready.bound, params)
    return ServedWorkspace(*rows[0]) if rows else None


async def queues_of_workspace(tx: Tx, workspace_id: WorkspaceId, limit: int) -> list[str]:
    params = {"workspace_id": workspace_id, "limit": limit}
    return [queue for (queue,) in await tx.fetch_tuples(sql.ready.queues_of_workspace, params)]


async def queues_with_work(tx: Tx, after: str, limit: int) -> list[str]:
    params = {"after": after, "limit": limit}
    return [queue for (queue,) in await tx.fetch_tuples(sql.ready.queues_with_work, params)]


async def take(
    tx: Tx,
    worker_id: WorkerId,
    queue: str,
    types: Sequence[str],
    workspaces: Sequence[WorkspaceId],
    share: int,
    most: int | None = None,
) -> list[Claimed]:
    """At most `share` of each workspace, and `most` of all together. Where a job among them has a lease already, none is taken."""
    params = {
        "worker_id": worker_id,
        "queue": queue,
        "types": list(types),
        "workspace_ids": uuids(workspaces),
        "share": share,
        "most": most,
        "now": tx.now,
    }
    try:
        rows = await tx.fetch_tuples(sql.ready.take, params)
    except UniqueViolation as error:
        raise OverlapFoundError from error
    return [claimed_run(*row) for row in rows]


def claimed_run(*columns: Any) -> Claimed:
    return Claimed._make((*columns[:-1], _TRIGGERS[columns[-1]]))


async def of_run(tx: Tx, run_id: RunId) -> LeaseKey | None:
    row = await tx.fetch_one(sql.leases.of_run, {"run_id": run_id})
    return None if row is None else LeaseKey(**row)


async def hand_over(tx: Tx, handed: Sequence[tuple[RunId, int, str]]) -> None:
    """Runs under their fences, and what another engine calls them."""
    await tx.execute(sql.leases.hand_over, packed(_HANDED_COLUMNS, handed))


async def lock(tx: Tx, held: Sequence[LeaseKey]) -> dict[RunId, Lease]:
    """The leases that are still what their holder thinks they are."""
    rows = await tx.fetch_tuples(sql.leases.lock, packed(_HELD_COLUMNS, held))
    return {
        run_id: Lease(job_id, _facts(run_id, job_id, *facts), workspace_id, concurrency_key, is_limited)
        for run_id, job_id, *facts, workspace_id, concurrency_key, is_limited in rows
    }


async def told_already(
    tx: Tx, worker_id: WorkerId, told: Sequence[tuple[RunId, int, str]]
) -> frozenset[RunId]:
    """Those that this worker reported before, under this fence and with this outcome."""
    if not told:
        return frozenset()
    run_ids, fences, statuses = (list(column) for column in zip(*told, strict=True))
    params = {"worker_id": worker_id, "run_ids": run_ids, "fences": fences, "statuses": statuses}
    return frozenset(row["run_id"] for row in await tx.fetch(sql.leases.told_already, params))


async def succeed(
    tx: Tx, done: Mapping[RunId, tuple[RunId, int, WorkerId, Any]], job_ids: Iterable[JobId]
) -> set[RunId]:
    """Settle successes of jobs that are quiet: run, fence, worker and output of each. Answers with those it settled; the timers of all
    `job_ids`, theirs and those of what else was reported, are locked as `timers.lock_with_dependents` does it.
    """
    if not done:
        return set()
    arrays = packed(_SUCCEEDED_COLUMNS, list(done.values()))
    params = {**arrays, "job_ids": uuids(list(job_ids)), "now": tx.now}
    left = await tx.fetch_tuples(sql.leases.succeed, params)
    return set(done).difference(run_id for (run_id,) in left)


async def settle(tx: Tx, settled: Sequence[SettledAttempt]) -> None:
    rows = [(*_settled(each.settlement), *_place(each.spec), each.output) for each in settled]
    await tx.execute(sql.leases.settle, {**packed(_SETTLED_COLUMNS, rows), "now": tx.now})


def _facts(
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
    """From the columns of `lock`, in their order."""
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


def _place(spec: Spec | None) -> tuple[Any, ...]:
    if spec is None:
        return (None,) * 7
    target = spec.target and spec.target.text
    return (
        spec.queue, spec.type, spec.priority, spec.limits.timeout, spec.concurrency_key, target, spec.read_only,
    )  # fmt: skip


def _settled(settlement: Settlement) -> tuple[Any, ...]:
    skip_reason, attempt, error = settlement.skip_reason, settlement.attempt, settlement.error
    return (
        settlement.run_id,
        settlement.status.value,
        None if skip_reason is None else skip_reason.value,
        settlement.note,
        None if attempt is None else attempt.value,
        None if error is None else {"code": error.code, "message": error.message},
        settlement.retry_at,
        settlement.retries_used,
        settlement.losses,
        settlement.expires_at,
    )
