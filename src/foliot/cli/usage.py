"""`foliot usage`: what runs used, by month and job. `foliot budgets`: how much the workspace may use."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Annotated, Any

import typer

from foliot.cli.lookup import find_job
from foliot.cli.session import DryRun, Session, api_command, view_command
from foliot.cli.tables import BOLD, DIM, RED, YELLOW, Block, Column, Table, line, stack, styled
from foliot.cli.times import relative
from foliot.domain.errors import Invalid

if TYPE_CHECKING:
    from foliot.wire.usage import BudgetOut, BudgetsOut, JobUsageOut, UsageOut

budgets = typer.Typer(
    help="Budgets of the workspace. Those of a job: foliot jobs edit --budget.", no_args_is_help=True
)
_BUDGET = re.compile(
    r"([a-z][a-z0-9_.-]*)=([0-9.]+(?:e[0-9]+)?)(?:/(day|month))?((?:,[a-z_]+=[^,]+)*)", re.ASCII
)
_HINT = "Write it like usd=25, tokens=1e6/day or usd=5/day,warn_at=0.5,action=warn."
_LEVELS = {"within": "", "warning": YELLOW, "exceeded": RED}
Named = Annotated[list[str], typer.Argument(metavar="BUDGET...", help=_HINT, show_default=False)]


@view_command
def usage(
    session: Session,
    month: Annotated[
        str | None, typer.Option(help="Such as 2026-11. Default: this month (UTC).", metavar="MONTH")
    ] = None,
    job: Annotated[str | None, typer.Option(help="Only this job.", metavar="JOB")] = None,
    unit: Annotated[str | None, typer.Option(help="Only this unit, such as usd.", metavar="UNIT")] = None,
) -> None:
    """Show what runs used in a month: in total, by job, and of each budget."""
    job_id = None if job is None else find_job(session.client, job).id
    found = session.client.usage(month=month, job=job_id, unit=unit)
    session.show(found, lambda: usage_page(found, session.now))


@budgets.command("list")
@view_command
def list_budgets(session: Session) -> None:
    """List the budgets of the workspace and what is used of them."""
    found = session.client.budgets.list()
    session.show(found, lambda: budgets_page(found, session.now))


@budgets.command("set")
@api_command
def set_budgets(session: Session, named: Named, dry_run: DryRun = False) -> None:
    """Set budgets of the workspace; the others stay."""
    given = [read_budget(each) for each in named]
    replaced = {(each["unit"], each.get("period", "month")) for each in given}
    kept = [each for each in _written(session) if (each["unit"], each["period"]) not in replaced]
    _replace(session, [*kept, *given], dry_run=dry_run)


@budgets.command()
@api_command
def remove(
    session: Session,
    unit: Annotated[str, typer.Argument(metavar="UNIT", help="Such as usd.", show_default=False)],
    dry_run: DryRun = False,
) -> None:
    """Remove the budgets of a unit."""
    before = _written(session)
    kept = [each for each in before if each["unit"] != unit]
    if len(kept) == len(before):
        raise Invalid(f'There is no budget of "{unit}".', hint="foliot budgets list shows them.")
    _replace(session, kept, dry_run=dry_run)


def read_budget(text: str) -> dict[str, Any]:
    """Parse `usd=25/month,warn_at=0.8,action=warn`."""
    found = _BUDGET.fullmatch(text.strip())
    if found is None:
        raise Invalid(f'"{text}" is not a budget.', hint=_HINT)
    unit, amount, period, more = found.groups()
    options = dict(each.split("=", 1) for each in more.split(",") if each)
    if options.keys() - {"warn_at", "action"}:
        raise Invalid(f'"{text}" is not a budget.', hint=_HINT)
    try:
        read: dict[str, Any] = {"unit": unit, "amount": f"{Decimal(amount):f}"}
        if "warn_at" in options:
            warn_at = options.pop("warn_at")
            read["warn_at"] = None if warn_at == "none" else float(warn_at)
    except (ValueError, InvalidOperation):
        raise Invalid(f'"{text}" is not a budget.', hint=_HINT) from None
    return read | ({} if period is None else {"period": period}) | options


def usage_page(found: UsageOut, now: datetime) -> Block:
    if not found.totals and not found.budgets:
        return styled(f"No run reported any usage in {found.month}.")
    columns: list[Column[JobUsageOut]] = [
        Column("JOB", lambda each: each.job_name, wrap=True),
        Column("USED", lambda each: format_usage(each.usage), wrap=True),
    ]
    return stack(
        line((f"{found.month}: ", BOLD), format_usage(found.totals) or "nothing used", "."),
        budget_table(found.budgets, now) if found.budgets else None,
        _closed(found.closed_until, now),
        Table(columns, found.jobs) if found.jobs else None,
    )


def budgets_page(found: BudgetsOut, now: datetime) -> Block:
    note = styled("Nothing was done.", DIM) if found.dry_run else None
    return stack(budget_table(found.items, now), _closed(found.closed_until, now), note)


def budget_table(found: Sequence[BudgetOut], now: datetime) -> Table[BudgetOut]:
    columns: list[Column[BudgetOut]] = [
        Column("BUDGET", lambda each: f"{format_amount(each.amount)} {each.unit} a {each.period}"),
        Column("USED", lambda each: styled(_share(each), _LEVELS[each.level])),
        Column("THEN", lambda each: "pauses" if each.action == "pause" else "warns", drop=1),
        Column("STARTS AGAIN", lambda each: relative(each.resets_at - now), DIM, drop=2),
    ]
    return Table(columns, found, empty="No budgets.")


def format_usage(usage: Mapping[str, Decimal]) -> str:
    return ", ".join(f"{format_amount(amount)} {unit}" for unit, amount in usage.items())


def format_amount(amount: Decimal) -> str:
    text = f"{amount:,f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _share(budget: BudgetOut) -> str:
    percent = f" ({budget.used * 100 / budget.amount:.0f} %)" if budget.amount else ""
    return f"{format_amount(budget.used)}{percent}"


def _closed(until: datetime | None, now: datetime) -> Block | None:
    if until is None:
        return None
    text = f"A budget of the workspace is used up: schedules start no run until it starts again {relative(until - now)}."
    return styled(text, RED)


def _written(session: Session) -> list[dict[str, Any]]:
    fields = {"unit", "amount", "period", "warn_at", "action"}
    return [each.model_dump(mode="json", include=fields) for each in session.client.budgets.list().items]


def _replace(session: Session, wanted: Sequence[Mapping[str, Any]], *, dry_run: bool) -> None:
    verbs = session.client.budgets.dry_run if dry_run else session.client.budgets
    found = verbs.set(wanted)
    session.show(found, lambda: budgets_page(found, session.now))
