"""Looking at jobs: one, many by page, and the times ahead of one."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from uuid import UUID

from foliot.domain.definition import Rules
from foliot.domain.errors import Invalid
from foliot.domain.ids import JobId, PrincipalId, WorkspaceId
from foliot.domain.lifecycle import JobStatus
from foliot.domain.schedule import PlannedTime, is_chained, preview
from foliot.services.in_hand import no_such
from foliot.storage import calendars, listing
from foliot.storage import jobs as stored
from foliot.storage.jobs import StoredJob
from foliot.storage.ledger import RunRecord
from foliot.storage.listing import JobFilter
from foliot.storage.tx import Database, Role, Tx

__all__ = ["Ahead", "JobFilter", "Jobs", "RunRecord", "StoredJob", "ahead", "job", "jobs"]

EVERYTHING = JobFilter()
FIRING = frozenset({JobStatus.PENDING, JobStatus.ACTIVE})


@dataclass(frozen=True, slots=True)
class Jobs:
    items: tuple[StoredJob, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class Ahead:
    """The times a job will fire at, as far as they are known."""

    job: StoredJob
    times: tuple[PlannedTime, ...]


async def job(
    database: Database, workspace_id: WorkspaceId, job_id: JobId, only_owner: PrincipalId | None = None
) -> StoredJob:
    async with database.tx(Role.APP, workspace_id) as tx:
        return await _visible(tx, job_id, only_owner)


async def jobs(
    database: Database,
    workspace_id: WorkspaceId,
    wanted: JobFilter = EVERYTHING,
    *,
    cursor: str | None = None,
    limit: int = 50,
) -> Jobs:
    after = _read_cursor(cursor)
    async with database.tx(Role.APP, workspace_id) as tx:
        page = await listing.jobs(tx, wanted, after, limit)
    return Jobs(page.items, None if page.next is None else urlsafe_b64encode(page.next.bytes).decode())


async def ahead(
    database: Database,
    workspace_id: WorkspaceId,
    job_id: JobId,
    n: int,
    only_owner: PrincipalId | None = None,
) -> Ahead:
    """Empty while the job is stopped. After a fixed delay only the time already set is known."""
    async with database.tx(Role.APP, workspace_id) as tx:
        found = await _visible(tx, job_id, only_owner)
        spec = found.definition.spec
        named = await calendars.by_ids(tx, spec.calendars) if spec.calendars else {}
    if found.status not in FIRING or (is_chained(spec.schedule) and found.next_at is None):
        return Ahead(found, ())
    most = n if spec.max_runs is None else min(n, spec.max_runs - found.runs_created)
    timetable = Rules(spec).job(job_id, workspace_id, found.schedule_rev, tuple(named.values())).timetable
    after = found.cursor_at if is_chained(spec.schedule) else tx.now
    return Ahead(found, preview(timetable, after, most))


async def _visible(tx: Tx, job_id: JobId, only_owner: PrincipalId | None) -> StoredJob:
    found = await stored.get(tx, job_id)
    if found is None or only_owner not in (None, found.definition.owner_id):
        raise no_such("job")
    return found


def _read_cursor(text: str | None) -> JobId | None:
    if text is None:
        return None
    try:
        return JobId(UUID(bytes=urlsafe_b64decode(text.encode("ascii"))))
    except (ValueError, binascii.Error) as error:
        raise Invalid(
            "This cursor is not one that Foliot gave out.",
            pointer="/cursor",
            hint="Use next_cursor of the page before, or leave it out to begin.",
        ) from error
