"""Deliveries to channels: rows of the outbox with their contents, and the log of what became of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import NAMESPACE_OID, UUID, uuid5

from psycopg.types.json import Jsonb

from foliot.domain.delivery import DeliveryState
from foliot.domain.ids import ChannelId, DeliveryId, IncidentId, JobId, PrincipalId
from foliot.domain.notifications.channel import ChannelKind
from foliot.domain.notifications.content import NoticeContent
from foliot.domain.notifications.dispatch import PlannedMessage
from foliot.storage.codec import encode
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class LoadedNotice:
    """A message with its channel. `refused` are addresses that the peer refused before."""

    delivery_id: DeliveryId
    channel_id: ChannelId
    incident_id: IncidentId | None
    recipients: tuple[str, ...]
    content: NoticeContent
    name: str
    kind: ChannelKind
    config: Mapping[str, Any]
    is_usable: bool
    thread: str | None
    refused: tuple[str, ...]


class DeliveryOwner(NamedTuple):
    channel_id: ChannelId
    incident_id: IncidentId | None


@dataclass(frozen=True, slots=True)
class DeliveryRecord:
    """An entry of the delivery log."""

    id: DeliveryId
    state: DeliveryState
    channel_id: ChannelId
    channel_name: str
    channel_kind: ChannelKind
    incident_id: IncidentId | None
    job_id: JobId | None
    event: str
    title: str
    message_kind: str
    recipients: tuple[str, ...]
    answer: str | None
    attempts: int
    due_at: datetime | None
    status: int | None
    error: str | None
    created_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class DeliveryFilter:
    channel_id: ChannelId | None = None
    incident_id: IncidentId | None = None
    job_id: JobId | None = None
    state: DeliveryState | None = None
    visible_owner: PrincipalId | None = None


def thread_key(channel_id: ChannelId, incident_id: IncidentId) -> UUID:
    """Return the ordering key of an incident's messages to one channel."""
    return uuid5(NAMESPACE_OID, f"{channel_id}/{incident_id}")


async def insert(tx: Tx, messages: Sequence[PlannedMessage]) -> list[DeliveryId]:
    """Queue messages in the order given. The caller has locked their channels."""
    if not messages:
        return []
    ids = [DeliveryId(each) for each in tx.new_ids(len(messages))]
    keys = [
        delivery_id if each.incident_id is None else thread_key(each.channel_id, each.incident_id)
        for delivery_id, each in zip(ids, messages, strict=True)
    ]
    seen: set[UUID] = set()
    behind = []
    for key in keys:
        behind.append(key in seen)
        seen.add(key)
    params = {
        "ids": ids,
        "ordering_keys": keys,
        "positions": [each.position for each in messages],
        "due_ats": [each.due_at for each in messages],
        "is_behind": behind,
        "channel_ids": [each.channel_id for each in messages],
        "incident_ids": [each.incident_id for each in messages],
        "job_ids": [each.content.job_id for each in messages],
        "events": [each.content.event.value for each in messages],
        "recipients": [Jsonb(list(each.recipients)) for each in messages],
        "contents": [Jsonb(encode(each.content)) for each in messages],
    }
    await tx.execute(sql.deliveries.insert, params)
    return ids


async def load(tx: Tx, ids: Collection[DeliveryId]) -> dict[DeliveryId, LoadedNotice]:
    found = await tx.fetch_as(LoadedNotice, sql.deliveries.load, {"ids": list(ids)})
    return {each.delivery_id: each for each in found}


async def find_owner(tx: Tx, delivery_id: DeliveryId) -> DeliveryOwner | None:
    return await tx.fetch_one_as(DeliveryOwner, sql.deliveries.find_owner, {"id": delivery_id})


async def set_recipients(tx: Tx, delivery_id: DeliveryId, recipients: Sequence[str]) -> None:
    await tx.execute(sql.deliveries.set_recipients, {"id": delivery_id, "recipients": list(recipients)})


async def set_answer(tx: Tx, delivery_id: DeliveryId, answer: str) -> None:
    await tx.execute(sql.deliveries.set_answer, {"id": delivery_id, "answer": answer})


async def page(tx: Tx, filters: DeliveryFilter, before: UUID, limit: int) -> list[DeliveryRecord]:
    """List deliveries, newest first."""
    params = {
        "channel_id": filters.channel_id,
        "incident_id": filters.incident_id,
        "job_id": filters.job_id,
        "owner_id": filters.visible_owner,
        "state": None if filters.state is None else filters.state.value,
        "before": before,
        "limit": limit,
    }
    return await tx.fetch_as(DeliveryRecord, sql.deliveries.page, params)


async def get(tx: Tx, delivery_id: DeliveryId) -> DeliveryRecord | None:
    return await tx.fetch_one_as(DeliveryRecord, sql.deliveries.get, {"id": delivery_id})


async def replay(tx: Tx, delivery_id: DeliveryId) -> bool:
    """Send an ended delivery again. The caller has locked its channel."""
    return await tx.execute(sql.deliveries.replay, {"id": delivery_id}) > 0
