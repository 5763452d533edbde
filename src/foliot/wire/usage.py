"""Usage and budgets on the wire. Amounts are decimal numbers; answers write them as text, so that no client rounds them."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, StringConstraints, WithJsonSchema

from foliot.wire.amounts import MOST_UNITS, UNIT, read_amount, read_sum, write_amount
from foliot.wire.instants import Day, Id, Instant
from foliot.wire.shape import Shape, described, refusal


def _amount(value: Any) -> Decimal:
    try:
        return read_amount(value)
    except ValueError as error:
        raise refusal("amount", str(error), 'Write it as a number or as text, such as "0.0123".') from None


Amount = Annotated[
    Decimal,
    BeforeValidator(_amount),
    PlainSerializer(write_amount, return_type=str),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": r"^\d{1,15}(\.\d{1,9})?$"},
                {"type": "number", "minimum": 0},
            ]
        }
    ),
]
Sum = Annotated[
    Decimal,
    BeforeValidator(read_sum),
    PlainSerializer(write_amount, return_type=str),
    WithJsonSchema({"type": "string", "pattern": r"^\d+(\.\d{1,9})?$"}),
]
Unit = Annotated[
    str,
    StringConstraints(
        pattern=described(
            UNIT,
            "A unit begins with a lower-case letter and has only lower-case letters, digits and _ . -, at most 40.",
        )
    ),
]
UsageAmounts = Annotated[dict[Unit, Amount], Field(max_length=MOST_UNITS)]
SEEN = {"tokens": "1200", "usd": "0.0123"}


class BudgetIn(Shape):
    """How much of a unit may be used in a day or month of UTC."""

    unit: Unit = Field(examples=["usd"])
    amount: Amount = Field(examples=["25"])
    period: Literal["day", "month"] = "month"
    warn_at: float | None = Field(
        default=0.8, ge=0, le=1, description="The share of it at which a notice warns; null: none does."
    )
    action: Literal["pause", "warn"] = Field(
        default="pause",
        description="What happens when it is used up. `pause`: the job is paused, or the workspace's schedules start nothing, "
        "until the period ends. `warn`: only a notice.",
    )


class UsageIn(Shape):
    usage: UsageAmounts = Field(min_length=1, description="Amounts by unit.", examples=[SEEN])


class BudgetsIn(Shape):
    items: list[BudgetIn] = Field(max_length=20, description="All budgets; those left out are removed.")


class BudgetOut(BudgetIn):
    used: Sum = Field(description="In the current period.", examples=["12.5"])
    level: Literal["within", "warning", "exceeded"]
    resets_at: Instant = Field(description="When the next period starts.")


class BudgetsOut(Shape):
    dry_run: bool = Field(default=False, description="Whether this is a dry run.")
    items: list[BudgetOut]
    closed_until: Instant | None = Field(
        description="Until then schedules start no run: a budget of the workspace is used up."
    )


class UsageDayOut(Shape):
    day: Day
    usage: dict[str, Sum]


class JobUsageOut(Shape):
    job_id: Id
    job_name: str
    usage: dict[str, Sum]


class UsageOut(Shape):
    """Sums of what runs used, by the UTC day on which their attempts ended."""

    month: str = Field(examples=["2026-11"])
    totals: dict[str, Sum] = Field(
        description="Of the workspace or, with `job`, of the job.", examples=[SEEN]
    )
    days: list[UsageDayOut] = Field(description="Oldest first; days without usage are left out.")
    jobs: list[JobUsageOut] = Field(description="The jobs that used most, at most 100 for all units.")
    budgets: list[BudgetOut] = Field(
        description="Of the workspace or the job, with the current period's usage."
    )
    closed_until: Instant | None = Field(
        default=None, description="Until then schedules start no run: a budget of the workspace is used up."
    )
