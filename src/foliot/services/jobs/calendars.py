"""Calendars. A change takes effect at once for every job that uses one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from foliot.domain.access import Actor, Scope
from foliot.domain.errors import Conflict, Invalid, refuse_stale, require_found
from foliot.domain.ids import FIRST_ID, CalendarId, JobId, WorkspaceId
from foliot.domain.schedule import Calendar, check_calendar, load_zone
from foliot.domain.schedule.calendar import MOST_RULES, MOST_RULES_OF_A_JOB, CalendarScope
from foliot.domain.schedule.calendar_year import ClosedDay, closed_days
from foliot.services.cursors import ListPage, cut_page, read_cursor, text
from foliot.services.evaluation import evaluate_in_thread
from foliot.services.scheduling.replan_steps import replan_timers
from foliot.storage.identity import audit
from foliot.storage.identity.audit import AuditEntry
from foliot.storage.jobs import calendars, jobs
from foliot.storage.jobs.calendars import CalendarRow
from foliot.storage.jobs.jobs import RevisionAuthor
from foliot.storage.timers import timers
from foliot.storage.tx import Database, Role, Tx

__all__ = ["CalendarRow"]

BATCH = 200  # timers locked by one transaction
NAMED = 5  # names in a refusal


async def create(
    database: Database, scope: Scope, calendar: Calendar, *, most: int | None = None
) -> CalendarId:
    """Store a new calendar. Jobs in its scope are planned again; `most` bounds them in a dry run."""
    check_calendar(calendar)
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        calendar_id = CalendarId(tx.new_id())
        await calendars.insert(tx, calendar_id, calendar)
        await _check_scoped(tx, calendar)
        await _note(tx, "calendar.created", calendar_id, scope.actor, calendar.name)
    if calendar.scope is not None:
        await replan_users(database, scope.workspace_id, calendar_id, most)
    return calendar_id


async def edit(
    database: Database, scope: Scope, calendar_id: CalendarId, calendar: Calendar, *, most: int | None = None
) -> int:
    """Replace the calendar. Return how many timers moved."""
    changes = {
        name: getattr(calendar, name) for name in ("name", "kind", "rules", "timezone", "otherwise", "scope")
    }
    return await change(database, scope, calendar_id, changes, most=most)


async def change(
    database: Database,
    scope: Scope,
    calendar_id: CalendarId,
    changes: Mapping[str, Any],
    *,
    most: int | None = None,
) -> int:
    """Change some fields. Return how many timers moved. `most` bounds the locked timers in a dry run."""
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        found = require_found(await calendars.lock(tx, calendar_id), "calendar")
        refuse_stale("calendar", found.revision, scope.expected_revision)
        calendar = replace(found.calendar, **changes)
        check_calendar(calendar)
        await calendars.update(tx, calendar_id, calendar)
        if len(calendar.rules) > len(found.calendar.rules):
            await _check_users(tx, calendar_id)
        await _check_scoped(tx, calendar)
        await _note(tx, "calendar.edited", calendar_id, scope.actor, calendar.name)
    return await replan_users(database, scope.workspace_id, calendar_id, most, found.calendar.scope)


async def replan_users(
    database: Database,
    workspace_id: WorkspaceId,
    calendar_id: CalendarId,
    most: int | None = None,
    old_scope: CalendarScope | None = None,
) -> int:
    """Set the timers of all jobs that use the calendar or were in its scope, in batches. Repeating this is harmless."""
    moved, seen, after = 0, 0, FIRST_ID
    while True:
        async with database.tx(Role.APP, workspace_id) as tx:
            found = await calendars.list_users(tx, calendar_id, after, BATCH, other_scope=old_scope)
            job_ids = [job_id for job_id, _ in found]
            moved += await replan_timers(tx, (await timers.lock(tx, job_ids)).values())
        seen += len(job_ids)
        if len(job_ids) < BATCH or (most is not None and seen >= most):
            return moved
        after = job_ids[-1]


async def delete(
    database: Database,
    scope: Scope,
    calendar_id: CalendarId,
    *,
    detach: bool = False,
    most: int | None = None,
) -> None:
    """Delete the calendar. Refused while jobs use it, unless `detach` removes it from them first; `most` bounds that in a dry run."""
    detached = 0
    while True:
        async with database.tx(Role.APP, scope.workspace_id) as tx:
            found = require_found(await calendars.get(tx, calendar_id), "calendar")
            refuse_stale("calendar", found.revision, scope.expected_revision)
            users = await calendars.list_users(tx, calendar_id, FIRST_ID, BATCH, by_scope=False)
            if users and not detach:
                raise _in_use(found, [name for _, name in users])
            if users:
                await _detach(tx, found, [job_id for job_id, _ in users], scope.actor)
                detached += len(users)
                if most is not None and detached >= most:
                    return
                continue
            # From here on no job can start to use it. Not earlier: an edit locks the timer of its job first.
            found = require_found(await calendars.lock(tx, calendar_id), "calendar")
            refuse_stale("calendar", found.revision, scope.expected_revision)
            if not await calendars.list_users(tx, calendar_id, FIRST_ID, 1, by_scope=False):
                await calendars.delete(tx, calendar_id)
                await _note(tx, "calendar.deleted", calendar_id, scope.actor, found.calendar.name)
                break
    if found.calendar.scope is not None:
        await replan_users(database, scope.workspace_id, calendar_id, most, found.calendar.scope)


async def get(database: Database, workspace_id: WorkspaceId, calendar_id: CalendarId) -> CalendarRow:
    async with database.tx(Role.APP, workspace_id) as tx:
        return require_found(await calendars.get(tx, calendar_id), "calendar")


async def year(
    database: Database, workspace_id: WorkspaceId, calendar_id: CalendarId, wanted: int | None
) -> tuple[Calendar, int, tuple[ClosedDay, ...]]:
    """Return the calendar, the year, and the days of it on which the calendar closes. Default: the present year in its zone."""
    async with database.tx(Role.APP, workspace_id) as tx:
        calendar = require_found(await calendars.get(tx, calendar_id), "calendar").calendar
        now = tx.now
    shown = wanted or now.astimezone(load_zone(calendar.timezone)).year
    return calendar, shown, await evaluate_in_thread(lambda: closed_days(calendar, shown))


async def page(
    database: Database, workspace_id: WorkspaceId, cursor: str | None = None, limit: int = 50
) -> ListPage[CalendarRow]:
    """List calendars by name."""
    after = read_cursor(cursor, text, UUID) or ("", FIRST_ID)
    async with database.tx(Role.APP, workspace_id) as tx:
        found = await calendars.page(tx, after, limit + 1)
    return cut_page(found, limit, lambda last: [last.calendar.name, last.id])


async def users(
    database: Database, scope: Scope, calendar_id: CalendarId, cursor: str | None = None, limit: int = 50
) -> ListPage[tuple[JobId, str]]:
    """List the jobs that name the calendar or are in its scope, as id and name, by id."""
    [after] = read_cursor(cursor, UUID) or [FIRST_ID]
    async with database.tx(Role.APP, scope.workspace_id) as tx:
        require_found(await calendars.get(tx, calendar_id), "calendar")
        found = await calendars.list_users(tx, calendar_id, after, limit + 1, scope.visible_owner)
    return cut_page(found, limit, lambda last: [last[0]])


async def _detach(tx: Tx, found: CalendarRow, job_ids: list[JobId], by: Actor) -> None:
    author = RevisionAuthor(by.name, f'The calendar "{found.calendar.name}" was deleted.')
    for job_id in sorted(await timers.lock(tx, job_ids)):
        definition = await jobs.load_definition(tx, job_id)
        assert definition is not None, "a linked job exists"
        left = tuple(each for each in definition.spec.calendars if each != found.id)
        changed = replace(definition, spec=replace(definition.spec, calendars=left))
        await jobs.redefine(tx, job_id, changed, author)
        await calendars.link(tx, job_id, left)
    await replan_timers(tx, (await timers.lock(tx, job_ids)).values())


async def _check_users(tx: Tx, calendar_id: CalendarId) -> None:
    """Refuse more rules than the jobs that use this calendar may have together."""
    most = await calendars.find_most_rules(tx, calendar_id)
    if most is not None and most[0] > MOST_RULES_OF_A_JOB:
        raise Invalid(
            f'With these rules the calendars of the job "{most[1]}" have {most[0]:,} rules together;'
            f" at most {MOST_RULES_OF_A_JOB:,} are allowed.",
            hint="Use fewer rules, or take another calendar out of that job.",
            pointer="/rules",
        )


async def _check_scoped(tx: Tx, calendar: Calendar) -> None:
    """Refuse more rules than the calendars with a scope may have together: a job may be in the scope of all of them."""
    if calendar.scope is None:
        return
    rules = await calendars.count_scoped_rules(tx)
    if rules > MOST_RULES:
        raise Invalid(
            f"The calendars of this workspace that have a scope have {rules:,} rules together; at most {MOST_RULES:,} are allowed.",
            hint="Use fewer rules, or let jobs name the calendar.",
            pointer="/rules",
        )


def _in_use(found: CalendarRow, names: list[str]) -> Conflict:
    shown = ", ".join(f'"{name}"' for name in names[:NAMED])
    more = f" and {found.users - NAMED:,} more" if found.users > NAMED else ""
    return Conflict(
        f'The calendar "{found.calendar.name}" is used by {shown}{more}.',
        hint="Delete it with force=true to take it out of these jobs.",
    )


async def _note(tx: Tx, action: str, calendar_id: CalendarId, by: Actor, name: str) -> None:
    entry = AuditEntry(action, "calendar", str(calendar_id), by, after={"name": name})
    await audit.append(tx, tx.new_id(), entry)
