"""A workspace and a worker with short methods for the actions of users and workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import psycopg

from foliot.domain.access import Scope
from foliot.domain.definition import Definition, Spec
from foliot.domain.dependencies import Edge
from foliot.domain.ids import JobId, RunId, WorkerId, WorkspaceId, uuid7
from foliot.domain.outcomes import Failed, Outcome, Succeeded
from foliot.domain.run import RunError
from foliot.domain.schedule import Manual, Schedule
from foliot.services.jobs import jobs
from foliot.services.scheduling.tick import tick
from foliot.services.settlement.report import Report, report
from foliot.services.workers.claim import Turns, claim
from foliot.storage.queue.run_queue import Claimed
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from foliot.testing.fixtures import TEST
from tests.services.builders import insert_immortal_worker

BROKE = Failed(RunError("boom", "It broke."))
BROKE_FOR_GOOD = Failed(RunError("boom", "It broke."), permanent=True)


@dataclass
class WorkspaceHarness:
    database: Database
    clock: ManualClock
    workspace: WorkspaceId
    owner: psycopg.Connection[Any]
    worker: WorkerId = field(default_factory=lambda: WorkerId(uuid4()))

    def __post_init__(self) -> None:
        insert_immortal_worker(self.owner, self.worker)

    async def job(self, name: str, schedule: Schedule, depends_on: Sequence[Edge] = (), **spec: Any) -> JobId:
        definition = Definition(name, Spec(schedule, "python", **spec), depends_on=tuple(depends_on))
        return (await jobs.create(self.database, Scope(self.workspace, TEST), definition)).id

    async def tick(self) -> int:
        return (await tick(self.database)).recorded

    async def claim(self, permits: int = 10) -> list[Claimed]:
        return await claim(self.database, self.worker, "default", ["python"], permits, Turns())

    async def report(self, claimed: Claimed, outcome: Outcome | None = None) -> bool:
        done = Report(claimed.run_id, claimed.job_id, claimed.fence, self.worker, outcome or Succeeded())
        return bool(await report(self.database, [done]))

    async def run_once(self, outcome: Outcome | None = None) -> list[JobId]:
        """Claim all that is ready and end it so; answers with the jobs whose runs those were."""
        claimed = await self.claim()
        for each in claimed:
            assert await self.report(each, outcome)
        return [each.job_id for each in claimed]

    async def run_manually(self, job_id: JobId) -> RunId:
        """A run beside the schedule, put where a manual run would be; for upstreams, whose schedule does not matter here."""
        run_id = RunId(uuid7(self.clock.now(), uuid4().bytes))
        self.owner.execute(
            "INSERT INTO foliot.runs (workspace_id, id, job_id, number, trigger, planned_for, planned_key, schedule_rev, created_at)"
            " VALUES (%s, %s, %s, 1, 'manual', %s, '2027-01-01', 1, %s)",
            [self.workspace, run_id, job_id, self.clock.now(), self.clock.now()],
        )
        self.owner.execute(
            "INSERT INTO foliot.ready (workspace_id, run_id, job_id, queue, type, priority, available_at, planned_for, exclusive,"
            " timeout, trigger) VALUES (%s, %s, %s, 'default', 'python', 0, %s, %s, false, '10 min', 'manual')",
            [self.workspace, run_id, job_id, self.clock.now(), self.clock.now()],
        )
        self.owner.execute(
            "UPDATE foliot.timers SET live = live + 1, live_run_id = %s WHERE job_id = %s", [run_id, job_id]
        )
        return run_id

    async def end(self, job_id: JobId, outcome: Outcome | None = None) -> RunId:
        """One whole run of this job, from nothing to its end. Nothing else may be ready."""
        run_id = await self.run_manually(job_id)
        [mine] = [each for each in await self.claim() if each.run_id == run_id]
        assert await self.report(mine, outcome)
        return run_id

    def runs(self, job_id: JobId, columns: str = "status, skip_reason, note") -> list[tuple[Any, ...]]:
        return self.owner.execute(
            f"SELECT {columns} FROM foliot.runs WHERE job_id = %s ORDER BY number, id", [job_id]
        ).fetchall()

    def waits(self) -> list[tuple[JobId, str]]:
        return self.owner.execute("SELECT job_id, waits_for FROM foliot.waiting ORDER BY position").fetchall()

    def ready(self) -> list[JobId]:
        rows = self.owner.execute("SELECT job_id FROM foliot.ready ORDER BY available_at, position")
        return [job_id for (job_id,) in rows.fetchall()]

    def timer(self, job_id: JobId, columns: str) -> tuple[Any, ...]:
        rows = self.owner.execute(f"SELECT {columns} FROM foliot.timers WHERE job_id = %s", [job_id])
        [found] = rows.fetchall()
        return tuple(found)


MANUAL = Manual()
