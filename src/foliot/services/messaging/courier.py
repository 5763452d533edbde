"""Outbox deliveries: lease due ones with all that sending needs, and record each result.

Only a lease is held between the two. When a courier dies, the delivery is repeated under the same id after the lease ends;
a late courier finds a higher fence, and its result is not recorded.

Why: docs/decisions/902-outbox.md
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from foliot.domain.delivery import (
    Came,
    Dead,
    Delivered,
    DeliveryKind,
    LeasedDelivery,
    TryAgain,
    Unanswered,
    Undeliverable,
    after,
)
from foliot.domain.ids import RoomId, WorkspaceId
from foliot.domain.rooms import Message
from foliot.domain.run import RunError
from foliot.domain.secret_references import KEY
from foliot.services.notifications.delivery_steps import OutgoingNotice, lock_channel_of, record_notice
from foliot.services.notifications.notice_parcels import pack_notices
from foliot.services.secrets.resolution import resolve_secrets
from foliot.services.secrets.vault import Vault
from foliot.storage.identity import workspaces
from foliot.storage.outbox import outbox, webhooks
from foliot.storage.outbox.outbox import CourierCapacity
from foliot.storage.outbox.webhooks import LoadedDelivery
from foliot.storage.tx import Database, Role, Tx

__all__ = ["CourierCapacity", "OutgoingNotice"]

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=20)  # longer than one send may take
KEPT = timedelta(days=7)  # ended deliveries
PRUNED = 5_000  # deliveries in one step
STOPPED = "Given up, since the receiver said that it is gone."


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """A message to send. `secrets` sign it; without any it goes unsigned."""

    taken: LeasedDelivery
    url: str = field(repr=False)  # may contain a token
    secrets: tuple[str, ...] = field(repr=False)
    room_key: str | None
    room_name: str
    message: Message = field(repr=False)


Parcel = OutgoingMessage | OutgoingNotice


@dataclass(frozen=True, slots=True)
class CourierBatch:
    """`until_next` is the time until the next delivery is due; None when none is scheduled."""

    parcels: Sequence[Parcel]
    taken: int
    until_next: timedelta | None


async def take(
    database: Database, capacity: CourierCapacity, vault: Vault | None, lease: timedelta = LEASE
) -> CourierBatch:
    """Lease due deliveries. One that cannot be prepared is recorded as failed here."""
    async with database.tx(Role.ENGINE) as tx:
        taken = await outbox.lease_due(tx, capacity, lease) if capacity.free > 0 else []
        due = await outbox.next_due(tx)
        left = None if due is None else due - tx.now
    parcels: list[Parcel] = []
    for workspace_id in dict.fromkeys(each.workspace_id for each in taken):
        mine = [each for each in taken if each.workspace_id == workspace_id]
        for each, packed in await _pack(database, vault, workspace_id, mine):
            if isinstance(packed, OutgoingMessage | OutgoingNotice):
                parcels.append(packed)
            else:
                await record(database, each, packed)
    return CourierBatch(parcels, len(taken), left)


async def record(database: Database, taken: LeasedDelivery, came: Came) -> None:
    async with database.tx(Role.APP, taken.workspace_id) as tx:
        goes_on = after(came, taken, tx.now, tx.chance.random())
        if taken.kind is DeliveryKind.NOTICE:
            owner = await lock_channel_of(tx, taken)
            is_ours = await outbox.record(tx, taken, goes_on)
            if is_ours and owner is not None:
                await record_notice(tx, taken, owner, came, goes_on)
        else:
            room_id = RoomId(taken.ordering_key)
            await webhooks.lock(tx, room_id)  # before the outbox rows, as in queue_delivery
            is_ours = await outbox.record(tx, taken, goes_on)
            if is_ours and not isinstance(came, Undeliverable):  # otherwise the receiver did not fail
                await _tell_webhook(tx, room_id, taken, goes_on)
    _log(taken, goes_on, is_ours=is_ours)


async def prune(database: Database, limit: int = PRUNED) -> int:
    """Delete deliveries that ended long ago."""
    async with database.tx(Role.ENGINE) as tx:
        return await outbox.prune(tx, tx.now - KEPT, limit)


async def _tell_webhook(
    tx: Tx, room_id: RoomId, taken: LeasedDelivery, goes_on: Delivered | TryAgain | Dead
) -> None:
    match goes_on:
        case Delivered():
            await webhooks.record_success(tx, room_id, taken.position)
        case TryAgain(why=why) | Dead(why=why, stops=False):
            await webhooks.record_failure(tx, room_id, why)
        case Dead(why=why):
            await webhooks.record_failure(tx, room_id, why, stops=True)
            await outbox.cancel_pending(tx, taken.ordering_key, STOPPED)


async def _pack(
    database: Database, vault: Vault | None, workspace_id: WorkspaceId, taken: Sequence[LeasedDelivery]
) -> list[tuple[LeasedDelivery, Parcel | Came]]:
    messages = [each for each in taken if each.kind is DeliveryKind.ROOM_MESSAGE]
    notices = [each for each in taken if each.kind is DeliveryKind.NOTICE]
    packed: list[tuple[LeasedDelivery, Parcel | Came]] = []
    if messages:
        packed += zip(messages, await _packed(database, vault, workspace_id, messages), strict=True)
    if notices:
        packed += zip(notices, await pack_notices(database, vault, workspace_id, notices), strict=True)
    return packed


async def _packed(
    database: Database, vault: Vault | None, workspace_id: WorkspaceId, taken: Sequence[LeasedDelivery]
) -> list[OutgoingMessage | Came]:
    """Load messages, addresses and secrets inside their workspace: row-level security shows them only there."""
    async with database.tx(Role.APP, workspace_id) as tx:
        home = await workspaces.get(tx, workspace_id)
        loaded = await webhooks.load_deliveries(
            tx, [(RoomId(each.ordering_key), each.position) for each in taken]
        )
    if home is None or home.archived_at is not None:
        return [Undeliverable("The workspace is archived.")] * len(taken)
    found = [loaded.get((RoomId(each.ordering_key), each.position)) for each in taken]
    named = [each.hook.secret for each in found if each is not None and each.hook.secret is not None]
    values: dict[str, str | RunError] = {}
    if named:
        answers = await resolve_secrets(
            database, vault, workspace_id, [{"sign": {KEY: name}} for name in named]
        )
        for name, answer in zip(named, answers, strict=True):
            values[name] = answer if isinstance(answer, RunError) else str(answer.config["sign"])
    return [_parcel(each, its, values) for each, its in zip(taken, found, strict=True)]


def _parcel(
    taken: LeasedDelivery, loaded: LoadedDelivery | None, values: dict[str, str | RunError]
) -> OutgoingMessage | Came:
    if loaded is None:
        return Undeliverable("The room has no webhook any more.")
    if loaded.message is None:
        return Undeliverable("The message is no longer kept.")
    value = None if loaded.hook.secret is None else values[loaded.hook.secret]
    if isinstance(value, RunError):
        return Unanswered(value.message)
    secrets = () if value is None else (value,)
    message = loaded.message
    return OutgoingMessage(taken, loaded.hook.url, secrets, loaded.room_key, loaded.room_name, message)


def _log(taken: LeasedDelivery, goes_on: Delivered | TryAgain | Dead, *, is_ours: bool) -> None:
    facts = {
        "workspace": str(taken.workspace_id),
        "delivery": str(taken.id),
        "attempt": taken.attempts,
        "receiver": taken.receiver,
        "status": goes_on.status,
    }
    if not is_ours:
        log.info("delivery.overtaken", extra=facts)
    elif isinstance(goes_on, Delivered):
        log.debug("delivery.made", extra=facts)
    elif isinstance(goes_on, TryAgain):
        log.warning("delivery.failed", extra={**facts, "reason": goes_on.why, "again_at": _text(goes_on.at)})
    else:
        log.warning("delivery.given_up", extra={**facts, "reason": goes_on.why})


def _text(at: datetime) -> str:
    return at.isoformat(timespec="seconds")
