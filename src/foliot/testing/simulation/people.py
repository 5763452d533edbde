"""What people do: create the jobs of the world, pause and resume some, edit others; each at an instant that follows from the seed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import datetime
from random import Random
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from foliot.domain.ids import CalendarId, JobId, WorkspaceId, uuid7
from foliot.domain.schedule.reading import anchored
from foliot.services import jobs
from foliot.storage import workspaces
from foliot.storage.codec import encode
from foliot.storage.tx import Database, Role
from foliot.testing.simulation.chronicle import Chronicle, Story
from foliot.testing.simulation.nodes import Handler, Stage
from foliot.testing.simulation.world import NewJob, Size, world

BY = "people"


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
                await workspaces.insert_missing(tx, workspace_id, f"w{number}", f"Workspace {number}")
                ids.append(workspace_id)
        made: dict[int, list[JobId]] = {}
        for new in world(self.size):
            siblings = made.setdefault(new.workspace, [])
            siblings.append(await self._create(ids[new.workspace], new, siblings))

    def deeds(self) -> Iterator[tuple[datetime, Callable[[], Awaitable[None]]]]:
        """In no order: pauses with their resumes."""
        yield from ()

    async def _create(self, workspace_id: WorkspaceId, new: NewJob, siblings: list[JobId]) -> JobId:
        now = self.stage.clock.now()
        definition = new.definition
        calendars = ()
        if new.calendar is not None:
            calendar_id = CalendarId(uuid7(now, self.chance.randbytes(10)))
            name = f"hours of {new.name}"
            self.owner.execute(
                "INSERT INTO foliot.calendars (workspace_id, id, name, definition, created_at, updated_at) VALUES (%s, %s, %s, %s, %s, %s)",
                [workspace_id, calendar_id, name, Jsonb(encode(new.calendar)), now, now],
            )
            calendars = (replace(new.calendar, name=name),)
            definition = replace(definition, spec=replace(definition.spec, calendars=(calendar_id,)))
        created = await jobs.create(self.database, workspace_id, definition, BY)
        if new.upstream is not None:
            self._depend(workspace_id, created.id, siblings[-new.upstream])
        self.stage.handlers[created.id] = Handler(new.name, new.behaviour)
        story = Story(created.id, workspace_id, new.name, definition.spec, calendars)
        schedule = anchored(definition.spec.schedule, now)
        story.begin(replace(definition.spec, schedule=schedule), 1, now)
        self.chronicle.stories[created.id] = story
        return created.id

    def _depend(self, workspace_id: WorkspaceId, job_id: JobId, upstream_id: JobId) -> None:
        self.owner.execute(
            """INSERT INTO foliot.dependencies (workspace_id, job_id, upstream_id, "on", mode) VALUES (%s, %s, %s, 'success', 'trigger')""",
            [workspace_id, job_id, upstream_id],
        )
        self.owner.execute("UPDATE foliot.timers SET has_dependents = true WHERE job_id = %s", [upstream_id])
