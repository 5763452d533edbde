"""Events for listeners. The statements that change something write them, for workspaces with listeners; this module reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from foliot.domain.ids import JobId, PrincipalId, RunId
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


class EventPosition(NamedTuple):
    """The last event that a listener has read: transaction id and number within."""

    xid: int
    seq: int = 0


class TransactionBounds(NamedTuple):
    safe: int  # every transaction below has ended
    next: int  # a transaction that starts later gets this id or a higher one


@dataclass(frozen=True, slots=True)
class EventFilter:
    """`kinds` are kinds such as run.failed, or their nouns."""

    kinds: tuple[str, ...] = ()
    job_id: JobId | None = None
    visible_owner: PrincipalId | None = None


@dataclass(frozen=True, slots=True)
class EventRow:
    place: EventPosition
    at: datetime
    kind: str
    object_id: UUID | None
    job_id: JobId | None
    job_name: str | None
    run_id: RunId | None
    attempt: int | None
    actor: str | None
    number: int | None
    planned_for: datetime | None
    skip_reason: str | None
    error_code: str | None


async def watch(tx: Tx, until: datetime, lapsed: datetime) -> int:
    """Store events for this workspace until then, and return the transaction id since which none is missing."""
    return await tx.fetch_value(int, sql.events.watch, {"until": until, "lapsed": lapsed})


async def load_bounds(tx: Tx) -> TransactionBounds:
    return await tx.fetch_value(TransactionBounds, sql.events.load_bounds)


async def list_after(
    tx: Tx, place: EventPosition, safe: int, filters: EventFilter, limit: int
) -> Sequence[EventRow]:
    params = {
        "xid": place.xid,
        "seq": place.seq,
        "safe": safe,
        "kinds": list(filters.kinds) or None,
        "job_id": filters.job_id,
        "owner_id": filters.visible_owner,
        "limit": limit,
    }
    return await tx.fetch_as(EventRow, sql.events.list_after, params)


async def prune(tx: Tx, before: datetime, limit: int) -> int:
    deleted = await tx.fetch_value(int, sql.events.prune, {"before": before, "limit": limit})
    await tx.execute(sql.events.prune_watches, {"before": before})
    return deleted
