"""Explain a job at an instant, past or future, or one run. `domain/explain` decides; this module loads."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from foliot.domain.access import Scope
from foliot.domain.dependencies import EdgeMode
from foliot.domain.errors import Invalid
from foliot.domain.explain.instants import CLOSE_ENOUGH, explain, nearest, with_outages, with_stop
from foliot.domain.explain.records import BlockingAttempt, BlockingRun, Recorded, Verdict, explain_record
from foliot.domain.ids import JobId, RunId
from foliot.domain.lifecycle import RunStatus
from foliot.domain.schedule import SkipReason
from foliot.services.evaluation import evaluate
from foliot.services.jobs.visibility_steps import check_job_visible, require_visible_run
from foliot.services.runs.explain_steps import (
    ExplainContext,
    RunExplanation,
    explain_open,
    load_explain_context,
    recorded,
)
from foliot.storage.runs import explain_queries, run_history
from foliot.storage.runs.explain_queries import MOST_NAMED
from foliot.storage.runs.run_history import RunWithRevision
from foliot.storage.timers import fire_quotas
from foliot.storage.tx import Database, Role, Tx
from foliot.storage.workers import workers

__all__ = ["RunExplanation"]

_OPEN = frozenset({RunStatus.READY, RunStatus.WAITING, RunStatus.RUNNING})


async def explain_instant(
    database: Database, scope: Scope, job_id: JobId, at: datetime | None = None
) -> RunExplanation:
    """Explain this job at `at`; without an instant, at its last planned time, or its first."""
    if at is not None and at.tzinfo is None:
        raise Invalid("An instant needs its offset from UTC, such as 2027-01-02T18:00:00Z.", pointer="/at")
    is_latest = at is None
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        await check_job_visible(tx, job_id, scope)
        if at is None:
            asked = await load_explain_context(tx, job_id, visible_owner=scope.visible_owner)
            at = await evaluate(asked.job.timetable, asked.last_planned)
            if at >= tx.now and (newest := await run_history.load_newest(tx, job_id)) is not None:
                answer = await _answer_about(tx, asked, newest)
                return replace(answer, explanation=with_stop(answer.explanation, asked.question(tx.now)))
        asked = await load_explain_context(tx, job_id, at, scope.visible_owner)
        subject = asked.subject
        entry = (
            await run_history.find_near(tx, job_id, at, CLOSE_ENOUGH) if at >= subject.created_at else None
        )
        if entry is not None and entry.run.status in _OPEN:
            explanation = await explain_open(tx, asked, entry)
        else:
            question = replace(
                asked.question(at),
                record=None if entry is None else await _ended(asked, entry),
                freezes=await asked.freezes(min(at, tx.now)),
                switched_off=await asked.switched_off(),
                no_fires_until=(await fire_quotas.used_up_until(tx, [job_id])).get(job_id),
                closed_until=await fire_quotas.closed_until(tx),
                waits_for=await asked.hangs_on(),
                gate=await asked.upstreams(EdgeMode.GATE) or None,
                limit=await asked.full_limit(),
                unserved=await asked.unserved() if at > tx.now else None,
                busy=await asked.busy() if at > tx.now else None,
                firing=await asked.firing(*_stretch(entry, at)),
            )
            explanation = await evaluate(asked.job.timetable, lambda: explain(question))
        if is_latest and at <= tx.now and explanation.verdict is not Verdict.UNRECORDED:
            explanation = with_stop(explanation, asked.question(at))
        instant = at
        before, after = await evaluate(
            asked.job.timetable, lambda: nearest(asked.job, subject.created_at, instant)
        )
        return asked.answer(asked.with_revision(explanation, entry), entry, at, before, after)


async def explain_run(database: Database, scope: Scope, run_id: RunId) -> RunExplanation:
    """Explain the end of this run, or what it waits for."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        entry = await require_visible_run(tx, run_id, scope)
        asked = await load_explain_context(tx, entry.run.job_id, visible_owner=scope.visible_owner)
        return await _answer_about(tx, asked, entry)


async def _answer_about(tx: Tx, asked: ExplainContext, entry: RunWithRevision) -> RunExplanation:
    start, end = _stretch(entry, tx.now)
    found = (await asked.firing(start, end)).outages
    if entry.run.status in _OPEN:
        explanation = await explain_open(tx, asked, entry)
        return asked.answer(with_outages(asked.job, explanation, recorded(entry), found), entry)
    record = await _ended(asked, entry)
    explanation = with_outages(asked.job, explain_record(asked.job, record), record, found)
    return asked.answer(asked.with_revision(explanation, entry), entry)


def _stretch(entry: RunWithRevision | None, at: datetime) -> tuple[datetime, datetime]:
    """Return the planned times that a record stands for, or the instant in question."""
    if entry is None or entry.run.planned_for is None:
        return at, at
    return entry.run.planned_for, entry.run.planned_until or entry.run.planned_for


async def _blocking(asked: ExplainContext, record: Recorded) -> BlockingRun | None:
    """Find the run that was in the way of a time skipped as overlap. If it has not started yet, say why."""
    if record.skip_reason is not SkipReason.OVERLAP or record.planned_for is None:
        return None
    tx, job_id = asked.tx, asked.subject.id
    run_id = await explain_queries.find_blocking(tx, job_id, record.number, record.planned_for)
    entry = None if run_id is None else await run_history.load_run(tx, run_id)
    if entry is None:
        return None
    run = entry.run
    waits = None
    if run.status in (RunStatus.READY, RunStatus.WAITING) and run.attempt_count == 0:
        current = await load_explain_context(tx, job_id, visible_owner=asked.visible_owner)
        waits = await explain_open(tx, current, entry)
    attempt = None
    if run.finished_at is None or run.finished_at >= record.planned_for:
        attempt = await _blocking_attempt(tx, run.id, record.planned_for)
    return BlockingRun(run.number, run.started_at, waits, attempt)


async def _blocking_attempt(tx: Tx, run_id: RunId, at: datetime) -> BlockingAttempt | None:
    """Find the attempt that was under way at `at`, or the last one before it."""
    begun = [each for each in await run_history.list_attempts(tx, run_id) if each.leased_at <= at]
    if not begun:
        return None
    last = begun[-1]
    named = (await workers.load_names(tx, [last.worker])).get(last.worker)
    holder = None if last.ended_at is not None else await explain_queries.load_holder(tx, run_id)
    return BlockingAttempt(
        last.number,
        last.status,
        last.ended_at,
        str(last.worker) if named is None else named.name,
        last.error,
        is_overdue=holder is not None and holder.is_silent,
    )


async def _ended(asked: ExplainContext, entry: RunWithRevision) -> Recorded:
    """Add the ends of the attempts when there was more than one, and the run that was in the way."""
    record = recorded(entry)
    record = replace(record, blocking=await _blocking(asked, record))
    if entry.run.attempt_count <= 1:
        return record
    tried = (await run_history.list_attempts(asked.tx, entry.run.id))[-MOST_NAMED:]
    tries = tuple(
        (each.number, each.status, each.ended_at, each.error) for each in tried if each.ended_at is not None
    )
    return replace(record, tries=tries)
