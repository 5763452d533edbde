"""Calendars as rows, and which jobs use them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.errors import UniqueViolation
from psycopg.types.json import Jsonb

from foliot.domain.errors import Conflict, Invalid
from foliot.domain.ids import CalendarId, JobId, PrincipalId
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
    try:
        await tx.execute(sql.calendars.update, {**_columns(calendar_id, calendar), "now": tx.now})
    except UniqueViolation:
        raise _taken(calendar.name) from None


async def delete(tx: Tx, calendar_id: CalendarId) -> None:
    await tx.execute(sql.calendars.delete, {"id": calendar_id})


async def users(
    tx: Tx, calendar_id: CalendarId, after: UUID, limit: int, visible_owner: PrincipalId | None = None
) -> list[tuple[JobId, str]]:
    """The jobs that use it, in the order of their ids, each with its name."""
    params = {"id": calendar_id, "after": after, "limit": limit, "owner_id": visible_owner}
    return [(row["job_id"], row["name"]) for row in await tx.fetch(sql.calendars.users, params)]


async def held(tx: Tx, ids: Sequence[CalendarId]) -> dict[CalendarId, Calendar]:
    """These calendars, which nobody edits or deletes until we are done. Refuses those that are not there.

    Who plans a job by them must look at them so: an edit then waits, and plans this job anew when it is there.
    """
    if not ids:
        return {}
    rows = await tx.fetch(sql.calendars.hold, {"ids": list(ids)})
    found = {row["id"]: _calendar(row) for row in rows}
    for place, calendar_id in enumerate(ids):
        if calendar_id not in found:
            raise Invalid("There is no such calendar.", pointer=f"/calendars/{place}")
    return found


async def link(tx: Tx, job_id: JobId, ids: Sequence[CalendarId]) -> None:
    """Make these, and no others, the calendars that a job uses. Refuses those that are not there."""
    await held(tx, ids)
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
