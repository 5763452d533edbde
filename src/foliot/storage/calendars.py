"""Calendars as rows, and which jobs use them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.types.json import Jsonb

from foliot.domain.errors import Conflict, Invalid
from foliot.domain.ids import CalendarId, JobId
from foliot.domain.schedule import Calendar
from foliot.storage.codec import decode, encode
from foliot.storage.queries import sql
from foliot.storage.tx import Row, Tx


@dataclass(frozen=True, slots=True)
class CalendarRow:
    id: CalendarId
    calendar: Calendar
    revision: int
    created_at: datetime
    updated_at: datetime
    users: int  # jobs that use it


async def by_ids(tx: Tx, ids: Iterable[CalendarId]) -> dict[CalendarId, Calendar]:
    rows = await tx.fetch(sql.calendars.by_ids, {"ids": list(ids)})
    return {row["id"]: _calendar(row) for row in rows}


async def get(tx: Tx, calendar_id: CalendarId) -> CalendarRow | None:
    row = await tx.fetch_one(sql.calendars.get, {"id": calendar_id})
    return None if row is None else _calendar_row(row)


async def lock(tx: Tx, calendar_id: CalendarId) -> CalendarRow | None:
    """Under its lock; who uses it is not counted."""
    row = await tx.fetch_one(sql.calendars.lock, {"id": calendar_id})
    return None if row is None else _calendar_row(row)


async def page(tx: Tx, after: tuple[str, UUID], limit: int) -> list[CalendarRow]:
    """In the order of their names."""
    name, last_id = after
    rows = await tx.fetch(sql.calendars.all, {"name": name, "id": last_id, "limit": limit})
    return [_calendar_row(row) for row in rows]


async def insert(tx: Tx, calendar_id: CalendarId, calendar: Calendar) -> None:
    params = {**_columns(calendar_id, calendar), "workspace_id": tx.workspace_id, "now": tx.now}
    if not await tx.execute(sql.calendars.insert, params):
        raise _taken(calendar.name)


async def update(tx: Tx, calendar_id: CalendarId, calendar: Calendar) -> None:
    if await tx.fetch_one(sql.calendars.name_is_taken, {"id": calendar_id, "name": calendar.name}):
        raise _taken(calendar.name)
    await tx.execute(sql.calendars.update, {**_columns(calendar_id, calendar), "now": tx.now})


async def delete(tx: Tx, calendar_id: CalendarId) -> None:
    await tx.execute(sql.calendars.delete, {"id": calendar_id})


async def users(tx: Tx, calendar_id: CalendarId, after: UUID, limit: int) -> list[tuple[JobId, str]]:
    """The jobs that use it, in the order of their ids, each with its name."""
    params = {"id": calendar_id, "after": after, "limit": limit}
    return [(row["job_id"], row["name"]) for row in await tx.fetch(sql.calendars.users, params)]


async def link(tx: Tx, job_id: JobId, ids: Sequence[CalendarId]) -> None:
    """Make these, and no others, the calendars that a job uses. Refuses those that are not there."""
    if ids:
        known = {row["id"] for row in await tx.fetch(sql.calendars.known, {"ids": list(ids)})}
        for place, calendar_id in enumerate(ids):
            if calendar_id not in known:
                raise Invalid("There is no such calendar.", pointer=f"/calendars/{place}")
    params = {"workspace_id": tx.workspace_id, "job_id": job_id, "ids": list(ids)}
    await tx.execute(sql.calendars.unlink, params)
    if ids:
        await tx.execute(sql.calendars.link, params)


def _columns(calendar_id: CalendarId, calendar: Calendar) -> dict[str, object]:
    definition = encode(calendar)
    return {"id": calendar_id, "name": definition.pop("name"), "definition": Jsonb(definition)}


def _calendar(row: Row) -> Calendar:
    found: Calendar = decode(Calendar, {**row["definition"], "name": row["name"]})
    return found


def _calendar_row(row: Row) -> CalendarRow:
    return CalendarRow(
        row["id"], _calendar(row), row["revision"], row["created_at"], row["updated_at"], row["users"]
    )


def _taken(name: str) -> Conflict:
    return Conflict(f'There is a calendar named "{name}" already.', hint="Choose another name.")
