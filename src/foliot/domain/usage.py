"""Usage of runs (tokens, money, any unit) and budgets: when a budget warns, when it is used up, and until when.

Why: docs/decisions/506-usage-and-budgets.md
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import StrEnum

Usage = Mapping[str, Decimal]  # by unit


class BudgetPeriod(StrEnum):
    """Calendar periods of UTC."""

    DAY = "day"
    MONTH = "month"


class BudgetAction(StrEnum):
    PAUSE = "pause"  # a used-up budget stops scheduled runs until the period ends
    WARN = "warn"  # it only notifies


class BudgetLevel(StrEnum):
    WITHIN = "within"
    WARNING = "warning"
    EXCEEDED = "exceeded"


@dataclass(frozen=True, slots=True)
class Budget:
    unit: str
    amount: Decimal
    period: BudgetPeriod = BudgetPeriod.MONTH
    warn_at: float | None = 0.8  # the share of the amount; None: no warning
    action: BudgetAction = BudgetAction.PAUSE

    def level(self, spent: Decimal) -> BudgetLevel:
        """Return where the usage of the period stands. A budget is used up when nothing of it is left."""
        if spent >= self.amount:
            return BudgetLevel.EXCEEDED
        if self.warn_at is not None and spent >= self.amount * Decimal(str(self.warn_at)):
            return BudgetLevel.WARNING
        return BudgetLevel.WITHIN

    def stops(self, spent: Decimal) -> bool:
        return self.action is BudgetAction.PAUSE and self.level(spent) is BudgetLevel.EXCEEDED

    def describe(self, spent: Decimal) -> str:
        when = "today" if self.period is BudgetPeriod.DAY else "this month"
        return f"{_text(spent)} of {_text(self.amount)} {self.unit} used {when} (UTC)."


@dataclass(frozen=True, slots=True)
class SpentBudget:
    """A budget, and what its period has used."""

    budget: Budget
    spent: Decimal


def period_start(period: BudgetPeriod, now: datetime) -> date:
    today = now.astimezone(UTC).date()
    return today if period is BudgetPeriod.DAY else today.replace(day=1)


def period_end(period: BudgetPeriod, now: datetime) -> datetime:
    """Return the first instant of the next period."""
    start = period_start(period, now)
    following = start + timedelta(days=1 if period is BudgetPeriod.DAY else 32)
    if period is BudgetPeriod.MONTH:
        following = following.replace(day=1)
    return datetime.combine(following, time.min, UTC)


def stopped_until(spent: Iterable[SpentBudget], now: datetime) -> datetime | None:
    """Return when the last of the used-up budgets starts again; None where none stops anything."""
    ends = (period_end(each.budget.period, now) for each in spent if each.budget.stops(each.spent))
    return max(ends, default=None)


def _text(amount: Decimal) -> str:
    text = f"{amount:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
