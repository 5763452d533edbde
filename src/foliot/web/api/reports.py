"""/preview, /agenda, /stats and /jobs/{id}/explain: questions about time."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Body, Query, Request, Response

from foliot.domain.access import Permission
from foliot.domain.errors import Invalid
from foliot.domain.filters import read_parameters
from foliot.domain.filters.fields import RUNS
from foliot.domain.ids import JobId
from foliot.domain.schedule.zone import load_zone
from foliot.services import Database
from foliot.services.identity.authentication import Caller
from foliot.services.jobs import agenda
from foliot.services.jobs.agenda import AgendaFilter, preview_times
from foliot.services.runs import explain, history, statistics
from foliot.services.runs.history import LONGEST_PAGE, RunFilter, RunRecord
from foliot.web.api.params import Db, JobIdIn, TimeCount
from foliot.web.auth import Viewer, address_of, authenticate
from foliot.web.errors import Refused
from foliot.web.mapping.definitions import schedule_from
from foliot.web.mapping.ics import calendar_file
from foliot.web.mapping.jobs import schedule_out, times_out
from foliot.web.mapping.reports import (
    agenda_out,
    density_out,
    explanation_out,
    job_stats_out,
    stats_now_out,
    stats_out,
)
from foliot.web.routes import NOT_FOUND, WITH_BODY, api_router
from foliot.wire.instants import Id, Moment
from foliot.wire.reports import AgendaOut, DensityOut, ExplanationOut, JobStatsOut, StatsNowOut, StatsOut
from foliot.wire.schedules import PreviewOut, ScheduleIn

routes = api_router("time")
MOST_PARTS = 1_500  # the minutes of a day, and of one with a clock change
feeds = APIRouter(tags=["time"])
MOST_RECORDED = 1_000  # records in a calendar file
Days = Annotated[
    int,
    Query(
        ge=1, le=statistics.MOST_DAYS, description="The last so many UTC days, today included.", examples=[7]
    ),
]

Closures = Annotated[bool, Query(description="Also when the calendars of these jobs close.")]
WithPercentiles = Annotated[
    bool,
    Query(
        description="Add the 95th percentiles of each of the last 92 days, from a sample of its runs. Not for agents."
    ),
]


@routes.get("/jobs/{job_id}/explain", responses=NOT_FOUND)
async def explain_job(
    job_id: JobIdIn,
    caller: Viewer,
    db: Db,
    at: Annotated[
        Moment | None,
        Query(description="The instant to explain, past or future. Default: its last planned time."),
    ] = None,
) -> ExplanationOut:
    """Explain why it ran, did not run, or will not run at an instant, by the definition in force then."""
    answer = await explain.explain_instant(db, caller.scope, job_id, at)
    return explanation_out(answer)


@routes.get("/jobs/{job_id}/stats", responses=NOT_FOUND)
async def job_stats(
    job_id: JobIdIn,
    caller: Viewer,
    db: Db,
    days: Days = statistics.DAYS,
    percentiles: WithPercentiles = False,
) -> JobStatsOut:
    """Statistics of its runs: by day, in total, and durations of the newest."""
    stats = await statistics.job_stats(db, caller.scope, job_id, days, percentiles=percentiles)
    return job_stats_out(stats)


@routes.get("/stats")
async def workspace_stats(
    caller: Viewer, db: Db, days: Days = statistics.WEEK, percentiles: WithPercentiles = False
) -> StatsOut:
    """Statistics of the workspace: jobs, open runs, next due times, and runs by day. An agent gets those of its own jobs."""
    stats = await statistics.workspace_stats(db, caller.scope, days, percentiles=percentiles)
    return stats_out(stats)


@routes.get("/stats/now")
async def workspace_now(
    caller: Viewer,
    db: Db,
    jobs: Annotated[bool, Query(description="Also count the jobs by status.")] = False,
    days: Annotated[
        int | None,
        Query(
            ge=1, le=statistics.MOST_DAYS, description="Also the totals of so many UTC days, today included."
        ),
    ] = None,
) -> StatsNowOut:
    """The state of the workspace at this moment: open runs, late jobs and the start lag. An agent gets that of its own jobs."""
    return stats_now_out(await statistics.workspace_now(db, caller.scope, jobs=jobs, days=days))


@routes.get("/agenda")
async def list_agenda(
    caller: Viewer,
    db: Db,
    start: Annotated[Moment | None, Query(alias="from", description="Default, and earliest: now.")] = None,
    end: Annotated[
        Moment | None,
        Query(alias="to", description="Default: a day after `from`; at most 31 days after it."),
    ] = None,
    job: Annotated[Id | None, Query(description="Only this job.")] = None,
    queue: Annotated[str | None, Query(max_length=64, description="Only jobs of this queue.")] = None,
    tag: Annotated[str | None, Query(max_length=64, description="Only jobs with this tag.")] = None,
    limit: Annotated[
        int, Query(ge=1, le=agenda.MOST_LINES, description="Lines at most.")
    ] = agenda.MOST_LINES,
    closures: Closures = False,
) -> AgendaOut:
    """List planned times by start, with the expected result and duration. Times of one job that
    follow each other in less than an hour are one line.
    """
    wanted = AgendaFilter(None if job is None else JobId(job), queue, tag)
    found = await agenda.load_agenda(
        db, caller.scope, wanted, start=start, end=end, limit=limit, with_closures=closures
    )
    return agenda_out(found)


@routes.get("/agenda/density")
async def agenda_density(
    caller: Viewer,
    db: Db,
    start: Annotated[Moment | None, Query(alias="from", description="Default: now.")] = None,
    end: Annotated[
        Moment | None,
        Query(alias="to", description="Default: a day after `from`; at most 31 days after it."),
    ] = None,
    buckets: Annotated[int, Query(ge=1, le=MOST_PARTS, description="Equal parts of the span.")] = 48,
    job: Annotated[Id | None, Query(description="Only this job.")] = None,
    queue: Annotated[str | None, Query(max_length=64, description="Only jobs of this queue.")] = None,
    tag: Annotated[str | None, Query(max_length=64, description="Only jobs with this tag.")] = None,
    closures: Closures = False,
) -> DensityOut:
    """Count the planned runs in each part of a span. In a large workspace the counts are an estimate from a sample of its jobs."""
    begin = start or caller.at.replace(second=0, microsecond=0)
    wanted = AgendaFilter(None if job is None else JobId(job), queue, tag)
    until = end or begin + timedelta(days=1)
    found = await agenda.load_density(
        db, caller.scope, wanted, start=begin, end=until, parts=buckets, with_closures=closures
    )
    return density_out(found)


@routes.get(
    "/agenda.ics",
    response_class=Response,
    responses={200: {"content": {"text/calendar": {"schema": {"type": "string"}}}, "description": "Events"}},
)
async def agenda_file(
    caller: Viewer,
    db: Db,
    days: Annotated[int, Query(ge=1, le=31, description="From now on.")] = 14,
    past: Annotated[
        int, Query(ge=0, le=31, description="Also the newest 1,000 records of so many days.")
    ] = 0,
    job: Annotated[Id | None, Query(description="Only this job.")] = None,
    queue: Annotated[str | None, Query(max_length=64, description="Only jobs of this queue.")] = None,
    tag: Annotated[str | None, Query(max_length=64, description="Only jobs with this tag.")] = None,
) -> Response:
    """The agenda as a calendar file, at most 1,000 events ahead. Times of one job that follow each other in less than an hour are one
    event. Programs that subscribe use an address with a key of the scope `agenda`: `/feeds/agenda/{key}.ics`.
    """
    wanted = AgendaFilter(None if job is None else JobId(job), queue, tag)
    plans = await agenda.load_agenda(db, caller.scope, wanted, end=caller.at + timedelta(days=days))
    ran = await _recorded(db, caller, wanted, past)
    text = calendar_file(plans, ran, f"Foliot: {caller.workspace.name}", caller.at)
    headers = {"Content-Disposition": 'attachment; filename="agenda.ics"'}
    return Response(text, media_type="text/calendar; charset=utf-8", headers=headers)


@feeds.api_route("/feeds/agenda/{key}.ics", methods=["GET", "HEAD"], include_in_schema=False)
async def agenda_feed(
    key: str,
    request: Request,
    workspace: Annotated[str | None, Query(max_length=64)] = None,
    days: Annotated[int, Query(ge=1, le=31)] = 14,
    past: Annotated[int, Query(ge=0, le=31)] = 1,
    queue: Annotated[str | None, Query(max_length=64)] = None,
    tag: Annotated[str | None, Query(max_length=64)] = None,
) -> Response:
    """The calendar file for programs that know an address and no header. Its key opens this and nothing else."""
    address = address_of(request)
    caller = await authenticate(request, key, address, workspace)
    if caller is None or not caller.holder.may(Permission.AGENDA):
        raise Refused(404, "There is no such calendar.", hint="Make a new address on the page Agenda.")
    request.state.rate = request.app.state.rates.count(caller)
    return await agenda_file(
        replace(caller, address=address), request.app.state.database, days, past, queue=queue, tag=tag
    )


async def _recorded(db: Database, caller: Caller, wanted: AgendaFilter, days: int) -> list[RunRecord]:
    """Return the records of the last days; the newest of them where they are many."""
    given = {
        "job": [str(wanted.job_id)] if wanted.job_id else [],
        "queue": [wanted.queue] if wanted.queue else [],
        "tag": [wanted.tag] if wanted.tag else [],
        "since": [f"{24 * days}h"],
    }
    filters = RunFilter(read_parameters(given, RUNS, caller.at, load_zone("UTC")))
    found: list[RunRecord] = []
    cursor = None
    for _ in range(MOST_RECORDED // LONGEST_PAGE if days else 0):
        page = await history.of_workspace(db, caller.scope, filters, cursor=cursor, limit=LONGEST_PAGE)
        found += page.items
        cursor = page.next_cursor
        if cursor is None:
            break
    return found


@routes.post("/preview", responses=WITH_BODY)
async def preview_schedule(
    schedule: Annotated[ScheduleIn, Body()],
    caller: Viewer,
    n: TimeCount = 5,
    after: Annotated[
        Moment | None,
        Query(description="Times later than this, as if the schedule were made then; now."),
    ] = None,
) -> PreviewOut:
    """Describe a schedule in words and list its next times. Nothing is stored."""
    start = caller.at if after is None else after
    try:
        read = schedule_from(schedule, start, caller.workspace.default_timezone)
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
