"""Edit a job: the new definition takes effect at once, and no planned time of either is lost.

Why: docs/decisions/206-edits-record-the-old-schedule-first.md
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from foliot.domain.access import Scope
from foliot.domain.definition import Definition, Rules, Spec
from foliot.domain.dependencies import Edge
from foliot.domain.errors import Conflict, ManagedByCode, require_found
from foliot.domain.freeze import FreezePolicy
from foliot.domain.ids import JobId
from foliot.domain.job import Timer
from foliot.domain.lifecycle import STOPPED, JobEvent, JobStatus
from foliot.domain.planning.due_job import DueJob
from foliot.domain.planning.edit import edited_schedule, moves_of_edit
from foliot.domain.planning.plan import plan_closing, plan_start
from foliot.domain.quotas import check_definition
from foliot.domain.schedule import Manual
from foliot.domain.schedule.parse import check_schedule
from foliot.services.evaluation import evaluate
from foliot.services.identity.audit_steps import append_audit
from foliot.services.jobs.context_steps import load_job_context
from foliot.services.jobs.dependency_steps import write_edges
from foliot.services.jobs.job_status_steps import Stop, resume_locked, stop
from foliot.services.jobs.jobs import Define, JobDraft, first_cursor
from foliot.services.jobs.lock_steps import LockedJob, check_revision, lock_job, require_not_archived
from foliot.services.jobs.visibility_steps import require_visible_job
from foliot.services.jobs.written_steps import WrittenJob, load_written
from foliot.services.scheduling.fire_steps import move_reason, status_after, write_plan
from foliot.services.secrets.reference_steps import write_references
from foliot.services.settlement.dependent_steps import finish_settlement, judge_gates_of
from foliot.services.workers.host_steps import check_target
from foliot.storage.jobs import calendars, jobs
from foliot.storage.jobs.definitions import definition_json
from foliot.storage.jobs.jobs import RevisionAuthor, StatusChange, StoredJob
from foliot.storage.queue import run_queue
from foliot.storage.timers import timers
from foliot.storage.timers.fires import PlannedTimer
from foliot.storage.timers.timers import TimerRow
from foliot.storage.tx import Database, Role, Tx

log = logging.getLogger(__name__)

MOST_TRIES = 5
_OVER = frozenset((JobStatus.COMPLETED, JobStatus.EXPIRED))
_ENDS = frozenset((JobEvent.COMPLETE, JobEvent.EXPIRE))


@dataclass(frozen=True, slots=True)
class _Change:
    definition: Definition
    scope: Scope
    note: str | None


class _JobChangedError(RuntimeError):
    """Another transaction changed the job between the first read and the lock."""


async def edit(
    database: Database,
    scope: Scope,
    job_id: JobId,
    definition: Definition | Define,
    *,
    note: str | None = None,
    enabled: bool | None = None,
    force: bool = False,
    with_warnings: bool = False,
) -> WrittenJob:
    """Replace the definition. An equal one makes no revision. `note` is kept with the revision.

    `enabled` False also disables the job, True resumes it if it is disabled; a paused or failed job stays so.

    A `definition` that is a function is called in the transaction with the job as it is; when another transaction changes
    the job before this one locks it, the edit starts again. A job that is managed by code needs `force`.
    """
    for is_last in (*(False,) * (MOST_TRIES - 1), True):
        try:
            async with database.tx(Role.APP, scope.workspace_id) as tx:
                edited = await _edit(tx, scope, job_id, definition, note, force=force)
                if enabled is not None:
                    edited |= await _set_enabled(tx, scope, job_id, enabled=enabled)
                return await load_written(tx, job_id, with_warnings=with_warnings, has_changed=edited)
        except _JobChangedError:
            if is_last:
                raise Conflict(
                    "Others keep changing this job.", hint="Read it again and repeat the change."
                ) from None
    raise AssertionError("the last try returns or raises")


async def require_revision(
    database: Database, scope: Scope, job_id: JobId, expected_of: Callable[[int], int | None]
) -> int | None:
    """Return the revision that the caller expects, given the current one. Refuse when the job is at another."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        current = require_found(await jobs.load_revision(tx, job_id, scope.visible_owner), "job")
        expected = expected_of(current)
        if expected not in (None, current):
            await check_revision(tx, await require_visible_job(tx, job_id, scope), expected)
        return expected


