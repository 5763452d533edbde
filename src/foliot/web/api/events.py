"""/events: live events of the workspace, by server-sent events."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import Header, Query, Request

from foliot.clock import monotonic
from foliot.domain.errors import Invalid
from foliot.domain.ids import JobId, WorkspaceId
from foliot.services import Database
from foliot.services.messaging import events
from foliot.services.messaging.events import EventFilter, EventRow, Subscription
from foliot.web.api.params import Db
from foliot.web.auth import Viewer
from foliot.web.event_reader import EventReader
from foliot.web.routes import api_router
from foliot.web.sse import EventStream, StreamConnection, frame, heartbeat, stream_response
from foliot.wire.audit import EventOut, MissedEventsOut
from foliot.wire.instants import Id

routes = api_router("events")
KINDS = frozenset(
    {"job", "run", "calendar", "freeze", "incident"}
    | {f"job.{each}" for each in (
        "created", "edited", "reverted", "paused", "resumed", "disabled", "archived", "purged", "backfilled", "skip_next_set",
        "skip_next_undone", "dependencies_set", "activated", "completed", "failed", "expired",
    )}
    | {f"run.{each}" for each in (
        "requested", "retried", "started", "retrying", "succeeded", "failed", "timed_out", "interrupted", "cancelled", "skipped",
    )}
    | {f"calendar.{each}" for each in ("created", "edited", "deleted")}
    | {f"freeze.{each}" for each in ("turned_on", "taken_back", "lifted")}
    | {f"incident.{each}" for each in ("opened", "acknowledged", "snoozed", "muted", "unmuted", "noted", "closed")}
)  # fmt: skip
_WITH_OBJECT = ("calendar.", "freeze.", "incident.")
_ONE = "|".join(sorted(KINDS)).replace(".", r"\.")
RENEW_EVERY = 600.0  # seconds
MISSED = MissedEventsOut(
    reason="What happened between your last event and now is not kept; look at what you need."
).model_dump_json()


@routes.get(
    "/events",
    status_code=200,
    response_class=EventStream,
    responses=stream_response(
        "One event for each thing that happens; its data is an EventOut. `reset` says that some were missed.",
        any=EventOut,
        reset=MissedEventsOut,
    ),
)
async def stream_events(
    request: Request,
    caller: Viewer,
    db: Db,
    types: Annotated[
        str | None,
        Query(
            max_length=1_000,
            description="Kinds or nouns, with commas between: `run.failed,freeze`.",
            json_schema_extra={"pattern": rf"^\s*({_ONE})?\s*(,\s*({_ONE})?\s*)*$"},
        ),
    ] = None,
    job: Annotated[Id | None, Query(description="Only what concerns this job.")] = None,
    last_event_id: Annotated[
        str | None, Header(max_length=64, json_schema_extra={"pattern": r"^[0-9]{1,19}-[0-9]{1,19}$"})
    ] = None,
) -> EventStream:
    """Stream events from now on, or after Last-Event-ID: in one order, each once. Events are kept for an hour."""
    wanted = EventFilter(_kinds(types), None if job is None else JobId(job), caller.visible_owner)
    line = StreamConnection(request, caller)
    last = None if last_event_id is None else events.read_event_id(last_event_id)
    listening = await events.listen(db, caller.workspace_id, last)
    reader: EventReader = request.app.state.event_reader
    return EventStream(line, _frames(line, db, reader, listening, (caller.workspace_id, wanted)))


async def _frames(
    line: StreamConnection,
    db: Database,
    reader: EventReader,
    listening: Subscription,
    asked: tuple[WorkspaceId, EventFilter],
) -> AsyncGenerator[str, None]:
    workspace_id, wanted = asked
    place, renewed_at = listening.place, monotonic()
    yield "retry: 2000\n" + heartbeat(events.write_event_id(place))
    if listening.is_gap:
        yield frame(MISSED, event="reset", id=events.write_event_id(place))
    while True:
        batch = await reader.after(workspace_id, place, wanted)
        for each in batch.events:
            yield _event(each)
        place = batch.place
        if not batch.events and line.is_silent:
            yield heartbeat(events.write_event_id(place))
        if not await line.goes_on(is_more=batch.is_full):
            return
        if monotonic() - renewed_at >= RENEW_EVERY:
            await events.listen(db, workspace_id, place)
            renewed_at = monotonic()


def _event(row: EventRow) -> str:
    shown = EventOut.from_value(
        row,
        id=events.write_event_id(row.place),
        object_id=row.object_id if row.kind.startswith(_WITH_OBJECT) else None,
    )
    return frame(shown.model_dump_json(), event=row.kind, id=shown.id)


def _kinds(types: str | None) -> tuple[str, ...]:
    asked = tuple(each.strip() for each in (types or "").split(",") if each.strip())
    if unknown := sorted(set(asked) - KINDS):
        raise Invalid(
            f"There are no events of the kind {unknown[0][:64]!a}.",
            pointer="/types",
            hint="Kinds are nouns (job, run, calendar, freeze, incident), or as in run.failed and job.paused.",
        )
    return asked
