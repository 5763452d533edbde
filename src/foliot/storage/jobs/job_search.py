"""Jobs as people look through them: those a query finds, page by page, in the order they ask for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from foliot.domain.filters import Query
from foliot.domain.filters.order import JobOrder, JobSort, Place
from foliot.domain.ids import JobId, PrincipalId
from foliot.storage.filter_sql import Column, Conditions, filled, holds_text, one_of, within
from foliot.storage.jobs.jobs import StoredJob, stored
from foliot.storage.queries import sql
from foliot.storage.tx import Tx

_TAGGED = "jobs.id IN (SELECT job_id FROM job_tags WHERE workspace_id = %(workspace_id)s AND {one_of_them})"
_SCHEDULE_KIND = "jobs.definition -> 'spec' -> 'schedule' ->> 'kind'"
_COLUMNS: Mapping[str, Column] = {
    "status": one_of("jobs.status"),
    "tag": lambda put, values: _TAGGED.format(one_of_them=one_of("job_tags.tag")(put, values)),
    "type": one_of("jobs.type"),
    "queue": one_of("jobs.queue"),
    "name": holds_text("jobs.name"),
    "owner": one_of("jobs.owner_id", "uuid"),
    "schedule": one_of(_SCHEDULE_KIND),
    "id": one_of("jobs.id", "uuid"),
    "created": within("jobs.created_at", "timestamptz"),
    "updated": within("jobs.updated_at", "timestamptz"),
    "next": within("timers.next_at", "timestamptz", also="timers.due_at"),
    "last": within("timers.last_run_at", "timestamptz"),
    "result": one_of("timers.last_run_status"),
    "failures": within("timers.failures_in_a_row", "bigint"),
    "runs": within("timers.run_count", "bigint"),
}
_OF_TIMERS = frozenset(("next", "last", "result", "failures", "runs"))
_KEYS = {JobSort.CREATED: "jobs.id", JobSort.NAME: "jobs.name"}  # ids begin with the instant of creation
_KINDS = {JobSort.NAME: "text", JobSort.NEXT: "timestamptz"}
# What is due next is what runs next, and the walk goes along timers_due, as the tick does: an index by next_at would be written at
# every fire. The few timers that say otherwise (a start that lies ahead, nothing planned) have an index of their own, timers_apart.
# CASE: of a plain comparison of two columns the planner believes that hardly any row meets it.
_ALONG_DUE = ("timers.due_at", "CASE WHEN timers.due_at = timers.next_at THEN true END")
_APART = ("COALESCE(timers.next_at, 'infinity')", "timers.due_at IS DISTINCT FROM timers.next_at")


@dataclass(frozen=True, slots=True)
class JobFilter:
    """Which jobs: those of a query, of one owner where that is all the asker may see, archived ones only when named."""

    query: Query = Query()
    visible_owner: PrincipalId | None = None


@dataclass(frozen=True, slots=True)
class JobPage:
    items: tuple[StoredJob, ...]
    next: Place | None  # the next page begins after this one


async def find_jobs(tx: Tx, wanted: JobFilter, order: JobOrder, after: Place | None, limit: int) -> JobPage:
    conditions, way = _conditions(wanted), "DESC" if order.descending else "ASC"
    if order.by is JobSort.NEXT:
        one, other = (_walk(wanted, order, after, conditions, *each) for each in (_ALONG_DUE, _APART))
        page = filled(sql.job_search.page_of_two, one=one, other=other, way=way).text.decode()
    else:
        page = _walk(wanted, order, after, conditions, _KEYS[order.by])
    page_order = f"page.id {way}" if order.by is JobSort.CREATED else f"page.key {way}, page.id {way}"
    statement = filled(sql.job_search.jobs, page=page, page_order=page_order)
    rows = await tx.fetch(statement, _params(tx, conditions, limit + 1))
    items = tuple(stored(row) for row in rows[:limit])
    last = rows[limit - 1] if len(rows) > limit else None
    return JobPage(items, None if last is None else Place(last["key"], last["id"]))


async def find_ids(tx: Tx, wanted: JobFilter, limit: int, after: JobId | None = None) -> list[JobId]:
    """Oldest first; those behind `after`."""
    conditions = _conditions(wanted)
    if after is not None:
        conditions.add(f"jobs.id > {conditions.put(after)}")
    statement = filled(sql.job_search.job_ids, join=_join(wanted), conditions=str(conditions))
    return [row["id"] for row in await tx.fetch(statement, _params(tx, conditions, limit))]


async def count_jobs(tx: Tx, wanted: JobFilter, limit: int) -> int:
    """How many, counting no further than `limit`."""
    conditions = _conditions(wanted)
    statement = filled(sql.job_search.count_jobs, join=_join(wanted), conditions=str(conditions))
    row = await tx.fetch_one(statement, _params(tx, conditions, limit))
    return int(row["found"]) if row else 0


async def find_owners(tx: Tx, names: Iterable[str]) -> list[tuple[str, PrincipalId]]:
    """Who has these names, in small letters."""
    params = {"workspace_id": tx.workspace_id, "names": list(names)}
    return [(row["name"], row["id"]) for row in await tx.fetch(sql.job_search.owners, params)]


def _conditions(wanted: JobFilter) -> Conditions:
    conditions = Conditions()
    if not any(wanted.query.of("status")):
        conditions.add("jobs.status <> 'archived'")
    if wanted.visible_owner is not None:
        conditions.add(f"jobs.owner_id = {conditions.put(wanted.visible_owner)}")
    conditions.add_query(wanted.query, _COLUMNS)
    return conditions


def _join(wanted: JobFilter, order: JobOrder | None = None) -> str:
    is_needed = any(term.field in _OF_TIMERS for term in wanted.query.terms)
    if order is not None and order.by is JobSort.NEXT:
        is_needed = True
    return "JOIN timers ON timers.job_id = jobs.id" if is_needed else ""


def _walk(
    wanted: JobFilter,
    order: JobOrder,
    after: Place | None,
    conditions: Conditions,
    key: str,
    only: str = "true",
) -> str:
    way = "DESC" if order.descending else "ASC"
    behind = "true" if after is None else _behind(order, key, after, conditions)
    statement = filled(
        sql.job_search.page,
        key=key if order.by in _KINDS else "NULL",
        join=_join(wanted, order),
        conditions=f"{conditions} AND {only} AND {behind}",
        order=f"{key} {way}" if order.by is JobSort.CREATED else f"{key} {way}, jobs.id {way}",
    )
    return statement.text.decode()


def _behind(order: JobOrder, key: str, after: Place, conditions: Conditions) -> str:
    sign = "<" if order.descending else ">"
    if order.by is JobSort.CREATED:
        return f"jobs.id {sign} {conditions.put(after.id)}"
    kind, at = _KINDS[order.by], conditions.put(after.key)
    # Said twice: an index on the key alone can start at its bound, but not at the pair.
    return (
        f"{key} {sign}= {at}::{kind} AND ({key}, jobs.id) {sign} ({at}::{kind}, {conditions.put(after.id)})"
    )


def _params(tx: Tx, conditions: Conditions, limit: int) -> dict[str, Any]:
    return {**conditions.params, "workspace_id": tx.workspace_id, "limit": limit}
