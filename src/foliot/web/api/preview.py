"""/preview: what a schedule means, before anything is made of it."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body, Query

from foliot.domain.errors import Invalid
from foliot.services.jobs.agenda import preview_times
from foliot.web.api.params import HowMany
from foliot.web.auth import Viewer
from foliot.web.mapping.definitions import schedule_of
from foliot.web.mapping.jobs import schedule_out, times_out
from foliot.web.routes import WITH_BODY, api_router
from foliot.wire.instants import Moment
from foliot.wire.schedules import PreviewOut, ScheduleIn

routes = api_router("preview")


@routes.post("/preview", responses=WITH_BODY)
async def preview_schedule(
    schedule: Annotated[ScheduleIn, Body()],
    caller: Viewer,
    n: HowMany = 5,
    after: Annotated[
        Moment | None,
        Query(description="Times later than this, as if the schedule were made then; now."),
    ] = None,
) -> PreviewOut:
    """Say a schedule in words and name its next times. Nothing is kept."""
    start = caller.at if after is None else after
    try:
        read = schedule_of(schedule, start, caller.workspace.default_timezone)
    except Invalid as error:
        # The body is the schedule itself; in a job it stands under /schedule.
        error.pointer = (error.pointer or "").removeprefix("/schedule")
        raise
    found = preview_times(read, start, n)
    shown = schedule_out(read)
    return PreviewOut(
        words=shown.words,
        schedule=shown,
        items=times_out(read, found.times),
        notes=list(found.notes),
        warnings=list(found.warnings),
    )
