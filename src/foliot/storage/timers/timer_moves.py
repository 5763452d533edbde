"""What people's verbs write into one timer, under its lock."""

from __future__ import annotations

from datetime import datetime

from foliot.domain.definition import Definition
from foliot.domain.dependencies import Mode
from foliot.domain.ids import JobId
from foliot.domain.job import Timer
from foliot.storage.jobs.definitions import spec_text
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


async def place(tx: Tx, job_id: JobId, definition: Definition, schedule_rev: int, timer: Timer) -> None:
    """An edited definition, and the timer where it puts it."""
    await tx.execute(
        sql.timers.place,
        {
            "job_id": job_id,
            "spec": spec_text(definition.spec),
            "schedule_rev": schedule_rev,
            "cursor_at": timer.cursor,
            "due_at": timer.due_at,
            "next_at": timer.next_at,
            "ending": timer.ending and timer.ending.value,
            "has_gate": any(edge.mode is Mode.GATE for edge in definition.depends_on),
        },
    )


async def halt(tx: Tx, *job_ids: JobId) -> None:
    """Nothing is due any more; the cursor stays where it is."""
    await tx.execute(sql.timers.halt, {"job_ids": list(job_ids)})


async def forgive(tx: Tx, job_id: JobId) -> None:
    """Failures and scheduler errors in a row count from nought again."""
    await tx.execute(sql.timers.forgive, {"job_id": job_id})


async def set_skip_next(tx: Tx, job_id: JobId, reason: str | None, until: datetime | None = None) -> None:
    """Planned times up to `until` pass; without it, the next one alone."""
    await tx.execute(sql.timers.set_skip_next, {"job_id": job_id, "reason": reason, "until": until})
