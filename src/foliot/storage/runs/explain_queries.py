"""Queries of explanations beside the run history: the job, freezes, queue positions, limits and workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from foliot.domain.definition import Definition
from foliot.domain.explain.records import RunningRun
from foliot.domain.ids import FreezeId, HostId, JobId, PrincipalId, RunId, WorkerId, WorkspaceId
from foliot.domain.lifecycle import JobStatus
from foliot.domain.run import WaitsFor
from foliot.storage.filter_sql import filled
from foliot.storage.jobs.freezes import ScopedFreeze, freeze_columns
from foliot.storage.queries import sql
from foliot.storage.tx import Tx
from foliot.storage.workers.workers import ANY_QUEUE

MOST_COUNTED = 10_000  # positions in a queue; a larger number is of no use
LONGEST_LIVE = timedelta(days=30)  # no run is looked for further back
MOST_NAMED = 20  # workers in one sentence


@dataclass(frozen=True, slots=True)
class ExplainedJob:
    """The job that an explanation is about."""

    id: JobId
    workspace_id: WorkspaceId
    definition: Definition
    status: JobStatus
    status_reason: str | None
    status_by: str | None
    status_at: datetime
    paused_until: datetime | None
    revision: int
    schedule_rev: int
    created_at: datetime
    updated_at: datetime
    runs_created: int
    skip_next: bool
    skip_until: datetime | None
    next_at: datetime | None
    live_number: int | None


@dataclass(frozen=True, slots=True)
class ReadyPosition:
    queue: str
    type: str
    target: str | None
    read_only: bool
    available_at: datetime
    ahead: int
    line: int


@dataclass(frozen=True, slots=True)
class WaitingPosition:
    waits_for: WaitsFor
    available_at: datetime
    expires_at: datetime | None
    concurrency_key: str | None
    ahead: int | None
    line: int | None


@dataclass(frozen=True, slots=True)
class LimitUsage:
    key: str
    cap: int
    in_use: int


@dataclass(frozen=True, slots=True)
class AliveWorker:
    id: WorkerId
    name: str
    queues: tuple[str, ...]
    types: tuple[str, ...]
    is_draining: bool
    host_id: HostId | None
    capacity: int  # permits and reserve; the reserve is at most as large as the permits
    running_count: int  # of all workspaces, at its last heartbeat
    held: int  # places that the transaction's workspace holds

    @property
    def taken(self) -> int:
        return max(self.running_count, self.held)

    @property
    def is_full(self) -> bool:
        """Whether it takes no further run of the workspace: the last places are kept for those that hold few (worker/places.py)."""
        left = self.capacity - self.taken
        return left <= 0 or (2 * self.taken >= self.capacity and 2 * self.held >= left)

    def does(self, host_id: HostId, kind: str) -> bool:
        """Return whether it runs jobs of this type for the host."""
        return not self.is_draining and self.host_id == host_id and kind in self.types

    def serves(self, queue: str, kind: str) -> bool:
        return (
            not self.is_draining and kind in self.types and (queue in self.queues or ANY_QUEUE in self.queues)
        )


async def load_job(tx: Tx, job_id: JobId) -> ExplainedJob | None:
    return await tx.fetch_one_as(ExplainedJob, sql.explain_queries.load_job, {"job_id": job_id})


async def job_exists(tx: Tx, job_id: JobId, owner_id: PrincipalId | None = None) -> bool:
    """Return whether the transaction's workspace has this job; with `owner_id`, of this owner."""
    params = {"job_id": job_id, "owner_id": owner_id}
    return await tx.fetch_value(bool, sql.explain_queries.job_exists, params)


async def load_names(tx: Tx, job_ids: Sequence[JobId]) -> dict[JobId, str]:
    if not job_ids:
        return {}
    return dict(await tx.fetch_pairs(JobId, str, sql.explain_queries.load_names, {"job_ids": list(job_ids)}))


async def list_freezes(tx: Tx, workspace_id: WorkspaceId, since: datetime) -> list[ScopedFreeze]:
    statement = filled(sql.explain_queries.list_freezes, columns=freeze_columns())
    return await tx.fetch_as(ScopedFreeze, statement, {"workspace_id": workspace_id, "since": since})


async def list_freeze_authors(
    tx: Tx, workspace_id: WorkspaceId, since: datetime
) -> tuple[tuple[FreezeId, str], ...]:
    """List who made the freezes that end after `since`."""
    params = {"workspace_id": workspace_id, "since": since}
    return tuple(await tx.fetch_pairs(FreezeId, str, sql.explain_queries.list_freeze_authors, params))


async def find_blocking(tx: Tx, job_id: JobId, number: int, planned_for: datetime) -> RunId | None:
    """Find the run that was live when a planned time was skipped as overlap."""
    params = {
        "job_id": job_id,
        "number": number,
        "planned_for": planned_for,
        "since": planned_for - LONGEST_LIVE,
    }
    return await tx.fetch_one_as(RunId, sql.explain_queries.find_blocking, params)


async def load_ready_position(tx: Tx, run_id: RunId) -> ReadyPosition | None:
    params = {"run_id": run_id, "most": MOST_COUNTED}
    return await tx.fetch_one_as(ReadyPosition, sql.explain_queries.load_ready_position, params)


async def load_waiting_position(tx: Tx, run_id: RunId) -> WaitingPosition | None:
    return await tx.fetch_one_as(
        WaitingPosition, sql.explain_queries.load_waiting_position, {"run_id": run_id}
    )


async def list_limits(tx: Tx, workspace_id: WorkspaceId, concurrency_key: str | None) -> list[LimitUsage]:
    """List the limits that a run must pass: of its workspace (empty key) and of its concurrency key."""
    keys = ["", *filter(None, [concurrency_key])]
    params = {"workspace_id": workspace_id, "keys": keys}
    return await tx.fetch_as(LimitUsage, sql.explain_queries.list_limits, params)


async def list_alive_workers(tx: Tx) -> list[AliveWorker]:
    """List the workers that the transaction's workspace may use: its own and the shared ones."""
    return await tx.fetch_as(AliveWorker, sql.explain_queries.list_alive_workers)


async def list_running(
    tx: Tx, workspace_id: WorkspaceId, worker_ids: Sequence[WorkerId], owner_id: PrincipalId | None
) -> list[RunningRun]:
    """List runs of the workspace that these workers hold, at most MOST_NAMED; with `owner_id`, of this owner's jobs."""
    params = {
        "workspace_id": workspace_id,
        "worker_ids": list(worker_ids),
        "owner_id": owner_id,
        "limit": MOST_NAMED,
    }
    return await tx.fetch_as(RunningRun, sql.explain_queries.list_running, params)


@dataclass(frozen=True, slots=True)
class LeaseHolder:
    name: str
    until: datetime
    is_silent: bool  # its worker has not been heard of for longer than its lease lasts


async def load_holder(tx: Tx, run_id: RunId) -> LeaseHolder | None:
    return await tx.fetch_one_as(LeaseHolder, sql.explain_queries.load_holder, {"run_id": run_id})
