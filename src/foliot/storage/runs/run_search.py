"""Run search: pages of the runs that match a query, newest first.

Runs of a job are ordered by planned time, runs of a workspace by creation; both are index scans. A query that matches few rows
scans a bounded part of the index and returns where to continue, so a page may be short and still have a next one.

Why: docs/decisions/503-run-search.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from foliot.domain.filters import Between, Query, Value
from foliot.domain.ids import JobId, PrincipalId, RunId, WorkspaceId
from foliot.domain.lifecycle import RunStatus
from foliot.domain.run import FINGERPRINTED, VARIABLE_PARTS
from foliot.storage.filter_sql import Column, Conditions, Put, any_in, filled, holds_text, one_of, within
from foliot.storage.queries import SqlQuery, sql
from foliot.storage.runs.run_history import RunRecord, RunRow, first_id_at
from foliot.storage.tx import Tx

MOST_SCANNED = 5_000  # records that one page scans when its filter matches few
BUCKETS = [10, 60, 300, 900, 3_600, 10_800, 21_600, 86_400, 604_800, 2_592_000, 31_536_000]  # seconds
LATE = timedelta(minutes=5)  # as in the index runs_recorded_late
SLACK = timedelta(minutes=1)  # for a clock that was set back
OPEN = {
    RunStatus.RUNNING: "leases",
    RunStatus.READY: "ready",
    RunStatus.WAITING: "waiting",
}  # the tables of open runs
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


_FINGERPRINT = (
    "runs.error ->> 'code' || ':' || left(encode(sha256(convert_to(btrim(lower(regexp_replace("
    "left(runs.error ->> 'message', %(fingerprinted)s), %(variable_parts)s, '#', 'g') COLLATE \"C\"), E' \\t\\n\\r\\f\\v'),"
    " 'UTF8')), 'hex'), 16)"
)  # as RunError.fingerprint
_OF_FINGERPRINTS = {"fingerprinted": FINGERPRINTED, "variable_parts": VARIABLE_PARTS}


def _by_error(put: Put, values: Sequence[Value]) -> str:
    """Match a code or a fingerprint. The code is compared first: it costs less."""
    named = put(list(values))
    codes = put([str(value).rpartition(":")[0] for value in values])
    return (
        f"runs.error ->> 'code' = ANY ({named}::text[])"
        f" OR runs.error ->> 'code' = ANY ({codes}::text[]) AND {_FINGERPRINT} = ANY ({named}::text[])"
    )


def _by_worker(put: Put, values: Sequence[Value]) -> str:
    """Match a worker by id, or by the name of a live one."""
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
    "error": _by_error,
    "planned": within("runs.planned_for", "timestamptz"),
    "number": within("runs.number", "bigint"),
    "attempts": within(_ATTEMPTS, "bigint"),
}
_OF_JOBS = frozenset(("tag", "type", "queue", "name"))


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Runs that match a query; with `visible_owner` only runs of that owner's jobs."""

    query: Query = Query()
    visible_owner: PrincipalId | None = None

    @property
    def job_id(self) -> JobId | None:
        """Return the only job that can match, if the query names one."""
        terms = [term for term in self.query.of("job") if not term.negated]
        values = terms[0].values if len(terms) == 1 else ()
        return JobId(values[0]) if len(values) == 1 and isinstance(values[0], UUID) else None

    @property
    def open(self) -> list[str]:
        """Return the queue tables that hold every match, if the query asks for open runs only."""
        for term in self.query.of("status"):
            if not term.negated and all(value in OPEN for value in term.values):
                return [OPEN[RunStatus(str(value))] for value in term.values]
        return []

    @property
    def planned(self) -> Between:
        """Return the range that holds the planned times of every match."""
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
    """The last run of a page: the next page begins after it."""

    planned_for: datetime
    id: RunId


@dataclass(frozen=True, slots=True)
class RunPage:
    runs: tuple[RunRecord, ...]
    next: RunCursor | None  # None at the end; a filtered page may be short and still have a next one


async def find_of_job(
    tx: Tx, job_id: JobId, filters: RunFilter, after: RunCursor | None, limit: int
) -> RunPage:
    """List runs of a job by planned time."""
    return await _page(tx, scan_of_job(job_id, filters, after), limit)


async def find_of_workspace(tx: Tx, filters: RunFilter, after: RunCursor | None, limit: int) -> RunPage:
    """List runs of the transaction's workspace by creation."""
    return await _page(tx, scan_of_workspace(tx.workspace_id, filters, after), limit)


@dataclass(frozen=True, slots=True)
class RunScan:
    """An index scan, newest first: `source` has its bounds, `conditions` the filter."""

    source: str
    order: str
    conditions: str
    needs_job: bool
    is_sparse: bool
    params: Mapping[str, Any]

    @property
    def join(self) -> str:
        return "JOIN jobs ON jobs.id = runs.job_id" if self.needs_job else ""

    def summary(self, planned: Between, now: datetime, most: int) -> tuple[SqlQuery, dict[str, Any]]:
        """Count at most MOST_SCANNED records in at most `most` buckets, and by error."""
        statement = filled(
            sql.run_search.summarize_runs,
            source=self.source,
            join=self.join,
            conditions=self.conditions,
            status=_STATUS,
            fingerprint=_FINGERPRINT,
            place="planned_for" if self.order.startswith("planned_for") else "created_at",
        )
        params = {"low": planned.low, "high": planned.high or now, "widths": BUCKETS, "most": most}
        return statement, {**self.params, **params, "scan": MOST_SCANNED}

    def page(self, limit: int) -> tuple[SqlQuery, dict[str, Any]]:
        statement = filled(
            sql.run_search.find_runs,
            source=self.source,
            join=self.join,
            conditions=self.conditions,
            order=_of("runs", self.order),
            newest_order=_of("newest", self.order),
        )
        scanned = MOST_SCANNED if self.is_sparse else limit + 1
        return statement, {**self.params, "scan": scanned, "limit": limit + 1}

    def end(self) -> tuple[SqlQuery, dict[str, Any]]:
        statement = filled(sql.run_search.find_scan_end, source=self.source, order=self.order)
        return statement, {**self.params, "scan": MOST_SCANNED}


