"""Jobs: definitions as rows, and the moves of their status."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from psycopg.types.json import Jsonb

from foliot.domain.definition import Definition
from foliot.domain.dependencies import Mode
from foliot.domain.ids import JobId
from foliot.domain.job import Timer
from foliot.domain.lifecycle import JobStatus
from foliot.storage.definitions import definition_json, definition_of, spec_text
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class Move:
    job_id: JobId
    status: JobStatus
    reason: str | None = None


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
            "has_gate": any(edge.mode is Mode.GATE for edge in definition.depends_on),
        },
    )


async def definition(tx: Tx, job_id: JobId) -> Definition | None:
    row = await tx.fetch_one(sql.jobs.definition, {"id": job_id})
    return None if row is None else definition_of(row["definition"])


async def redefine(tx: Tx, job_id: JobId, changed: Definition) -> None:
    """A new revision of what follows from a change elsewhere: schedule and zone stay. Needs the timer's lock."""
    params = {"id": job_id, "definition": Jsonb(definition_json(changed)), "now": tx.now}
    await tx.execute(sql.jobs.redefine, params)
    await tx.execute(sql.timers.respec, {"job_id": job_id, "spec": spec_text(changed.spec)})


async def move(tx: Tx, moves: Sequence[Move], by: str) -> None:
    if not moves:
        return
    await tx.execute(
        sql.jobs.move,
        {
            "job_ids": [move.job_id for move in moves],
            "statuses": [move.status.value for move in moves],
            "reasons": [move.reason for move in moves],
            "by": by,
            "now": tx.now,
        },
    )
