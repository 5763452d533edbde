"""Jobs: their definitions and the changes of their status."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from psycopg.errors import UniqueViolation
from psycopg.types.json import Jsonb

from foliot.domain.definition import Definition
from foliot.domain.dependencies import EdgeMode
from foliot.domain.errors import ImportedAlready
from foliot.domain.ids import JobId, PrincipalId, RunId, WorkspaceId
from foliot.domain.job import Timer
from foliot.domain.lifecycle import FireStatus, JobStatus, RunStatus
from foliot.storage.filter_sql import filled
from foliot.storage.jobs.definitions import definition_json, definition_of, spec_text
from foliot.storage.queries import sql
from foliot.storage.tx import Tx

ENGINE = "engine"  # the actor of changes that the engine makes on its own


@dataclass(frozen=True, slots=True)
class StoredJob:
    """A job as people see it: its definition, its status, and the counters of its timer.

    Each field is a column of `jobs` or, if named in `_TIMER_COLUMNS`, of `timers`; `_LOOKED_UP` has the others.
    """

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
    skip_until: datetime | None
    live: int
    waiting: int
    runs_created: int
    fire_count: int
    run_count: int
    success_count: int
    failure_count: int
    skip_count: int
    schedule_error_count: int
    failed_attempt_count: int
    failures_in_a_row: int
    last_fire_at: datetime | None
    last_fire_status: FireStatus | None
    last_fire_run_id: RunId | None
    last_run_at: datetime | None
    last_run_id: RunId | None
    last_run_status: RunStatus | None
    last_error: str | None
    # None also for an administrator of the installation, whom a workspace does not see.
    owner_name: str | None


_LOOKED_UP = {"owner_name": "(SELECT principals.name FROM principals WHERE principals.id = jobs.owner_id)"}
_TIMER_COLUMNS = frozenset(StoredJob.__slots__[StoredJob.__slots__.index("cursor_at") :]) - _LOOKED_UP.keys()


@dataclass(frozen=True, slots=True)
class RevisionAuthor:
    """The author of a revision, and an optional note."""

    name: str
    note: str | None = None


@dataclass(frozen=True, slots=True)
class JobPause:
    """The end and the reason of a pause that is in force."""

    job_id: JobId
    until: datetime | None
    reason: str | None

    def differs(self, until: datetime | None, reason: str | None) -> bool:
        """Return whether a pause with this end and reason would change it. Without a reason, its own stays."""
        return self.until != until or (reason is not None and self.reason != reason)


@dataclass(frozen=True, slots=True)
class StatusChange:
    job_id: JobId
    status: JobStatus
    reason: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)  # more for the notice of it


async def is_in_app(tx: Tx, app: str, name: str) -> bool:
    """Return whether the app has a job of this name; other transactions wait with the question until this one ends."""
    named = {"app": app, "name": name}
    await tx.execute(sql.jobs.lock_name_in_app, named)
    return await tx.fetch_value(bool, sql.jobs.is_in_app, named)


@contextmanager
def one_per_imported_record() -> Iterator[None]:
    """Translate the refusal of a second job for one record of an import."""
    try:
        yield
    except UniqueViolation as error:
        if error.diag.constraint_name != "jobs_one_per_imported_record":
            raise
        raise ImportedAlready(
            "This record of another scheduler is a job already.", hint="Find it by the tag `imported`."
        ) from None


async def insert(
    tx: Tx, job_id: JobId, definition: Definition, status: JobStatus, timer: Timer, by: str
) -> None:
    """Insert a job and its timer in the transaction's workspace."""
    written = {"status": status.value, "status_reason": None, "by": by}
    with one_per_imported_record():
        await tx.execute(sql.jobs.insert, _columns(job_id, definition) | written)
    await tx.execute(
        sql.timers.insert,
        {
            "job_id": job_id,
            "status": status.value,
            "spec": spec_text(definition.spec),
            "schedule_rev": 1,
            "cursor_at": timer.cursor,
            "due_at": timer.due_at,
            "next_at": timer.next_at,
            "ending": timer.ending and timer.ending.value,
            "has_gate": any(edge.mode is EdgeMode.GATE for edge in definition.depends_on),
        },
    )


async def load_definition(tx: Tx, job_id: JobId) -> Definition | None:
    found: dict[str, Any] | None = await tx.fetch_one_as(dict, sql.jobs.load_definition, {"id": job_id})
    return None if found is None else definition_of(found)


async def load_owner(tx: Tx, job_id: JobId) -> PrincipalId | None:
    return await tx.fetch_one_as(PrincipalId, sql.jobs.load_owner, {"id": job_id})


async def list_owned(tx: Tx, job_ids: Sequence[JobId], by: PrincipalId) -> frozenset[JobId]:
    """Return those of these jobs that the principal owns."""
    return frozenset(await tx.fetch_as(JobId, sql.jobs.list_owned, {"ids": list(job_ids), "owner_id": by}))


