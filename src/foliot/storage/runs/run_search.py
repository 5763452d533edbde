"""Runs as people look through them: those a query finds, page by page, newest first.

Of one job they come by planned time, of a workspace by when they were recorded; both are walks along an index. A query that leaves most
of them out walks a bounded stretch and says where to go on, so a page may be short and still have a next one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from foliot.domain.filters import Between, Query, Value
from foliot.domain.ids import JobId, PrincipalId, RunId, WorkspaceId
from foliot.domain.lifecycle import RunStatus
from foliot.storage.filter_sql import Column, Conditions, Put, any_in, filled, holds_text, one_of, within
from foliot.storage.queries import SqlQuery as Statement
from foliot.storage.queries import sql
from foliot.storage.runs.run_history import RunRecord, first_id_at, record
from foliot.storage.tx import Tx

MOST_SCANNED = 5_000  # records that one page looks at, when a filter leaves most of them out
LATE = timedelta(minutes=5)  # as runs_recorded_late has it
SLACK = timedelta(minutes=1)  # a clock that was set back
OPEN = {
    RunStatus.RUNNING: "leases",
    RunStatus.READY: "ready",
    RunStatus.WAITING: "waiting",
}  # and where they stand
_STATUS = (
    "COALESCE(runs.status, CASE WHEN EXISTS (SELECT FROM leases WHERE leases.run_id = runs.id) THEN 'running'"
    " WHEN EXISTS (SELECT FROM waiting WHERE waiting.run_id = runs.id) THEN 'waiting' ELSE 'ready' END)"
)
_WORKER = "COALESCE((SELECT worker_id FROM leases WHERE leases.run_id = runs.id), runs.worker_id)"
_ATTEMPTS = (
    "COALESCE((SELECT attempts FROM leases WHERE leases.run_id = runs.id),"
    " (SELECT attempts FROM ready WHERE ready.run_id = runs.id),"
    " (SELECT attempts FROM waiting WHERE waiting.run_id = runs.id), runs.attempt_count)"
)


def _by_worker(put: Put, values: Sequence[Value]) -> str:
    """By its id, or by the name of one that is alive."""
    named = put(list(values))
    return f"{_WORKER}::text = ANY ({named}::text[]) OR {_WORKER} IN (SELECT id FROM workers WHERE name = ANY ({named}::text[]))"  # noqa: S608


_COLUMNS: Mapping[str, Column] = {
    "status": one_of(_STATUS),
    "reason": one_of("runs.skip_reason"),
    "trigger": one_of("runs.trigger"),
    "job": one_of("runs.job_id", "uuid"),
    "tag": any_in("jobs.tags"),
    "type": one_of("jobs.type"),
    "queue": one_of("jobs.queue"),
    "name": holds_text("jobs.name"),
    "id": one_of("runs.id", "uuid"),
    "worker": _by_worker,
    "planned": within("runs.planned_for", "timestamptz"),
    "number": within("runs.number", "bigint"),
    "attempts": within(_ATTEMPTS, "bigint"),
}
_OF_JOBS = frozenset(("tag", "type", "queue", "name"))


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs: those of a query, and of one owner's jobs where that is all the asker may see."""

    query: Query = Query()
    visible_owner: PrincipalId | None = None

    @property
    def job_id(self) -> JobId | None:
        """The one job that it is all about."""
        terms = [term for term in self.query.of("job") if not term.negated]
        values = terms[0].values if len(terms) == 1 else ()
        return JobId(values[0]) if len(values) == 1 and isinstance(values[0], UUID) else None

    @property
    def open(self) -> list[str]:
        """The tables that hold all it may find, where it asks for none that has ended."""
        for term in self.query.of("status"):
            if not term.negated and all(value in OPEN for value in term.values):
                return [OPEN[RunStatus(str(value))] for value in term.values]
        return []

    @property
    def planned(self) -> Between:
        """The stretch that holds all planned times it may find."""
        low: datetime | None = None
        high: datetime | None = None
        for term in self.query.of("planned"):
            if not term.negated:
                lows, highs = _bounds([value for value in term.values if isinstance(value, Between)])
                low = max(filter(None, (low, lows)), default=None)
                high = min(filter(None, (high, highs)), default=None)
        return Between(low, high)


@dataclass(frozen=True, slots=True)
class RunCursor:
    """Where a page ended: the next one begins right after it."""

    planned_for: datetime
    id: RunId


@dataclass(frozen=True, slots=True)
class RunPage:
    runs: tuple[RunRecord, ...]
    next: RunCursor | None  # None at the end; a filtered page may be short and still have a next one


async def of_job(tx: Tx, job_id: JobId, wanted: RunFilter, after: RunCursor | None, limit: int) -> RunPage:
    """By planned time."""
    return await _page(tx, scan_of_job(job_id, wanted, after), limit)


