"""Webhooks of rooms as rows. Whoever puts something into the lane of a room, or ends something there, locks its webhook first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from foliot.domain.ids import RoomId
from foliot.domain.rooms import Hook, Webhook
from foliot.storage.queries import sql
from foliot.storage.tx import Row, Tx


class LoadedDelivery(NamedTuple):
    """`row` has the message, where it is still there."""

    hook: Hook
    room_key: str | None
    room_name: str
    row: Row


async def set_hook(tx: Tx, room_id: RoomId, hook: Hook) -> None:
    """As if nothing had gone wrong before."""
    params = {
        "workspace_id": tx.workspace_id,
        "room_id": room_id,
        "url": hook.url,
        "receiver": hook.receiver,
        "secret": hook.secret,
        "now": tx.now,
    }
    await tx.execute(sql.webhooks.set, params)


async def remove(tx: Tx, room_id: RoomId) -> None:
    await tx.execute(sql.webhooks.remove, {"room_id": room_id})


async def lock(tx: Tx, room_id: RoomId) -> Webhook | None:
    row = await tx.fetch_one(sql.webhooks.lock, {"room_id": room_id})
    return None if row is None else webhook_in(row)


async def record_success(tx: Tx, room_id: RoomId, seq: int) -> None:
    await tx.execute(sql.webhooks.went_well, {"room_id": room_id, "seq": seq, "now": tx.now})


async def record_failure(tx: Tx, room_id: RoomId, error: str, *, stops: bool = False) -> None:
    params = {"room_id": room_id, "error": error, "stops": stops, "now": tx.now}
    await tx.execute(sql.webhooks.went_wrong, params)


async def rooms_signing_with(tx: Tx, secret: str, limit: int) -> list[str]:
    """The names of rooms whose webhooks name this secret."""
    params = {"workspace_id": tx.workspace_id, "secret": secret, "limit": limit}
    return [row["name"] for row in await tx.fetch(sql.webhooks.signing_with, params)]


async def load(tx: Tx, wanted: Sequence[tuple[RoomId, int]]) -> dict[tuple[RoomId, int], LoadedDelivery]:
    """What is to be sent, by room and number; nothing for a room without a webhook."""
    params = {"room_ids": [room_id for room_id, _ in wanted], "seqs": [seq for _, seq in wanted]}
    return {
        (row["room_id"], row["seq"]): LoadedDelivery(
            Hook(row["url"], row["receiver"], row["secret"]),
            row["room_key"],
            row["room_name"],
            row,
        )
        for row in await tx.fetch(sql.webhooks.load, params)
    }


def webhook_in(row: Row) -> Webhook | None:
    """Of a row that may have one beside it."""
    if row["url"] is None:
        return None
    return Webhook(
        Hook(row["url"], row["receiver"], row["secret"]),
        row["delivered_seq"],
        row["delivered_at"],
        row["failing_since"],
        row["error"],
        row["stopped_at"],
    )
