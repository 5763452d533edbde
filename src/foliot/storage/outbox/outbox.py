"""The outbox as rows: what is to leave, in lanes that are kept in order, each row in the hands of one courier at a time."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from foliot.domain.delivery import Again, Dead, Delivered, Delivery, DeliveryState, Kind, Taken
from foliot.domain.ids import DeliveryId, WorkspaceId
from foliot.storage.queries import sql
from foliot.storage.tx import Row, Tx


@dataclass(frozen=True, slots=True)
class CourierCapacity:
    """What a courier has free; how much one workspace may have, and of that one receiver; what they have now."""

    free: int
    of_one_workspace: int
    of_one_receiver: int
    sending: Mapping[tuple[WorkspaceId, str], int] = field(default_factory=dict)


async def put(tx: Tx, kind: Kind, ordering_key: UUID, position: int, receiver: str) -> DeliveryId:
    """Behind what stands in its ordering_key, whose lock the caller has."""
    delivery_id = DeliveryId(tx.new_id())
    params = {
        "workspace_id": tx.workspace_id,
        "id": delivery_id,
        "kind": kind.value,
        "ordering_key": ordering_key,
        "position": position,
        "receiver": receiver,
        "now": tx.now,
    }
    await tx.execute(sql.outbox.put, params)
    return delivery_id


async def lease_due(tx: Tx, hands: CourierCapacity, lease: timedelta) -> list[Taken]:
    """In a transaction of the engine: those that are due, leased to the caller."""
    params = {
        "now": tx.now,
        "until": tx.now + lease,
        "limit": hands.free,
        "of_one_workspace": hands.of_one_workspace,
        "of_one_receiver": hands.of_one_receiver,
        "workspaces": [workspace_id for workspace_id, _ in hands.sending],
        "receivers": [receiver for _, receiver in hands.sending],
        "counts": list(hands.sending.values()),
    }
    rows = await tx.fetch(sql.outbox.take, params)
    return [Taken(**{**row, "kind": Kind(row["kind"])}) for row in rows]


async def next_due(tx: Tx) -> datetime | None:
    """When the next one becomes due that is not due yet, of all workspaces."""
    row = await tx.fetch_one(sql.outbox.next_due, {"now": tx.now})
    return None if row is None else row["due_at"]


async def record(tx: Tx, taken: Taken, came: Delivered | Again | Dead) -> bool:
    """False where it is no longer in the hands of who took it. What has ended lets the next of its ordering_key go."""
    held = {"id": taken.id, "fence": taken.fence, "status": came.status, "now": tx.now}
    if isinstance(came, Again):
        params = {**held, "due_at": came.at, "error": came.why}
        return await tx.execute(sql.outbox.put_off, params) > 0
    why = came.why if isinstance(came, Dead) else None
    params = {**held, "delivered": isinstance(came, Delivered), "error": why}
    if not await tx.execute(sql.outbox.end_one, params):
        return False
    await tx.execute(sql.outbox.let_go, {"ordering_key": taken.ordering_key, "now": tx.now})
    return True


async def retarget(tx: Tx, ordering_key: UUID, receiver: str) -> None:
    await tx.execute(sql.outbox.hurry, {"ordering_key": ordering_key, "receiver": receiver, "now": tx.now})


async def cancel_pending(tx: Tx, ordering_key: UUID, why: str) -> int:
    """Whatever waits there is given up; what comes of one that is being sent is no longer asked."""
    return await tx.execute(sql.outbox.end_lane, {"ordering_key": ordering_key, "error": why, "now": tx.now})


async def send_again(
    tx: Tx, ordering_key: UUID, receiver: str, ids: Collection[DeliveryId] | None, limit: int
) -> int:
    """Of those that were given up, these or the oldest. They stand in their old places, so before what waits."""
    params = {
        "ordering_key": ordering_key,
        "receiver": receiver,
        "ids": None if ids is None else list(ids),
        "limit": limit,
        "now": tx.now,
    }
    again = await tx.execute(sql.outbox.send_again, params)
    await tx.execute(sql.outbox.let_go, {"ordering_key": ordering_key, "now": tx.now})
    return again


async def page(tx: Tx, ordering_key: UUID, before: int, limit: int, state: str | None) -> list[Delivery]:
    """Of one ordering_key, the last places first."""
    params = {"ordering_key": ordering_key, "before": before, "limit": limit, "state": state}
    return [_delivery(row, tx.now) for row in await tx.fetch(sql.outbox.page, params)]


async def delete_all(tx: Tx, ordering_key: UUID) -> None:
    await tx.execute(sql.outbox.forget_lane, {"ordering_key": ordering_key})


async def prune(tx: Tx, before: datetime, limit: int) -> int:
    """For the janitor, in all workspaces: what ended before then."""
    return await tx.execute(sql.outbox.prune, {"before": before, "limit": limit})


def _delivery(row: Row, now: datetime) -> Delivery:
    state = DeliveryState.WAITING
    if row["ended_at"] is not None:
        state = DeliveryState.DELIVERED if row["delivered"] else DeliveryState.DEAD
    elif row["leased_until"] is not None and row["leased_until"] > now:
        state = DeliveryState.SENDING
    return Delivery(
        row["id"],
        row["position"],
        state,
        row["attempts"],
        row["due_at"] if state is DeliveryState.WAITING else None,
        row["status"],
        row["error"],
        row["created_at"],
        row["ended_at"],
    )
