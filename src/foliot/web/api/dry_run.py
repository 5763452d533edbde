"""What is done to a job, or with `dry_run=true` only tried: the same routes, and nothing is kept."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import Query, Response
from fastapi.responses import JSONResponse

from foliot.domain.ids import JobId, RoomId, RunId
from foliot.services import Database
from foliot.services import dry_run as service_dry_run
from foliot.services.hints import Announce, Hint
from foliot.services.identity.authentication import Caller
from foliot.services.jobs import job_dry_run, job_search
from foliot.services.jobs.job_dry_run import Act
from foliot.services.jobs.job_search import StoredJob
from foliot.services.messaging import messages
from foliot.services.workers import unserved
from foliot.web.mapping.jobs import etag, job_out, run_out, times_out
from foliot.wire.dry_run import DifferenceOut, DryRunOut, MovedOut, RunDryRunOut
from foliot.wire.instants import read_id
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
    await act(db)
    if tell is not None:
        for hint in hints:
            tell(hint)
    return await as_it_stands(db, caller, job_id, response)


async def tried_run(
    db: Database, caller: Caller, act: Callable[[Database], Awaitable[RunId]]
) -> RunDryRunOut:
    found = await service_dry_run.tried_run(db, caller.workspace_id, act)
    return RunDryRunOut(run=run_out(found.run), sentence=found.sentence)


async def as_it_stands(db: Database, caller: Caller, job_id: JobId, response: Response) -> JobOut:
    record = await job_search.job(db, caller.scope, job_id)
    response.headers["ETag"] = etag(record)
    return job_out(record, await warnings_of(db, caller, record))


async def warnings_of(db: Database, caller: Caller, record: StoredJob) -> list[str]:
    """For who has just written it: what stands in the way of its runs."""
    spec = record.definition.spec
    found = [await unserved.hindrance(db, caller.workspace_id, spec.queue, spec.type, spec.target)]
    if spec.type == "message" and isinstance(named := (record.definition.config or {}).get("room"), str):
        room_id = read_id(named)
        room = named if room_id is None else RoomId(room_id)
        found.append(await messages.hindrance(db, caller.workspace_id, record.id, room))
    return [each for each in found if each is not None]


async def tried(db: Database, caller: Caller, act: Act, job_id: JobId | None = None) -> DryRunOut:
    found = await job_dry_run.tried(db, caller.workspace_id, act, job_id)
    told = found.difference
    shown = None if found.job is None else job_out(found.job)
    schedule = None if found.job is None else found.job.definition.spec.schedule
    return DryRunOut(
        job=shown,
        words=None if shown is None else shown.schedule.words,
        items=[] if schedule is None else times_out(schedule, found.times[:SHOWN]),
        warnings=[*found.warnings, *([] if found.job is None else await warnings_of(db, caller, found.job))],
        difference=DifferenceOut(
            added=[each.due_at for each in told.added],
            removed=[each.due_at for each in told.removed],
            moved=[MovedOut(before=each.before.due_at, after=each.after.due_at) for each in told.moved],
            unchanged=told.unchanged,
            until=told.until,
        ),
    )
