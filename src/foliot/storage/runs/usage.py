"""Usage of runs, its sums per day of jobs and workspaces, and the budgets of workspaces."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, date
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from foliot.domain.ids import JobId, PrincipalId, RunId, WorkspaceId
from foliot.domain.usage import Budget, BudgetAction, BudgetPeriod, period_start
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


class UsageRow(NamedTuple):
    """The usage of one unit by one attempt."""

    workspace_id: WorkspaceId
    job_id: JobId
    run_id: RunId
    attempt: int
    unit: str
    amount: Decimal


class UsageTotal(NamedTuple):
    """The sums of a job or workspace after `added` was added."""

    workspace_id: WorkspaceId
    subject_id: UUID
    unit: str
    added: Decimal
    day: Decimal
    month: Decimal

    def of(self, period: BudgetPeriod) -> Decimal:
        return self.day if period is BudgetPeriod.DAY else self.month


class UsageSum(NamedTuple):
    subject_id: UUID
    unit: str
    amount: Decimal
    today: Decimal


class UsageDay(NamedTuple):
    day: date
    unit: str
    amount: Decimal


class JobUsage(NamedTuple):
    id: JobId
    name: str
    unit: str
    amount: Decimal


async def add(tx: Tx, rows: Sequence[UsageRow]) -> list[UsageTotal]:
    """Record what attempts used, and return the new sums. Needs the locks of the jobs' timers."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    names = ("workspace_ids", "job_ids", "run_ids", "attempts", "units", "amounts")
    params = dict(zip(names, columns, strict=True)) | _today(tx)
    return await tx.fetch_as(UsageTotal, sql.usage.add, params)


async def list_units(tx: Tx, workspace_ids: Collection[WorkspaceId]) -> set[tuple[UUID, str]]:
    """List the units that workspaces have used today."""
    params = {"workspace_ids": list(workspace_ids), "today": _today(tx)["today"]}
    return set(await tx.fetch_pairs(UUID, str, sql.usage.list_units, params))


async def load_of_run(tx: Tx, run_id: RunId) -> dict[str, Decimal]:
    return dict(await tx.fetch_pairs(str, Decimal, sql.usage.load_of_run, {"run_id": run_id}))


async def list_sums(tx: Tx, subject_ids: Collection[UUID], since: date, until: date) -> list[UsageSum]:
    """List the sums of the days from `since` up to `until`, not included."""
    params = {"subject_ids": list(subject_ids), "since": since, "until": until, "today": _today(tx)["today"]}
    return await tx.fetch_as(UsageSum, sql.usage.list_sums, params)


async def list_days(tx: Tx, subject_id: UUID, since: date, until: date) -> list[UsageDay]:
    params = {"subject_id": subject_id, "since": since, "until": until}
    return await tx.fetch_as(UsageDay, sql.usage.list_days, params)


async def list_jobs(
    tx: Tx,
    since: date,
    until: date,
    *,
    limit: int,
    unit: str | None = None,
    job_id: JobId | None = None,
    owner_id: PrincipalId | None = None,
) -> list[JobUsage]:
    """List what jobs used, by unit, the largest first."""
    params = {
        "since": since,
        "until": until,
        "unit": unit,
        "job_id": job_id,
        "owner_id": owner_id,
        "limit": limit,
    }
    return await tx.fetch_as(JobUsage, sql.usage.list_jobs, params)


async def share_budgets(tx: Tx, workspace_ids: Collection[WorkspaceId]) -> None:
    """Keep the budgets of these workspaces as they are until the transaction ends."""
    await tx.execute(sql.usage.share_budgets, {"workspace_ids": sorted(workspace_ids)})


async def lock_budgets(tx: Tx) -> None:
    """Wait for transactions that add usage to the workspace, and let no other begin."""
    await tx.execute(sql.usage.lock_budgets)


async def list_budgets(tx: Tx, workspace_ids: Collection[WorkspaceId]) -> dict[UUID, list[Budget]]:
    found: dict[UUID, list[Budget]] = {}
    for row in await tx.fetch(sql.usage.list_budgets, {"workspace_ids": list(workspace_ids)}):
        found.setdefault(row["workspace_id"], []).append(
            Budget(
                row["unit"],
                row["amount"],
                BudgetPeriod(row["period"]),
                row["warn_at"],
                BudgetAction(row["action"]),
            )
        )
    return found


async def replace_budgets(tx: Tx, budgets: Sequence[Budget]) -> None:
    params = {
        "units": [each.unit for each in budgets],
        "periods": [each.period.value for each in budgets],
        "amounts": [each.amount for each in budgets],
        "warn_ats": [each.warn_at for each in budgets],
        "actions": [each.action.value for each in budgets],
    }
    await tx.execute(sql.usage.replace_budgets, params)


def _today(tx: Tx) -> dict[str, date]:
    return {"today": tx.now.astimezone(UTC).date(), "month": period_start(BudgetPeriod.MONTH, tx.now)}
