"""Check timers and open runs that should never be wrong, a batch at a time, and correct them under the timer's lock.

A timer that is due too early costs one look of the tick; one that is due too late, or never, loses planned times. The repair sets timers
and counts; the tick and the settlement decide.

Why: docs/decisions/501-background-rounds-move-timers-only.md
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from foliot.domain.freeze import FreezePolicy
from foliot.domain.ids import JobId, RunId
from foliot.domain.job import JobLoad, Timer
from foliot.domain.lifecycle import JobStatus
from foliot.domain.planning.plan import plan_start
from foliot.domain.schedule import ZONE_DATA_VERSION, planned_after
from foliot.services.jobs.context_steps import JobContext, load_job_context
from foliot.services.settlement.settle_steps import ENGINE_ACTOR, SettlementWriter
from foliot.storage import installation, scans
from foliot.storage.jobs import jobs
from foliot.storage.jobs.jobs import StatusChange
from foliot.storage.queue import run_queue
from foliot.storage.scans import START, Scan
from foliot.storage.timers import repair, timers
from foliot.storage.timers.repair import QueuedRun, RescheduledTimer, TimerCheck
from foliot.storage.timers.timers import TimerRow
from foliot.storage.tx import Database, Role, Tx

log = logging.getLogger(__name__)

BATCH = 2_000  # timers or open runs checked in one step
LATE = timedelta(minutes=2)  # a timer this far behind has been passed over by every tick
MAX_DUE = 500  # the batch of a tick: an unreadable timer among them would stop it
MAX_RECORDED = 50  # planned times in a row that have their record already
_RUNNING = (JobStatus.ACTIVE, JobStatus.PENDING)
_UNREADABLE = "Its definition cannot be read; save it again to bring it back."


@dataclass(frozen=True, slots=True)
class RepairResult:
    """`late` counts timers that no tick has taken for a while; `is_complete` ends a round over all of them."""

    looked_at: int = 0
    repaired: int = 0
    late: int = 0
    is_complete: bool = True

    @property
    def is_more(self) -> bool:
        """Return whether to continue at once: after one error there may be more. A round without errors takes its time."""
        return self.repaired > 0 and not self.is_complete


async def repair_timers(database: Database, limit: int = BATCH) -> RepairResult:
    """Check one batch of timers of active and pending jobs."""
    async with database.tx(Role.ENGINE) as tx:
        reached = await scans.lock_position(tx, Scan.TIMERS)
        if reached is None or (await installation.get(tx)).is_held:
            return RepairResult()
        late, unreadable = await repair.list_due(tx, tx.now - LATE, MAX_DUE)
        seen = await repair.list_timers(tx, reached.position, limit)
        unreadable += [each.job_id for each in seen if each.row is None]
        mended = await _correct(tx, await _suspects(tx, seen))
        is_complete = len(seen) < limit
        await scans.store_position(tx, Scan.TIMERS, START if is_complete else seen[-1].job_id)
    if late:
        log.warning("timers.late", extra={"count": late, "by_seconds": LATE.total_seconds()})
    rebuilt = await _rebuild(database, set(unreadable))
    return RepairResult(len(seen), len(mended) + rebuilt, late, is_complete)


async def repair_runs(database: Database, limit: int = BATCH) -> RepairResult:
    """Check one batch of open runs: its timer must count each, and none may have ended."""
    async with database.tx(Role.ENGINE) as tx:
        reached = await scans.lock_position(tx, Scan.RUNS)
        if reached is None:
            return RepairResult()
        seen = await repair.list_open_runs(tx, reached.position, limit)
        over = [each for each in seen if each.is_over]
        unknown = {each.job_id for each in seen if not each.is_known or each.is_over}
        rows = await timers.lock(tx, sorted(unknown)) if over else {}
        discarded = await run_queue.discard(tx, [each.run_id for each in over]) if over else []
        mended = await _correct(tx, unknown, locked=rows)
        is_complete = len(seen) < limit
        await scans.store_position(tx, Scan.RUNS, START if is_complete else seen[-1].run_id)
    for run_id in discarded:
        log.warning("run.discarded", extra={"run": str(run_id), "why": "it was queued although it has ended"})
    return RepairResult(len(seen), len(mended) + len(discarded), is_complete=is_complete)


async def refresh_zone_data(
    database: Database, version: str = ZONE_DATA_VERSION, limit: int = BATCH
) -> int | None:
    """Set every timer to the time that this node's zone data gives it; return how many changed, or None where there is nothing to do.

    The version is stored first: from then on nodes with older data do not tick, so none of them undoes a change. The round is marked
    when it is complete; after a crash another node completes it.
    """
    async with database.tx(Role.ENGINE) as tx:
        stored = (await installation.get(tx)).tzdata_version or ""
        reached = await scans.lock_position(tx, Scan.ZONE_DATA)
        if stored > version:
            log.warning("zone_data.outdated", extra={"ours": version, "stored": stored})
            return None
        if reached is None or (stored == version and reached.mark == version):
            return None
        await installation.set_tzdata_version(tx, version)
    moved, position, is_complete = 0, START, False
    while not is_complete:
        async with database.tx(Role.ENGINE) as tx:
            await installation.lock(tx)  # a node with newer data stores its version before or after this step
            if (await installation.get(tx)).tzdata_version != version:
                return moved
            seen = await repair.list_timers(tx, position, limit)
            mended = await _correct(tx, await _suspects(tx, seen))
            changed = [each for each in mended if each.before != each.after]
            await repair.note_rescheduled(tx, changed, f"zone data {version}")
            is_complete = len(seen) < limit
            position = START if is_complete else seen[-1].job_id
            if is_complete:
                await scans.store_position(tx, Scan.ZONE_DATA, START, mark=version)
            moved += len(changed)
    log.info("zone_data.refreshed", extra={"from": stored, "to": version, "timers": moved})
    return moved


async def _suspects(tx: Tx, seen: Sequence[TimerCheck]) -> set[JobId]:
    context = await load_job_context(tx, [each.row for each in seen if each.row is not None])
    return {
        each.job_id for each in seen if each.row is not None and _is_suspect(each, each.row, context, tx.now)
    }


def _is_suspect(seen: TimerCheck, row: TimerRow, context: JobContext, now: datetime) -> bool:
    miscounts = (
        not seen.finds_its_run
        or (row.live > 0) != (row.live_run_id is not None)
        or seen.behind != row.waiting
        or _is_stuck(row)
    )
    return miscounts or _is_misset(row, _should_be(row, context, now), context, now)


async def _correct(
    tx: Tx, job_ids: Collection[JobId], locked: Mapping[JobId, TimerRow] | None = None
) -> list[RescheduledTimer]:
    """Check the suspects again under their locks, and correct what is wrong."""
    if not job_ids:
        return []
    rows = locked or await timers.lock(tx, sorted(job_ids))
    rows = {job_id: row for job_id, row in rows.items() if row.status in _RUNNING}
    context = await load_job_context(tx, rows.values())
    counted = _counted(rows, await repair.list_queued(tx, rows))
    short = [job_id for job_id, row in counted.items() if row.live + row.waiting < _total(rows[job_id])]
    for run_id, job_id in await repair.end_orphans(tx, short) if short else []:
        log.warning(
            "run.interrupted", extra={"run": str(run_id), "job": str(job_id), "why": "no table held it"}
        )
    placed = await _replanned(tx, counted, context)
    wrong = {job_id: row for job_id, row in placed.items() if row != rows[job_id]}
    await repair.set_timers(tx, list(wrong.values()))
    writer = SettlementWriter(tx, wrong, context)
    for row in wrong.values():
        if _is_stuck(row):
            writer.job(row.job_id).promote_oldest()
    await writer.write()
    for job_id, row in wrong.items():
        _log_repair(rows[job_id], row)
    return [
        RescheduledTimer(row, rows[job_id].timer.next_at, row.timer.next_at) for job_id, row in wrong.items()
    ]


def _counted(rows: Mapping[JobId, TimerRow], queued: Iterable[QueuedRun]) -> dict[JobId, TimerRow]:
    """Return the timers with the counts of ready, leases and waiting."""
    live: dict[JobId, list[RunId]] = defaultdict(list)
    behind: dict[JobId, int] = defaultdict(int)
    for each in queued:
        if each.is_behind:
            behind[each.job_id] += 1
        else:
            live[each.job_id].append(each.run_id)
    counted = {}
    for job_id, row in rows.items():
        mine, current = live[job_id], row.live_run_id
        if not mine:
            current = None
        elif current is None or (current not in mine and row.rules.is_exclusive):
            current = mine[0]
        counted[job_id] = row.with_load(JobLoad(len(mine), behind[job_id]))._replace(live_run_id=current)
    return counted


async def _replanned(tx: Tx, rows: Mapping[JobId, TimerRow], context: JobContext) -> dict[JobId, TimerRow]:
    """Return the timers with the time they should have. Planned times that have their record already are passed over."""
    placed, unsure = dict(rows), list(rows)
    for _ in range(MAX_RECORDED):
        moved = []
        for job_id in unsure:
            row = placed[job_id]
            should = _should_be(row, context, tx.now)
            if row.timer != rows[job_id].timer or _is_misset(row, should, context, tx.now):
                placed[job_id] = row._replace(timer=should)
                moved.append(job_id)
        upcoming = (
            (
                placed[job_id],
                planned_after(context.job(placed[job_id]).timetable, placed[job_id].timer.cursor),
            )
            for job_id in moved
            if placed[job_id].timer.due_at is not None
        )
        asked = {row.job_id: (row, planned) for row, planned in upcoming if planned is not None}
        unsure = list(await repair.find_recorded(tx, asked.values())) if asked else []
        for job_id in unsure:
            row, planned = asked[job_id]
            placed[job_id] = row._replace(timer=replace(row.timer, cursor=planned.planned_for))
        if not unsure:
            break
    return placed


def _should_be(row: TimerRow, context: JobContext, now: datetime) -> Timer:
    timer = row.timer
    try:
        plan = plan_start(context.due(row), now)
    except Exception:  # noqa: BLE001  # the tick meets the same error and records it
        return replace(timer, due_at=timer.due_at or now)
    if plan.events:  # a status change is overdue: the tick makes it
        return replace(timer, due_at=min(timer.due_at or now, now))
    has_end_or_time = plan.timer.ending is not None or plan.timer.due_at is not None
    return plan.timer if has_end_or_time else replace(plan.timer, ending=timer.ending)


def _is_misset(row: TimerRow, should: Timer, context: JobContext, now: datetime) -> bool:
    """Return whether the timer holds another time or ending than it should. A timer that is due is left to the tick."""
    timer = row.timer
    if (timer.due_at is not None and timer.due_at <= now) or row.errors:
        return False
    if any(freeze.after is not FreezePolicy.SKIP and freeze.holds(now) for freeze in context.freezes_of(row)):
        return False  # held: the tick reads the timer when the freeze ends
    return (timer.due_at, timer.ending) != (should.due_at, should.ending)


def _is_stuck(row: TimerRow) -> bool:
    """Return whether runs wait for their turn while no run is live."""
    return row.live == 0 and row.waiting > 0


def _total(row: TimerRow) -> int:
    return row.live + row.waiting


def _log_repair(before: TimerRow, after: TimerRow) -> None:
    fields = {"workspace": str(after.workspace_id), "job": str(after.job_id)}
    log.warning(
        "timer.repaired", extra={**fields, "before": _log_fields(before), "after": _log_fields(after)}
    )


def _log_fields(row: TimerRow) -> dict[str, Any]:
    return {
        "due_at": row.timer.due_at and row.timer.due_at.isoformat(),
        "cursor": row.timer.cursor.isoformat(),
        "live": row.live,
        "waiting": row.waiting,
        "live_run": row.live_run_id and str(row.live_run_id),
    }


async def _rebuild(database: Database, job_ids: Collection[JobId]) -> int:
    """Rebuild unreadable specs from their definitions. Mark the job as failed where that fails too. Return the number of specs."""
    if not job_ids:
        return 0
    async with database.tx(Role.ENGINE) as tx:
        rebuilt = await repair.rebuild_specs(tx, sorted(job_ids))
        lost = [
            StatusChange(job_id, JobStatus.FAILED, _UNREADABLE)
            for job_id, is_whole in rebuilt.items()
            if not is_whole
        ]
        await jobs.change_status(tx, lost, ENGINE_ACTOR)
    for job_id, is_whole in rebuilt.items():
        log.error("timer.unreadable", extra={"job": str(job_id), "rebuilt": is_whole})
    return len(rebuilt)
