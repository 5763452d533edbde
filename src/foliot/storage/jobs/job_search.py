"""Job search: pages of the jobs that match a query, in the requested order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from foliot.domain.filters import Query
from foliot.domain.filters.query import JobOrder, JobPosition, JobSort
from foliot.domain.ids import JobId, PrincipalId
from foliot.storage.filter_sql import Column, Conditions, filled, holds_text, one_of, within
from foliot.storage.jobs.jobs import StoredJob, job_columns
from foliot.storage.queries import sql
from foliot.storage.tx import Tx

_TAGGED = "jobs.id IN (SELECT job_id FROM job_tags WHERE workspace_id = %(workspace_id)s AND {one_of_them})"
# Relies on dependencies_of_an_upstream.
_DEPENDENT = "jobs.id IN (SELECT job_id FROM dependencies WHERE {one_of_them})"
_SCHEDULE_KIND = "jobs.definition -> 'spec' -> 'schedule' ->> 'kind'"
_COLUMNS: Mapping[str, Column] = {
    "status": one_of("jobs.status"),
    "tag": lambda put, values: _TAGGED.format(one_of_them=one_of("job_tags.tag")(put, values)),
    "type": one_of("jobs.type"),
    "queue": one_of("jobs.queue"),
    "name": holds_text("jobs.name"),
    "owner": one_of("jobs.owner_id", "uuid"),
    "schedule": one_of(_SCHEDULE_KIND),
    "upstream": lambda put, values: _DEPENDENT.format(
        one_of_them=one_of("dependencies.upstream_id", "uuid")(put, values)
    ),
    "id": one_of("jobs.id", "uuid"),
    "created": within("jobs.created_at", "timestamptz"),
    "updated": within("jobs.updated_at", "timestamptz"),
    "next": within("timers.next_at", "timestamptz", also="timers.due_at"),
    "last": within("timers.last_run_at", "timestamptz"),
    "result": one_of("timers.last_run_status"),
    "failures": within("timers.failures_in_a_row", "bigint"),
    "runs": within("timers.run_count", "bigint"),
}
FIRST_SCANNED = 2_000  # jobs that are looked through for a word before all are
_OF_TIMERS = frozenset(("next", "last", "result", "failures", "runs"))
_KEYS = {JobSort.CREATED: "jobs.id", JobSort.NAME: "jobs.name"}  # ids begin with the instant of creation
_KINDS = {JobSort.NAME: "text", JobSort.NEXT: "timestamptz"}
# Order by next run: most timers have due_at = next_at, so the scan reads timers_due, as the tick does; an index by next_at would be
# written at every fire. The few other timers (a start ahead, nothing planned) have the index timers_next_run_differs.
# CASE: the planner expects that a plain comparison of two columns holds for hardly any row.
_BY_DUE = ("timers.due_at", "CASE WHEN timers.due_at = timers.next_at THEN true END")
_DIFFERING = ("COALESCE(timers.next_at, 'infinity')", "timers.due_at IS DISTINCT FROM timers.next_at")


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Jobs that match a query; with `visible_owner` only that owner's. Archived jobs match only a query by status."""

    query: Query = Query()
    visible_owner: PrincipalId | None = None


@dataclass(frozen=True, slots=True)
class JobPage:
    items: tuple[StoredJob, ...]
    next: JobPosition | None  # where the next page begins


class _FoundJob(NamedTuple):
    key: str | None  # of the order
    job: StoredJob


async def find_jobs(
    tx: Tx, filters: JobFilter, order: JobOrder, after: JobPosition | None, limit: int
) -> JobPage:
    if order.by is JobSort.CREATED and any(filters.query.of("name")):
        # A word that many names hold fills the page from the first jobs. The planner expects few matches, and would read all jobs.
        page = await _find_page(tx, filters, order, after, limit, scanned=FIRST_SCANNED)
        if page.next is not None:
            return page
    return await _find_page(tx, filters, order, after, limit)


