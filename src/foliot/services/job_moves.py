"""Stopping and starting jobs: pause, resume, disable, archive, purge."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from datetime import datetime

from foliot.domain.access import Actor
from foliot.domain.errors import Conflict, DatabaseUnavailable, Invalid, NotFound
from foliot.domain.ids import JobId, WorkspaceId
from foliot.domain.lifecycle import JobEvent, JobStatus, advance
from foliot.domain.outcomes import Cancelled
from foliot.domain.planning import plan_resume
from foliot.services.dependencies import release_upstream
from foliot.services.editing import check_revision
from foliot.services.firing import fire_one, status_after
from foliot.services.in_hand import InHand, note, take
from foliot.services.settling import BY
from foliot.storage import jobs, standing, timer_moves, timers
from foliot.storage.jobs import Move
from foliot.storage.timers import Planned, Told
from foliot.storage.tx import Database, Role, Tx

log = logging.getLogger(__name__)

PURGED_AT_ONCE = 2_000  # run records, in one transaction
RESUMED_AT_ONCE = 100  # jobs whose pause is over, in one pass of the sweeper


@dataclass(frozen=True, slots=True)
class Moved:
    status: JobStatus
    next_at: datetime | None = None


async def pause(
    database: Database,
    workspace_id: WorkspaceId,
    job_id: JobId,
    by: Actor,
    *,
    reason: str | None = None,
    until: datetime | None = None,
) -> Moved:
    """No run starts by schedule until somebody resumes it, or `until` has come. What runs now runs on."""
    async with database.tx(Role.APP, workspace_id) as tx:
        if until is not None and until <= tx.now:
            raise Invalid(
                "A pause ends in the future.", pointer="/until", hint="Leave it out to pause until resumed."
            )
        hand = await take(tx, job_id)
        moved = await _stop(tx, hand, JobEvent.PAUSE, reason, by)
        await jobs.set_paused_until(tx, job_id, until)
        after = {"reason": reason, "until": until and until.isoformat()}
        await note(
            tx, "job.paused", ("job", job_id), by, before={"status": hand.row.status.value}, after=after
        )
        return moved


async def disable(
    database: Database, workspace_id: WorkspaceId, job_id: JobId, by: Actor, *, reason: str | None = None
) -> Moved:
    """As a pause without an end: switched off until somebody resumes it."""
    async with database.tx(Role.APP, workspace_id) as tx:
        hand = await take(tx, job_id)
        moved = await _stop(tx, hand, JobEvent.DISABLE, reason, by)
        before = {"status": hand.row.status.value}
        await note(tx, "job.disabled", ("job", job_id), by, before=before, after={"reason": reason})
        return moved


async def resume(
    database: Database, workspace_id: WorkspaceId, job_id: JobId, by: Actor, *, catch_up: bool = False
) -> Moved:
    """Back to work: what went by meanwhile becomes one record, and only `catch_up` runs any of it."""
    async with database.tx(Role.APP, workspace_id) as tx:
        return await _resume(tx, await take(tx, job_id, dependents=True), by, catch_up=catch_up)


async def resume_due(database: Database, limit: int = RESUMED_AT_ONCE) -> int:
    """Resume the jobs whose pause is over; answers with how many there were to look at. One that cannot stops no other."""
    async with database.tx(Role.ENGINE) as tx:
        found = await jobs.due_to_resume(tx, limit)
    for workspace_id, job_id in found:
        try:
            await _resume_if_due(database, workspace_id, job_id)
        except NotFound:
            continue  # purged since it was found
        except DatabaseUnavailable:
            raise
        except Exception:  # it stays paused until somebody looks at it, and is not found again
            log.exception("job.not_resumed", extra={"workspace": str(workspace_id), "job": str(job_id)})
            async with database.tx(Role.APP, workspace_id) as tx:
                await jobs.set_paused_until(tx, job_id, None)
    return len(found)


async def archive(
    database: Database,
    workspace_id: WorkspaceId,
    job_id: JobId,
    by: Actor,
    expected_revision: int | None = None,
    *,
    detach: bool = False,
) -> Moved:
    """Put it away with its history. What runs now runs on to its end; what has not started is cancelled."""
    async with database.tx(Role.APP, workspace_id) as tx:
        await release_upstream(tx, job_id, by, detach=detach)
        hand = await take(tx, job_id)
        await _check_revision(tx, job_id, expected_revision)
        row = hand.row
        status = advance(row.status, JobEvent.ARCHIVE)
        await timer_moves.halt(tx, job_id)
        await jobs.move(tx, [Move(job_id, status)], by.name)
        # Archived first: the ends of its runs then neither promote nor complete anything.
        gone = row._replace(status=status, timer=replace(row.timer, due_at=None, next_at=None, ending=None))
        settling = hand.settling(tx, gone)
        cancelled = await settling.end_standing(await standing.of_job(tx, row), Cancelled())
        await settling.write()
        after = {"cancelled_runs": len(cancelled), "detached": detach}
        await note(tx, "job.archived", ("job", job_id), by, before={"status": row.status.value}, after=after)
        return Moved(status)


async def purge(
    database: Database,
    workspace_id: WorkspaceId,
    job_id: JobId,
    by: Actor,
    expected_revision: int | None = None,
    *,
    force: bool = False,
    detach: bool = False,
) -> int:
    """Remove it with its history; answers with how many run records went at once: of a long history the janitor takes the rest.

    Only `force` takes runs out of workers' hands.
    """
    async with database.tx(Role.APP, workspace_id) as tx:
        await release_upstream(tx, job_id, by, detach=detach)
        hand = await take(tx, job_id)
        await _check_revision(tx, job_id, expected_revision)
        leased = await standing.leased(tx, hand.row)
        if leased and not force:
            raise Conflict(
                f"{len(leased)} of its runs are under way.",
                hint="Cancel them first, or purge with force: their results are then refused.",
            )
        stored = await jobs.get(tx, job_id)
        await jobs.mark_purged(tx, job_id, hand.row.rules.spec.queue)
        gone = await jobs.purge(tx, job_id, PURGED_AT_ONCE)
        before = {"name": stored and stored.definition.name, "runs": gone, "under_way": len(leased)}
        await note(tx, "job.purged", ("job", job_id), by, before=before)
        return gone


async def finish_purges(database: Database, most: int = PURGED_AT_ONCE) -> bool:
    """One bounded piece of a purge that was too long for one transaction; answers with whether there may be more.

    It touches only records of jobs that have no timer any more, so firing never waits for it.
    """
    async with database.tx(Role.ENGINE) as tx:
        job_id = await jobs.next_purged(tx)
        if job_id is None:
            return False
        gone = await jobs.purge(tx, job_id, most)
    log.info("job.history_purged", extra={"job": str(job_id), "runs": gone})
    return True


async def _check_revision(tx: Tx, job_id: JobId, expected: int | None) -> None:
    if expected is not None and (stored := await jobs.get(tx, job_id)) is not None:
        await check_revision(tx, stored, expected)


async def _stop(tx: Tx, hand: InHand, event: JobEvent, reason: str | None, by: Actor) -> Moved:
    row = hand.row
    status = advance(row.status, event)
    await timer_moves.halt(tx, row.job_id)
    await jobs.move(tx, [Move(row.job_id, status, reason)], by.name)
    held = await standing.hold_back(tx, row)
    if held:
        await timers.settle(tx, {row.job_id: Told(live=-held, waiting=held)})
    return Moved(status)


async def _resume_if_due(database: Database, workspace_id: WorkspaceId, job_id: JobId) -> None:
    async with database.tx(Role.APP, workspace_id) as tx:
        hand = await take(tx, job_id, dependents=True)
        stored = await jobs.get(tx, job_id)
        # Somebody may have resumed it, or paused it anew, since it was found.
        if stored is not None and stored.paused_until is not None and stored.paused_until <= tx.now:
            await _resume(tx, hand, Actor(BY), catch_up=False)


async def _resume(tx: Tx, hand: InHand, by: Actor, *, catch_up: bool) -> Moved:
    row = hand.row
    advance(row.status, JobEvent.RESUME)  # refused here, with what can be done instead
    plan = plan_resume(hand.around.due(row), tx.now, catch_up=catch_up)
    await fire_one(tx, hand.around, Planned(row, plan), by.name, hand.rows)
    await timer_moves.forgive(tx, row.job_id)
    before = {"status": row.status.value}
    await note(tx, "job.resumed", ("job", row.job_id), by, before=before, after={"catch_up": catch_up})
    return Moved(status_after(row.status, plan.events), plan.timer.next_at)
