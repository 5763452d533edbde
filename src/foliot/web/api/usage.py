"""/usage and /budgets: what runs used, by month and job, and how much the workspace may use."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from fastapi import Query

from foliot.domain.errors import Invalid
from foliot.domain.ids import JobId, RunId
from foliot.services import Database
from foliot.services.runs import usage
from foliot.services.runs.usage import WorkspaceBudgets
from foliot.web.api.params import Db, RunIdIn
from foliot.web.api.writes import Writing
from foliot.web.auth import Admin, Operator, SharedViewer, Viewer
from foliot.web.mapping.usage import budget_from, budgets_out, check_budgets, usage_out
from foliot.web.routes import NOT_FOUND, WITH_BODY, api_router
from foliot.wire.dry_run import RunDryRunOut
from foliot.wire.instants import Id
from foliot.wire.runs import RunOut
from foliot.wire.usage import BudgetsIn, BudgetsOut, UsageIn, UsageOut

routes = api_router("usage")


@routes.get("/usage", responses=NOT_FOUND)
async def get_usage(
    caller: Viewer,
    db: Db,
    month: Annotated[
        str | None,
        Query(
            pattern=r"^\d{4}-\d\d$", description="A calendar month of UTC; this one.", examples=["2026-11"]
        ),
    ] = None,
    job: Annotated[Id | None, Query(description="Only this job.")] = None,
    unit: Annotated[str | None, Query(max_length=40, description="Only this unit.", examples=["usd"])] = None,
) -> UsageOut:
    """Sums of what runs used in a month: in total, by day and by job; and the budgets. An agent gets those of its own jobs."""
    found = await usage.month_usage(
        db,
        caller.scope,
        month=None if month is None else _first_day(month),
        job_id=None if job is None else JobId(job),
        unit=unit,
    )
    return usage_out(found)


@routes.get("/budgets")
async def list_budgets(caller: SharedViewer, db: Db) -> BudgetsOut:
    """List the budgets of the workspace, with what their current periods have used. Budgets of jobs are fields of the jobs."""
    return budgets_out(await usage.list_budgets(db, caller.scope))


@routes.put("/budgets", responses=WITH_BODY)
async def set_budgets(budgets: BudgetsIn, caller: Admin, write: Writing) -> BudgetsOut:
    """Replace the budgets of the workspace. One that is used up already stops schedules at once; a higher one lets them start again."""
    check_budgets(budgets.items, "/items")
    wanted = [budget_from(each) for each in budgets.items]

    async def verb(db: Database) -> WorkspaceBudgets:
        return await usage.set_budgets(db, caller.scope, wanted)

    return await write.apply_or_preview(verb, budgets_out, lambda found: budgets_out(found, dry_run=True))


@routes.post("/runs/{run_id}/usage", responses={**NOT_FOUND, **WITH_BODY})
async def report_run_usage(
    run_id: RunIdIn, given: UsageIn, caller: Operator, write: Writing
) -> RunOut | RunDryRunOut:
    """Add usage that the run's handler did not report, such as that of work in another engine. Send an Idempotency-Key: each call adds."""

    async def verb(db: Database) -> RunId:
        await usage.report(db, caller.scope, run_id, given.usage)
        return run_id

    return await write.run(verb)


def _first_day(month: str) -> date:
    try:
        return date.fromisoformat(f"{month}-01")
    except ValueError:
        raise Invalid("There is no such month.", pointer="/month", hint="Write it like 2026-11.") from None
