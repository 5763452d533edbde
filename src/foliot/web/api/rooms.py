"""/rooms: chat rooms for message jobs, people and agents: read by page, long poll or stream; webhooks and their deliveries."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import partial
from typing import Annotated, Literal

from fastapi import Header, Query, Request, Response

from foliot.channels.webhook import message_out
from foliot.clock import monotonic
from foliot.domain.delivery import DeliveryState
from foliot.domain.ids import DeliveryId, PrincipalId, RoomId
from foliot.domain.rooms import MessageKind, Room
from foliot.services import Database
from foliot.services.hints import Hint
from foliot.services.identity.authentication import Caller
from foliot.services.messaging import rooms
from foliot.services.messaging.rooms import KEEP, MessagePage, NewRoom, PostedMessage, RoomChanges
from foliot.web.api.params import DEFAULT_LIMIT, Cursor, Db, Limit, TheEgressPolicy, path_id
from foliot.web.api.writes import Writing, dry_run_response
from foliot.web.auth import Editor, Operator, SharedEditor, SharedOperator, SharedViewer, Viewer
from foliot.web.mapping.rooms import delivery_out, hook_change_from, hook_from, room_out
from foliot.web.routes import CONFLICT, NOT_FOUND, WITH_BODY, api_router
from foliot.web.sse import (
    EventStream,
    StreamConnection,
    frame,
    heartbeat,
    read_position,
    stream_response,
    wants_stream,
)
from foliot.wire.rooms import (
    LONGEST_WAIT,
    DeliveryOut,
    MessageIn,
    MessageOut,
    MessagesOut,
    RedeliveredOut,
    RedeliverIn,
    RoomChange,
    RoomIn,
    RoomKey,
    RoomOut,
)
from foliot.wire.shape import Page

routes = api_router("rooms")
PAGE = 200  # messages per query of a stream
MOST = 2**63 - 1
PLACE = r"^[0-9]{1,19}$"


RoomIdIn = Annotated[RoomId, path_id("room_id")]


@routes.post("/rooms", status_code=201, responses={**dry_run_response(RoomOut), **CONFLICT, **WITH_BODY})
async def create_room(room: RoomIn, caller: Editor, reach: TheEgressPolicy, write: Writing) -> RoomOut:
    """Create a room. An agent that creates one is its member."""
    agents = tuple(PrincipalId(each) for each in dict.fromkeys(room.agents))
    hook = None
    if room.webhook is not None:
        secret = room.webhook.secret
        hook = hook_from(room.webhook.url, None if secret is None else secret.secret, reach.egress_allow)
    new = NewRoom(room.name.strip(), room.key, agents)

    return await write.create(
        "rooms", lambda db: rooms.create(db, caller, new, hook), lambda made: room_out(made, caller)
    )


@routes.get("/rooms")
async def list_rooms(
    caller: Viewer,
    db: Db,
    key: Annotated[RoomKey | None, Query(description="Only the room with this key.")] = None,
    cursor: Cursor = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[RoomOut]:
    """List rooms, newest first. An agent sees the rooms that list it."""
    page = await rooms.listed(db, caller, cursor, limit, key)
    return Page[RoomOut](items=[room_out(each, caller) for each in page.items], next_cursor=page.next_cursor)


@routes.get("/rooms/{room_id}", responses=NOT_FOUND)
async def get_room(room_id: RoomIdIn, caller: Viewer, db: Db) -> RoomOut:
    """Get a room."""
    return room_out(await rooms.get(db, caller, room_id), caller)


@routes.patch("/rooms/{room_id}", responses={**NOT_FOUND, **WITH_BODY})
async def change_room(
    room_id: RoomIdIn, change: RoomChange, caller: SharedEditor, reach: TheEgressPolicy, write: Writing
) -> RoomOut:
    """Change its name, agents or webhook; null removes the webhook."""
    agents = None
    if change.agents is not None:
        agents = tuple(PrincipalId(each) for each in dict.fromkeys(change.agents))
    name = None if change.name is None else change.name.strip()
    webhook = (
        hook_change_from(change.webhook, reach.egress_allow) if "webhook" in change.model_fields_set else KEEP
    )
    changes = RoomChanges(name, agents, webhook)
    hints = () if webhook is KEEP else (Hint.OUTBOX,)
    out = partial(room_out, caller=caller)
    return await write.apply(lambda db: rooms.change(db, caller, room_id, changes), out, *hints)


@routes.delete(
    "/rooms/{room_id}",
    status_code=204,
    response_model=None,
    responses={**dry_run_response(RoomOut), **NOT_FOUND},
)
async def delete_room(room_id: RoomIdIn, caller: SharedEditor, write: Writing) -> Response | None:
    """Delete the room with its messages. With `dry_run` the answer shows the room that would go."""

    async def verb(db: Database) -> Room:
        found = await rooms.get(db, caller, room_id)
        await rooms.delete(db, caller, room_id)
        return found

    return await write.delete_or_preview(verb, partial(room_out, caller=caller))


@routes.post(
    "/rooms/{room_id}/messages",
    status_code=201,
    responses={**dry_run_response(MessageOut), **NOT_FOUND, **WITH_BODY},
)
async def post_message(room_id: RoomIdIn, message: MessageIn, caller: Operator, write: Writing) -> MessageOut:
    """Post a message as the principal of the key."""

    def out(posted: PostedMessage) -> MessageOut:
        if posted.is_sent_on and not write.dry_run:
            write.announce(Hint.OUTBOX)
        return message_out(posted.message)

    kind = MessageKind(message.kind)
    return await write.apply(lambda db: rooms.post(db, caller, room_id, message.text, kind), out)


@routes.get(
    "/rooms/{room_id}/messages",
    response_model=MessagesOut,
    responses={
        **NOT_FOUND,
        **stream_response(
            "A page; or, to who accepts text/event-stream, an event `message` for each, without end.",
            message=MessageOut,
        ),
    },
)
async def read_messages(
    room_id: RoomIdIn,
    request: Request,
    caller: Viewer,
    db: Db,
    follow: Annotated[bool, Query(description="Stream new messages.")] = False,
    wait: Annotated[
        int,
        Query(ge=0, le=LONGEST_WAIT, description="Seconds to wait if there is no message yet."),
    ] = 0,
    cursor: Annotated[
        str | None, Query(pattern=PLACE, description="The `seq` of the last message that was read.")
    ] = None,
    limit: Limit = DEFAULT_LIMIT,
    last_event_id: Annotated[str | None, Header(pattern=PLACE)] = None,
) -> MessagesOut | EventStream:
    """Read messages, oldest first."""
    if wants_stream(request, follow=follow):
        after = read_after(last_event_id if last_event_id is not None else cursor)
        page = await rooms.read(db, caller, room_id, after=after, limit=PAGE)
        line = StreamConnection(request, caller)
        return EventStream(line, _frames(line, db, caller, room_id, after, page))
    after = read_after(cursor)
    page = await rooms.read(db, caller, room_id, after=after, limit=limit)
    if wait and not page.items:
        line, until = StreamConnection(request, caller), monotonic() + wait
        with line.held():
            while not page.items and (left := until - monotonic()) > 0 and await line.goes_on(within=left):
                page = await rooms.read(db, caller, room_id, after=after, limit=limit)
    return MessagesOut(
        items=[message_out(each) for each in page.items],
        next_cursor=str(page.items[-1].seq) if page.is_more else None,
    )


async def _frames(
    line: StreamConnection, db: Database, caller: Caller, room_id: RoomId, after: int, page: MessagePage
) -> AsyncGenerator[str, None]:
    yield "retry: 2000\n" + heartbeat(str(after))
    while True:
        for each in page.items:
            yield frame(message_out(each).model_dump_json(), event="message", id=str(each.seq))
            after = each.seq
        if line.is_silent:
            yield heartbeat(str(after))
        if not await line.goes_on(is_more=page.is_more):
            return
        page = await rooms.read(db, caller, room_id, after=after, limit=PAGE)


def read_after(cursor: str | None) -> int:
    return read_position(
        cursor, MOST, "Use the seq of the last message you have read, or leave it out to begin."
    )


@routes.get("/rooms/{room_id}/deliveries", responses=NOT_FOUND)
async def list_deliveries(
    room_id: RoomIdIn,
    caller: SharedViewer,
    db: Db,
    state: Annotated[
        Literal["waiting", "delivered", "dead"] | None,
        Query(description="`waiting` includes deliveries that are being sent."),
    ] = None,
    cursor: Annotated[str | None, Query(pattern=PLACE, description="next_cursor of the page before.")] = None,
    limit: Limit = DEFAULT_LIMIT,
) -> Page[DeliveryOut]:
    """List deliveries, one per message, newest first. Finished ones are kept for a week."""
    before = MOST if cursor is None else read_after(cursor)
    wanted = None if state is None else DeliveryState(state)
    found = await rooms.deliveries(db, caller, room_id, before, limit + 1, wanted)
    shown = found[:limit]
    place = str(shown[-1].position) if len(found) > limit else None
    return Page[DeliveryOut](items=[delivery_out(each) for each in shown], next_cursor=place)


@routes.post("/rooms/{room_id}/redeliver", responses={**NOT_FOUND, **CONFLICT, **WITH_BODY})
async def redeliver(
    room_id: RoomIdIn, wanted: RedeliverIn, caller: SharedOperator, write: Writing
) -> RedeliveredOut:
    """Send dead deliveries again, under the same ids, before waiting ones."""
    ids = None if wanted.deliveries is None else [DeliveryId(each) for each in wanted.deliveries]
    return await write.apply(
        lambda db: rooms.redeliver(db, caller, room_id, ids),
        lambda count: RedeliveredOut(redelivered=count),
        Hint.OUTBOX,
    )
