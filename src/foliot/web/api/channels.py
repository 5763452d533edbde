"""/channels: ways to reach people. A change starts a channel again, whatever stopped it."""

from __future__ import annotations

from typing import Annotated

from fastapi import Response

from foliot.domain.ids import ChannelId
from foliot.domain.notifications.channel import Channel
from foliot.services import Database
from foliot.services.hints import Hint
from foliot.services.identity.authentication import Caller
from foliot.services.notifications import channels, deliveries
from foliot.services.notifications.deliveries import DeliveryRecord
from foliot.web.api.params import DEFAULT_LIMIT, Cursor, Db, Limit, TheEgressPolicy, path_id
from foliot.web.api.writes import Writing, dry_run_response
from foliot.web.auth import SharedEditor, SharedOperator, SharedViewer
from foliot.web.mapping.notifications import channel_from, channel_out, notice_delivery_out
from foliot.web.preconditions import IfMatch, expecting
from foliot.web.routes import CONFLICT, NOT_FOUND, STALE, WITH_BODY, api_router
from foliot.wire.notifications import ChannelDeletion, ChannelIn, ChannelOut, NoticeDeliveryOut
from foliot.wire.shape import Page

routes = api_router("channels")
ChannelIdIn = Annotated[ChannelId, path_id("channel_id")]


@routes.post(
    "/channels", status_code=201, responses={**dry_run_response(ChannelOut), **CONFLICT, **WITH_BODY}
)
async def create_channel(
    channel: ChannelIn, caller: SharedEditor, reach: TheEgressPolicy, write: Writing
) -> ChannelOut:
    """Create a channel. Secrets are named, never given."""
    definition = channel_from(channel, reach.egress_allow)

    async def verb(db: Database) -> Channel:
        channel_id = await channels.create(db, caller.scope, definition)
        return await channels.get(db, caller.workspace_id, channel_id)

    return await write.create("channels", verb, channel_out)


@routes.get("/channels")
async def list_channels(
    caller: SharedViewer, db: Db, cursor: Cursor = None, limit: Limit = DEFAULT_LIMIT
) -> Page[ChannelOut]:
    """List them by name."""
    page = await channels.page(db, caller.workspace_id, cursor, limit)
    return Page[ChannelOut](items=[channel_out(each) for each in page.items], next_cursor=page.next_cursor)


@routes.get("/channels/{channel_id}", responses=NOT_FOUND)
async def get_channel(
    channel_id: ChannelIdIn, caller: SharedViewer, db: Db, response: Response
) -> ChannelOut:
    """Get a channel."""
    found = await channels.get(db, caller.workspace_id, channel_id)
    response.headers["ETag"] = f'"{found.revision}"'
    return channel_out(found)


@routes.put("/channels/{channel_id}", responses={**NOT_FOUND, **CONFLICT, **STALE, **WITH_BODY})
async def replace_channel(
    channel_id: ChannelIdIn,
    channel: ChannelIn,
    caller: SharedEditor,
    db: Db,
    reach: TheEgressPolicy,
    write: Writing,
    if_match: IfMatch = None,
) -> ChannelOut:
    """Replace the channel and start it again: refused addresses are tried anew."""
    definition = channel_from(channel, reach.egress_allow)
    scope = await expecting(caller.scope, if_match, lambda: channels.get(db, caller.workspace_id, channel_id))

    async def verb(db: Database) -> Channel:
        await channels.replace(db, scope, channel_id, definition)
        return await channels.get(db, caller.workspace_id, channel_id)

    return await write.apply(verb, channel_out, Hint.OUTBOX)


@routes.delete(
    "/channels/{channel_id}",
    status_code=204,
    response_model=None,
    responses={**dry_run_response(ChannelDeletion), **NOT_FOUND, **CONFLICT, **STALE},
)
async def delete_channel(
    channel_id: ChannelIdIn, caller: SharedEditor, db: Db, write: Writing, if_match: IfMatch = None
) -> Response | None:
    """Refused while rules send to it. What waits in it is given up."""
    scope = await expecting(caller.scope, if_match, lambda: channels.get(db, caller.workspace_id, channel_id))
    return await write.delete_or_preview(
        lambda db: channels.delete(db, scope, channel_id), lambda _: ChannelDeletion(deleted=channel_id)
    )


@routes.post("/channels/{channel_id}/enable", responses=NOT_FOUND)
async def enable_channel(channel_id: ChannelIdIn, caller: SharedOperator, write: Writing) -> ChannelOut:
    """Start the channel again, whatever stopped it."""
    return await _set_enabled(channel_id, caller, write, enabled=True)


@routes.post("/channels/{channel_id}/disable", responses=NOT_FOUND)
async def disable_channel(channel_id: ChannelIdIn, caller: SharedOperator, write: Writing) -> ChannelOut:
    """Send nothing through the channel until it is enabled."""
    return await _set_enabled(channel_id, caller, write, enabled=False)


@routes.post("/channels/{channel_id}/test", responses=NOT_FOUND)
async def send_test_message(
    channel_id: ChannelIdIn, caller: SharedOperator, write: Writing
) -> NoticeDeliveryOut:
    """Send a test message. Read its delivery again to see what the peer answered."""

    async def verb(db: Database) -> DeliveryRecord:
        delivery_id = await channels.send_test(db, caller.scope, channel_id)
        return await deliveries.get(db, caller.scope, delivery_id)

    return await write.apply(verb, notice_delivery_out, Hint.OUTBOX)


async def _set_enabled(channel_id: ChannelId, caller: Caller, write: Writing, *, enabled: bool) -> ChannelOut:
    async def verb(db: Database) -> Channel:
        await channels.set_enabled(db, caller.scope, channel_id, enabled=enabled)
        return await channels.get(db, caller.workspace_id, channel_id)

    return await write.apply(verb, channel_out, Hint.OUTBOX)
