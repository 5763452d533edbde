"""One thing done to many jobs: those a query finds, or those named. In pieces, each a transaction that holds few locks for a short
time; every job that is touched gets its own entry in the audit, and one that cannot stops no other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import assert_never

from foliot.domain.access import Actor
from foliot.domain.bulk import Action, Outcome, check_move, is_done, tags_after
from foliot.domain.errors import (
    FoliotError,
    IllegalMove,
    Invalid,
    NotFound,
    StaleRevision,
    Unavailable,
    UnexpectedCount,
)
from foliot.domain.finding import Query, Term
from foliot.domain.ids import JobId, WorkspaceId
from foliot.domain.lifecycle import JobEvent, JobStatus
from foliot.services import moving, run_verbs
from foliot.services.editing import edit
from foliot.services.in_hand import check_owner, no_such
from foliot.services.moving import Stop
from foliot.services.wanting import Asker, wanted
from foliot.storage import dependencies, jobs, listing, timers
from foliot.storage.jobs import StoredJob
from foliot.storage.timers import TimerRow
from foliot.storage.tx import Database, Role, Tx

MOST = 10_000
MOST_BY_ONE = 1_000  # of what is done job by job, so that an answer takes seconds
PIECE = 50  # jobs in one transaction
LARGE_PIECE = 500  # where one statement serves them all
MOST_TAGS = 50
_IN_THE_GRAPH = frozenset((Action.ARCHIVE, Action.PURGE))
_EDITING = frozenset((Action.TAG, Action.UNTAG))
_STOPS = {Action.PAUSE: JobEvent.PAUSE, Action.DISABLE: JobEvent.DISABLE}
_TRIES = 3


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be done, with what else the action takes."""

    action: Action
    reason: str | None = None
    until: datetime | None = None
    catch_up: bool = False
    override: bool = False
    tags: tuple[str, ...] = ()
    detach: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """Which jobs: those named, or those a query finds, as many as the asker has seen."""

    ids: tuple[JobId, ...] | None = None
    query: Query = Query()
    expected_count: int | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """What became of one job, where that is worth telling."""

    id: JobId
    outcome: Outcome
    error: FoliotError | None = None


@dataclass(slots=True)
class Done:
    found: int
    done: int = 0
    already: int = 0
    failed: int = 0
    told: list[Told] = field(default_factory=list)

    def add(self, told: Told) -> None:
        match told.outcome:
            case Outcome.DONE:
                self.done += 1
                return
            case Outcome.ALREADY:
                self.already += 1
            case Outcome.FAILED | Outcome.NOT_FOUND:
                self.failed += 1
            case _ as never:
                assert_never(never)
        self.told.append(told)


async def act(
    database: Database,
    workspace_id: WorkspaceId,
    target: Target,
    order: Order,
    by: Actor,
    asker: Asker,
    *,
    dry_run: bool = False,
) -> Done:
    """Do it to all of them. A dry run looks at each as it stands now, and writes nothing."""
    _check(order)
    found = await _find(database, workspace_id, target, asker, dry_run=dry_run)
    done = Done(len(found))
    if target.ids is not None:
        for missing in dict.fromkeys(each for each in target.ids if each not in set(found)):
            done.add(Told(missing, Outcome.NOT_FOUND, no_such("job")))
    if len(found) > MOST_BY_ONE and order.action not in _STOPS and not dry_run:
        raise Invalid(
            f"These are {len(found):,} jobs; {order.action.value} takes at most {MOST_BY_ONE:,} at a time.",
            hint="Narrow the filter, and do it in parts. Pausing and disabling take 10,000.",
        )
    one_by_one = order.action in _EDITING and not dry_run
    size = LARGE_PIECE if order.action in _STOPS else PIECE
    for piece in (found[at : at + size] for at in range(0, len(found), size)):
        if one_by_one:
            for job_id in piece:
                done.add(await _retag(database, workspace_id, job_id, order, by, asker))
            continue
        async with database.tx(Role.APP, workspace_id) as tx:
            for told in await _piece(tx, piece, order, by, asker, dry_run=dry_run):
                done.add(told)
    return done


def _check(order: Order) -> None:
    if order.action in _EDITING and not order.tags:
        raise Invalid("Which tags?", pointer="/args/tags", hint='Such as {"tags": ["billing"]}.')


async def _find(
    database: Database, workspace_id: WorkspaceId, target: Target, asker: Asker, *, dry_run: bool
) -> list[JobId]:
    async with database.tx(Role.APP, workspace_id) as tx:
        if target.ids is not None:
            named = Query((Term("id", target.ids), Term("status", tuple(JobStatus))))
            return await listing.ids(tx, await wanted(tx, named, asker), MOST)
        found = await listing.ids(tx, await wanted(tx, target.query, asker), MOST + 1)
    if len(found) > MOST:
        raise Invalid(
            f"This filter finds more than {MOST:,} jobs.", pointer="/q", hint="Narrow it, and do it in parts."
        )
    if dry_run and target.expected_count is None:
        return found
    if target.expected_count is None:
        raise Invalid(
            "By filter this needs expected_count.",
            pointer="/expected_count",
            hint=f"It finds {len(found):,} jobs now; dry_run shows what would become of them.",
        )
    if len(found) != target.expected_count:
        raise UnexpectedCount(
            f"This filter finds {len(found):,} jobs, not {target.expected_count:,}. Nothing was done.",
            pointer="/expected_count",
            hint="Look at them again; if they are the ones you mean, send the new count.",
        )
    return found


