"""Leases: who works on which run, under which fence; and the one statement that settles a batch of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from foliot.domain.ids import JobId, RunId, WorkerId, WorkspaceId
from foliot.domain.lifecycle import RunStatus
from foliot.domain.run import RunError, RunFacts, Trigger
from foliot.domain.settlement import Settlement
from foliot.storage.queries import sql
from foliot.storage.runs import error_json
from foliot.storage.tx import Row, Tx

FIRST = UUID(int=0)  # before every workspace


@dataclass(frozen=True, slots=True)
class Claimed:
    """A run that a worker may now do, until its deadline, under its fence."""

    workspace_id: WorkspaceId
    run_id: RunId
    job_id: JobId
    fence: int
    type: str
    planned_for: datetime
    attempt: int
    deadline_at: datetime
    trigger: Trigger


@dataclass(frozen=True, slots=True)
class Held:
    """A lease as its holder knows it."""

    run_id: RunId
    fence: int
    worker_id: WorkerId


@dataclass(frozen=True, slots=True)
class Lease:
    job_id: JobId
    facts: RunFacts
    workspace_id: WorkspaceId
    concurrency_key: str | None
    is_limited: bool  # some cap is set in its workspace


@dataclass(frozen=True, slots=True)
class Served:
    """A workspace that has work."""

    workspace_id: WorkspaceId
    is_limited: bool


async def workspaces_with_work(tx: Tx, queue: str, after: UUID, limit: int) -> list[Served]:
    rows = await tx.fetch(sql.ready.workspaces_with_work, {"queue": queue, "after": after, "limit": limit})
    return [Served(row["workspace_id"], row["is_limited"]) for row in rows]


async def take(
    tx: Tx,
    worker_id: WorkerId,
    queue: str,
    types: Sequence[str],
    workspaces: Sequence[WorkspaceId],
    share: int,
) -> list[Claimed]:
    rows = await tx.fetch(
        sql.ready.take,
        {
            "worker_id": worker_id,
            "queue": queue,
            "types": list(types),
            "workspace_ids": list(workspaces),
            "share": share,
            "now": tx.now,
        },
    )
    return [claimed_run(row) for row in rows]


def claimed_run(row: Row) -> Claimed:
    return Claimed(
        row["workspace_id"],
        row["run_id"],
        row["job_id"],
        row["fence"],
        row["type"],
        row["planned_for"],
        row["attempts"],
        row["deadline_at"],
        Trigger(row["trigger"]),
    )


async def lock(tx: Tx, held: Sequence[Held]) -> dict[RunId, Lease]:
    """The leases that are still what their holder thinks they are."""
    rows = await tx.fetch(
        sql.leases.lock,
        {
            "run_ids": [lease.run_id for lease in held],
            "fences": [lease.fence for lease in held],
            "worker_ids": [lease.worker_id for lease in held],
        },
    )
    return {
        row["run_id"]: Lease(
            row["job_id"], _facts(row), row["workspace_id"], row["concurrency_key"], row["is_limited"]
        )
        for row in rows
    }


async def settle(tx: Tx, settled: Sequence[tuple[Settlement, Any]]) -> None:
    """Each settlement with the output its run reported."""
    await tx.execute(
        sql.leases.settle,
        {
            "run_ids": [settlement.run_id for settlement, _ in settled],
            "statuses": [settlement.status.value for settlement, _ in settled],
            "skip_reasons": [s.skip_reason and s.skip_reason.value for s, _ in settled],
            "notes": [settlement.note for settlement, _ in settled],
            "attempts": [s.attempt and s.attempt.value for s, _ in settled],
            "errors": [error_json(settlement.error) for settlement, _ in settled],
            "outputs": [None if output is None else Jsonb(output) for _, output in settled],
            "retry_ats": [settlement.retry_at for settlement, _ in settled],
            "retries": [settlement.retries_used for settlement, _ in settled],
            "losses": [settlement.losses for settlement, _ in settled],
            "expires_ats": [settlement.expires_at for settlement, _ in settled],
            "now": tx.now,
        },
    )


def _facts(row: Row) -> RunFacts:
    error = row["last_error"]
    return RunFacts(
        id=row["run_id"],
        job_id=row["job_id"],
        trigger=Trigger(row["trigger"]),
        status=RunStatus.RUNNING,
        attempt_count=row["attempts"],
        retries_used=row["retries"],
        losses=row["losses"],
        started_at=row["started_at"],
        cancel_requested=row["cancel_requested_at"] is not None,
        last_error=None if error is None else RunError(**error),
    )
