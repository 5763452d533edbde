"""Read the run history: one run, its attempts, the runs of a job or workspace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from foliot.domain.access import ADMINISTRATOR, Scope
from foliot.domain.errors import Invalid
from foliot.domain.explain.records import what_became_of
from foliot.domain.ids import JobId, RunId
from foliot.domain.lifecycle import RunStatus
from foliot.domain.run import effective_input
from foliot.services.cursors import ListPage, instant, read_cursor, write_cursor
from foliot.services.jobs.visibility_steps import check_job_visible, require_visible_run
from foliot.storage.content import artifacts, logs
from foliot.storage.identity import members
from foliot.storage.runs import run_history, run_search, usage
from foliot.storage.runs.run_history import AttemptRecord, NextAttempt, RecentRun, RunRecord
from foliot.storage.runs.run_search import ErrorSample, RunCursor, RunFilter, RunPage
from foliot.storage.tx import Database, Role, Tx
from foliot.storage.workers import workers

PAGE = 50
LONGEST_PAGE = 200
MOST_ATTEMPTS = 10  # shown with a run; the others are listed separately
EVERYTHING = RunFilter()
BUCKETS, MOST_BUCKETS = 48, 200
MOST_ERRORS = 50

__all__ = ["AttemptRecord", "NextAttempt", "RecentRun", "RunFilter", "RunRecord"]


@dataclass(frozen=True, slots=True)
class RunBucket:
    at: datetime
    runs: Mapping[RunStatus, int]


@dataclass(frozen=True, slots=True)
class ErrorGroup:
    """Runs that ended with the same error; `newest` is one of them."""

    fingerprint: str
    runs: int
    jobs: int
    first_at: datetime
    last_at: datetime
    newest: ErrorSample


@dataclass(frozen=True, slots=True)
class RunSummary:
    """Counts over a bounded number of records; `counted_since` is where the scan stopped, None if it read all."""

    since: datetime
    until: datetime
    width: timedelta
    buckets: tuple[RunBucket, ...]
    runs: int
    by_status: Mapping[RunStatus, int]
    errors: tuple[ErrorGroup, ...]
    counted_since: datetime | None


async def run(database: Database, scope: Scope, run_id: RunId) -> RunRecord:
    """Return the run with its newest attempts, artifacts, next attempt and the names of people and workers."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = (await require_visible_run(tx, run_id, scope)).run
        tried = await run_history.list_attempts(tx, run_id) if found.attempt_count else ()
        [shown] = await _with_inputs(tx, await _with_progress(tx, [found]))
        tried = await _with_inputs_of_attempts(tx, found, await _with_names(tx, tried[-MOST_ATTEMPTS:]))
        return replace(
            shown,
            attempts=tried,
            called=next((each.called for each in tried if each.worker == found.worker), None),
            triggered_by_name=found.triggered_by
            and (await members.name_actor(tx, found.triggered_by) or ADMINISTRATOR),
            artifacts=tuple(await artifacts.list_of_run(tx, run_id)) if tried else (),
            next_try=await _next_try(tx, found, tried),
            usage=await usage.load_of_run(tx, run_id),
        )


async def attempts_of(database: Database, scope: Scope, run_id: RunId) -> tuple[AttemptRecord, ...]:
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = (await require_visible_run(tx, run_id, scope)).run
        tried = await _with_names(tx, await run_history.list_attempts(tx, run_id))
        return await _with_inputs_of_attempts(tx, found, tried)


async def of_job(
    database: Database,
    scope: Scope,
    job_id: JobId,
    wanted: RunFilter = EVERYTHING,
    *,
    cursor: str | None = None,
    limit: int = PAGE,
) -> ListPage[RunRecord]:
    """List runs of a job by planned time, newest first."""
    after = _read_position(cursor)
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        await check_job_visible(tx, job_id, scope)
        # The caller may see this job, so the query needs no filter by owner.
        return await _history(tx, await run_search.find_of_job(tx, job_id, wanted, after, _fitting(limit)))


async def of_workspace(
    database: Database,
    scope: Scope,
    wanted: RunFilter = EVERYTHING,
    *,
    cursor: str | None = None,
    limit: int = PAGE,
) -> ListPage[RunRecord]:
    """List runs by creation, newest first; runs of a single job by planned time."""
    after = _read_position(cursor)
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        wanted = replace(wanted, visible_owner=scope.visible_owner)
        if (job_id := wanted.job_id) is not None:
            return await _history(
                tx, await run_search.find_of_job(tx, job_id, wanted, after, _fitting(limit))
            )
        return await _history(tx, await run_search.find_of_workspace(tx, wanted, after, _fitting(limit)))


