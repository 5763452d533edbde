"""A PostgreSQL that servers share, jobs that log each execution, and a comparison of that log with the database."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import psycopg

from foliot.domain.access import Actor, Scope
from foliot.domain.definition import Definition, Spec
from foliot.domain.ids import WorkspaceId
from foliot.domain.policy import Limits, Overlap, OverlapRule
from foliot.domain.schedule import Interval, Once, Schedule
from foliot.embedded.config import EmbeddedConfig
from foliot.embedded.server import EmbeddedServer
from foliot.services.hints import Hint, say
from foliot.services.jobs import jobs
from foliot.storage.tx import Database
from tests.stories.execution_log import ExecutionLog
from tests.stories.server_process import ServerProcess, wait_until

SECOND = timedelta(seconds=1)
EVERY_SECOND = Interval(SECOND)
USUAL = Limits()
FAST = {"FOLIOT_WORKER_LEASE": "3"}


@dataclass
class Installation(ExecutionLog):
    """A PostgreSQL, the folder with the code of the jobs, and the log of executions."""

    config: EmbeddedConfig
    server: EmbeddedServer

    @property
    def url(self) -> str:
        return self.server.owner_url

    def create(
        self, call: str, schedule: Schedule | None = None, count: int = 1, limits: Limits = USUAL
    ) -> None:
        """Create jobs that call a function of job_functions.py; without a schedule they run once, a second from now."""
        asyncio.run(self._create(call, schedule, count, limits))

    async def _create(self, call: str, schedule: Schedule | None, count: int, limits: Limits) -> None:
        [(workspace,)] = self.rows("SELECT id FROM foliot.workspaces")
        [(now,)] = self.rows("SELECT clock_timestamp()")
        overlap = Overlap(OverlapRule.CONCURRENT)
        spec = Spec(schedule or Once(now + SECOND), "python", overlap=overlap, limits=limits)
        async with Database(self.url) as database:
            for number in range(count):
                config = {"call": f"job_functions:{call}"}
                definition = Definition(f"{call} {number}", spec, config=config, payload=self.payload)
                await jobs.create(database, Scope(WorkspaceId(workspace), Actor("story")), definition)
            await say(database, Hint.TIMERS)

    def rows(self, query: Any) -> list[Any]:
        with psycopg.connect(self.url, autocommit=True) as connection:
            return connection.execute(query).fetchall()

    def execute(self, statements: Any) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statements)

    def statuses(self) -> Counter[str | None]:
        return Counter(row[0] for row in self.rows("SELECT status FROM foliot.runs"))

    def wait_for_successes(self, count: int) -> None:
        try:
            wait_until(lambda: self.statuses()["succeeded"] >= count, f"{count} successes")
        except AssertionError as error:
            ended = self.rows("SELECT status, error, count(*) FROM foliot.attempts GROUP BY 1, 2")
            raise AssertionError(f"{error}; runs: {self.statuses()}; attempts: {ended}") from None

    def check_every_second_has_its_record(self) -> None:
        """Check that each planned time of each job has exactly one record, skipped times included."""
        for job, planned, distinct, expected in self.rows("""
            SELECT job_id, sum(COALESCE(count, 1)), sum(COALESCE(count, 1)) FILTER (WHERE is_first),
                   extract(epoch FROM max(COALESCE(planned_until, planned_for)) - min(planned_for)) + 1
              FROM (SELECT *, row_number() OVER (PARTITION BY job_id, planned_for) = 1 AS is_first FROM foliot.runs) AS runs
             GROUP BY job_id"""):
            assert planned == distinct == expected, job

    def check_every_success_was_witnessed(self) -> None:
        succeeded = {
            str(row[0]) for row in self.rows("SELECT id FROM foliot.runs WHERE status = 'succeeded'")
        }
        fences = self.executions("done") + self.executions("ended")
        assert succeeded <= {run for run, _, _ in fences}
        assert len(fences) == len(set(fences)), "two executions under one fence"


def start_node(start_server: Any, installation: Installation, **environ: str) -> ServerProcess:
    serving: ServerProcess = start_server(**{"FOLIOT_DATABASE_URL": installation.url, **FAST, **environ})
    serving.wait_for(r'"worker.registered"')
    return serving


def worker_pid(serving: ServerProcess) -> int:
    return int(serving.wait_for(r'"worker.started", "pid": (\d+)')[1])
