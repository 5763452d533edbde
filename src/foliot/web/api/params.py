"""Parameters that many routes take: ids, pages, how many."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Depends, Path, Query, Request

from foliot.domain.errors import not_found
from foliot.domain.ids import JobId, RunId
from foliot.handlers.dependencies import EgressPolicy
from foliot.services import Database
from foliot.services.hints import Announce
from foliot.wire.instants import read_id
from foliot.wire.pages import LONGEST_PAGE, PAGE

PathId = Annotated[str, Path(json_schema_extra={"format": "uuid"})]


def id_of(kind: str, text: str) -> UUID:
    """What is no id answers like an id that nobody has."""
    found = read_id(text)
    if found is None:
        raise not_found(kind)
    return found


def _job_id(job_id: PathId) -> JobId:
    return JobId(id_of("job", job_id))


def _run_id(run_id: PathId) -> RunId:
    return RunId(id_of("run", run_id))


def _database(request: Request) -> Database:
    database: Database = request.app.state.database
    return database


def _reach(request: Request) -> EgressPolicy:
    reach: EgressPolicy = request.app.state.reach
    return reach


def _announce(request: Request) -> Announce:
    announce: Announce = request.app.state.announce
    return announce


JobIdIn = Annotated[JobId, Depends(_job_id)]
RunIdIn = Annotated[RunId, Depends(_run_id)]
Db = Annotated[Database, Depends(_database)]
TheReach = Annotated[EgressPolicy, Depends(_reach)]
Tell = Annotated[Announce, Depends(_announce)]
Cursor = Annotated[str | None, Query(max_length=3_000, description="next_cursor of the page before.")]
Limit = Annotated[int, Query(ge=1, le=LONGEST_PAGE, description="How many to a page.")]
HowMany = Annotated[int, Query(ge=1, le=100, description="How many times to name.")]
DEFAULT_LIMIT = PAGE