async def summarize(
    database: Database, scope: Scope, wanted: RunFilter = EVERYTHING, *, buckets: int = BUCKETS
) -> RunSummary:
    """Count the runs that a filter finds over time, by status and by error. Reads as many records as one page may."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        wanted = replace(wanted, visible_owner=scope.visible_owner)
        rows = await run_search.summarize(tx, wanted, buckets)
        groups = sorted(
            (row for row in rows if row.fingerprint), key=lambda row: (-row.runs, row.fingerprint)
        )
        samples = await run_search.load_errors(tx, [row.newest for row in groups[:MOST_ERRORS] if row.newest])
        until = wanted.planned.high
        now = tx.now
    whole = next(row for row in rows if row.bucket is None and row.status is None and row.fingerprint is None)
    by_bucket: dict[datetime, dict[RunStatus, int]] = {}
    by_status: Counter[RunStatus] = Counter()
    for row in rows:
        if row.bucket is not None and row.status is not None:
            by_bucket.setdefault(row.bucket, {})[row.status] = row.runs
            by_status[row.status] += row.runs
    is_cut = whole.scanned >= run_search.MOST_SCANNED
    return RunSummary(
        since=whole.low,
        until=until if isinstance(until, datetime) else now,
        width=timedelta(seconds=whole.width),
        buckets=tuple(RunBucket(at, by_bucket[at]) for at in sorted(by_bucket)),
        runs=by_status.total(),
        by_status=by_status,
        errors=tuple(
            ErrorGroup(row.fingerprint, row.runs, row.jobs, row.first_at, row.last_at, samples[row.newest])
            for row in groups
            if row.newest in samples and row.fingerprint and row.first_at and row.last_at
        ),
        counted_since=whole.reached if is_cut else None,
    )


async def recent(
    database: Database, scope: Scope, job_ids: Sequence[JobId], limit: int, since: datetime | None = None
) -> dict[JobId, list[RecentRun]]:
    """Return the newest records of each job that the caller sees, planned from `since` on; jobs without any are left out."""
    found: dict[JobId, list[RecentRun]] = {}
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        wanted = list(dict.fromkeys(job_ids))
        for each in await run_history.list_recent(tx, wanted, limit, since, scope.visible_owner):
            found.setdefault(each.job_id, []).append(each)
    return found


async def _with_inputs(tx: Tx, runs: Sequence[RunRecord]) -> tuple[RunRecord, ...]:
    """Add the effective input. A run stores only its own input; the payload is that of the revision its newest attempt ran."""
    payloads = await run_history.load_payloads(tx, {run.job_id for run in runs})
    return tuple(
        replace(run, input=effective_input(payloads[run.job_id].of(run.revision, _ended_at(run)), run.input))
        if run.job_id in payloads
        else run
        for run in runs
    )


def _ended_at(run: RunRecord) -> datetime | None:
    """Return an instant whose payload an ended run of an older version had; None for a run that may start again."""
    return run.finished_at and (run.started_at or run.finished_at)


async def _with_inputs_of_attempts(
    tx: Tx, run: RunRecord, tried: Sequence[AttemptRecord]
) -> tuple[AttemptRecord, ...]:
    payloads = (await run_history.load_payloads(tx, {run.job_id})).get(run.job_id) if tried else None
    if payloads is None:
        return tuple(tried)
    return tuple(
        replace(each, input=effective_input(payloads.of(each.revision, each.leased_at), run.input))
        for each in tried
    )


async def _with_progress(tx: Tx, runs: Sequence[RunRecord]) -> Sequence[RunRecord]:
    """Add the progress of running runs."""
    running = [run.id for run in runs if run.status is RunStatus.RUNNING]
    found = await logs.load_progress(tx, running) if running else {}
    return (
        [replace(run, progress=found[run.id]) if run.id in found else run for run in runs] if found else runs
    )


async def _with_names(tx: Tx, tried: Sequence[AttemptRecord]) -> tuple[AttemptRecord, ...]:
    names = await workers.load_names(tx, {each.worker for each in tried})
    return tuple(replace(each, called=names.get(each.worker)) for each in tried)


async def _next_try(tx: Tx, run: RunRecord, tried: Sequence[AttemptRecord]) -> NextAttempt | None:
    if run.status not in (RunStatus.READY, RunStatus.WAITING) or not tried:
        return None
    at, last = await run_history.load_earliest_start(tx, run.id), tried[-1]
    if at is None:  # a worker has just claimed it
        return None
    return NextAttempt(run.attempt_count + 1, at, what_became_of(last.number, last.status, last.error))


def _fitting(limit: int) -> int:
    if not 1 <= limit <= LONGEST_PAGE:
        raise Invalid(f"A page has 1 to {LONGEST_PAGE} items.", pointer="/limit")
    return limit


async def _history(tx: Tx, page: RunPage) -> ListPage[RunRecord]:
    shown = await _with_inputs(tx, await _with_progress(tx, page.runs))
    last = page.next
    return ListPage(shown, None if last is None else write_cursor(last.planned_for, last.id))


def _read_position(cursor: str | None) -> RunCursor | None:
    found = read_cursor(cursor, instant, UUID)
    return None if found is None else RunCursor(found[0], RunId(found[1]))