async def _edit(
    tx: Tx, scope: Scope, job_id: JobId, source: Definition | Define, note: str | None, *, force: bool
) -> bool:
    """Return whether anything changed."""
    seen = await require_visible_job(tx, job_id, scope)
    definition = await source(JobDraft(tx, seen)) if callable(source) else source
    check_schedule(definition.spec.schedule)
    # The edges of a workspace have one editor, and are locked before any timer; most edits do not touch them.
    with_edges = _edges(seen.definition) != _edges(definition)
    if with_edges:
        await write_edges(tx, job_id, scope, definition, seen.definition.depends_on)
    locked = await lock_job(tx, job_id, scope.expecting(None), dependents=True)
    before = seen if await jobs.load_revision(tx, job_id) == seen.revision else await jobs.get(tx, job_id)
    assert before is not None, "a timer has its job"
    await check_revision(tx, before, scope.expected_revision)
    require_not_archived(locked.row, "be edited")
    if before.revision != seen.revision and (
        callable(source) or _edges(before.definition) != _edges(seen.definition)
    ):
        raise _JobChangedError
    schedule = edited_schedule(before.definition.spec.schedule, definition.spec.schedule, tx.now)
    definition = replace(definition, spec=replace(definition.spec, schedule=schedule))
    check_definition(scope.actor.quotas, definition, tx.now, before.definition)
    if definition.spec.target != before.definition.spec.target:
        await check_target(tx, scope.workspace_id, definition.spec.target)
    old, new = definition_json(before.definition), definition_json(definition)
    if old == new:
        return False
    if before.definition.managed_by is not None and not force:
        raise _managed(before.definition.managed_by)
    await _Edit(tx, locked, before, _Change(definition, scope, note)).write()
    if with_edges:
        writer = (await lock_job(tx, job_id, dependents=True)).writer(tx)
        await judge_gates_of(writer, [job_id])
        await finish_settlement(writer)
    await append_audit(
        tx,
        "job.edited",
        ("job", job_id),
        scope.actor,
        before={"revision": before.revision, "definition": old},
        after={"revision": before.revision + 1, "definition": new},
    )
    return True


async def _set_enabled(tx: Tx, scope: Scope, job_id: JobId, *, enabled: bool) -> bool:
    """Return whether the status changed."""
    locked = await lock_job(tx, job_id, scope.expecting(None), dependents=True)
    if enabled == (locked.row.status is not JobStatus.DISABLED):
        return False
    if enabled:
        await resume_locked(tx, locked, scope.actor, catch_up=False)
    else:
        await stop(tx, [locked.row], Stop(JobEvent.DISABLE), scope.actor)
    return True


def _managed(app: str) -> ManagedByCode:
    return ManagedByCode(
        f'This job is managed by code: the app "{app}" defines it.',
        hint=f"Change it in the code of {app}. force=true changes it anyway, until the code is loaded again. "
        "It can always be paused, disabled, run and deleted.",
    )


def _edges(definition: Definition) -> tuple[tuple[Edge, ...], bool]:
    """Return the edges, and whether they are triggers of a manual schedule."""
    is_manual = isinstance(definition.spec.schedule, Manual)
    return definition.depends_on, is_manual and bool(definition.depends_on)


