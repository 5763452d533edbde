"""Turn freezes on, lift them, and hold or release runs when one begins or ends.

A freeze never edits a job. The tick decides planned times and loads the freezes in force. This module handles runs that exist already:
unclaimed runs wait while the freeze is on and are released at its end.

Why: docs/decisions/204-freezes.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from foliot.domain.access import Actor, Scope
from foliot.domain.errors import Conflict, Invalid, require_found
from foliot.domain.freeze import Freeze, FreezePolicy, RunningPolicy
from foliot.domain.ids import FIRST_ID, LAST_ID, FreezeId, JobId, WorkspaceId
from foliot.domain.job import Job
from foliot.domain.run import WaitsFor
from foliot.domain.schedule import MOST_TIMES, Timetable, count_between, planned_after
from foliot.services.evaluation import evaluate_in_thread
from foliot.services.jobs.context_steps import load_job_context
from foliot.services.scheduling.replan_steps import replan_timers
from foliot.services.settlement.dependent_steps import finish_settlement
from foliot.services.settlement.settle_steps import lock_for_settlement
from foliot.storage.identity import audit
from foliot.storage.identity.audit import AuditEntry
from foliot.storage.jobs import freezes
from foliot.storage.jobs.freezes import FreezeRow, ReleasedRun, ScopedFreeze
from foliot.storage.queue import run_queue, unclaimed_runs
from foliot.storage.queue.unclaimed_runs import WaitingRun
from foliot.storage.runs import explain_queries
from foliot.storage.timers import timers
from foliot.storage.tx import Database, Role, Tx

BATCH = 200
MAX_BATCHES = 50  # in one request; the sweeper does the rest
ATTEMPTS = 3
MAX_JOBS = 1_000  # counted by a preview
SAMPLE = 10  # jobs that a preview names
DAY = timedelta(days=1)
TICK = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class NewFreeze:
    """A freeze to turn on, over the whole workspace or over the jobs, tags and queues it names."""

    reason: str
    everything: bool = False
    jobs: frozenset[JobId] = frozenset()
    tags: frozenset[str] = frozenset()
    queues: frozenset[str] = frozenset()
    start_at: datetime | None = None  # None: now
    end_at: datetime | None = None  # None: until it is lifted
    after: FreezePolicy = FreezePolicy.SKIP
    per_minute: int = 60
    running: RunningPolicy = RunningPolicy.DRAIN


@dataclass(frozen=True, slots=True)
class HeldTime:
    """The first planned time of a job that a freeze would hold."""

    job_id: JobId
    job_name: str
    planned_for: datetime


@dataclass(frozen=True, slots=True)
class FreezePreview:
    """The jobs, planned times and runs that a freeze would cover. Planned times are counted up to its end, or for a day."""

    jobs: int
    planned_times: int
    is_exact: bool  # False: at least so many planned times
    ready: int
    running: int
    until: datetime
    sample: tuple[HeldTime, ...] = ()


@dataclass(frozen=True, slots=True)
class ThawResult:
    runs: int = 0
    timers: int = 0
    is_full: bool = False  # a batch was full: there may be more


async def turn_on(database: Database, scope: Scope, new: NewFreeze) -> FreezeId:
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        frozen = await _scoped(tx, scope.workspace_id, new)
        await freezes.insert(tx, frozen, scope.actor.name)
        await _append_audit(tx, "freeze.turned_on", frozen.freeze, scope.actor)
    # Committed first: a transaction that makes a run from here on sees the freeze; one that did not holds a timer that we lock below.
    freeze, after = frozen.freeze, FIRST_ID
    while freeze.start_at <= tx.now:
        async with database.tx(Role.APP, scope.workspace_id) as tx:
            job_ids = await freezes.list_covered_with_work(tx, freeze.id, after, BATCH)
            await _hold(tx, job_ids)
        if len(job_ids) < BATCH:
            async with database.tx(Role.APP, scope.workspace_id) as tx:
                await _stop(tx)
            break
        after = job_ids[-1]
    return freeze.id


async def lift(database: Database, scope: Scope, freeze_id: FreezeId) -> ThawResult:
    """End a freeze now; return what it released. A freeze that has not begun yet is deleted."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = require_found(await freezes.lock(tx, freeze_id), "freeze")
        freeze = found.scoped.freeze
        if freeze.end_at is not None and freeze.end_at <= tx.now:
            raise Conflict("This freeze is over already.")
        if freeze.start_at > tx.now:
            await freezes.delete(tx, freeze_id)
            await _append_audit(tx, "freeze.taken_back", freeze, scope.actor)
        else:
            await freezes.lift(tx, freeze_id, max(tx.now, freeze.start_at + TICK), scope.actor.name)
            await _append_audit(tx, "freeze.lifted", freeze, scope.actor)
    released = ThawResult()
    for _ in range(MAX_BATCHES):
        some = await _thaw(database, Role.APP, scope.workspace_id, BATCH)
        released = ThawResult(released.runs + some.runs, released.timers + some.timers, some.is_full)
        if not some.is_full:
            break
    return released


