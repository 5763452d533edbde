"""What an explanation looks up beside the records: the job as it stands, freezes, places in line, limits, workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from foliot.domain.definition import Definition
from foliot.domain.ids import HostId, JobId, PrincipalId, RunId, WorkspaceId
from foliot.domain.lifecycle import JobStatus
from foliot.domain.run import WaitsFor
from foliot.storage.jobs.definitions import definition_of
from foliot.storage.jobs.freezes import ScopedFreeze, scoped
from foliot.storage.queries import sql
from foliot.storage.tx import Tx
from foliot.storage.workers.workers import ANY_QUEUE

MOST_COUNTED = 10_000  # in a line; nobody needs to know that they are number 48,211
MOST_NAMED = 20  # workers in one sentence


@dataclass(frozen=True, slots=True)
class ExplainedJob:
    """A job that somebody asks about."""

    id: JobId
    workspace_id: WorkspaceId
    definition: Definition
    status: JobStatus
    status_reason: str | None
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
    name: str
    queues: tuple[str, ...]
    types: tuple[str, ...]
    is_draining: bool
    host_id: HostId | None
    capacity: int
    running_count: int

    def does(self, host_id: HostId, kind: str) -> bool:
        """Whether it does jobs of this type for that host."""
        return not self.is_draining and self.host_id == host_id and kind in self.types

    def serves(self, queue: str, kind: str) -> bool:
        return (
            not self.is_draining and kind in self.types and (queue in self.queues or ANY_QUEUE in self.queues)
        )


async def load_job(tx: Tx, job_id: JobId) -> ExplainedJob | None:
    row = await tx.fetch_one(sql.explain_queries.subject, {"job_id": job_id})
    if row is None:
        return None
    return ExplainedJob(
        id=row["id"],
        workspace_id=row["workspace_id"],
        definition=definition_of(row["definition"]),
        status=JobStatus(row["status"]),
        status_reason=row["status_reason"],
        paused_until=row["paused_until"],
        revision=row["revision"],
        schedule_rev=row["schedule_rev"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        runs_created=row["runs_created"],
        skip_next=row["skip_next"] is not None,
        skip_until=row["skip_until"],
        next_at=row["next_at"],
        live_number=row["live_number"],
    )


async def job_exists(tx: Tx, job_id: JobId, owner_id: PrincipalId | None = None) -> bool:
    """In the workspace of the transaction; and of this owner, where one is named."""
    return bool(await tx.fetch(sql.explain_queries.is_there, {"job_id": job_id, "owner_id": owner_id}))


async def load_names(tx: Tx, job_ids: Sequence[JobId]) -> dict[JobId, str]:
    if not job_ids:
        return {}
    rows = await tx.fetch(sql.explain_queries.names, {"job_ids": list(job_ids)})
    return {row["id"]: row["name"] for row in rows}


async def list_freezes(tx: Tx, workspace_id: WorkspaceId, since: datetime) -> list[ScopedFreeze]:
    rows = await tx.fetch(sql.explain_queries.freezes, {"workspace_id": workspace_id, "since": since})
    return [scoped(row) for row in rows]


async def load_ready_position(tx: Tx, run_id: RunId) -> ReadyPosition | None:
    row = await tx.fetch_one(
        sql.explain_queries.ready_place, {"run_id": run_id, "now": tx.now, "most": MOST_COUNTED}
    )
    return None if row is None else ReadyPosition(**row)


async def load_waiting_position(tx: Tx, run_id: RunId) -> WaitingPosition | None:
    row = await tx.fetch_one(sql.explain_queries.waiting_place, {"run_id": run_id})
    if row is None:
        return None
    return WaitingPosition(**{**row, "waits_for": WaitsFor(row["waits_for"])})


async def list_limits(tx: Tx, workspace_id: WorkspaceId, concurrency_key: str | None) -> list[LimitUsage]:
    """Those that a run must pass: its workspace's (key empty) and its concurrency key's."""
    keys = ["", *filter(None, [concurrency_key])]
    rows = await tx.fetch(sql.explain_queries.limits, {"workspace_id": workspace_id, "keys": keys})
    return [LimitUsage(**row) for row in rows]


async def list_alive_workers(tx: Tx) -> list[AliveWorker]:
    """Those that the workspace of the transaction may use: its own and the shared ones."""
    rows = await tx.fetch(sql.explain_queries.workers, {"now": tx.now})
    return [
        AliveWorker(
            row["name"],
            tuple(row["queues"]),
            tuple(row["types"]),
            row["is_draining"],
            row["host_id"],
            row["capacity"],
            row["running_count"],
        )
        for row in rows
    ]
