"""Parameters that many routes take: ids, pages, how many."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import Depends, Path, Query, Request

from foliot.domain.errors import not_found
from foliot.domain.filters import LONGEST, read_parameters, read_query
from foliot.domain.filters import Query as Found
from foliot.domain.filters.fields import JOBS, RUNS
from foliot.domain.filters.query import JobOrder, read_order
from foliot.domain.ids import JobId, RunId
from foliot.domain.lifecycle import JobStatus, RunStatus
from foliot.domain.run import Trigger
from foliot.domain.schedule import SkipReason, load_zone
from foliot.handlers.dependencies import EgressPolicy
from foliot.services import Database
from foliot.services.hints import Announce
from foliot.services.identity.authentication import Caller
from foliot.services.runs.history import RunFilter
from foliot.web.auth import Viewer
from foliot.wire.instants import read_id
from foliot.wire.shape import LONGEST_PAGE, PAGE


def path_id(name: str, kind: str | None = None) -> Any:
    """Return a dependency that reads an id of the path. Text that is no id gets the same answer as an unknown id."""
    path = Path(alias=name, json_schema_extra={"format": "uuid"})

    async def read(text: str = path) -> UUID:
        found = read_id(text)
        if found is None:
            raise not_found(kind or name.removesuffix("_id"))
        return found

    return Depends(read)


async def _database(request: Request) -> Database:
    database: Database = request.app.state.database
    return database


async def _reach(request: Request) -> EgressPolicy:
    reach: EgressPolicy = request.app.state.reach
    return reach


async def _announce(request: Request) -> Announce:
    announce: Announce = request.app.state.announce
    return announce


JobIdIn = Annotated[JobId, path_id("job_id")]
RunIdIn = Annotated[RunId, path_id("run_id")]
Db = Annotated[Database, Depends(_database)]
TheEgressPolicy = Annotated[EgressPolicy, Depends(_reach)]
Announcer = Annotated[Announce, Depends(_announce)]
Cursor = Annotated[str | None, Query(max_length=3_000, description="next_cursor of the page before.")]
Limit = Annotated[int, Query(ge=1, le=LONGEST_PAGE, description="Items per page.")]
TimeCount = Annotated[int, Query(ge=1, le=100, description="Number of times.")]
DEFAULT_LIMIT = PAGE
MANY = 50  # values of a repeated parameter

_ANY = "Any of these."
_JOB_FILTER = f"A filter such as `status:failed tag:billing since:24h`. Fields: {', '.join(JOBS.names)}; other words are searched in the name."


def read_job_filter(q: str | None, caller: Caller) -> Found:
    """Parse the filter `q` for jobs; days are those of the workspace's zone."""
    return read_query(q or "", JOBS, caller.at, load_zone(caller.workspace.default_timezone))


async def _job_query(
    caller: Viewer,
    q: Annotated[str | None, Query(max_length=LONGEST, description=_JOB_FILTER)] = None,
    status: Annotated[
        list[JobStatus], Query(max_length=MANY, description=f"{_ANY} Archived ones only when named.")
    ] = [],  # noqa: B006
    tag: Annotated[list[str], Query(max_length=MANY, description=_ANY)] = [],  # noqa: B006  # FastAPI copies them
    type: Annotated[list[str], Query(max_length=MANY, description=_ANY)] = [],  # noqa: A002, B006  # the name on the wire
    queue: Annotated[list[str], Query(max_length=MANY, description=_ANY)] = [],  # noqa: B006
    owner: Annotated[list[str], Query(max_length=MANY, description="An id, a name, or `me`.")] = [],  # noqa: B006
    name: Annotated[list[str], Query(max_length=MANY, description="Something in its name.")] = [],  # noqa: B006
    since: Annotated[
        list[str], Query(max_length=MANY, description="Created since: `24h`, `2026-11-01`.")
    ] = [],  # noqa: B006
    until: Annotated[list[str], Query(max_length=MANY, description="Created until, that day included.")] = [],  # noqa: B006
) -> Found:
    given = {
        "status": [each.value for each in status],
        "tag": tag,
        "type": type,
        "queue": queue,
        "owner": owner,
        "name": name,
        "since": since,
        "until": until,
    }
    zone = load_zone(caller.workspace.default_timezone)
    return read_job_filter(q, caller) & read_parameters(given, JOBS, caller.at, zone)


async def _order(
    sort: Annotated[
        str,
        Query(
            max_length=40,
            description="`created_at`, `name` or `next_run_at`; a minus before it reverses the order.",
            json_schema_extra={"pattern": r"^-?(created_at|name|next_run_at)$"},
        ),
    ] = "-created_at",
) -> JobOrder:
    return read_order(sort)


JobQuery = Annotated[Found, Depends(_job_query)]
Order = Annotated[JobOrder, Depends(_order)]
Count = Annotated[bool, Query(description="Count them all, up to 10,000.")]


_WHEN = "`24h`, `2026-11-01` (a day of the workspace's zone) or `2026-11-01T09:00:00Z`."
_RUN_FILTER = f"A filter such as `status:failed tag:billing since:24h`. Fields: {', '.join(RUNS.names)}; other words are searched in the job's name."


def read_run_filter(q: str | None, caller: Caller) -> RunFilter:
    """Parse the filter `q` for runs; days are those of the workspace's zone."""
    return RunFilter(read_query(q or "", RUNS, caller.at, load_zone(caller.workspace.default_timezone)))


async def _run_query(
    caller: Viewer,
    q: Annotated[str | None, Query(max_length=LONGEST, description=_RUN_FILTER)] = None,
    status: Annotated[list[RunStatus], Query(max_length=MANY, description=_ANY)] = [],  # noqa: B006  # FastAPI copies them
    trigger: Annotated[list[Trigger], Query(max_length=MANY, description=_ANY)] = [],  # noqa: B006
    skip_reason: Annotated[list[SkipReason], Query(max_length=MANY, description=_ANY)] = [],  # noqa: B006
    job: Annotated[
        list[str], Query(max_length=MANY, description="Ids of jobs; those of one job come by planned time.")
    ] = [],  # noqa: B006
    worker: Annotated[
        list[str], Query(max_length=MANY, description="An id, or the name of a worker that is alive.")
    ] = [],  # noqa: B006
    queue: Annotated[
        list[str], Query(max_length=MANY, description="That its job has now. Any of these.")
    ] = [],  # noqa: B006
    type: Annotated[  # noqa: A002  # the name on the wire
        list[str], Query(max_length=MANY, description="That its job has now. Any of these.")
    ] = [],  # noqa: B006
    tag: Annotated[list[str], Query(max_length=MANY, description="That its job has now. Any of these.")] = [],  # noqa: B006
    since: Annotated[list[str], Query(max_length=MANY, description=f"Planned since: {_WHEN}")] = [],  # noqa: B006
    until: Annotated[
        list[str], Query(max_length=MANY, description=f"Planned until, that instant or day included: {_WHEN}")
    ] = [],  # noqa: B006
) -> RunFilter:
    given = {
        "status": [each.value for each in status],
        "trigger": [each.value for each in trigger],
        "reason": [each.value for each in skip_reason],
        "job": job,
        "worker": worker,
        "queue": queue,
        "type": type,
        "tag": tag,
        "since": since,
        "until": until,
    }
    zone = load_zone(caller.workspace.default_timezone)
    return RunFilter(read_run_filter(q, caller).query & read_parameters(given, RUNS, caller.at, zone))


RunQuery = Annotated[RunFilter, Depends(_run_query)]
