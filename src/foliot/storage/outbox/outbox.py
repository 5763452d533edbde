"""The outbox: deliveries to other systems, in order within their ordering key, each leased to one courier at a time.

Why: docs/decisions/902-outbox.md
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from foliot.domain.delivery import Dead, Delivered, Delivery, DeliveryKind, LeasedDelivery, TryAgain
from foliot.domain.ids import DeliveryId, WorkspaceId
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class CourierCapacity:
    """A courier's free slots, the shares of one workspace and of one receiver in it, and the deliveries being sent."""

    free: int
    of_one_workspace: int
    of_one_receiver: int
    sending: Mapping[tuple[WorkspaceId, str], int] = field(default_factory=dict)


async def put(tx: Tx, kind: DeliveryKind, ordering_key: UUID, position: int, receiver: str) -> DeliveryId:
    """Insert a delivery behind the others of its ordering key, whose webhook the caller has locked."""
    delivery_id = DeliveryId(tx.new_id())
    params = {
        "id": delivery_id,
        "kind": kind.value,
        "ordering_key": ordering_key,
        "position": position,
        "receiver": receiver,
    }
    await tx.execute(sql.outbox.insert, params)
    return delivery_id


async def lease_due(tx: Tx, capacity: CourierCapacity, lease: timedelta) -> list[LeasedDelivery]:
    """Lease due deliveries of all workspaces to the caller. Needs an engine transaction."""
    params = {
        "until": tx.now + lease,
        "limit": capacity.free,
        "of_one_workspace": capacity.of_one_workspace,
        "of_one_receiver": capacity.of_one_receiver,
        "workspaces": [workspace_id for workspace_id, _ in capacity.sending],
        "receivers": [receiver for _, receiver in capacity.sending],
        "counts": list(capacity.sending.values()),
    }
    return await tx.fetch_as(LeasedDelivery, sql.outbox.lease_due, params)


async def next_due(tx: Tx) -> datetime | None:
    """Return when the next delivery of any workspace becomes due."""
    return await tx.fetch_one_as(datetime, sql.outbox.find_next_due)


async def record(tx: Tx, taken: LeasedDelivery, came: Delivered | TryAgain | Dead) -> bool:
    """Record the result of an attempt; return False if the lease is lost. An ended delivery releases the next of its key."""
    lease = {"id": taken.id, "fence": taken.fence, "status": came.status}
    if isinstance(came, TryAgain):
        params = {**lease, "due_at": came.at, "error": came.why}
        return await tx.execute(sql.outbox.postpone, params) > 0
    why = came.why if isinstance(came, Dead) else None
    params = {**lease, "delivered": isinstance(came, Delivered), "error": why}
    if not await tx.execute(sql.outbox.end, params):
        return False
    await tx.execute(sql.outbox.release_next, {"ordering_key": taken.ordering_key})
    return True


async def retarget(tx: Tx, ordering_key: UUID, receiver: str) -> None:
    await tx.execute(sql.outbox.retarget, {"ordering_key": ordering_key, "receiver": receiver})


async def cancel_pending(tx: Tx, ordering_key: UUID, why: str) -> int:
    """End the pending deliveries of the key as undelivered; the result of one being sent is then ignored."""
    return await tx.execute(sql.outbox.cancel_pending, {"ordering_key": ordering_key, "error": why})


async def send_again(
    tx: Tx, ordering_key: UUID, receiver: str, ids: Collection[DeliveryId] | None, limit: int
) -> int:
    """Send these undelivered deliveries, or the oldest, again. They keep their positions, so they come before pending ones."""
    params = {
        "ordering_key": ordering_key,
        "receiver": receiver,
        "ids": None if ids is None else list(ids),
        "limit": limit,
    }
    again = await tx.execute(sql.outbox.send_again, params)
    await tx.execute(sql.outbox.release_next, {"ordering_key": ordering_key})
    return again


async def page(tx: Tx, ordering_key: UUID, before: int, limit: int, state: str | None) -> list[Delivery]:
    """List the deliveries of an ordering key, last position first."""
    params = {"ordering_key": ordering_key, "before": before, "limit": limit, "state": state}
    return await tx.fetch_as(Delivery, sql.outbox.page, params)


async def delete_all(tx: Tx, ordering_key: UUID) -> None:
    await tx.execute(sql.outbox.delete_all, {"ordering_key": ordering_key})


async def prune(tx: Tx, before: datetime, limit: int) -> int:
    """Delete deliveries of all workspaces that ended before then."""
    return await tx.execute(sql.outbox.prune, {"before": before, "limit": limit})
