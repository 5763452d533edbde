"""What is done to a job, or with `dry_run=true` only tried: the same routes, and nothing is kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import Query, Response
from fastapi.responses import JSONResponse

from foliot.domain.ids import JobId, RunId
from foliot.services import Database
from foliot.services import dry_run as service_dry_run
from foliot.services.hints import Announce, Hint
from foliot.services.identity.authentication import Caller
from foliot.services.jobs import job_dry_run, job_search
from foliot.services.jobs.job_dry_run import Act
from foliot.services.jobs.jobs import WrittenJob
from foliot.web.mapping.jobs import etag, job_out, run_out, times_out
from foliot.wire.dry_run import DifferenceOut, DryRunOut, MovedOut, RunDryRunOut
from foliot.wire.jobs import JobOut
from foliot.wire.shape import Shape

SHOWN = 5
DryRun = Annotated[
    bool, Query(description="Keep nothing; answer with how it would stand and what would change ahead.")
]


def only_tried(shape: type[Shape]) -> dict[int | str, dict[str, Any]]:
    """What a route answers that does it with another status."""
    return {200: {"model": shape, "description": "With dry_run"}}


def shown(tried: Shape) -> JSONResponse:
    """For routes that answer with nothing when they do it."""
    return JSONResponse(tried.model_dump(mode="json"))


async def done_or_tried(
    db: Database,
    caller: Caller,
    job_id: JobId,
    act: Act,
    response: Response,
    *,
    dry_run: bool,
    tell: Announce | None = None,
    hints: tuple[Hint, ...] = (),
) -> JobOut | DryRunOut:
    """Of what is only tried, nobody hears a hint."""
    if dry_run:
        return await tried(db, caller, act, job_id)
    acted = await act(db)
    if tell is not None:
        for hint in hints:
            tell(hint)
    if not isinstance(acted, WrittenJob):
        acted = await job_search.with_warnings(db, caller.scope, job_id)
    return job_response(acted, response)


async def tried_run(
    db: Database, caller: Caller, act: Callable[[Database], Awaitable[RunId]]
) -> RunDryRunOut:
    found = await service_dry_run.tried_run(db, caller.workspace_id, act)
    return RunDryRunOut(run=run_out(found.run), sentence=found.sentence)


def job_response(written: WrittenJob, response: Response) -> JobOut:
    response.headers["ETag"] = etag(written.job)
    return job_out(written.job, written.warnings)


async def tried(db: Database, caller: Caller, act: Act, job_id: JobId | None = None) -> DryRunOut:
    found = await job_dry_run.tried(db, caller.workspace_id, act, job_id)
    told = found.difference
    shown = None if found.job is None else job_out(found.job)
    schedule = None if found.job is None else found.job.definition.spec.schedule
    return DryRunOut(
        job=shown,
        words=None if shown is None else shown.schedule.words,
        items=[] if schedule is None else times_out(schedule, found.times[:SHOWN]),
        warnings=list(found.warnings),
        difference=DifferenceOut(
            added=[each.due_at for each in told.added],
            removed=[each.due_at for each in told.removed],
            moved=[MovedOut(before=each.before.due_at, after=each.after.due_at) for each in told.moved],
            unchanged=told.unchanged,
            until=told.until,
        ),
    )
