"""Simulated users: create the jobs of the world, pause, resume and edit some, at instants that follow from the seed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from foliot.domain.access import Actor, Scope
from foliot.domain.dependencies import Edge
from foliot.domain.errors import FoliotError
from foliot.domain.freeze import FreezePolicy, RunningPolicy
from foliot.domain.ids import CalendarId, JobId, PrincipalId, WorkspaceId, uuid7
from foliot.domain.planning.edit import edited_schedule
from foliot.domain.schedule import Calendar
from foliot.domain.schedule.parse import anchored
from foliot.services.identity.workspaces import archive as close_workspace
from foliot.services.jobs import job_edits, job_status, jobs
from foliot.services.runs import run_control
from foliot.services.runs.backfill import backfill
from foliot.services.scheduling import freezes
from foliot.services.scheduling.freezes import NewFreeze
from foliot.services.secrets import secrets
from foliot.services.workers import limits
from foliot.services.workers.remote_register import WorkerPrincipal
from foliot.storage.codec import encode
from foliot.storage.identity import workspaces
from foliot.storage.tx import Database, Role
from tools.simulation.command_log import CommandLog, FreezePeriod, JobHistory
from tools.simulation.nodes import Handler, HostAccount, SharedState
from tools.simulation.world import TOKEN, NewJob, Size, caps, has_host, other_schedule, world

BY = Actor("people")
Action = Callable[[], Awaitable[None]]


class Users:
    def __init__(
        self,
        size: Size,
        shared: SharedState,
        command_log: CommandLog,
        database: Database,
        owner: psycopg.Connection[Any],
        chance: Random,
    ) -> None:
        self.size = size
        self.shared = shared
        self.command_log = command_log
        self.database = database
        self.owner = owner
        self.chance = chance

    async def create_world(self) -> None:
        ids: list[WorkspaceId] = []
        async with self.database.tx(Role.APP, system=True) as tx:
            for number in range(self.size.workspaces):
                workspace_id = WorkspaceId(tx.new_id())
                await workspaces.insert_missing(
                    tx, workspace_id, f"w{self.size.first + number}", f"Workspace {self.size.first + number}"
                )
                ids.append(workspace_id)
        for number, workspace_id in enumerate(ids):
            if has_host(self.size, number):
                await self._add_host(workspace_id)
        made: dict[int, list[JobId]] = {}
        for new in world(self.size):
            siblings = made.setdefault(new.workspace, [])
            siblings.append(await self._create(ids[new.workspace], new, siblings))
        for workspace, key, cap in caps(self.size):
            await limits.set_limit(self.database, Scope(ids[workspace], BY), key, cap)
            self.shared.count("people capped")

    async def _add_host(self, workspace_id: WorkspaceId) -> None:
        """Register the host of a workspace, whose jobs are bound to it, and store the secret that they name."""
        principal = PrincipalId(uuid7(self.shared.clock.now(), self.chance.randbytes(10)))
        account = HostAccount(WorkerPrincipal(workspace_id, principal, BY), f"token of {workspace_id}")
        await account.register(self.database, "first")
        scope = Scope(workspace_id, BY)
        await secrets.create(self.database, self.shared.vault, scope, TOKEN, account.token)
        self.shared.hosts.append(account)

    def actions(self) -> Iterator[tuple[datetime, Action]]:
        """Yield the actions of users and their instants, in no order."""
        length = self.size.end - self.size.start
        for history in self.command_log.histories.values():
            for share, action in self._choices(history):
                if self.chance.random() < share:
                    yield self._moment(length), partial(self._try, action)
        for day in range(self.size.days):
            yield self.size.start + timedelta(days=day, hours=12), self._resume_stopped

    def _choices(self, history: JobHistory) -> tuple[tuple[float, Action], ...]:
        return (
            (0.08, partial(self._pause, history)),
            (0.06, partial(self._resume, history)),
            (0.08, partial(self._edit, history)),
            (0.06, partial(self._run, history)),
            (0.04, partial(self._cancel, history)),
            (0.03, partial(self._skip_next, history)),
            (0.01, partial(self._archive, history)),
            (0.02, partial(self._freeze, history)),
            (0.03, partial(self._backfill, history)),
            (0.01, partial(self._close, history)),
        )

    def _moment(self, length: timedelta) -> datetime:
        return self.size.start + timedelta(minutes=5 * self.chance.randint(1, length // timedelta(minutes=5)))

    async def _try(self, action: Action) -> None:
        """Try an action and count its refusal: users also ask for the impossible."""
        try:
            await action()
        except FoliotError as refusal:
            self.shared.count(f"people refused: {refusal.code}")

    async def _resume_stopped(self) -> None:
        """Resume half of the jobs that the breaker has stopped, at noon."""
        rows = self.owner.execute(
            "SELECT id FROM foliot.jobs WHERE status IN ('paused', 'failed') ORDER BY workspace_id, name"
        ).fetchall()
        for (job_id,) in rows:
            if self.chance.random() < 0.5:
                await self._try(partial(self._resume, self.command_log.histories[job_id]))

    async def _pause(self, history: JobHistory) -> None:
        await job_status.pause(self.database, Scope(history.workspace_id, BY), history.id)
        history.paused.append(self.shared.clock.now())
        self.shared.count("people paused")

    async def _resume(self, history: JobHistory) -> None:
        catch_up = self.chance.random() < 0.5
        await job_status.resume(self.database, Scope(history.workspace_id, BY), history.id, catch_up=catch_up)
        history.resumed.append(self.shared.clock.now())
        self.shared.count("people resumed")

    async def _edit(self, history: JobHistory) -> None:
        now = self.shared.clock.now()
        stored = await jobs.get(self.database, history.workspace_id, history.id)
        wanted = other_schedule(self.chance, self.size, history.spec.schedule)
        definition = replace(stored.definition, spec=replace(stored.definition.spec, schedule=wanted))
        edited = await job_edits.edit(self.database, Scope(history.workspace_id, BY), history.id, definition)
        if edited.has_changed:
            schedule = edited_schedule(history.spec.schedule, wanted, now)
            history.begin(replace(history.spec, schedule=schedule), history.periods[-1].schedule_rev + 1, now)
            self.shared.count("people edited")

    async def _run(self, history: JobHistory) -> None:
        await run_control.run_now(self.database, Scope(history.workspace_id, BY), history.id)
        self.shared.count("people ran")

    async def _cancel(self, history: JobHistory) -> None:
        row = self.owner.execute(
            "SELECT id FROM foliot.runs WHERE job_id = %s AND status IS NULL ORDER BY planned_for, number LIMIT 1",
            [history.id],
        ).fetchone()
        if row is not None:
            await run_control.cancel_run(self.database, Scope(history.workspace_id, BY), row[0])
            self.shared.count("people cancelled")

    async def _skip_next(self, history: JobHistory) -> None:
        await run_control.skip_next(
            self.database, Scope(history.workspace_id, BY), history.id, reason="not today"
        )
        history.skips += 1
        self.shared.count("people skipped")

    async def _freeze(self, history: JobHistory) -> None:
        """Freeze this job, or its whole workspace, for some hours, until well before the end of the world."""
        now = self.shared.clock.now()
        end_at = min(now + timedelta(hours=self.chance.randint(1, 12)), self.size.end - timedelta(hours=1))
        everything = self.chance.random() < 0.5
        after, running = self.chance.choice(list(FreezePolicy)), self.chance.choice(list(RunningPolicy))
        start_at = now if self.chance.random() < 0.5 else now + timedelta(minutes=self.chance.randint(1, 300))
        if end_at <= start_at:
            return
        new = NewFreeze(
            "stock-taking",
            everything=everything,
            jobs=frozenset() if everything else frozenset({history.id}),
            start_at=start_at,
            end_at=end_at,
            after=after,
            running=running,
        )
        await freezes.turn_on(self.database, Scope(history.workspace_id, BY), new)
        frozen = FreezePeriod(start_at, end_at)
        self.command_log.freezes.append(frozen)
        for each in self.command_log.histories.values():
            if each is history or (everything and each.workspace_id == history.workspace_id):
                each.frozen.append(frozen)
        self.shared.count("people froze")

    async def _backfill(self, history: JobHistory) -> None:
        now = self.shared.clock.now()
        made = await backfill(
            self.database,
            Scope(history.workspace_id, BY),
            history.id,
            now - timedelta(hours=6),
            now,
            dry_run=False,
            skipped=True,
        )
        self.shared.count("people backfilled", made.count)

    async def _close(self, history: JobHistory) -> None:
        """Archive the whole workspace: later reports of its workers are refused."""
        await close_workspace(self.database, BY, history.workspace_id)
        self.shared.count("people closed a workspace")

    async def _archive(self, history: JobHistory) -> None:
        await job_status.archive(self.database, Scope(history.workspace_id, BY), history.id, detach=True)
        self.shared.count("people archived")

    async def _create(self, workspace_id: WorkspaceId, new: NewJob, siblings: list[JobId]) -> JobId:
        now = self.shared.clock.now()
        definition = new.definition
        calendars: tuple[Calendar, ...] = ()
        if new.calendar is not None:
            calendar_id = CalendarId(uuid7(now, self.chance.randbytes(10)))
            name = f"hours of {new.name}"
            self.owner.execute(
                "INSERT INTO foliot.calendars (workspace_id, id, name, definition, created_at, updated_at) VALUES (%s, %s, %s, %s, %s, %s)",
                [workspace_id, calendar_id, name, Jsonb(encode(new.calendar)), now, now],
            )
            calendars = (replace(new.calendar, name=name),)
            definition = replace(definition, spec=replace(definition.spec, calendars=(calendar_id,)))
        if (upstream := new.upstream) is not None:
            edge = Edge(siblings[-upstream.places], upstream.on, upstream.mode)
            definition = replace(definition, depends_on=(edge,))
        created = await jobs.create(self.database, Scope(workspace_id, BY), definition)
        self.shared.handlers[created.id] = Handler(new.name, new.behaviour)
        history = JobHistory(created.id, workspace_id, new.name, definition.spec, calendars)
        schedule = anchored(definition.spec.schedule, now)
        history.begin(replace(definition.spec, schedule=schedule), 1, now)
        self.command_log.histories[created.id] = history
        return created.id
