"""Read jobs: one, pages of many, and the upcoming times of one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from uuid import UUID

from foliot.domain.access import Scope
from foliot.domain.definition import Rules, Spec
from foliot.domain.filters import Query
from foliot.domain.filters.query import NEWEST_FIRST, JobOrder, JobPosition, JobSort
from foliot.domain.freeze import Freeze
from foliot.domain.ids import JobId
from foliot.domain.lifecycle import JobStatus
from foliot.domain.schedule import PlannedTime, is_chained, preview
from foliot.services.cursors import instant, read_cursor, refuse_cursor, text, write_cursor
from foliot.services.evaluation import evaluate
from foliot.services.jobs.search_steps import resolve_owner_terms
from foliot.services.jobs.visibility_steps import check_job_visible, require_visible_job
from foliot.services.jobs.written_steps import WrittenJob, load_written
from foliot.services.runs.explain_steps import StartNotes, load_firing_notes
from foliot.storage.jobs import calendars, job_search, job_types
from foliot.storage.jobs.jobs import StoredJob
from foliot.storage.runs import explain_queries
from foliot.storage.runs.run_history import RunRecord
from foliot.storage.timers import fire_quotas
from foliot.storage.tx import Database, Role, Tx

__all__ = ["RunRecord", "StoredJob"]

_INSTANT = "%Y-%m-%dT%H:%M:%SZ"
COUNTED_TO = 10_000
EVERYTHING = Query()
NOTHING_PLANNED = "infinity"  # the sort key of a job without a next time
FIRING = frozenset({JobStatus.PENDING, JobStatus.ACTIVE})


@dataclass(frozen=True, slots=True)
class JobListPage:
    """A page of jobs. `total` is set when the caller asks for a count; above COUNTED_TO, `more` is true."""

    items: tuple[StoredJob, ...]
    next_cursor: str | None
    total: int | None = None
    more: bool = False


@dataclass(frozen=True, slots=True)
class UpcomingTimes:
    """The upcoming times of a job, as far as they are known, with what keeps them from running."""

    job: StoredJob
    times: tuple[PlannedTime, ...]
    freezes: tuple[Freeze, ...] = ()  # in force now or later
    notes: tuple[str, ...] = ()  # about all of them


async def job(database: Database, scope: Scope, job_id: JobId) -> StoredJob:
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        return await require_visible_job(tx, job_id, scope)


async def written(
    database: Database, scope: Scope, job_id: JobId, *, with_warnings: bool = True
) -> WrittenJob:
    """Return the job for the caller that has just changed it."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        await check_job_visible(tx, job_id, scope)
        return await load_written(tx, job_id, with_warnings=with_warnings)


async def jobs(
    database: Database,
    scope: Scope,
    query: Query = EVERYTHING,
    *,
    order: JobOrder = NEWEST_FIRST,
    cursor: str | None = None,
    limit: int = 50,
    count: bool = False,
) -> JobListPage:
    """List jobs. Archived jobs appear only when the query names a status."""
    after = _read_position(cursor, order)
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        these = await resolve_owner_terms(tx, query, scope)
        page = await job_search.find_jobs(tx, these, order, after, limit)
        found = await job_search.count_jobs(tx, these, COUNTED_TO + 1) if count else None
    following = None if page.next is None else write_cursor(str(order), page.next.key, page.next.id)
    total = None if found is None else min(found, COUNTED_TO)
    return JobListPage(page.items, following, total, found is not None and found > COUNTED_TO)


async def ahead(database: Database, scope: Scope, job_id: JobId, n: int) -> UpcomingTimes:
    """Return the next `n` times: none while the job is stopped, and one after a fixed delay."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = await require_visible_job(tx, job_id, scope)
        spec = found.definition.spec
        mine = await calendars.load_for(tx, scope.workspace_id, spec)
        covering = [
            each.freeze
            for each in await explain_queries.list_freezes(tx, scope.workspace_id, tx.now)
            if each.covers(scope.workspace_id, job_id, spec.tags, spec.queue)
        ]
        if found.status not in FIRING or (is_chained(spec.schedule) and found.next_at is None):
            return UpcomingTimes(found, ())
        job = Rules(spec).job(job_id, scope.workspace_id, found.schedule_rev, mine)
        notes = [each async for each in _load_notes(tx, job_id, spec)]
        if found.next_at is not None and not notes:
            notes += await StartNotes(tx, scope.workspace_id).of(job, spec, found.next_at)
    most = n if spec.max_runs is None else min(n, spec.max_runs - found.runs_created)
    timetable = job.timetable
    after = found.cursor_at if is_chained(spec.schedule) else tx.now
    times = await evaluate(timetable, lambda: preview(timetable, after, most))
    return UpcomingTimes(found, times, tuple(covering), tuple(notes))


async def _load_notes(tx: Tx, job_id: JobId, spec: Spec) -> AsyncIterator[str]:
    """Yield what keeps the times of a job from running, beside freezes: explain says the same of each time."""
    if spec.shadow:
        yield "Shadow mode: these times are recorded and do not run."
    if spec.type in await job_types.list_disabled(tx):
        yield f"Jobs of type {spec.type} are switched off: these times are skipped."
    async for each in load_firing_notes(tx):
        yield each
    if (until := (await fire_quotas.used_up_until(tx, [job_id])).get(job_id)) is not None:
        yield f"The quota of fires per day is used up: times before {until:{_INSTANT}} are skipped."
    if (until := await fire_quotas.closed_until(tx)) is not None and until > tx.now:
        yield f"A budget of the workspace is used up: times before {until:{_INSTANT}} are skipped."


def _read_position(cursor: str | None, order: JobOrder) -> JobPosition | None:
    def same_order(part: str) -> str:
        if part != str(order):  # it would skip jobs
            raise refuse_cursor("This cursor belongs to a list in another order.")
        return part

    def key(part: str) -> str | None:
        if order.by is JobSort.CREATED:
            return None  # the id is the key
        is_time = order.by is JobSort.NEXT and part != NOTHING_PLANNED
        return instant(part).isoformat() if is_time else text(part)

    found = read_cursor(cursor, same_order, key, UUID)
    return None if found is None else JobPosition(found[1], found[2])
