"""Jobs: definitions as rows, and the moves of their status."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from foliot.domain.definition import Definition
from foliot.domain.dependencies import EdgeMode
from foliot.domain.ids import JobId, PrincipalId, RunId, WorkspaceId
from foliot.domain.job import Timer
from foliot.domain.lifecycle import JobStatus, RunStatus
from foliot.storage.jobs.definitions import definition_json, definition_of, spec_text
from foliot.storage.queries import sql
from foliot.storage.tx import Row, Tx

ENGINE = "engine"  # how the engine signs what it does to jobs by itself


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A job as people see it: what they defined, where it stands, and what it has done."""

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
    created_by: str
    created_at: datetime
    updated_at: datetime
    cursor_at: datetime
    next_at: datetime | None
    skip_next: str | None
    live: int
    waiting: int
    runs_created: int
    fire_count: int
    run_count: int
    success_count: int
    failure_count: int
    skip_count: int
    failures_in_a_row: int
    last_fire_at: datetime | None
    last_run_at: datetime | None
    last_run_id: RunId | None
    last_run_status: RunStatus | None
    last_error: str | None


@dataclass(frozen=True, slots=True)
class RevisionAuthor:
    """Who puts a definition in force, and what they say about it."""

    name: str
    note: str | None = None


@dataclass(frozen=True, slots=True)
class StatusChange:
    job_id: JobId
    status: JobStatus
    reason: str | None = None


async def is_in_app(tx: Tx, app: str, name: str) -> bool:
    """Whether the app has a job of this name. Until the end of the transaction nobody else gets an answer about it."""
    named = {"workspace_id": tx.workspace_id, "app": app, "name": name}
    await tx.execute(sql.jobs.lock_name_in_app, named)
    found = await tx.fetch_one(sql.jobs.is_in_app, named)
    return bool(found and found["is_there"])


async def insert(
    tx: Tx, job_id: JobId, definition: Definition, status: JobStatus, timer: Timer, by: str
) -> None:
    """The definition and its timer; in the workspace of the transaction."""
    spec = definition.spec
    await tx.execute(
        sql.jobs.insert,
        {
            "workspace_id": tx.workspace_id,
            "id": job_id,
            "name": definition.name,
            "type": spec.type,
            "queue": spec.queue,
            "tags": list(spec.tags),
            "owner_id": definition.owner_id,
            "definition": Jsonb(definition_json(definition)),
            "status": status.value,
            "status_reason": None,
            "by": by,
            "now": tx.now,
        },
    )
    await tx.execute(
        sql.timers.insert,
        {
            "workspace_id": tx.workspace_id,
            "job_id": job_id,
            "status": status.value,
            "spec": spec_text(spec),
            "schedule_rev": 1,
            "cursor_at": timer.cursor,
            "due_at": timer.due_at,
            "next_at": timer.next_at,
            "ending": timer.ending and timer.ending.value,
            "has_gate": any(edge.mode is EdgeMode.GATE for edge in definition.depends_on),
        },
    )


async def definition(tx: Tx, job_id: JobId) -> Definition | None:
    row = await tx.fetch_one(sql.jobs.definition, {"id": job_id})
    return None if row is None else definition_of(row["definition"])


async def owner(tx: Tx, job_id: JobId) -> PrincipalId | None:
    row = await tx.fetch_one(sql.jobs.owner, {"id": job_id})
    return None if row is None else row["owner_id"]


async def owned(tx: Tx, job_ids: Sequence[JobId], by: PrincipalId) -> frozenset[JobId]:
    """Those of them that belong to this principal."""
    rows = await tx.fetch(sql.jobs.owned, {"ids": list(job_ids), "owner_id": by})
    return frozenset(row["id"] for row in rows)


async def redefine(tx: Tx, job_id: JobId, changed: Definition, author: RevisionAuthor) -> None:
    """A new revision of what follows from a change elsewhere: schedule and zone stay. Needs the timer's lock."""
    params = {"id": job_id, "definition": Jsonb(definition_json(changed)), "now": tx.now}
    await tx.execute(sql.jobs.redefine, params | {"by": author.name, "note": author.note})
    await tx.execute(sql.timers.respec, {"job_id": job_id, "spec": spec_text(changed.spec)})


async def get(tx: Tx, job_id: JobId) -> StoredJob | None:
    row = await tx.fetch_one(sql.jobs.get, {"id": job_id})
    return None if row is None else stored(row)


async def edit(
    tx: Tx, job_id: JobId, definition: Definition, revision: int, schedule_rev: int, author: RevisionAuthor
) -> None:
    spec = definition.spec
    await tx.execute(
        sql.jobs.edit,
        {
            "id": job_id,
            "name": definition.name,
            "type": spec.type,
            "queue": spec.queue,
            "tags": list(spec.tags),
            "owner_id": definition.owner_id,
            "definition": Jsonb(definition_json(definition)),
            "revision": revision,
            "schedule_rev": schedule_rev,
            "by": author.name,
            "note": author.note,
            "now": tx.now,
        },
    )


async def set_paused_until(tx: Tx, until: datetime | None, *job_ids: JobId) -> None:
    await tx.execute(sql.jobs.set_paused_until, {"ids": list(job_ids), "until": until})


async def due_to_resume(tx: Tx, limit: int) -> list[tuple[WorkspaceId, JobId]]:
    """Jobs whose pause is over, longest over first."""
    rows = await tx.fetch(sql.jobs.due_to_resume, {"now": tx.now, "limit": limit})
    return [(row["workspace_id"], row["id"]) for row in rows]


async def mark_purged(tx: Tx, job_id: JobId) -> None:
    """Delete its timer and hide the job; its history is deleted piece by piece."""
    await tx.execute(sql.jobs.mark_purged, {"id": job_id, "now": tx.now})


async def next_purged(tx: Tx) -> JobId | None:
    row = await tx.fetch_one(sql.jobs.next_purged)
    return None if row is None else row["id"]


async def purge(tx: Tx, job_id: JobId, most: int) -> int:
    """A piece of its history; with the last piece the job itself. Answers with how many runs went."""
    row = await tx.fetch_one(sql.jobs.purge_history, {"id": job_id, "most": most})
    gone = int(row["runs"]) if row else 0
    if gone < most:
        await tx.execute(sql.jobs.purge, {"id": job_id})
    return gone


async def change_status(tx: Tx, moves: Sequence[StatusChange], by: str) -> None:
    if not moves:
        return
    await tx.execute(
        sql.jobs.move,
        {
            "job_ids": [change.job_id for change in moves],
            "statuses": [change.status.value for change in moves],
            "reasons": [change.reason for change in moves],
            "by": by,
            "engine": ENGINE,
            "now": tx.now,
        },
    )


def stored(row: Row) -> StoredJob:
    """Of a row of `jobs` with its timer beside it."""
    same: dict[str, Any] = {name: row[name] for name in StoredJob.__slots__ if name in row}
    last_status = row["last_run_status"]
    return StoredJob(
        **{
            **same,
            "definition": definition_of(row["definition"]),
            "status": JobStatus(row["status"]),
            "last_run_status": None if last_status is None else RunStatus(last_status),
        }
    )
