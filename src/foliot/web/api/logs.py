"""/runs/{id}/logs: the log of a run, by page or as a stream."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import Header, Query, Request

from foliot.domain.ids import RunId
from foliot.services import Database
from foliot.services.identity.authentication import Caller
from foliot.services.runs import logs
from foliot.services.runs.logs import LogPage, NumberedLine
from foliot.web.api.params import Db, RunIdIn
from foliot.web.auth import Viewer
from foliot.web.routes import NOT_FOUND, api_router
from foliot.web.sse import (
    EventStream,
    StreamConnection,
    frame,
    heartbeat,
    read_position,
    stream_response,
    wants_stream,
)
from foliot.wire.runs import LogEndOut, LogLineOut, LogsOut

routes = api_router("runs")
PAGE, LONGEST_PAGE = 200, 1_000
LOG_NAP = 1.0  # seconds between queries at most: lines come without a hint
MOST = 2**31 - 1


@routes.get(
    "/runs/{run_id}/logs",
    response_model=LogsOut,
    responses={
        **NOT_FOUND,
        **stream_response(
            "A page; or, to who accepts text/event-stream, an event `line` for each and `end` when the run is over.",
            line=LogLineOut,
            end=LogEndOut,
        ),
    },
)
async def read_logs(
    run_id: RunIdIn,
    request: Request,
    caller: Viewer,
    db: Db,
    follow: Annotated[bool, Query(description="Stream the lines as they come, until the run ends.")] = False,
    cursor: Annotated[
        str | None, Query(pattern=r"^[0-9]{1,10}$", description="The `seq` of the last line that was read.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=LONGEST_PAGE, description="How many lines to a page.")] = PAGE,
    tail: Annotated[
        int | None, Query(ge=1, le=LONGEST_PAGE, description="Only the last lines, instead of a page.")
    ] = None,
    last_event_id: Annotated[str | None, Header(pattern=r"^[0-9]{1,10}$")] = None,
) -> LogsOut | EventStream:
    """Read the log of all attempts, in order."""
    if wants_stream(request, follow=follow):
        after = _after(last_event_id if last_event_id is not None else cursor)
        page = await _read(db, caller, run_id, after, PAGE)
        line = StreamConnection(request, caller)
        return EventStream(line, _frames(line, db, caller, run_id, after, page))
    if tail is None:
        page = await _read(db, caller, run_id, _after(cursor), limit)
    else:
        page = await logs.read_tail(db, caller.scope, run_id, tail)
    return LogsOut(
        items=[_line(each) for each in page.lines],
        next_cursor=str(page.lines[-1].seq) if page.is_more else None,
        truncated=page.truncated,
    )


async def _frames(
    line: StreamConnection, db: Database, caller: Caller, run_id: RunId, after: int, page: LogPage
) -> AsyncGenerator[str, None]:
    yield "retry: 2000\n" + heartbeat()
    while True:
        for each in page.lines:
            yield frame(_line(each).model_dump_json(), event="line", id=str(each.seq))
            after = each.seq
        if page.is_over:
            end = LogEndOut(status=page.status.value, truncated=page.truncated)
            yield frame(end.model_dump_json(), event="end")
            return
        if line.is_silent:
            yield heartbeat()
        if not await line.goes_on(is_more=page.is_more, within=LOG_NAP):
            return
        page = await _read(db, caller, run_id, after, PAGE)


async def _read(db: Database, caller: Caller, run_id: RunId, after: int, limit: int) -> LogPage:
    return await logs.read(db, caller.scope, run_id, after=after, limit=limit)


def _line(numbered: NumberedLine) -> LogLineOut:
    line = numbered.line
    return LogLineOut(
        seq=numbered.seq, attempt=numbered.attempt, at=line.at, stream=line.stream.value, text=line.text
    )


def _after(cursor: str | None) -> int:
    return read_position(cursor, MOST, "Use next_cursor of the page before, or leave it out to begin.")