async def page(
    database: Database,
    workspace_id: WorkspaceId,
    before: UUID = LAST_ID,
    limit: int = 50,
    *,
    ended: bool = False,
) -> list[FreezeRow]:
    """List freezes in force and to come, newest first; with `ended`, also those that have ended."""
    async with database.tx(Role.APP, workspace_id) as tx:
        return await freezes.page(tx, before, limit, ended=ended)


async def preview(database: Database, workspace_id: WorkspaceId, new: NewFreeze) -> FreezePreview:
    """Count what turning this freeze on would cover."""
    async with database.tx(Role.APP, workspace_id) as tx:
        frozen = await _scoped(tx, workspace_id, new)
        start = frozen.freeze.start_at
        until = frozen.freeze.end_at or start + DAY
        job_ids, total = await freezes.count_covered_jobs(tx, frozen, MAX_JOBS)
        rows = await timers.read(tx, job_ids)
        context = await load_job_context(tx, rows)
        names = await explain_queries.load_names(tx, job_ids)
        ready, running = await freezes.count_affected_runs(tx, frozen)
    jobs = [context.job(row) for row in rows]
    after, last = start - TICK, until - TICK
    planned, sample = await evaluate_in_thread(
        lambda: (
            _count_all([job.timetable for job in jobs], after, last),
            _first_held(jobs, names, after, last),
        )
    )
    is_exact = planned is not None and len(job_ids) == total
    return FreezePreview(
        total, MOST_TIMES if planned is None else planned, is_exact, ready, running, until, sample
    )


def _count_all(timetables: Sequence[Timetable], after: datetime, until: datetime) -> int | None:
    """Count the planned times of all in (after, until]; None above MOST_TIMES."""
    planned = 0
    for timetable in timetables:
        found = count_between(timetable, after, until, MOST_TIMES - planned)
        if found is None:
            return None
        planned += found
    return planned


def _first_held(
    jobs: Sequence[Job], names: Mapping[JobId, str], after: datetime, until: datetime
) -> tuple[HeldTime, ...]:
    """Return the first planned time of each job in (after, until]: the earliest few of them."""
    found = []
    for job in jobs:
        planned = planned_after(job.timetable.bare, after)
        if planned is not None and planned.planned_for <= until:
            found.append(HeldTime(job.id, names.get(job.id, ""), planned.planned_for))
    return tuple(sorted(found, key=lambda held: (held.planned_for, held.job_id))[:SAMPLE])


async def hold(database: Database, limit: int = BATCH) -> int:
    """Hold unclaimed runs that a freeze covers, and cancel running ones where it says so. For the sweeper, since a freeze may begin later."""
    async with database.tx(Role.ENGINE) as tx:
        job_ids = await freezes.list_startable_while_frozen(tx, limit)
        held = await _hold(tx, job_ids)
        if len(job_ids) < limit:
            await freezes.mark_started(tx)
    async with database.tx(Role.ENGINE) as tx:
        return held + await _stop(tx)


async def thaw(database: Database, limit: int = BATCH) -> ThawResult:
    """Release runs and timers that no freeze holds any more. For the sweeper; repeating it changes nothing."""
    return await _thaw(database, Role.ENGINE, None, limit)


