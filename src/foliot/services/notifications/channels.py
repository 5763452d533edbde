"""Channels: create, change and delete them, and send a test message through one."""

from __future__ import annotations

from dataclasses import replace as replaced
from uuid import UUID

from foliot.domain.access import Scope
from foliot.domain.errors import Conflict, Invalid, NotFound, QuotaExceeded, refuse_stale, require_found
from foliot.domain.ids import FIRST_ID, ChannelId, DeliveryId, WorkspaceId
from foliot.domain.notifications.channel import Channel, ChannelDefinition, ChannelKind
from foliot.domain.notifications.dispatch import PlannedMessage
from foliot.domain.notifications.texts import trial
from foliot.domain.secret_references import references
from foliot.services.cursors import ListPage, cut_page, read_cursor, text
from foliot.services.identity.audit_steps import append_audit
from foliot.services.messaging.room_steps import get_notice_room
from foliot.services.notifications.dispatch import NotifierPolicy, load_site
from foliot.services.secrets.reference_steps import check_named
from foliot.storage.identity import workspaces
from foliot.storage.notifications import channels, deliveries, event_feeds, notification_rules
from foliot.storage.tx import Database, Role, Tx

MOST_CHANNELS = 100  # of a workspace
NAMED = 5  # rules in a refusal


async def create(database: Database, scope: Scope, definition: ChannelDefinition) -> ChannelId:
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        await workspaces.lock_quota(tx)
        if len(await channels.page(tx, ("", FIRST_ID), MOST_CHANNELS)) == MOST_CHANNELS:
            raise QuotaExceeded(f"A workspace has at most {MOST_CHANNELS} channels.")
        await _check_references(tx, definition, scope)
        channel_id = ChannelId(tx.new_id())
        await channels.insert(tx, channel_id, definition)
        await _note(tx, "channel.created", channel_id, scope, definition)
    return channel_id


async def replace(
    database: Database, scope: Scope, channel_id: ChannelId, definition: ChannelDefinition
) -> None:
    """Replace a channel and start it again, whatever stopped it."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        await _lock(tx, scope, channel_id)
        await _check_references(tx, definition, scope)
        await channels.update(tx, channel_id, definition)
        await _note(tx, "channel.edited", channel_id, scope, definition)


async def delete(database: Database, scope: Scope, channel_id: ChannelId) -> None:
    """Delete a channel. Refused while rules send to it. What waits in it is given up."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = await _lock(tx, scope, channel_id)
        users = await notification_rules.list_users_of_channel(tx, channel_id, NAMED)
        if users:
            shown = ", ".join(f'"{name}"' for name in users)
            raise Conflict(
                f'The channel "{found.definition.name}" is used by {shown}.', hint="Change these rules first."
            )
        await channels.delete(tx, channel_id)
        await _note(tx, "channel.deleted", channel_id, scope, found.definition)


async def set_enabled(database: Database, scope: Scope, channel_id: ChannelId, *, enabled: bool) -> None:
    """Switch a channel off, or start it again whatever stopped it."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = await _lock(tx, scope, channel_id)
        definition = replaced(found.definition, enabled=enabled)
        await channels.update(tx, channel_id, definition)
        await _note(tx, "channel.edited", channel_id, scope, definition)


async def get(database: Database, workspace_id: WorkspaceId, channel_id: ChannelId) -> Channel:
    async with database.tx(Role.APP, workspace_id) as tx:
        return await _get(tx, channel_id)


async def page(
    database: Database, workspace_id: WorkspaceId, cursor: str | None = None, limit: int = 50
) -> ListPage[Channel]:
    """List channels by name."""
    after = read_cursor(cursor, text, UUID) or ("", FIRST_ID)
    async with database.tx(Role.APP, workspace_id) as tx:
        found = await channels.page(tx, after, limit + 1)
    return cut_page(found, limit, lambda last: [last.definition.name, last.id])


async def send_test(database: Database, scope: Scope, channel_id: ChannelId) -> DeliveryId:
    """Queue a test message. Its delivery tells what the peer answered."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = await _lock(tx, scope, channel_id)
        content = trial(await load_site(tx, NotifierPolicy()), found.definition.name, tx.now)
        [delivery_id] = await deliveries.insert(tx, [PlannedMessage(channel_id, content)])
        await _note(tx, "channel.tested", channel_id, scope, found.definition)
    return delivery_id


async def _get(tx: Tx, channel_id: ChannelId) -> Channel:
    return require_found(await channels.get(tx, channel_id), "channel")


async def _lock(tx: Tx, scope: Scope, channel_id: ChannelId) -> Channel:
    await channels.lock(tx, channel_id)
    found = await _get(tx, channel_id)
    refuse_stale("channel", found.revision, scope.expected_revision)
    return found


async def _check_references(tx: Tx, definition: ChannelDefinition, scope: Scope) -> None:
    """Refuse a definition that names a room or secrets that do not exist."""
    if definition.kind is ChannelKind.ROOM:
        try:
            await get_notice_room(tx, definition.config["room"])
        except NotFound as error:
            raise Invalid(
                error.message,
                pointer="/config/room",
                hint="Use the id or the key; the name of a room is neither.",
            ) from None
    found = list(references(dict(definition.config)))
    if found:
        await check_named(tx, found, "/config", scope)


async def _note(
    tx: Tx, action: str, channel_id: ChannelId, scope: Scope, definition: ChannelDefinition
) -> None:
    after = {
        "name": definition.name,
        "kind": definition.kind.value,
        "enabled": definition.enabled,
        "timezone": definition.timezone,
    }
    await event_feeds.sync(tx)
    await append_audit(tx, action, ("channel", channel_id), scope.actor, after=after)
