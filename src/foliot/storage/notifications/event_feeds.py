"""Positions up to which the events of workspaces have been handed to webhook channels and rules."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from foliot.domain.ids import ChannelId, WorkspaceId
from foliot.storage.outbox.events import EventPosition
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class EventFeed:
    xid: int | None
    seq: int | None
    renewed_at: datetime | None

    @property
    def place(self) -> EventPosition | None:
        return None if self.xid is None else EventPosition(self.xid, self.seq or 0)


class EventSubscriber(NamedTuple):
    """A webhook channel and the events it wants: kinds, nouns such as run.*, or * for all."""

    id: ChannelId
    events: tuple[str, ...]

    def wants(self, kind: str) -> bool:
        return any(each in ("*", kind, f"{kind.partition('.')[0]}.*") for each in self.events)


async def list_workspaces(tx: Tx, after: UUID, limit: int) -> list[WorkspaceId]:
    """List workspaces with a feed, by id. Needs an engine transaction."""
    return await tx.fetch_as(WorkspaceId, sql.event_feeds.list_workspaces, {"after": after, "limit": limit})


async def get(tx: Tx) -> EventFeed | None:
    return await tx.fetch_one_as(EventFeed, sql.event_feeds.get)


async def lock(tx: Tx) -> EventFeed | None:
    return await tx.fetch_one_as(EventFeed, sql.event_feeds.lock)


async def save(tx: Tx, place: EventPosition, renewed_at: datetime | None = None) -> None:
    await tx.execute(sql.event_feeds.save, {"xid": place.xid, "seq": place.seq, "renewed_at": renewed_at})


async def sync(tx: Tx) -> None:
    """Start or end the feed of the workspace, as its channels and rules need it now."""
    await tx.execute(sql.event_feeds.add)
    await tx.execute(sql.event_feeds.remove)


async def list_subscribers(tx: Tx) -> list[EventSubscriber]:
    """Lock the webhook channels that want events."""
    return await tx.fetch_as(EventSubscriber, sql.event_feeds.list_subscribers)
