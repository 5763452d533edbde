"""Events of a workspace, in one order and without gaps.

The transaction that makes a change writes its event, and only while the workspace has or recently had a listener: without
one, a run costs nothing more. A reader stays below the lowest open transaction, so that late commits are not missed.

Why: docs/decisions/505-events.md
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from foliot.domain.errors import Invalid
from foliot.domain.ids import WorkspaceId
from foliot.storage.outbox import events
from foliot.storage.outbox.events import EventFilter, EventPosition, EventRow
from foliot.storage.tx import Database, Role

__all__ = ["EventFilter", "EventPosition", "EventRow"]

KEPT = timedelta(hours=1)
SURE = timedelta(minutes=1)  # renew a watch before some writer can see it as expired
BATCH = 200
PRUNED = 5_000  # events of one workspace in one step
_PLACE = re.compile(r"(\d{1,19})-(\d{1,19})", re.ASCII)
_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Subscription:
    """The start of a subscription. `is_gap`: the requested position is no longer stored, and the client must reload."""

    place: EventPosition
    is_gap: bool


@dataclass(frozen=True, slots=True)
class EventBatch:
    events: Sequence[EventRow]
    place: EventPosition  # all events up to here were read
    is_full: bool


async def listen(
    database: Database, workspace_id: WorkspaceId, last: EventPosition | None = None
) -> Subscription:
    """Start or renew a subscription; repeat this within the hour. Without `last`, it starts now."""
    async with database.tx(Role.APP, workspace_id) as tx:
        since = await events.watch(tx, tx.now + KEPT, tx.now + SURE)
    # A second transaction: every transaction that starts after it sees the watch.
    async with database.tx(Role.APP, workspace_id) as tx:
        now = EventPosition((await events.load_bounds(tx)).next)
    if last is None:
        return Subscription(now, is_gap=False)
    is_gap = last.xid < since or last.xid > now.xid
    return Subscription(now if is_gap else last, is_gap)


async def after(
    database: Database,
    workspace_id: WorkspaceId,
    place: EventPosition,
    wanted: EventFilter,
    limit: int = BATCH,
) -> EventBatch:
    async with database.tx(Role.APP, workspace_id) as tx:
        safe = (await events.load_bounds(tx)).safe
        found = await events.list_after(tx, place, safe, wanted, limit)
    if len(found) == limit:
        return EventBatch(found, found[-1].place, is_full=True)
    return EventBatch(found, max(place, EventPosition(safe)), is_full=False)


async def prune(database: Database, limit: int = PRUNED) -> int:
    """Delete events older than an hour, and watches without listeners."""
    async with database.tx(Role.ENGINE) as tx:
        return await events.prune(tx, tx.now - KEPT, limit)


def write_event_id(place: EventPosition) -> str:
    return f"{place.xid}-{place.seq}"


def read_event_id(text: str) -> EventPosition:
    found = _PLACE.fullmatch(text.strip())
    if found is None or max(int(found[1]), int(found[2])) > _LARGEST:
        raise Invalid(
            "This Last-Event-ID is not one that Foliot gave out.",
            pointer="/Last-Event-ID",
            hint="Send the id of the last event you got, or leave it out to begin now.",
        )
    return EventPosition(int(found[1]), int(found[2]))
