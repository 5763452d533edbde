"""Calendars, and the jobs that use them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from uuid import UUID

from psycopg.errors import UniqueViolation
from psycopg.types.json import Jsonb

from foliot.domain.definition import Spec
from foliot.domain.errors import Conflict, Invalid
from foliot.domain.ids import CalendarId, JobId, PrincipalId, WorkspaceId
from foliot.domain.schedule import Calendar
from foliot.domain.schedule.calendar import CalendarScope, check_calendars_of_job
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


@dataclass(frozen=True, slots=True)
class _LoadedCalendar:
    workspace_id: WorkspaceId
    id: CalendarId
    text: str


@dataclass(frozen=True, slots=True)
class JobCalendars:
    """The calendars of some jobs: those that they name, and those of their workspaces that have a scope."""

    known: Mapping[CalendarId, Calendar] = field(default_factory=dict)
    scoped: Mapping[WorkspaceId, Mapping[CalendarId, Calendar]] = field(default_factory=dict)

    def of(self, workspace_id: WorkspaceId, spec: Spec) -> tuple[Calendar, ...]:
        """Return every calendar that applies to a job. The only place that decides it."""
        if not self.known:
            return ()
        named = tuple(self.known[each] for each in spec.calendars if each in self.known)
        scoped = self.scoped.get(workspace_id)
        if not scoped:
            return named
        return named + tuple(
            each
            for calendar_id, each in scoped.items()
            if each.scope is not None and calendar_id not in spec.calendars and spec.is_in(each.scope)
        )


NO_CALENDARS = JobCalendars()


async def load(tx: Tx, workspace_ids: Iterable[WorkspaceId], specs: Iterable[Spec] = ()) -> JobCalendars:
    """Load the calendars that apply to jobs with these specs. Without specs, only calendars with a scope."""
    ids = {calendar_id for spec in specs for calendar_id in spec.calendars}
    params = {"ids": list(ids), "workspace_ids": list(set(workspace_ids))}
    if not (params["ids"] or params["workspace_ids"]):
        return NO_CALENDARS
    return _job_calendars(await tx.fetch_as(_LoadedCalendar, sql.calendars.load, params))


async def load_for(tx: Tx, workspace_id: WorkspaceId, spec: Spec) -> tuple[Calendar, ...]:
    """Load the calendars that apply to one job."""
    return (await load(tx, [workspace_id], [spec])).of(workspace_id, spec)


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
    params = _columns(calendar_id, calendar)
    if not await tx.execute(sql.calendars.insert, params):
        raise _taken(calendar.name)


async def update(tx: Tx, calendar_id: CalendarId, calendar: Calendar) -> None:
    try:
        await tx.execute(sql.calendars.update, _columns(calendar_id, calendar))
    except UniqueViolation:
        raise _taken(calendar.name) from None


async def delete(tx: Tx, calendar_id: CalendarId) -> None:
    await tx.execute(sql.calendars.delete, {"id": calendar_id})


async def list_users(
    tx: Tx,
    calendar_id: CalendarId | None,
    after: UUID,
    limit: int,
    visible_owner: PrincipalId | None = None,
    *,
    by_scope: bool = True,
    other_scope: CalendarScope | None = None,
) -> list[tuple[JobId, str]]:
    """List ids and names of the jobs that name it or are in its scope, in the order of ids. `other_scope` is one that it had or will have."""
    params = {
        "id": calendar_id,
        "after": after,
        "limit": limit,
        "owner_id": visible_owner,
        "by_scope": by_scope,
        "other_scope": None if other_scope is None else Jsonb(encode(other_scope)),
    }
    return await tx.fetch_pairs(JobId, str, sql.calendars.list_users, params)


async def lock_shared(tx: Tx, ids: Sequence[CalendarId]) -> JobCalendars:
    """Load the named calendars and those with a scope, and keep them from being edited or deleted until the transaction ends.

    Refuse unknown ones. A transaction that plans a new job by them must call this: an edit then waits, and plans the job again afterwards.
    """
    found = _job_calendars(await tx.fetch_as(_LoadedCalendar, sql.calendars.lock_shared, {"ids": list(ids)}))
    for index, calendar_id in enumerate(ids):
        if calendar_id not in found.known:
            raise Invalid("There is no such calendar.", pointer=f"/calendars/{index}")
    return found


async def link(tx: Tx, job_id: JobId, ids: Sequence[CalendarId]) -> None:
    """Make these the calendars that a job names. Refuse unknown ones, and too many rules."""
    found = await lock_shared(tx, ids) if ids else NO_CALENDARS
    check_calendars_of_job(sum(len(found.known[each].rules) for each in ids))
    params = {"job_id": job_id, "ids": list(ids)}
    await tx.execute(sql.calendars.unlink, params)
    if ids:
        await tx.execute(sql.calendars.link, params)


async def find_most_rules(tx: Tx, calendar_id: CalendarId) -> tuple[int, str] | None:
    """Return how many rules the calendars of a job have together, and its name: of the job with the most that uses this calendar."""
    found = await tx.fetch_pairs(int, str, sql.calendars.find_most_rules, {"id": calendar_id})
    return found[0] if found else None


async def count_scoped_rules(tx: Tx) -> int:
    """Count the rules of all calendars of the workspace that have a scope."""
    return await tx.fetch_value(int, sql.calendars.count_scoped_rules)


def _job_calendars(rows: Iterable[_LoadedCalendar]) -> JobCalendars:
    known: dict[CalendarId, Calendar] = {}
    scoped: dict[WorkspaceId, dict[CalendarId, Calendar]] = {}
    for row in rows:
        calendar = known[row.id] = _shared(row.text)
        if calendar.scope is not None:
            scoped.setdefault(row.workspace_id, {})[row.id] = calendar
    return JobCalendars(known, scoped) if known else NO_CALENDARS


@lru_cache(maxsize=1_024)
def _shared(text: str) -> Calendar:
    """Read a calendar. Equal text gives the same value, which keeps its prepared spans from tick to tick."""
    return loads(Calendar, text)


def _columns(calendar_id: CalendarId, calendar: Calendar) -> dict[str, object]:
    definition = encode(calendar)
    return {"id": calendar_id, "name": definition.pop("name"), "definition": Jsonb(definition)}


def _taken(name: str) -> Conflict:
    return Conflict(f'There is a calendar named "{name}" already.', hint="Choose another name.")