async def _find_page(
    tx: Tx,
    filters: JobFilter,
    order: JobOrder,
    after: JobPosition | None,
    limit: int,
    *,
    scanned: int | None = None,
) -> JobPage:
    """Find a page among all jobs, or among the first `scanned` in the order of creation."""
    conditions, direction = _conditions(filters), "DESC" if order.descending else "ASC"
    if order.by is JobSort.NEXT:
        one, other = (_page_sql(filters, order, after, conditions, *each) for each in (_BY_DUE, _DIFFERING))
        page = filled(sql.job_search.merge_pages, one=one, other=other, direction=direction).text.decode()
    else:
        page = _page_sql(filters, order, after, conditions, _KEYS[order.by], scanned=scanned)
    page_order = (
        f"page.id {direction}"
        if order.by is JobSort.CREATED
        else f"page.key {direction}, page.id {direction}"
    )
    statement = filled(
        sql.job_search.find_jobs, columns=job_columns("job."), page=page, page_order=page_order
    )
    rows = await tx.fetch_as(_FoundJob, statement, {**conditions.params, "limit": limit + 1})
    last = rows[limit - 1] if len(rows) > limit else None
    items = tuple(row.job for row in rows[:limit])
    return JobPage(items, None if last is None else JobPosition(last.key, last.job.id))


async def find_ids(tx: Tx, filters: JobFilter, limit: int, after: JobId | None = None) -> list[JobId]:
    """List ids of matching jobs behind `after`, oldest first."""
    conditions = _conditions(filters)
    if after is not None:
        conditions.add(f"jobs.id > {conditions.put(after)}")
    statement = filled(sql.job_search.find_ids, join=_join(filters), conditions=str(conditions))
    return await tx.fetch_as(JobId, statement, {**conditions.params, "limit": limit})


async def count_jobs(tx: Tx, filters: JobFilter, limit: int) -> int:
    """Count matching jobs, up to `limit`."""
    conditions = _conditions(filters)
    statement = filled(sql.job_search.count_jobs, join=_join(filters), conditions=str(conditions))
    return await tx.fetch_value(int, statement, {**conditions.params, "limit": limit})


async def find_owners(tx: Tx, names: Iterable[str]) -> list[tuple[str, PrincipalId]]:
    """Find principals by lower-case name."""
    return await tx.fetch_pairs(str, PrincipalId, sql.job_search.find_owners, {"names": list(names)})


def _conditions(filters: JobFilter) -> Conditions:
    conditions = Conditions()
    if not any(filters.query.of("status")):
        conditions.add("jobs.status <> 'archived'")
    if filters.visible_owner is not None:
        conditions.add(f"jobs.owner_id = {conditions.put(filters.visible_owner)}")
    conditions.add_query(filters.query, _COLUMNS)
    return conditions


def _join(filters: JobFilter, order: JobOrder | None = None) -> str:
    is_needed = any(term.field in _OF_TIMERS for term in filters.query.terms)
    if order is not None and order.by is JobSort.NEXT:
        is_needed = True
    return "JOIN timers ON timers.job_id = jobs.id" if is_needed else ""


def _page_sql(
    filters: JobFilter,
    order: JobOrder,
    after: JobPosition | None,
    conditions: Conditions,
    key: str,
    only: str = "true",
    *,
    scanned: int | None = None,
) -> str:
    direction = "DESC" if order.descending else "ASC"
    is_after = "true" if after is None else _after(order, key, after, conditions)
    source = "jobs"
    if scanned is not None:
        source = filled(
            sql.job_search.first_jobs,
            is_after=is_after,
            order=f"{key} {direction}",
            scanned=conditions.put(scanned),
        ).text.decode()
    statement = filled(
        sql.job_search.page,
        key=key if order.by in _KINDS else "NULL",
        source=source,
        join=_join(filters, order),
        conditions=f"{conditions} AND {only} AND {is_after}",
        order=f"{key} {direction}"
        if order.by is JobSort.CREATED
        else f"{key} {direction}, jobs.id {direction}",
    )
    return statement.text.decode()


def _after(order: JobOrder, key: str, after: JobPosition, conditions: Conditions) -> str:
    sign = "<" if order.descending else ">"
    if order.by is JobSort.CREATED:
        return f"jobs.id {sign} {conditions.put(after.id)}"
    kind, at = _KINDS[order.by], conditions.put(after.key)
    # Both conditions: an index on the key alone can start at the key's bound, but not at the pair's.
    return (
        f"{key} {sign}= {at}::{kind} AND ({key}, jobs.id) {sign} ({at}::{kind}, {conditions.put(after.id)})"
    )
