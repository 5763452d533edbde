"""Parameters that many routes take: ids, pages, how many."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Query, Request

from foliot.domain.ids import JobId, RunId
from foliot.handlers.reach import Reach
from foliot.services import Database
from foliot.services.hints import Announce
from foliot.services.in_hand import no_such
from foliot.wire.instants import read_id
from foliot.wire.pages import LONGEST_PAGE, PAGE

_ID = Path(json_schema_extra={"format": "uuid"})


def _job_id(job_id: Annotated[str, _ID]) -> JobId:
    """What is no id answers like an id that nobody has."""
    found = read_id(job_id)
    if found is None:
        raise no_such("job")
    return JobId(found)


def _run_id(run_id: Annotated[str, _ID]) -> RunId:
    found = read_id(run_id)
    if found is None:
        raise no_such("run")
    return RunId(found)


def _database(request: Request) -> Database:
    database: Database = request.app.state.database
    return database


def _reach(request: Request) -> Reach:
    reach: Reach = request.app.state.reach
    return reach


def _announce(request: Request) -> Announce:
    announce: Announce = request.app.state.announce
    return announce


JobIdIn = Annotated[JobId, Depends(_job_id)]
RunIdIn = Annotated[RunId, Depends(_run_id)]
Db = Annotated[Database, Depends(_database)]
TheReach = Annotated[Reach, Depends(_reach)]
Tell = Annotated[Announce, Depends(_announce)]
Cursor = Annotated[str | None, Query(max_length=3_000, description="next_cursor of the page before.")]
Limit = Annotated[int, Query(ge=1, le=LONGEST_PAGE, description="How many to a page.")]
HowMany = Annotated[int, Query(ge=1, le=100, description="How many times to name.")]
DEFAULT_LIMIT = PAGE