class _Edit:
    def __init__(self, tx: Tx, locked: LockedJob, before: StoredJob, change: _Change) -> None:
        self.tx = tx
        self.locked = locked
        self.before = before
        self.definition = change.definition
        self.scope = change.scope
        self.author = RevisionAuthor(change.scope.actor.name, change.note)
        self.is_rescheduled = change.definition.spec.schedule != before.definition.spec.schedule

    async def write(self) -> None:
        tx, job_id, definition = self.tx, self.before.id, self.definition
        if self.is_rescheduled:
            await self._record_old_times()
        old = self.locked.row
        rules, schedule_rev = Rules(definition.spec), old.schedule_rev + self.is_rescheduled
        row = old._replace(rules=rules, schedule_rev=schedule_rev, timer=self._from())
        events, timer = await self._replan(row)
        await timers.store_edit(tx, job_id, definition, schedule_rev, timer)
        await jobs.edit(tx, job_id, definition, self.before.revision + 1, schedule_rev, self.author)
        if definition.spec.calendars != self.before.definition.spec.calendars:
            await calendars.link(tx, job_id, definition.spec.calendars)
        await write_references(tx, job_id, definition, self.scope, self.before.definition)
        await run_queue.redirect(tx, old, definition.spec)
        if old.waiting and not rules.is_exclusive and old.status not in STOPPED:
            writer = self.locked.writer(tx, row)
            await writer.release_all(job_id)
            await finish_settlement(writer)
        status = status_after(old.status, events)
        if events:
            await jobs.change_status(
                tx, [StatusChange(job_id, status, move_reason(events))], self.author.name
            )

    async def _record_old_times(self) -> None:
        """Record the times that the old schedule planned up to now, under its revision."""
        row, now = self.locked.row, self.tx.now
        due = _unheld(self.locked.context.due(row), now)
        try:
            done = await evaluate(due.job.timetable, lambda: plan_closing(due, now))
        except Exception:  # an edit must repair a job that cannot be planned
            log.exception(
                "job.not_planned", extra={"workspace": str(row.workspace_id), "job": str(row.job_id)}
            )
            return
        if done.records or done.events:
            await write_plan(
                self.tx, self.locked.context, PlannedTimer(row, done), self.author.name, self.locked.rows
            )
            self.locked = await lock_job(self.tx, row.job_id, dependents=True)

    def _from(self) -> Timer:
        """Return the timer from which the new rules count."""
        row, now = self.locked.row, self.tx.now
        if self.is_rescheduled:
            # A tick that held the lock may have consumed times after our `now`; they have records.
            return Timer(max(first_cursor(self.definition, now), row.timer.cursor), None, None)
        return Timer(now, None, None) if row.status in _OVER else row.timer

    async def _replan(self, row: TimerRow) -> tuple[tuple[JobEvent, ...], Timer]:
        """Return the status events and the timer under the new rules."""
        now, was = self.tx.now, row.status
        spec, old_spec = self.definition.spec, self.before.definition.spec
        context = replace(self.locked.context, gates={}, off=frozenset())  # they concern runs, not times
        if _scope_fields(spec) != _scope_fields(old_spec):
            # The job may enter the scope of a calendar: an edit of that calendar waits, and then plans this job as well.
            await calendars.lock_shared(self.tx, ())
            context = await load_job_context(self.tx, [row])
        elif spec.calendars != old_spec.calendars:
            context = await load_job_context(self.tx, [row])
        events = moves_of_edit(was, self.definition.spec.start_at, now)
        status = JobStatus.ACTIVE if was in STOPPED else status_after(was, events)
        due = context.due(row._replace(status=status))
        planned = await evaluate(due.job.timetable, lambda: plan_start(due, now, events))
        if was in STOPPED:  # resume sets the next time
            return (), replace(planned.timer, due_at=None, next_at=None)
        if was in _OVER and not _ENDS.isdisjoint(planned.events):  # no time is left
            return (), replace(planned.timer, due_at=None, next_at=None)
        return planned.events, planned.timer


def _scope_fields(spec: Spec) -> tuple[object, ...]:
    return spec.type, spec.queue, spec.tags, spec.target


def _unheld(due: DueJob, now: datetime) -> DueJob:
    """Make times that a freeze holds due now: they would be lost with their schedule, and are recorded as frozen."""
    if due.timer.due_at is None or not any(freeze.holds(now) for freeze in due.freezes):
        return due
    freezes = (
        replace(freeze, after=FreezePolicy.SKIP) if freeze.holds(now) else freeze for freeze in due.freezes
    )
    timer = replace(due.timer, due_at=min(due.timer.due_at, now))
    return replace(due, freezes=tuple(freezes), timer=timer)