async def redefine(tx: Tx, job_id: JobId, changed: Definition, author: RevisionAuthor) -> None:
    """Write a revision that a change elsewhere causes: schedule and zone stay. The caller has the timer's lock."""
    params = {"id": job_id, "definition": Jsonb(definition_json(changed))}
    await tx.execute(sql.jobs.redefine, params | {"by": author.name, "note": author.note})
    await tx.execute(sql.timers.respec, {"job_id": job_id, "spec": spec_text(changed.spec)})


async def get(tx: Tx, job_id: JobId) -> StoredJob | None:
    return await tx.fetch_one_as(StoredJob, _GET, {"id": job_id})


async def load_revision(tx: Tx, job_id: JobId, owner_id: PrincipalId | None = None) -> int | None:
    """Return the revision that the job is at. It takes much less than the whole job; with `owner_id`, of this owner's jobs only."""
    return await tx.fetch_one_as(int, sql.jobs.load_revision, {"id": job_id, "owner_id": owner_id})


async def edit(
    tx: Tx, job_id: JobId, definition: Definition, revision: int, schedule_rev: int, author: RevisionAuthor
) -> None:
    written = {"revision": revision, "schedule_rev": schedule_rev, "by": author.name, "note": author.note}
    with one_per_imported_record():
        await tx.execute(sql.jobs.edit, _columns(job_id, definition) | written)


def _columns(job_id: JobId, definition: Definition) -> dict[str, Any]:
    """Return the columns that a definition fills."""
    spec = definition.spec
    return {
        "id": job_id,
        "name": definition.name,
        "type": spec.type,
        "queue": spec.queue,
        "tags": list(spec.tags),
        "owner_id": definition.owner_id,
        "definition": Jsonb(definition_json(definition)),
    }


async def set_paused_until(tx: Tx, until: datetime | None, *job_ids: JobId) -> None:
    await tx.execute(sql.jobs.set_paused_until, {"ids": list(job_ids), "until": until})


async def list_pauses(tx: Tx, job_ids: Sequence[JobId]) -> dict[JobId, JobPause]:
    """Return the pauses of those of these jobs that are paused."""
    found = await tx.fetch_as(JobPause, sql.jobs.list_pauses, {"ids": list(job_ids)})
    return {each.job_id: each for each in found}


async def change_pauses(
    tx: Tx, job_ids: Sequence[JobId], until: datetime | None, reason: str | None, by: str
) -> None:
    """Give paused jobs another end, and another reason unless it is None."""
    params = {"ids": list(job_ids), "until": until, "reason": reason, "by": by}
    await tx.execute(sql.jobs.change_pauses, params)


async def list_due_to_resume(tx: Tx, limit: int) -> list[tuple[WorkspaceId, JobId]]:
    """List jobs whose pause has ended, the earliest end first."""
    return await tx.fetch_pairs(WorkspaceId, JobId, sql.jobs.list_due_to_resume, {"limit": limit})


async def mark_purged(tx: Tx, job_id: JobId) -> None:
    """Delete its timer and hide the job; its history is deleted piece by piece."""
    await tx.execute(sql.jobs.mark_purged, {"id": job_id})


async def next_purged(tx: Tx) -> JobId | None:
    return await tx.fetch_one_as(JobId, sql.jobs.lock_next_purged)


async def purge(tx: Tx, job_id: JobId, most: int) -> int:
    """Delete up to `most` runs of its history and, with the last, the job. Return the number of deleted runs."""
    deleted = await tx.fetch_value(int, sql.jobs.purge_history, {"id": job_id, "most": most})
    if deleted < most:
        await tx.execute(sql.jobs.purge, {"id": job_id})
    return deleted


async def change_status(tx: Tx, moves: Sequence[StatusChange], by: str) -> None:
    if not moves:
        return
    await tx.execute(
        sql.jobs.change_status,
        {
            "job_ids": [change.job_id for change in moves],
            "statuses": [change.status.value for change in moves],
            "reasons": [change.reason for change in moves],
            "facts": [Jsonb(change.facts) for change in moves],
            "audit_ids": tx.new_ids(len(moves)),
            "by": by,
            "engine": ENGINE,
        },
    )


def job_columns(prefix: str = "") -> str:
    """Return the select list of a `StoredJob`; `prefix` nests it in another value."""
    return ", ".join(f'{_column(name)} AS "{prefix}{name}"' for name in StoredJob.__slots__)


def _column(name: str) -> str:
    return _LOOKED_UP.get(name) or f"{'timers' if name in _TIMER_COLUMNS else 'jobs'}.{name}"


_GET = filled(sql.jobs.get, columns=job_columns())