async def _piece(
    tx: Tx, job_ids: Sequence[JobId], order: Order, by: Actor, asker: Asker, *, dry_run: bool
) -> list[Told]:
    if dry_run:
        rows = {row.job_id: row for row in await timers.read(tx, job_ids)}
        return [_judged(rows.get(job_id), job_id, order) for job_id in job_ids]
    if order.action in _STOPS:
        return await _stopped(tx, job_ids, order, by)
    if order.action in _IN_THE_GRAPH:
        await dependencies.lock_graph(tx)
    # All at once and in the order of ids, before any of them is taken in hand by itself.
    await timers.lock_with_dependents(tx, job_ids)
    told = []
    for job_id in job_ids:
        try:
            async with tx.part():
                told.append(await _one(tx, job_id, order, by, asker))
        except Unavailable:
            raise
        except FoliotError as error:
            told.append(_refused(job_id, error))
    return told


async def _stopped(tx: Tx, job_ids: Sequence[JobId], order: Order, by: Actor) -> list[Told]:
    rows = await timers.lock(tx, job_ids)
    told = [_judged(rows.get(job_id), job_id, order) for job_id in job_ids]
    stopping = [rows[each.id] for each in told if each.outcome is Outcome.DONE]
    if stopping:
        await moving.stop(tx, stopping, Stop(_STOPS[order.action], order.reason, order.until), by)
    return told


def _judged(row: TimerRow | None, job_id: JobId, order: Order) -> Told:
    """What the job's status says to it."""
    if row is None:
        return _refused(job_id, no_such("job"))
    if is_done(order.action, row.status, row.rules.spec.tags, frozenset(order.tags)):
        return Told(job_id, Outcome.ALREADY)
    try:
        check_move(order.action, row.status)
    except IllegalMove as error:
        return _refused(job_id, error)
    return Told(job_id, Outcome.DONE)


async def _one(tx: Tx, job_id: JobId, order: Order, by: Actor, asker: Asker) -> Told:
    if _has_it(await _seen(tx, job_id, asker), order):
        return Told(job_id, Outcome.ALREADY)
    match order.action:
        case Action.RESUME | Action.ENABLE:
            await moving.resume_in(tx, job_id, by, catch_up=order.catch_up)
        case Action.RUN:
            await run_verbs.run_in(tx, job_id, by, override=order.override)
        case Action.ARCHIVE:
            await moving.archive_in(tx, job_id, by, detach=order.detach, only_owner=asker.only_owner)
        case Action.PURGE:
            await moving.purge_in(
                tx, job_id, by, force=order.force, detach=order.detach, only_owner=asker.only_owner
            )
        case Action.PAUSE | Action.DISABLE | Action.TAG | Action.UNTAG:
            raise AssertionError("stops go together, and tags are edits, each a transaction of its own")
        case _ as never:
            assert_never(never)
    return Told(job_id, Outcome.DONE)


async def _retag(
    database: Database, workspace_id: WorkspaceId, job_id: JobId, order: Order, by: Actor, asker: Asker
) -> Told:
    """An edit like any other, repeated where somebody else's came between."""
    try:
        for is_last in (False,) * (_TRIES - 1) + (True,):
            async with database.tx(Role.APP, workspace_id) as tx:
                job = await _seen(tx, job_id, asker)
            if _has_it(job, order):
                return Told(job_id, Outcome.ALREADY)
            spec = job.definition.spec
            tags = tags_after(order.action, spec.tags, order.tags)
            if len(tags) > MOST_TAGS:
                raise Invalid(f"A job has at most {MOST_TAGS} tags.", pointer="/args/tags")
            changed = replace(job.definition, spec=replace(spec, tags=tags))
            try:
                await edit(database, workspace_id, job_id, changed, by, job.revision)
                break
            except StaleRevision:
                if is_last:
                    raise
    except Unavailable:
        raise
    except FoliotError as error:
        return _refused(job_id, error)
    return Told(job_id, Outcome.DONE)


async def _seen(tx: Tx, job_id: JobId, asker: Asker) -> StoredJob:
    await check_owner(tx, job_id, asker.only_owner)
    job = await jobs.get(tx, job_id)
    if job is None:
        raise no_such("job")
    return job


def _has_it(job: StoredJob, order: Order) -> bool:
    return is_done(order.action, job.status, job.definition.spec.tags, frozenset(order.tags))


def _refused(job_id: JobId, error: FoliotError) -> Told:
    return Told(job_id, Outcome.NOT_FOUND if isinstance(error, NotFound) else Outcome.FAILED, error)