async def _hold(tx: Tx, job_ids: Sequence[JobId]) -> int:
    if not job_ids:
        return 0
    rows = await timers.lock(tx, job_ids)
    context = await load_job_context(tx, rows.values())
    moved = 0
    for _ in range(
        ATTEMPTS
    ):  # between two attempts a claim may make a run wait for a limit, or a limit release one
        frozen = [
            run
            for run in await freezes.list_startable(tx, rows)
            if context.is_frozen(rows[run.job_id], run.run_id, run.trigger, tx.now)
        ]
        if not frozen:
            break
        limited = [run.run_id for run in frozen if not run.is_ready]
        await run_queue.set_wait(tx, limited, WaitsFor.FREEZE)
        ready = [run.run_id for run in frozen if run.is_ready]
        moved += len(limited) + await run_queue.hold_ready(tx, ready, WaitsFor.FREEZE)
    return moved


async def _stop(tx: Tx) -> int:
    return len(await run_queue.request_cancel(tx, await freezes.list_runs_to_stop(tx, BATCH)))


async def _thaw(database: Database, role: Role, workspace_id: WorkspaceId | None, limit: int) -> ThawResult:
    async with database.tx(role, workspace_id) as tx:
        found = await freezes.list_runs_to_release(tx, limit)
        released = await _release(tx, found) if found else 0
    async with database.tx(role, workspace_id) as tx:
        reset, is_full = await _reset_timers(tx, limit)
    return ThawResult(released, reset, is_full or len(found) == limit)


async def _release(tx: Tx, found: Sequence[ReleasedRun]) -> int:
    writer = await lock_for_settlement(tx, (run.job_id for run in found))
    still = await unclaimed_runs.still_waiting(tx, [run.run_id for run in found], WaitsFor.FREEZE)
    count = await writer.release(await _paced(tx, still, found))
    await finish_settlement(writer)
    return count


async def _paced(tx: Tx, still: Sequence[WaitingRun], found: Sequence[ReleasedRun]) -> list[WaitingRun]:
    """Space out the starts of runs of a freeze with a rate, behind those that it released before."""
    by_id = {run.run_id: run for run in found}
    groups: dict[FreezeId, list[WaitingRun]] = {}
    paced = []
    for run in still:
        last = by_id[run.run_id]
        if last.freeze_id is not None and last.per_minute is not None:
            groups.setdefault(last.freeze_id, []).append(run)
        else:
            paced.append(run)
    for freeze_id in sorted(groups):
        group = groups[freeze_id]
        pace = timedelta(minutes=1) / (by_id[group[0].run_id].per_minute or 1)
        start = await freezes.reserve_slots(tx, freeze_id, pace * len(group))
        paced += [
            replace(run, available_at=max(run.available_at, start + pace * index))
            for index, run in enumerate(group)
        ]
    return paced


async def _reset_timers(tx: Tx, limit: int) -> tuple[int, bool]:
    """Plan timers again that wait for the end of a freeze that was lifted earlier."""
    lifted = await freezes.find_lifted(tx)
    if lifted is None:
        return 0, False
    job_ids = await freezes.list_held_timers(tx, lifted, limit)
    moved = await replan_timers(tx, (await timers.lock(tx, job_ids)).values())
    is_full = len(job_ids) == limit
    await freezes.store_thaw_progress(
        tx, lifted, job_ids[-1] if job_ids else lifted.thawed_to, done=not is_full
    )
    return moved, is_full


async def _scoped(tx: Tx, workspace_id: WorkspaceId, new: NewFreeze) -> ScopedFreeze:
    if new.everything == bool(new.jobs or new.tags or new.queues):
        raise Invalid(
            "A freeze covers everything, or the jobs, tags and queues it names.",
            pointer="/scope",
            hint="Name at least one, or ask for everything.",
        )
    if missing := new.jobs - (await explain_queries.load_names(tx, sorted(new.jobs))).keys():
        raise Invalid(f"There is no job {min(missing)}.", pointer="/scope/jobs")
    start_at = new.start_at or tx.now
    if start_at < tx.now:
        raise Invalid("A freeze begins now or later.", pointer="/start_at")
    freeze = Freeze(
        FreezeId(tx.new_id()), start_at, new.end_at, new.after, new.per_minute, new.running, new.reason
    )
    return ScopedFreeze(freeze, workspace_id, frozenset(map(str, new.jobs)), new.tags, new.queues)


async def _append_audit(tx: Tx, action: str, freeze: Freeze, by: Actor) -> None:
    after = {"reason": freeze.reason, "end_at": freeze.end_at and freeze.end_at.isoformat()}
    await audit.append(tx, tx.new_id(), AuditEntry(action, "freeze", str(freeze.id), by, after=after))
