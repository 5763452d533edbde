"""Read the usage of a month, report usage of a run from outside, and set the budgets of a workspace.

Why: docs/decisions/506-usage-and-budgets.md
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

from foliot.domain.access import Scope
from foliot.domain.errors import Invalid
from foliot.domain.ids import JobId, RunId
from foliot.domain.usage import Budget, BudgetPeriod, SpentBudget, Usage, period_start, stopped_until
from foliot.services.identity.audit_steps import append_audit
from foliot.services.jobs.lock_steps import lock_job
from foliot.services.jobs.visibility_steps import require_visible_job, require_visible_run
from foliot.services.settlement.usage_steps import add_usage
from foliot.storage.runs import usage
from foliot.storage.runs.usage import JobUsage, UsageDay, UsageRow, UsageSum
from foliot.storage.timers import fire_quotas
from foliot.storage.tx import Database, Role, Tx

MOST_JOBS = 100
MOST_OF_AGENT = 10_000
REPORTED = 0  # the attempt of usage that was reported for a run as a whole

__all__ = ["JobUsage", "SpentBudget", "UsageDay"]


@dataclass(frozen=True, slots=True)
class MonthUsage:
    month: date  # its first day
    totals: Usage
    days: tuple[UsageDay, ...]
    jobs: tuple[JobUsage, ...]
    budgets: tuple[SpentBudget, ...]
    closed_until: datetime | None
    now: datetime


@dataclass(frozen=True, slots=True)
class WorkspaceBudgets:
    budgets: tuple[SpentBudget, ...]
    closed_until: datetime | None
    now: datetime


async def month_usage(
    database: Database,
    scope: Scope,
    *,
    month: date | None = None,
    job_id: JobId | None = None,
    unit: str | None = None,
) -> MonthUsage:
    """Return the sums of a calendar month (UTC), the current one by default, of the workspace or of one job.

    An agent gets the sums of its own jobs, without days and budgets of the workspace.
    """
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        start = month or period_start(BudgetPeriod.MONTH, tx.now)
        end = _month_end(start)
        budgets: Sequence[Budget] = ()
        subject: UUID | None = scope.workspace_id if scope.visible_owner is None else None
        if job_id is not None:
            subject = job_id
            budgets = (await require_visible_job(tx, job_id, scope)).definition.spec.budgets
        elif subject is not None:
            budgets = (await usage.list_budgets(tx, [scope.workspace_id])).get(subject, ())
        limit = MOST_JOBS if subject else MOST_OF_AGENT
        jobs = await usage.list_jobs(
            tx, start, end, limit=limit, unit=unit, job_id=job_id, owner_id=scope.visible_owner
        )
        days = [] if subject is None else await usage.list_days(tx, subject, start, end)
        days = [each for each in days if unit in (None, each.unit)]
        return MonthUsage(
            month=start,
            totals=_sums(days if subject else jobs),
            days=tuple(days),
            jobs=tuple(jobs),
            budgets=() if subject is None else await _spent(tx, subject, budgets),
            closed_until=await fire_quotas.closed_until(tx),
            now=tx.now,
        )


async def report(database: Database, scope: Scope, run_id: RunId, amounts: Usage) -> None:
    """Add usage to a run, under way or ended, that its handler could not report: of a check-in, of work in another engine."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        run = (await require_visible_run(tx, run_id, scope)).run
        locked = await lock_job(tx, run.job_id, scope)
        given = [(unit, amount) for unit, amount in amounts.items() if amount]
        if not given:
            raise Invalid("There is no amount to report.", pointer="/usage", hint='Such as {"tokens": 1200}.')
        rows = [
            UsageRow(scope.workspace_id, run.job_id, run_id, REPORTED, unit, amount) for unit, amount in given
        ]
        await add_usage(tx, rows, {run.job_id: locked.row})
        after = {unit: str(amount) for unit, amount in given}
        await append_audit(tx, "run.usage_reported", ("run", run_id), scope.actor, after=after)


async def list_budgets(database: Database, scope: Scope) -> WorkspaceBudgets:
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = (await usage.list_budgets(tx, [scope.workspace_id])).get(scope.workspace_id, ())
        spent = await _spent(tx, scope.workspace_id, found)
        return WorkspaceBudgets(spent, await fire_quotas.closed_until(tx), tx.now)


async def set_budgets(database: Database, scope: Scope, budgets: Sequence[Budget]) -> WorkspaceBudgets:
    """Replace the budgets of the workspace. Schedules stop at once where one is used up already, and start again where none is."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        await usage.lock_budgets(tx)
        before = (await usage.list_budgets(tx, [scope.workspace_id])).get(scope.workspace_id, ())
        budgets = sorted(budgets, key=lambda each: (each.unit, each.period))
        await usage.replace_budgets(tx, budgets)
        spent = await _spent(tx, scope.workspace_id, budgets)
        until = stopped_until(spent, tx.now)
        if until is not None or await fire_quotas.closed_until(tx) is not None:
            await fire_quotas.set_closed_until(tx, scope.workspace_id, until)
        await append_audit(
            tx,
            "budgets.set",
            ("workspace", scope.workspace_id),
            scope.actor,
            before={"budgets": [_entry(each) for each in before]},
            after={"budgets": [_entry(each) for each in budgets]},
        )
        return WorkspaceBudgets(spent, until, tx.now)


async def _spent(tx: Tx, subject: UUID, budgets: Sequence[Budget]) -> tuple[SpentBudget, ...]:
    """Return the budgets with what their current periods have used."""
    if not budgets:
        return ()
    month, today = period_start(BudgetPeriod.MONTH, tx.now), tx.now.astimezone(UTC).date()
    sums = {
        each.unit: each for each in await usage.list_sums(tx, [subject], month, today + timedelta(days=1))
    }
    return tuple(SpentBudget(each, _used(sums.get(each.unit), each)) for each in budgets)


def _month_end(start: date) -> date:
    """Return the first day of the next month."""
    try:
        return (start + timedelta(days=32)).replace(day=1)
    except OverflowError:
        raise Invalid("No month follows this one.", pointer="/month", hint="Write it like 2026-11.") from None


def _used(found: UsageSum | None, budget: Budget) -> Decimal:
    if found is None:
        return Decimal(0)
    return found.today if budget.period is BudgetPeriod.DAY else found.amount


def _sums(found: Iterable[UsageDay | JobUsage]) -> dict[str, Decimal]:
    sums: dict[str, Decimal] = {}
    for each in found:
        sums[each.unit] = sums.get(each.unit, Decimal(0)) + each.amount
    return dict(sorted(sums.items()))


def _entry(budget: Budget) -> Mapping[str, object]:
    return {
        "unit": budget.unit,
        "amount": str(budget.amount),
        "period": budget.period.value,
        "warn_at": budget.warn_at,
        "action": budget.action.value,
    }