async def of_workspace(tx: Tx, wanted: RunFilter, after: RunCursor | None, limit: int) -> RunPage:
    """By when they were recorded, in the workspace of the transaction."""
    return await _page(tx, scan_of_workspace(tx.workspace_id, wanted, after), limit)


@dataclass(frozen=True, slots=True)
class RunScan:
    """Along an index, newest first: where it begins and how far it goes at most is in `source`, what it picks up in `conditions`."""

    source: str
    order: str
    conditions: str
    needs_job: bool
    is_sparse: bool
    params: Mapping[str, Any]

    def page(self, limit: int) -> tuple[Statement, dict[str, Any]]:
        statement = filled(
            sql.run_search.runs,
            source=self.source,
            join="JOIN jobs ON jobs.id = runs.job_id" if self.needs_job else "",
            conditions=self.conditions,
            order=_of("runs", self.order),
            newest_order=_of("newest", self.order),
        )
        scan = MOST_SCANNED if self.is_sparse else limit + 1
        return statement, {**self.params, "scan": scan, "limit": limit + 1}

    def floor(self) -> tuple[Statement, dict[str, Any]]:
        statement = filled(sql.run_search.floor, source=self.source, order=self.order)
        return statement, {**self.params, "scan": MOST_SCANNED}


def scan_of_job(job_id: JobId, wanted: RunFilter, after: RunCursor | None) -> RunScan:
    stretch, found, bounds = wanted.planned, Conditions(), ["true"]
    if stretch.low is not None:
        bounds.append(f"planned_for >= {found.put(stretch.low)}")
    if stretch.high is not None:
        bounds.append(f"planned_for < {found.put(stretch.high)}")
    if after is not None:
        bounds.append(f"(planned_for, id) < ({found.put(after.planned_for)}, {found.put(after.id)})")
    source = filled(sql.run_search.of_job, bounds=" AND ".join(bounds))
    return _walk(wanted, source, "planned_for DESC, id DESC", found, {"job_id": job_id})


def scan_of_workspace(
    workspace_id: WorkspaceId | None, wanted: RunFilter, after: RunCursor | None
) -> RunScan:
    stretch, found, bounds = wanted.planned, Conditions(), ["true"]
    params: dict[str, Any] = {"workspace_id": workspace_id}
    statement = sql.run_search.of_workspace
    if isinstance(stretch.low, datetime):
        bounds.append(f"id >= {found.put(first_id_at(stretch.low - SLACK))}")
    if after is not None:
        bounds.append(f"id < {found.put(after.id)}")
    if tables := wanted.open:
        pieces = [filled(sql.run_search.open, table=table).text.decode() for table in dict.fromkeys(tables)]
        statement = filled(sql.run_search.of_workspace_open, open=" UNION ALL ".join(pieces))
    elif isinstance(stretch.high, datetime):
        statement = sql.run_search.of_workspace_until
        params |= {"until": stretch.high, "late_from": first_id_at(stretch.high + LATE)}
    source = filled(statement, bounds=" AND ".join(bounds))
    return _walk(wanted, source, "id DESC", found, params)


def _walk(
    wanted: RunFilter, source: Statement, order: str, found: Conditions, params: Mapping[str, Any]
) -> RunScan:
    found.add_query(wanted.query, _COLUMNS)
    needs_job = any(term.field in _OF_JOBS for term in wanted.query.terms)
    if wanted.visible_owner is not None:
        found.add(f"jobs.owner_id = {found.put(wanted.visible_owner)}")
        needs_job = True
    is_sparse = bool(wanted.query) or needs_job
    return RunScan(source.text.decode(), order, str(found), needs_job, is_sparse, {**found.params, **params})


async def _page(tx: Tx, walk: RunScan, limit: int) -> RunPage:
    rows = await tx.fetch(*walk.page(limit))
    runs = tuple(record(row) for row in rows[:limit])
    if len(rows) > limit:
        return RunPage(runs, RunCursor(runs[-1].planned_for, runs[-1].id))
    if not walk.is_sparse:
        return RunPage(runs, None)
    last = await tx.fetch_one(*walk.floor())
    return RunPage(runs, None if last is None else RunCursor(last["planned_for"], last["id"]))


def _of(table: str, order: str) -> str:
    return ", ".join(f"{table}.{key}" for key in order.split(", "))


def _bounds(values: list[Between]) -> tuple[datetime | None, datetime | None]:
    """Of any of them: from where the first begins to where the last ends."""
    lows, highs = [value.low for value in values], [value.high for value in values]
    low = None if not lows or None in lows else min(each for each in lows if isinstance(each, datetime))
    high = None if not highs or None in highs else max(each for each in highs if isinstance(each, datetime))
    return low, high
