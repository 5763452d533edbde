"""Trying what is not about the times of one job: the verb itself, in a transaction that is rolled back, and what came of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from foliot.domain.access import Scope
from foliot.domain.ids import FIRST_ID, CalendarId, JobId, RunId, SecretId, WorkspaceId
from foliot.services.runs import explain, history
from foliot.services.secrets import master_key, secrets
from foliot.services.secrets.secrets import SecretRow
from foliot.services.secrets.vault import Vault
from foliot.storage.dry_run import open_dry_run
from foliot.storage.jobs import calendars
from foliot.storage.jobs.calendars import CalendarRow
from foliot.storage.runs.run_history import RunRecord
from foliot.storage.timers import timers
from foliot.storage.tx import Database, Role, Tx

MOST_JOBS = 1_000  # whose timers a rehearsal locks and compares
Thing = TypeVar("Thing")


@dataclass(frozen=True, slots=True)
class TriedRun:
    run: RunRecord
    sentence: str


@dataclass(frozen=True, slots=True)
class MovedJob:
    id: JobId
    name: str
    before: datetime | None
    after: datetime | None


@dataclass(frozen=True, slots=True)
class TriedCalendar:
    """How it would stand, None where it would be gone; and the jobs whose next run would move, of the first that use it."""

    calendar: CalendarRow | None
    moved: tuple[MovedJob, ...]
    jobs: int
    is_whole: bool


async def rehearsed(
    database: Database,
    workspace_id: WorkspaceId | None,
    act: Callable[[Database], Awaitable[Thing]],
    *,
    system: bool = False,
) -> Thing:
    """What `act` answers; nothing of it is kept. What it refuses, this refuses."""
    async with open_dry_run(database, Role.APP, workspace_id, system=system) as stage:
        return await act(stage)


async def tried_secret(
    database: Database,
    vault: Vault,
    workspace_id: WorkspaceId,
    act: Callable[[Database, Vault], Awaitable[SecretId]],
    *,
    gone: bool = False,
) -> SecretRow | None:
    """As it would stand; None where it would be gone. `act` answers with the secret it was about, and seals with what it is given."""
    sealing = vault if gone else await master_key.may_seal(database, vault)

    async def look(stage: Database) -> SecretRow | None:
        secret_id = await act(stage, sealing)
        return None if gone else await secrets.get(stage, Scope(workspace_id), secret_id)

    return await rehearsed(database, workspace_id, look)


async def tried_run(
    database: Database, workspace_id: WorkspaceId, act: Callable[[Database], Awaitable[RunId]]
) -> TriedRun:
    """The run that `act` would make or end, and what would become of it."""

    async def look(stage: Database) -> TriedRun:
        run_id = await act(stage)
        told = (await explain.explain_run(stage, Scope(workspace_id), run_id)).told
        return TriedRun(await history.run(stage, Scope(workspace_id), run_id), told.sentence)

    return await rehearsed(database, workspace_id, look)


async def tried_calendar(
    database: Database,
    workspace_id: WorkspaceId,
    act: Callable[[Database], Awaitable[CalendarId]],
    calendar_id: CalendarId | None = None,
    *,
    gone: bool = False,
) -> TriedCalendar:
    """`act` answers with the calendar it was about; `gone`: it would not be there any more."""

    async def look(stage: Database) -> TriedCalendar:
        users: dict[JobId, str] = {}
        found = None
        async with stage.tx(Role.APP, workspace_id) as tx:
            if calendar_id is not None:
                users = dict(await calendars.users(tx, calendar_id, FIRST_ID, MOST_JOBS + 1))
                found = await calendars.get(tx, calendar_id)
            before = await _next_times(tx, users)
        about = await act(stage)
        async with stage.tx(Role.APP, workspace_id) as tx:
            after = await _next_times(tx, users)
            row = None if gone else await calendars.get(tx, about)
        moved = tuple(
            MovedJob(job_id, name, before.get(job_id), after.get(job_id))
            for job_id, name in list(users.items())[:MOST_JOBS]
            if before.get(job_id) != after.get(job_id)
        )
        return TriedCalendar(row, moved, 0 if found is None else found.users, len(users) <= MOST_JOBS)

    return await rehearsed(database, workspace_id, look)


async def _next_times(tx: Tx, users: dict[JobId, str]) -> dict[JobId, datetime | None]:
    rows = await timers.read(tx, list(users)) if users else []
    return {row.job_id: row.timer.next_at for row in rows}
