"""Record what attempts used, in the transaction that settles them, and act on budgets that are near their end or used up.

A used-up budget of a job pauses the job, one of a workspace closes its schedules, both until the period ends.

Why: docs/decisions/506-usage-and-budgets.md
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from foliot.domain.access import ENGINE
from foliot.domain.ids import JobId, RunId, WorkerId, WorkspaceId
from foliot.domain.lifecycle import JobEvent, JobStatus, may
from foliot.domain.notifications.notice import NoticeEvent
from foliot.domain.usage import Budget, BudgetLevel, SpentBudget, Usage, period_end, stopped_until
from foliot.services.jobs.job_status_steps import Stop, stop
from foliot.storage.jobs import jobs
from foliot.storage.jobs.definitions import UnreadableRules
from foliot.storage.notifications import notices
from foliot.storage.notifications.notices import NewNotice
from foliot.storage.queue import leases
from foliot.storage.queue.leases import LeaseKey
from foliot.storage.runs import usage
from foliot.storage.runs.usage import UsageRow, UsageTotal
from foliot.storage.timers import fire_quotas, timers
from foliot.storage.timers.timers import TimerRow
from foliot.storage.tx import Tx

log = logging.getLogger(__name__)

MOST_UNITS = 100  # that a workspace may use in a day
_EVENTS = {
    BudgetLevel.WARNING: NoticeEvent.BUDGET_WARNING,
    BudgetLevel.EXCEEDED: NoticeEvent.BUDGET_EXCEEDED,
}


class ReportedUsage(Protocol):
    @property
    def run_id(self) -> RunId: ...
    @property
    def job_id(self) -> JobId: ...
    @property
    def fence(self) -> int: ...
    @property
    def worker_id(self) -> WorkerId: ...
    @property
    def usage(self) -> Usage | None: ...


async def record_reported_usage(tx: Tx, reports: Sequence[ReportedUsage]) -> None:
    """Record the usage of the attempts whose leases their workers still hold. Call it before the reports are settled.

    Locks the timers of all reports, as settling does. A job that is paused here is settled as a paused one.
    """
    rows = await timers.lock_with_dependents(tx, {each.job_id for each in reports})
    used = {each.run_id: each for each in reports if each.usage}
    held = await leases.lock(
        tx, [LeaseKey(each.run_id, each.fence, each.worker_id) for each in used.values()]
    )
    await add_usage(
        tx,
        [
            UsageRow(lease.workspace_id, lease.job_id, run_id, lease.run.attempt_count, unit, amount)
            for run_id, lease in held.items()
            for unit, amount in (used[run_id].usage or {}).items()
        ],
        rows,
    )


async def add_usage(tx: Tx, added: Sequence[UsageRow], rows: Mapping[JobId, TimerRow]) -> None:
    """Add usage to its sums and act on the budgets. Needs the locks of `rows`."""
    added = await _within_bounds(tx, added) if added else added
    if not added:
        return
    workspace_ids = {each.workspace_id for each in added}
    await usage.share_budgets(tx, workspace_ids)
    totals = await usage.add(tx, added)
    of_workspaces = await usage.list_budgets(tx, workspace_ids)
    found: list[NewNotice] = []
    for job_id in dict.fromkeys(each.job_id for each in added):
        row = rows.get(job_id)
        if row is None or isinstance(row.rules, UnreadableRules):
            continue
        own = [each for each in totals if each.subject_id == job_id]
        found += await _judge_job(tx, row, own)
    for workspace_id in dict.fromkeys(each.workspace_id for each in added):
        own = [each for each in totals if each.subject_id == workspace_id]
        spent = list(_spent(of_workspaces.get(workspace_id, ()), own))
        found += [
            NewNotice(workspace_id, event, facts={**facts, "name": "The workspace"})
            for event, facts in _crossed(spent)
        ]
        if until := stopped_until((each for each, _ in spent), tx.now):
            await fire_quotas.close(tx, workspace_id, until)
    await notices.insert(tx, found)


async def _judge_job(tx: Tx, row: TimerRow, totals: Sequence[UsageTotal]) -> list[NewNotice]:
    """Pause the job where a budget of it is used up, and return the notices of the others."""
    spent = list(_spent(row.rules.spec.budgets, totals))
    stopping = [each for each, _ in spent if each.budget.stops(each.spent)]
    until = stopped_until(stopping, tx.now)
    if until is not None and (may(row.status, JobEvent.PAUSE) or await _is_paused_for_less(tx, row, until)):
        last = max(stopping, key=lambda each: period_end(each.budget.period, tx.now))
        reason = f"Its budget is used up: {last.budget.describe(last.spent)}"
        await stop(tx, [row], Stop(JobEvent.PAUSE, reason, until, budget=last.budget.unit), ENGINE)
        log.warning("job.over_budget", extra={"job": str(row.job_id), "until": until.isoformat()})
        if row.status is not JobStatus.PAUSED:  # the pause is its notice
            spent = [(each, before) for each, before in spent if each not in stopping]
    return [NewNotice(row.workspace_id, event, row.job_id, facts=facts) for event, facts in _crossed(spent)]


async def _is_paused_for_less(tx: Tx, row: TimerRow, until: datetime) -> bool:
    """Return whether the job is paused and would resume before `until`, such as after the day of a smaller budget."""
    if row.status is not JobStatus.PAUSED:
        return False
    pause = (await jobs.list_pauses(tx, [row.job_id])).get(row.job_id)
    return pause is not None and pause.until is not None and pause.until < until


def _spent(
    budgets: Sequence[Budget], totals: Sequence[UsageTotal]
) -> Iterator[tuple[SpentBudget, BudgetLevel]]:
    """Return each budget with what is spent of it, and its level before that was added."""
    for total in totals:
        for budget in budgets:
            if budget.unit == total.unit:
                spent = total.of(budget.period)
                yield SpentBudget(budget, spent), budget.level(spent - total.added)


def _crossed(
    spent: Sequence[tuple[SpentBudget, BudgetLevel]],
) -> Iterator[tuple[NoticeEvent, dict[str, str]]]:
    """Return the events of budgets that reached another level just now."""
    for each, before in spent:
        level = each.budget.level(each.spent)
        if level is not before and level is not BudgetLevel.WITHIN:
            yield _EVENTS[level], {"reason": each.budget.describe(each.spent), "budget": each.budget.unit}


async def _within_bounds(tx: Tx, added: Sequence[UsageRow]) -> list[UsageRow]:
    """Drop units beyond the first MOST_UNITS of a workspace and day: handlers may make them up, and each has rows of its own."""
    known = await usage.list_units(tx, {each.workspace_id for each in added})
    counts: dict[WorkspaceId, int] = {}
    for workspace_id, _ in known:
        counts[WorkspaceId(workspace_id)] = counts.get(WorkspaceId(workspace_id), 0) + 1
    kept = []
    for each in added:
        if (each.workspace_id, each.unit) not in known:
            if counts.get(each.workspace_id, 0) >= MOST_UNITS:
                log.warning("usage.unit_dropped", extra={"run": str(each.run_id), "unit": each.unit})
                continue
            known.add((each.workspace_id, each.unit))
            counts[each.workspace_id] = counts.get(each.workspace_id, 0) + 1
        kept.append(each)
    return kept
