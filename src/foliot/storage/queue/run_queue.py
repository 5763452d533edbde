"""Claim runs and write the queue: `ready`, `waiting` and `leases`. Only firing (`timers.fires`) and settling (`queue.leases`) write them elsewhere.

A run that has not ended stands in exactly one of the three tables. Functions that take a timer row need its lock.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, assert_never
from uuid import UUID

from psycopg.errors import UniqueViolation
from psycopg.types.json import Jsonb

from foliot.domain.admission import Admission, Skip, Start, Wait
from foliot.domain.definition import Rules, Spec
from foliot.domain.ids import HostId, JobId, RunId, WorkerId, WorkspaceId
from foliot.domain.lifecycle import RunStatus
from foliot.domain.policy import LONGEST_WAIT
from foliot.domain.run import Progress, RunError, RunFacts, Trigger, WaitsFor
from foliot.domain.schedule import SkipReason
from foliot.storage.arrays import Packer, ints, packed, texts, uuids
from foliot.storage.queries import sql
from foliot.storage.queue.limits import LimitName, Permit, name_columns
from foliot.storage.queue.unclaimed_runs import WaitingRun
from foliot.storage.timers.timers import TimerRow, queue_address
from foliot.storage.tx import Tx

_ATTEMPTS = 2  # between two of them a claim may make a run wait for a limit, or a limit release one
_TRIGGERS = {trigger.value: trigger for trigger in Trigger}
_REVISION_COLUMNS: Mapping[str, Packer] = {"run_ids": uuids, "revisions": ints}
_EXTERNAL_ID_COLUMNS: Mapping[str, Packer] = {"run_ids": uuids, "fences": ints, "external_ids": texts}


@dataclass(frozen=True, slots=True)
class UnscheduledRun:
    """A run to insert that no schedule planned."""

    id: RunId
    workspace_id: WorkspaceId
    job_id: JobId
    number: int
    schedule_rev: int
    rules: Rules
    trigger: Trigger
    planned_for: datetime
    available_at: datetime
    waits_for: WaitsFor | None = None
    expires_at: datetime | None = None
    input: Any = None
    triggered_by: str | None = None
    upstream_run_id: RunId | None = None
    retry_of: RunId | None = None
    note: str | None = None
    skip: SkipReason | None = None  # recorded only
    planned_local: datetime | None = None  # the wall-clock time, where a schedule would have named one
    fold: int = 0

    def admitted(self, answer: Admission) -> UnscheduledRun:
        """Return the same run with the decision about its start."""
        match answer:
            case Skip(reason=reason):
                return replace(self, skip=reason)
            case Start(not_before=at, expires_at=until):
                return replace(self, available_at=at or self.available_at, expires_at=until)
            case Wait(waits_for=waits_for, not_before=at, expires_at=until):
                at = at or self.available_at
                return replace(self, waits_for=waits_for, available_at=at, expires_at=until)
            case _ as never:
                assert_never(never)


@dataclass(frozen=True, slots=True)
class UnclaimedRun:
    """A run that was removed from `ready` or `waiting`, to be ended."""

    run: RunFacts
    fence: int


class Claimed(NamedTuple):
    """A run that a worker may execute until its deadline, under its fence. The columns of `claim`, in their order."""

    workspace_id: WorkspaceId
    run_id: RunId
    job_id: JobId
    fence: int
    type: str
    planned_for: datetime
    attempt: int
    deadline_at: datetime
    trigger: Trigger
    revision: int | None = None  # of its job; a remote worker does not know it


class ClaimOrder(NamedTuple):
    """At most `share` runs of each workspace, and `most` of all together. No attempt may take longer than `longest`."""

    worker_id: WorkerId
    queue: str
    types: Sequence[str]
    share: int
    most: int | None = None
    longest: timedelta = LONGEST_WAIT


class ServedWorkspace(NamedTuple):
    """A workspace that has work."""

    workspace_id: WorkspaceId
    is_limited: bool  # it has a limit or a disabled type
    is_frozen: bool = False  # a freeze has just begun: nothing starts until the sweeper has held its runs


class ClaimedJob(NamedTuple):
    name: str
    config: dict[str, Any] | None
    payload: dict[str, Any] | None
    workspace: str  # its slug
    revision: int


class ClaimedRun(NamedTuple):
    """The record of a claimed run: its number, and, where no schedule planned it, its own input and who or what asked for it."""

    number: int
    input: Any
    triggered_by: str | None
    upstream: dict[str, Any] | None  # the run whose end triggered it: job_id, run_id, status, output


class LoadedRun(NamedTuple):
    """A claimed run with its job, which is None where it was removed in the meantime, its record and the time until its deadline."""

    claimed: Claimed
    job: ClaimedJob | None
    run: ClaimedRun | None
    time_left: timedelta


class OverlapFoundError(Exception):
    """Two runs of a job that may have one at a time: one has a lease, and the other is ready all the same."""


async def insert_runs(tx: Tx, runs: Sequence[UnscheduledRun]) -> frozenset[RunId]:
    """Insert the runs; return those that are new. An upstream run that has started the dependent before starts it no more."""
    if not runs:
        return frozenset()
    specs = [run.rules.spec for run in runs]
    rows = await tx.fetch(
        sql.run_queue.insert_runs,
        {
            "workspace_id": [run.workspace_id for run in runs],
            "id": [run.id for run in runs],
            "job_id": [run.job_id for run in runs],
            "number": [run.number for run in runs],
            "trigger": [run.trigger.value for run in runs],
            "planned_for": [run.planned_for for run in runs],
            "planned_key": [
                run.planned_local or run.planned_for.astimezone(UTC).replace(tzinfo=None) for run in runs
            ],
            "fold": [run.fold for run in runs],
            "schedule_rev": [run.schedule_rev for run in runs],
            "input": [None if run.input is None else Jsonb(run.input) for run in runs],
            "triggered_by": [run.triggered_by for run in runs],
            "upstream_run_id": [run.upstream_run_id for run in runs],
            "retry_of": [run.retry_of for run in runs],
            "note": [run.note for run in runs],
            "skip_reason": [run.skip and run.skip.value for run in runs],
            "waits_for": [run.waits_for and run.waits_for.value for run in runs],
            "queue": [spec.queue for spec in specs],
            "type": [spec.type for spec in specs],
            "priority": [spec.priority for spec in specs],
            "available_at": [run.available_at for run in runs],
            "exclusive": [run.rules.is_exclusive for run in runs],
            "concurrency_key": [spec.concurrency_key for spec in specs],
            "timeout": [spec.limits.timeout for spec in specs],
            "expires_at": [run.expires_at for run in runs],
            "target": [spec.target and spec.target.text for spec in specs],
            "read_only": [spec.read_only for spec in specs],
        },
    )
    return frozenset(row["id"] for row in rows)


async def workspaces_with_work(
    tx: Tx, worker_id: WorkerId, queue: str, after: UUID, limit: int
) -> list[ServedWorkspace]:
    params = {"worker_id": worker_id, "queue": queue, "after": after, "limit": limit}
    return [
        ServedWorkspace(*row) for row in await tx.fetch_tuples(sql.run_queue.workspaces_with_work, params)
    ]


async def bound(tx: Tx, worker_id: WorkerId, workspace_id: WorkspaceId) -> ServedWorkspace | None:
    """Return the workspace of a worker that serves one alone, unless it may not claim there now."""
    rows = await tx.fetch_tuples(sql.run_queue.bound, {"worker_id": worker_id, "workspace_id": workspace_id})
    return ServedWorkspace(*rows[0]) if rows else None


async def queues_of_workspace(tx: Tx, workspace_id: WorkspaceId, limit: int) -> list[str]:
    params = {"workspace_id": workspace_id, "limit": limit}
    return [queue for (queue,) in await tx.fetch_tuples(sql.run_queue.queues_of_workspace, params)]


async def queues_with_work(tx: Tx, after: str, limit: int) -> list[str]:
    params = {"after": after, "limit": limit}
    return [queue for (queue,) in await tx.fetch_tuples(sql.run_queue.queues_with_work, params)]


async def lock_ready(
    tx: Tx, order: ClaimOrder, workspaces: Sequence[WorkspaceId], elsewhere: Collection[str] = ()
) -> dict[RunId, Permit]:
    """Lock ready runs and return them with the permits they need, in the order in which they should start.

    Runs of http jobs that call one of the receivers in `elsewhere` are left.
    """
    params: dict[str, Any] = {
        "queue": order.queue,
        "types": list(order.types),
        "workspace_ids": list(workspaces),
        "share": order.share,
        "most": order.most,
    }
    if elsewhere:
        rows = await tx.fetch(sql.run_queue.lock_ready_elsewhere, {**params, "receivers": list(elsewhere)})
    else:
        rows = await tx.fetch(sql.run_queue.lock_ready, params)
    return {row["run_id"]: Permit(row["workspace_id"], row["concurrency_key"], row["is_off"]) for row in rows}


async def load_claimed(tx: Tx, claimed: Sequence[Claimed]) -> list[LoadedRun]:
    """Load the jobs and the records of claimed runs."""
    params = {"job_ids": uuids([each.job_id for each in claimed])}
    rows = await tx.fetch_tuples(sql.run_queue.jobs_of_runs, params)
    jobs = {row[0]: ClaimedJob(*row[1:]) for row in rows}
    edited = [
        (each.run_id, job.revision)
        for each in claimed
        if (job := jobs.get(each.job_id)) is not None and job.revision != each.revision
    ]
    if edited:
        await tx.execute(sql.run_queue.correct_revisions, packed(_REVISION_COLUMNS, edited))
    found = await tx.fetch_tuples(
        sql.run_queue.records_of_runs, {"run_ids": uuids([each.run_id for each in claimed])}
    )
    runs = {row[0]: ClaimedRun(*row[1:]) for row in found}
    return [
        LoadedRun(each, jobs.get(each.job_id), runs.get(each.run_id), each.deadline_at - tx.now)
        for each in claimed
    ]


async def claim(tx: Tx, order: ClaimOrder, workspaces: Sequence[WorkspaceId]) -> list[Claimed]:
    """Lease ready runs to a worker. Where a job among them has a lease already, none is leased."""
    params = {**order._asdict(), "types": list(order.types), "workspace_ids": uuids(workspaces)}
    try:
        rows = await tx.fetch_tuples(sql.run_queue.claim, params)
    except UniqueViolation as error:
        raise OverlapFoundError from error
    return [Claimed._make((*row[:-2], _TRIGGERS[row[-2]], row[-1])) for row in rows]


async def claim_locked(
    tx: Tx,
    worker_id: WorkerId,
    run_ids: Sequence[RunId],
    host_id: HostId | None = None,
    longest: timedelta = LONGEST_WAIT,
) -> list[Claimed]:
    """Lease runs that the caller has locked, for a host where one is named."""
    if not run_ids:
        return []
    params = {"worker_id": worker_id, "run_ids": list(run_ids), "host_id": host_id, "longest": longest}
    rows = await tx.fetch_tuples(sql.run_queue.claim_locked, params)
    return [Claimed._make((*row[:-2], _TRIGGERS[row[-2]], row[-1])) for row in rows]


async def promote(tx: Tx, runs: Sequence[WaitingRun]) -> None:
    """Move waiting runs to `ready`, startable from their `available_at` on."""
    if not runs:
        return
    await tx.execute(
        sql.run_queue.promote,
        {
            "run_ids": [run.run_id for run in runs],
            "available_at": [run.available_at for run in runs],
            "expires_at": [run.expires_at for run in runs],
        },
    )


async def promote_freed(tx: Tx, most: Mapping[LimitName, int]) -> int:
    """Move runs that wait under each limit to `ready`: the most urgent and oldest, at most so many, and no more than it has permits."""
    if not most:
        return 0
    return await tx.execute(sql.run_queue.promote_freed, {**name_columns(most), "most": list(most.values())})


async def promote_uncapped(tx: Tx, limit: int) -> int:
    return await tx.execute(sql.run_queue.promote_uncapped, {"limit": limit})


async def set_wait(tx: Tx, run_ids: Sequence[RunId], waits_for: WaitsFor) -> None:
    if run_ids:
        await tx.execute(sql.run_queue.set_wait, {"run_ids": list(run_ids), "waits_for": waits_for.value})


async def set_wait_until(tx: Tx, run_id: RunId, waits_for: WaitsFor, expires_at: datetime | None) -> None:
    params = {"run_id": run_id, "waits_for": waits_for.value, "until": expires_at}
    await tx.execute(sql.run_queue.set_wait_until, params)


async def wait_for_opening(tx: Tx, run_id: RunId, opens_at: datetime, expires_at: datetime | None) -> None:
    """Make a waiting run wait for its window or calendar."""
    await tx.execute(sql.run_queue.wait_for_opening, {"run_id": run_id, "at": opens_at, "until": expires_at})


async def hold_ready(tx: Tx, run_ids: Sequence[RunId], waits_for: WaitsFor) -> int:
    """Move runs from `ready` to `waiting`; return how many. A worker has claimed the others in the meantime."""
    if not run_ids:
        return 0
    params = {"run_ids": list(run_ids), "waits_for": waits_for.value}
    return await tx.execute(sql.run_queue.hold_ready, params)


async def queue_scheduled(tx: Tx, row: TimerRow) -> int:
    """Make the unclaimed scheduled runs of a stopped job wait for their turn again; return how many."""
    if not row.live:
        return 0
    params = {**queue_address(row), "deadline": row.rules.spec.limits.start_deadline}
    return sum([len(await tx.fetch(sql.run_queue.queue_scheduled, params)) for _ in range(_ATTEMPTS)])


async def requeue(tx: Tx, run_ids: Sequence[RunId]) -> None:
    """Make next attempts of stopped jobs wait for their turn, ahead of all others."""
    if run_ids:
        await tx.execute(sql.run_queue.requeue, {"run_ids": list(run_ids)})


async def redirect(tx: Tx, row: TimerRow, spec: Spec) -> None:
    """Apply an edited spec to the unclaimed runs of a job; `row` is its timer before the edit."""
    if row.load.is_idle:
        return
    changes = {
        "new_queue": spec.queue,
        "type": spec.type,
        "priority": spec.priority,
        "timeout": spec.limits.timeout,
        "concurrency_key": spec.concurrency_key,
        "new_target": spec.target and spec.target.text,
        "read_only": spec.read_only,
    }
    for _ in range(_ATTEMPTS):
        await tx.execute(sql.run_queue.redirect, {**queue_address(row), **changes})


async def take_unclaimed(tx: Tx, run_ids: Sequence[RunId]) -> list[UnclaimedRun]:
    """Remove runs that no worker has from the queue and return them. Needs the locks of their timers."""
    if not run_ids:
        return []
    rows = await tx.fetch(sql.run_queue.take_unclaimed, {"run_ids": list(run_ids)})
    return [
        UnclaimedRun(
            RunFacts(
                id=row["run_id"],
                job_id=row["job_id"],
                trigger=Trigger(row["trigger"]),
                status=RunStatus.READY if row["waits_for"] is None else RunStatus.WAITING,
                is_live=row["waits_for"] != WaitsFor.TURN,
                attempt_count=row["attempts"],
                retries_used=row["retries"],
                losses=row["losses"],
                started_at=row["started_at"],
                last_error=None if row["last_error"] is None else RunError(**row["last_error"]),
            ),
            row["fence"],
        )
        for row in rows
    ]


async def discard(tx: Tx, run_ids: Collection[RunId]) -> list[RunId]:
    """Remove queue rows of runs that have ended; return those runs."""
    rows = await tx.fetch(sql.run_queue.discard, {"run_ids": list(run_ids)})
    return [row["run_id"] for row in rows]


async def purge_job(tx: Tx, job_id: JobId, spec: Spec) -> None:
    params = {"queue": spec.queue, "target": spec.target and spec.target.text}
    await tx.execute(sql.run_queue.purge_job, {"job_id": job_id, **params})


async def request_cancel(tx: Tx, run_ids: Sequence[RunId]) -> frozenset[RunId]:
    """Ask the workers that have these runs to cancel them; return the runs that a worker has."""
    if not run_ids:
        return frozenset()
    rows = await tx.fetch(sql.run_queue.request_cancel, {"run_ids": list(run_ids)})
    return frozenset(row["run_id"] for row in rows)


async def load_priorities(tx: Tx, run_ids: Collection[RunId]) -> dict[RunId, int]:
    return dict(await tx.fetch_tuples(sql.run_queue.load_priorities, {"run_ids": list(run_ids)}))


async def set_external_ids(tx: Tx, named: Sequence[tuple[RunId, int, str]]) -> None:
    """Store how another engine names the runs, each under its fence."""
    await tx.execute(sql.run_queue.set_external_ids, packed(_EXTERNAL_ID_COLUMNS, named))


async def set_progress(tx: Tx, progress: Mapping[tuple[RunId, int], Progress]) -> None:
    """Store the progress of running attempts, by run and fence."""
    await tx.execute(
        sql.run_queue.set_progress,
        {
            "run_ids": [run_id for run_id, _ in progress],
            "fences": [fence for _, fence in progress],
            "progresses": [
                Jsonb([each.done, each.total, each.note, each.at.isoformat()]) for each in progress.values()
            ],
        },
    )
