"""What people do: create the jobs of the world, pause and resume some, edit others; each at an instant that follows from the seed."""

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
from foliot.domain.ids import CalendarId, JobId, WorkspaceId, uuid7
from foliot.domain.planning.edit import edited_schedule
from foliot.domain.schedule import Calendar
from foliot.domain.schedule.parse import anchored
from foliot.services.identity.workspaces import archive as close_workspace
from foliot.services.jobs import job_edits, job_status, jobs
from foliot.services.runs import run_control
from foliot.services.runs.backfill import backfill
from foliot.services.scheduling import freezes
from foliot.services.scheduling.freezes import NewFreeze
from foliot.services.workers import limits
from foliot.storage.codec import encode
from foliot.storage.identity import workspaces
from foliot.storage.tx import Database, Role
from tools.simulation.chronicle import Chronicle, Frozen, Story
from tools.simulation.nodes import Handler, Stage
from tools.simulation.world import NewJob, Size, caps, other_schedule, world

BY = Actor("people")
Deed = Callable[[], Awaitable[None]]


class People:
    def __init__(
        self,
        size: Size,
        stage: Stage,
        chronicle: Chronicle,
        database: Database,
        owner: psycopg.Connection[Any],
        chance: Random,
    ) -> None:
        self.size = size
        self.stage = stage
        self.chronicle = chronicle
        self.database = database
        self.owner = owner
        self.chance = chance

    async def settle_in(self) -> None:
        ids: list[WorkspaceId] = []
        async with self.database.tx(Role.APP, system=True) as tx:
            for number in range(self.size.workspaces):
                workspace_id = WorkspaceId(tx.new_id())
                await workspaces.insert_missing(
                    tx, workspace_id, f"w{self.size.first + number}", f"Workspace {self.size.first + number}"
                )
                ids.append(workspace_id)
        made: dict[int, list[JobId]] = {}
        for new in world(self.size):
            siblings = made.setdefault(new.workspace, [])
            siblings.append(await self._create(ids[new.workspace], new, siblings))
        for workspace, key, cap in caps(self.size):
            await limits.set_limit(self.database, Scope(ids[workspace], BY), key, cap)
            self.stage.count("people capped")

    def deeds(self) -> Iterator[tuple[datetime, Deed]]:
        """When people do what to their jobs, in no order."""
        length = self.size.end - self.size.start
        for story in self.chronicle.stories.values():
            for share, deed in self._habits(story):
                if self.chance.random() < share:
                    yield self._moment(length), partial(self._try, deed)
        for day in range(self.size.days):
            yield self.size.start + timedelta(days=day, hours=12), self._look_after

    def _habits(self, story: Story) -> tuple[tuple[float, Deed], ...]:
        return (
            (0.08, partial(self._pause, story)),
            (0.06, partial(self._resume, story)),
            (0.08, partial(self._edit, story)),
            (0.06, partial(self._run, story)),
            (0.04, partial(self._cancel, story)),
            (0.03, partial(self._skip_next, story)),
            (0.01, partial(self._archive, story)),
            (0.02, partial(self._freeze, story)),
            (0.03, partial(self._backfill, story)),
            (0.01, partial(self._close, story)),
        )

    def _moment(self, length: timedelta) -> datetime:
        return self.size.start + timedelta(minutes=5 * self.chance.randint(1, length // timedelta(minutes=5)))

    async def _try(self, deed: Deed) -> None:
        """People ask for what cannot be done, too, and are told so."""
        try:
            await deed()
        except FoliotError as refusal:
            self.stage.count(f"people refused: {refusal.code}")

    async def _look_after(self) -> None:
        """At noon somebody resumes half of what the breaker has stopped."""
        rows = self.owner.execute(
            "SELECT id FROM foliot.jobs WHERE status IN ('paused', 'failed') ORDER BY workspace_id, name"
        ).fetchall()
        for (job_id,) in rows:
            if self.chance.random() < 0.5:
                await self._try(partial(self._resume, self.chronicle.stories[job_id]))

    async def _pause(self, story: Story) -> None:
        await job_status.pause(self.database, Scope(story.workspace_id, BY), story.id)
        story.paused.append(self.stage.clock.now())
        self.stage.count("people paused")

    async def _resume(self, story: Story) -> None:
        catch_up = self.chance.random() < 0.5
        await job_status.resume(self.database, Scope(story.workspace_id, BY), story.id, catch_up=catch_up)
        story.resumed.append(self.stage.clock.now())
        self.stage.count("people resumed")

    async def _edit(self, story: Story) -> None:
        now = self.stage.clock.now()
        stored = await jobs.get(self.database, story.workspace_id, story.id)
        wanted = other_schedule(self.chance, self.size, story.spec.schedule)
        definition = replace(stored.definition, spec=replace(stored.definition.spec, schedule=wanted))
        edited = await job_edits.edit(self.database, Scope(story.workspace_id, BY), story.id, definition)
        if edited.has_changed:
            schedule = edited_schedule(story.spec.schedule, wanted, now)
            story.begin(replace(story.spec, schedule=schedule), story.chapters[-1].schedule_rev + 1, now)
            self.stage.count("people edited")

    async def _run(self, story: Story) -> None:
        await run_control.run_now(self.database, Scope(story.workspace_id, BY), story.id)
        self.stage.count("people ran")

    async def _cancel(self, story: Story) -> None:
        row = self.owner.execute(
            "SELECT id FROM foliot.runs WHERE job_id = %s AND status IS NULL ORDER BY planned_for, number LIMIT 1",
            [story.id],
        ).fetchone()
        if row is not None:
            await run_control.cancel_run(self.database, Scope(story.workspace_id, BY), row[0])
            self.stage.count("people cancelled")

    async def _skip_next(self, story: Story) -> None:
        await run_control.skip_next(
            self.database, Scope(story.workspace_id, BY), story.id, reason="not today"
        )
        self.stage.count("people skipped")

    async def _freeze(self, story: Story) -> None:
        """This job, or its whole workspace, for some hours; over well before the end of the world."""
        now = self.stage.clock.now()
        end_at = min(now + timedelta(hours=self.chance.randint(1, 12)), self.size.end - timedelta(hours=1))
        everything = self.chance.random() < 0.5
        after, running = self.chance.choice(list(FreezePolicy)), self.chance.choice(list(RunningPolicy))
        start_at = now if self.chance.random() < 0.5 else now + timedelta(minutes=self.chance.randint(1, 300))
        if end_at <= start_at:
            return
        new = NewFreeze(
            "stock-taking",
            everything=everything,
            jobs=frozenset() if everything else frozenset({story.id}),
            start_at=start_at,
            end_at=end_at,
            after=after,
            running=running,
        )
        await freezes.turn_on(self.database, Scope(story.workspace_id, BY), new)
        frozen = Frozen(start_at, end_at)
        self.chronicle.freezes.append(frozen)
        for each in self.chronicle.stories.values():
            if each is story or (everything and each.workspace_id == story.workspace_id):
                each.frozen.append(frozen)
        self.stage.count("people froze")

    async def _backfill(self, story: Story) -> None:
        now = self.stage.clock.now()
        made = await backfill(
            self.database,
            Scope(story.workspace_id, BY),
            story.id,
            now - timedelta(hours=6),
            now,
            dry_run=False,
            skipped=True,
        )
        self.stage.count("people backfilled", made.count)

    async def _close(self, story: Story) -> None:
        """The whole workspace is put away: what its workers still report is refused."""
        await close_workspace(self.database, BY, story.workspace_id)
        self.stage.count("people closed a workspace")

    async def _archive(self, story: Story) -> None:
        await job_status.archive(self.database, Scope(story.workspace_id, BY), story.id, detach=True)
        self.stage.count("people archived")

    async def _create(self, workspace_id: WorkspaceId, new: NewJob, siblings: list[JobId]) -> JobId:
        now = self.stage.clock.now()
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
        self.stage.handlers[created.id] = Handler(new.name, new.behaviour)
        story = Story(created.id, workspace_id, new.name, definition.spec, calendars)
        schedule = anchored(definition.spec.schedule, now)
        story.begin(replace(definition.spec, schedule=schedule), 1, now)
        self.chronicle.stories[created.id] = story
        return created.id
