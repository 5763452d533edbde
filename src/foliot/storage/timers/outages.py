"""The last tick of any scheduler, and the times without one."""

from __future__ import annotations

from datetime import datetime, timedelta

from foliot.domain.explain.outages import SILENT_AFTER, SchedulerOutage
from foliot.storage.queries import sql
from foliot.storage.tx import Tx

KEPT = timedelta(days=400)
MOST_LISTED = 20


async def note_tick(tx: Tx) -> bool:
    """Note that a scheduler ticks now; record the outage before it. Return whether there was one."""
    params = {"silent_since": tx.now - SILENT_AFTER, "forget": tx.now - KEPT}
    return await tx.execute(sql.outages.note_tick, params) == 1


async def list_between(tx: Tx, start: datetime, end: datetime) -> tuple[SchedulerOutage, ...]:
    """List the outages that overlap a stretch, newest first."""
    params = {"start": start, "end": end, "limit": MOST_LISTED}
    return tuple(await tx.fetch_as(SchedulerOutage, sql.outages.list_between, params))


async def last_tick(tx: Tx) -> datetime | None:
    """Return when a scheduler ticked last; None before the first tick."""
    return await tx.fetch_one_as(datetime, sql.outages.last_tick)
