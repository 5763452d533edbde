"""The log of deliveries to channels, and sending one again."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from foliot.domain.access import Scope
from foliot.domain.errors import Conflict, require_found
from foliot.domain.ids import LAST_ID, DeliveryId
from foliot.services.cursors import ListPage, cut_page, read_cursor
from foliot.services.identity.audit_steps import append_audit
from foliot.services.jobs.visibility_steps import require_visible
from foliot.storage.notifications import channels, deliveries
from foliot.storage.notifications.deliveries import DeliveryFilter, DeliveryRecord
from foliot.storage.tx import Database, Role

__all__ = ["DeliveryFilter", "DeliveryRecord"]


async def page(
    database: Database, scope: Scope, filters: DeliveryFilter, cursor: str | None = None, limit: int = 50
) -> ListPage[DeliveryRecord]:
    """List deliveries, newest first; an agent sees those about its own jobs."""
    [before] = read_cursor(cursor, UUID) or [LAST_ID]
    filters = replace(filters, visible_owner=scope.visible_owner)
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = await deliveries.page(tx, filters, before, limit + 1)
    return cut_page(found, limit, lambda last: [last.id])


async def get(database: Database, scope: Scope, delivery_id: DeliveryId) -> DeliveryRecord:
    """Return one delivery; an agent sees those about its own jobs."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        return await require_visible(tx, await deliveries.get(tx, delivery_id), "delivery", scope)


async def replay(database: Database, scope: Scope, delivery_id: DeliveryId) -> None:
    """Send an ended delivery again, under its old id."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = require_found(await deliveries.get(tx, delivery_id), "delivery")
        await channels.lock(tx, found.channel_id)
        if not await deliveries.replay(tx, delivery_id):
            raise Conflict("This delivery has not ended yet.", hint="It is tried again by itself.")
        await append_audit(tx, "delivery.replayed", ("delivery", delivery_id), scope.actor)