class SummaryRow(NamedTuple):
    """Counts of one bucket and status, of one error, or of all; `low`, `width`, `scanned` and `reached` are the same in each."""

    low: datetime
    width: int
    scanned: int
    reached: datetime | None  # the oldest record read
    bucket: datetime | None
    status: RunStatus | None
    fingerprint: str | None
    runs: int
    jobs: int
    first_at: datetime | None
    last_at: datetime | None
    newest: RunId | None


class ErrorSample(NamedTuple):
    """A run that ended with an error."""

    id: RunId
    code: str
    message: str
    job_id: JobId
    job_name: str | None


async def summarize(tx: Tx, filters: RunFilter, buckets: int) -> list[SummaryRow]:
    """Count what a page of this filter would read, and as much as one page may read."""
    if (job_id := filters.job_id) is not None:
        scan = scan_of_job(job_id, filters, None)
    else:
        scan = scan_of_workspace(tx.workspace_id, filters, None)
    return await tx.fetch_as(SummaryRow, *scan.summary(filters.planned, tx.now, buckets))


async def load_errors(tx: Tx, run_ids: Sequence[RunId]) -> dict[RunId, ErrorSample]:
    rows = await tx.fetch_as(ErrorSample, sql.run_search.load_errors, {"ids": list(run_ids)})
    return {row.id: row for row in rows}


def scan_of_job(job_id: JobId, filters: RunFilter, after: RunCursor | None) -> RunScan:
    planned_range, found, bounds = filters.planned, Conditions(), ["true"]
    if planned_range.low is not None:
        bounds.append(f"planned_for >= {found.put(planned_range.low)}")
    if planned_range.high is not None:
        bounds.append(f"planned_for < {found.put(planned_range.high)}")
    if after is not None:
        bounds.append(f"(planned_for, id) < ({found.put(after.planned_for)}, {found.put(after.id)})")
    source = filled(sql.run_search.scan_job, bounds=" AND ".join(bounds))
    return _scan(filters, source, "planned_for DESC, id DESC", found, {"job_id": job_id})


def scan_of_workspace(
    workspace_id: WorkspaceId | None, filters: RunFilter, after: RunCursor | None
) -> RunScan:
    planned_range, found, bounds = filters.planned, Conditions(), ["true"]
    params: dict[str, Any] = {"workspace_id": workspace_id}
    statement = sql.run_search.scan_workspace
    if isinstance(planned_range.low, datetime):
        bounds.append(f"id >= {found.put(first_id_at(planned_range.low - SLACK))}")
    if after is not None:
        bounds.append(f"id < {found.put(after.id)}")
    if tables := filters.open:
        pieces = [
            filled(sql.run_search.list_open, table=table).text.decode() for table in dict.fromkeys(tables)
        ]
        statement = filled(sql.run_search.scan_workspace_open, open=" UNION ALL ".join(pieces))
    elif isinstance(planned_range.high, datetime):
        statement = sql.run_search.scan_workspace_until
        params |= {"until": planned_range.high, "late_from": first_id_at(planned_range.high + LATE)}
    source = filled(statement, bounds=" AND ".join(bounds))
    return _scan(filters, source, "id DESC", found, params)


def _scan(
    filters: RunFilter, source: SqlQuery, order: str, found: Conditions, params: Mapping[str, Any]
) -> RunScan:
    found.add_query(filters.query, _COLUMNS)
    needs_job = any(term.field in _OF_JOBS for term in filters.query.terms)
    if filters.visible_owner is not None:
        found.add(f"jobs.owner_id = {found.put(filters.visible_owner)}")
        needs_job = True
    is_sparse = bool(filters.query) or needs_job
    every = {**found.params, **params, **_OF_FINGERPRINTS}
    return RunScan(source.text.decode(), order, str(found), needs_job, is_sparse, every)


async def _page(tx: Tx, scan: RunScan, limit: int) -> RunPage:
    rows = await tx.fetch_as(RunRow, *scan.page(limit))
    runs = tuple(row.record for row in rows[:limit])
    if len(rows) > limit:
        return RunPage(runs, RunCursor(runs[-1].planned_for, runs[-1].id))
    if not scan.is_sparse:
        return RunPage(runs, None)
    return RunPage(runs, await tx.fetch_one_as(RunCursor, *scan.end()))


def _of(table: str, order: str) -> str:
    return ", ".join(f"{table}.{key}" for key in order.split(", "))


def _bounds(values: list[Between]) -> tuple[datetime | None, datetime | None]:
    """Return the smallest range that contains all of them."""
    lows, highs = [value.low for value in values], [value.high for value in values]
    low = None if not lows or None in lows else min(each for each in lows if isinstance(each, datetime))
    high = None if not highs or None in highs else max(each for each in highs if isinstance(each, datetime))
    return low, high
