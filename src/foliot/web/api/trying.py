"""`dry_run=true`: the same routes, and nothing is kept."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from foliot.domain.ids import JobId
from foliot.services import Database, trying
from foliot.services.access import Caller
from foliot.services.trying import Act
from foliot.web.present import job_out, times_out
from foliot.wire.trying import DifferenceOut, DryRunOut, MovedOut

SHOWN = 5
DryRun = Annotated[
    bool, Query(description="Keep nothing; answer with how it would stand and what would change ahead.")
]


async def tried(db: Database, caller: Caller, act: Act, job_id: JobId | None = None) -> DryRunOut:
    found = await trying.tried(db, caller.workspace_id, act, job_id)
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
