"""Usage and budgets on the wire."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal

from foliot.domain.errors import Invalid
from foliot.domain.ids import JobId
from foliot.domain.usage import Budget, BudgetAction, BudgetPeriod, SpentBudget, period_end
from foliot.services.runs.usage import MonthUsage, WorkspaceBudgets
from foliot.wire import usage as wire


def budget_from(given: wire.BudgetIn) -> Budget:
    return Budget(
        given.unit, given.amount, BudgetPeriod(given.period), given.warn_at, BudgetAction(given.action)
    )


def check_budgets(budgets: Sequence[wire.BudgetIn], pointer: str = "/budgets") -> None:
    if len({(each.unit, each.period) for each in budgets}) < len(budgets):
        raise Invalid("Two budgets have the same unit and period.", pointer=pointer, hint="Keep one of them.")


def budget_out(budget: Budget) -> wire.BudgetIn:
    return wire.BudgetIn(
        unit=budget.unit,
        amount=budget.amount,
        period=budget.period.value,
        warn_at=budget.warn_at,
        action=budget.action.value,
    )


def budgets_out(found: WorkspaceBudgets, *, dry_run: bool = False) -> wire.BudgetsOut:
    return wire.BudgetsOut(
        items=_spent(found.budgets, found.now), closed_until=found.closed_until, dry_run=dry_run
    )


def usage_out(found: MonthUsage) -> wire.UsageOut:
    days: dict[date, dict[str, Decimal]] = {}
    for day in found.days:
        days.setdefault(day.day, {})[day.unit] = day.amount
    names: dict[JobId, str] = {}
    jobs: dict[JobId, dict[str, Decimal]] = {}
    for job in found.jobs:
        names[job.id] = job.name
        jobs.setdefault(job.id, {})[job.unit] = job.amount
    return wire.UsageOut(
        month=f"{found.month:%Y-%m}",
        totals=dict(found.totals),
        days=[wire.UsageDayOut(day=day, usage=usage) for day, usage in days.items()],
        jobs=[
            wire.JobUsageOut(job_id=job_id, job_name=names[job_id], usage=usage)
            for job_id, usage in jobs.items()
        ],
        budgets=_spent(found.budgets, found.now),
        closed_until=found.closed_until,
    )


def _spent(budgets: Iterable[SpentBudget], now: datetime) -> list[wire.BudgetOut]:
    return [
        wire.BudgetOut(
            **budget_out(each.budget).model_dump(),
            used=each.spent,
            level=each.budget.level(each.spent).value,
            resets_at=period_end(each.budget.period, now),
        )
        for each in budgets
    ]
