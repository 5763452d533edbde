"""Webhooks of rooms. A transaction that adds or ends a delivery of a room locks the room's webhook first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from foliot.domain.ids import RoomId
from foliot.domain.rooms import Hook, Message, Webhook
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


class LoadedDelivery(NamedTuple):
    """A message and its webhook; `message` is None if it was deleted."""

    room_id: RoomId
    seq: int
    hook: Hook
    room_key: str | None
    room_name: str
    message: Message | None


async def set_hook(tx: Tx, room_id: RoomId, hook: Hook) -> None:
    """Set the room's webhook and clear its earlier failures."""
    params = {"room_id": room_id, "url": hook.url, "receiver": hook.receiver, "secret": hook.secret}
    await tx.execute(sql.webhooks.set, params)


async def remove(tx: Tx, room_id: RoomId) -> None:
    await tx.execute(sql.webhooks.remove, {"room_id": room_id})


async def lock(tx: Tx, room_id: RoomId) -> Webhook | None:
    return await tx.fetch_one_as(Webhook, sql.webhooks.lock, {"room_id": room_id})


async def record_success(tx: Tx, room_id: RoomId, seq: int) -> None:
    await tx.execute(sql.webhooks.record_success, {"room_id": room_id, "seq": seq})


async def record_failure(tx: Tx, room_id: RoomId, error: str, *, stops: bool = False) -> None:
    await tx.execute(sql.webhooks.record_failure, {"room_id": room_id, "error": error, "stops": stops})


async def load_deliveries(
    tx: Tx, requested: Sequence[tuple[RoomId, int]]
) -> dict[tuple[RoomId, int], LoadedDelivery]:
    """Load messages with their webhooks, by room and number; without an entry for a room without a webhook."""
    params = {"room_ids": [room_id for room_id, _ in requested], "seqs": [seq for _, seq in requested]}
    rows = await tx.fetch_as(LoadedDelivery, sql.webhooks.load_deliveries, params)
    return {(row.room_id, row.seq): row for row in rows}
