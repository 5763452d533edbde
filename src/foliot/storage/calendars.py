"""Calendars as rows."""

from __future__ import annotations

from collections.abc import Iterable

from foliot.domain.ids import CalendarId
from foliot.domain.schedule import Calendar
from foliot.storage.codec import decode
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


async def by_ids(tx: Tx, ids: Iterable[CalendarId]) -> dict[CalendarId, Calendar]:
    rows = await tx.fetch(sql.calendars.by_ids, {"ids": list(ids)})
    return {row["id"]: decode(Calendar, {**row["definition"], "name": row["name"]}) for row in rows}
