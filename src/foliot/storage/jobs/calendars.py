"""Calendars, and the jobs that use them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from uuid import UUID

from psycopg.errors import UniqueViolation
from psycopg.types.json import Jsonb

from foliot.domain.errors import Conflict, Invalid
from foliot.domain.ids import CalendarId, JobId, PrincipalId
from foliot.domain.schedule import Calendar
from foliot.domain.schedule.calendar import check_calendars_of_job
from foliot.storage.codec import encode, loads
from foliot.storage.queries import sql
from foliot.storage.tx import Tx


@dataclass(frozen=True, slots=True)
class CalendarRow:
    id: CalendarId
    calendar: Calendar
    revision: int
    created_at: datetime
    updated_at: datetime
    users: int  # jobs that use it


async def load(tx: Tx, ids: Iterable[CalendarId]) -> dict[CalendarId, Calendar]:
    found = await tx.fetch_pairs(CalendarId, str, sql.calendars.load, {"ids": list(ids)})
    return {calendar_id: _shared(text) for calendar_id, text in found}


async def get(tx: Tx, calendar_id: CalendarId) -> CalendarRow | None:
    return await tx.fetch_one_as(CalendarRow, sql.calendars.get, {"id": calendar_id})


async def lock(tx: Tx, calendar_id: CalendarId) -> CalendarRow | None:
    """Lock the calendar and return it, without counting its users."""
    return await tx.fetch_one_as(CalendarRow, sql.calendars.lock, {"id": calendar_id})


async def page(tx: Tx, after: tuple[str, UUID], limit: int) -> list[CalendarRow]:
    """List calendars in the order of their names."""
    name, last_id = after
    return await tx.fetch_as(CalendarRow, sql.calendars.page, {"name": name, "id": last_id, "limit": limit})


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


async def list_users(
    tx: Tx, calendar_id: CalendarId, after: UUID, limit: int, visible_owner: PrincipalId | None = None
) -> list[tuple[JobId, str]]:
    """List ids and names of the jobs that use it, in the order of ids."""
    params = {"id": calendar_id, "after": after, "limit": limit, "owner_id": visible_owner}
    return await tx.fetch_pairs(JobId, str, sql.calendars.list_users, params)


async def lock_shared(tx: Tx, ids: Sequence[CalendarId]) -> dict[CalendarId, Calendar]:
    """Load calendars and keep them from being edited or deleted until the transaction ends. Refuse unknown ones.

    A transaction that plans a job by them must call this: an edit then waits, and plans the job again afterwards.
    """
    if not ids:
        return {}
    rows = await tx.fetch_pairs(CalendarId, str, sql.calendars.lock_shared, {"ids": list(ids)})
    found = {calendar_id: _shared(text) for calendar_id, text in rows}
    for index, calendar_id in enumerate(ids):
        if calendar_id not in found:
            raise Invalid("There is no such calendar.", pointer=f"/calendars/{index}")
    return found


async def link(tx: Tx, job_id: JobId, ids: Sequence[CalendarId]) -> None:
    """Make these the calendars that a job uses. Refuse unknown ones, and too many rules."""
    found = await lock_shared(tx, ids)
    check_calendars_of_job(sum(len(each.rules) for each in found.values()))
    params = {"workspace_id": tx.workspace_id, "job_id": job_id, "ids": list(ids)}
    await tx.execute(sql.calendars.unlink, params)
    if ids:
        await tx.execute(sql.calendars.link, params)


async def find_most_rules(tx: Tx, calendar_id: CalendarId) -> tuple[int, str] | None:
    """Return how many rules the calendars of a job have together, and its name: of the job with the most that uses this calendar."""
    found = await tx.fetch_pairs(int, str, sql.calendars.find_most_rules, {"id": calendar_id})
    return found[0] if found else None


@lru_cache(maxsize=1_024)
def _shared(text: str) -> Calendar:
    """Read a calendar. Equal text gives the same value, which keeps its prepared spans from tick to tick."""
    return loads(Calendar, text)


def _columns(calendar_id: CalendarId, calendar: Calendar) -> dict[str, object]:
    definition = encode(calendar)
    return {"id": calendar_id, "name": definition.pop("name"), "definition": Jsonb(definition)}


def _taken(name: str) -> Conflict:
    return Conflict(f'There is a calendar named "{name}" already.', hint="Choose another name.")
