"""Driver for tests of service verbs: a workspace, a clock, a worker, and reads of the tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import uuid4

import psycopg

from foliot.domain.access import Scope
from foliot.domain.definition import Definition, Spec
from foliot.domain.ids import JobId, RunId, WorkerId, WorkspaceId
from foliot.domain.outcomes import Outcome, Succeeded
from foliot.domain.policy import Overlap, OverlapRule, Retry
from foliot.domain.schedule import Interval, Schedule
from foliot.services.jobs import jobs
from foliot.services.scheduling.tick import tick
from foliot.services.settlement.report import Report, report
from foliot.services.workers.claim import Turns, claim
from foliot.storage.queue.run_queue import Claimed
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from foliot.testing.fixtures import ANA
from tests.services.builders import insert_immortal_worker

MINUTE = timedelta(minutes=1)
SUCCEEDED = Succeeded()


@dataclass(slots=True)
class ServiceDriver:
    database: Database
    clock: ManualClock
    workspace: WorkspaceId
    owner: psycopg.Connection[Any]
    worker: WorkerId = field(default_factory=lambda: WorkerId(uuid4()))

    def __post_init__(self) -> None:
        insert_immortal_worker(self.owner, self.worker)

    async def job(self, schedule: Schedule | None = None, *, enabled: bool = True, **spec: Any) -> JobId:
        created = await jobs.create(
            self.database, Scope(self.workspace, ANA), definition(schedule, **spec), enabled=enabled
        )
        return created.id

    async def tick(self, after: timedelta = timedelta(0)) -> int:
        self.clock.advance(after)
        return (await tick(self.database)).recorded

    async def claim(self, permits: int = 10, queue: str = "default") -> list[Claimed]:
        return await claim(self.database, self.worker, queue, ["python", "http"], permits, Turns())

    async def finish(self, run: Claimed, outcome: Outcome = SUCCEEDED) -> bool:
        done = Report(run.run_id, run.job_id, run.fence, self.worker, outcome)
        return run.run_id in await report(self.database, [done])

    async def work(self, outcome: Outcome = SUCCEEDED) -> list[RunId]:
        """Do everything that is ready; answers with it."""
        claimed = await self.claim()
        for run in claimed:
            assert await self.finish(run, outcome)
        return [run.run_id for run in claimed]

    def sql(self, text: str, *params: object) -> list[tuple[Any, ...]]:
        return self.owner.execute(text, params).fetchall()

    def runs(self) -> list[tuple[str, str | None, str | None]]:
        """(trigger, where it is or how it ended, why it was skipped), by number."""
        return self.sql(
            "SELECT r.trigger, coalesce(r.status, CASE WHEN l.run_id IS NOT NULL THEN 'running' WHEN w.run_id IS NOT NULL"
            " THEN 'waiting' WHEN d.run_id IS NOT NULL THEN 'ready' END), r.skip_reason FROM foliot.runs r"
            " LEFT JOIN foliot.leases l ON l.run_id = r.id LEFT JOIN foliot.waiting w ON w.run_id = r.id"
            " LEFT JOIN foliot.ready d ON d.run_id = r.id ORDER BY r.number"
        )

    def timer(self, *columns: str) -> tuple[Any, ...]:
        [row] = self.sql(f"SELECT {', '.join(columns)} FROM foliot.timers")
        return row

    def status(self) -> str:
        """As both tables have it."""
        [(jobs_say, timers_say)] = self.sql(
            "SELECT j.status, t.status FROM foliot.jobs j JOIN foliot.timers t ON t.job_id = j.id"
        )
        assert jobs_say == timers_say
        return str(jobs_say)

    def audited(self) -> list[str]:
        """Return the audited actions by time, then by transaction: a lent database reuses the places of deleted rows."""
        return [
            row[0]
            for row in self.sql(
                "SELECT action FROM foliot.audit WHERE object_kind IN ('job', 'run') ORDER BY at, xmin::text::bigint"
            )
        ]

    def balance(self) -> None:
        check_ledger(self.owner)


def definition(
    schedule: Schedule | None = None, *, name: str = "beat", payload: Any = None, **spec: Any
) -> Definition:
    rule = spec.pop("rule", None)
    if rule is not None:
        spec["overlap"] = Overlap(OverlapRule(rule), spec.pop("max_queued", 100))
    spec.setdefault("retry", Retry(0))
    return Definition(
        name, Spec(schedule or Interval(MINUTE), spec.pop("type", "python"), **spec), payload=payload or {}
    )


def check_ledger(owner: psycopg.Connection[Any]) -> None:
    """What every interleaving must leave behind."""
    odd = {
        "counts of a timer are its rows": (
            "SELECT t.job_id, t.live, t.waiting, s.live, s.waiting FROM foliot.timers t JOIN LATERAL ("
            " SELECT (SELECT count(*) FROM foliot.ready r WHERE r.job_id = t.job_id)"
            " + (SELECT count(*) FROM foliot.leases l WHERE l.job_id = t.job_id)"
            " + (SELECT count(*) FROM foliot.waiting w WHERE w.job_id = t.job_id AND w.waits_for <> 'turn') AS live,"
            " (SELECT count(*) FROM foliot.waiting w WHERE w.job_id = t.job_id AND w.waits_for = 'turn') AS waiting"
            ") s ON true WHERE (t.live, t.waiting) <> (s.live, s.waiting)"
        ),
        "an open run stands in one place, an ended one in none": (
            "SELECT r.id, r.status, p.n FROM foliot.runs r JOIN LATERAL (SELECT count(*) AS n FROM ("
            " SELECT run_id FROM foliot.ready UNION ALL SELECT run_id FROM foliot.waiting UNION ALL"
            " SELECT run_id FROM foliot.leases) s WHERE s.run_id = r.id) p ON true"
            " WHERE p.n <> CASE WHEN r.status IS NULL THEN 1 ELSE 0 END"
        ),
        "one run for each planned time": (
            "SELECT job_id, planned_for, count(*) FROM foliot.runs WHERE trigger = 'schedule' GROUP BY 1, 2 HAVING count(*) > 1"
        ),
        "what is live is named": (
            "SELECT job_id, live, live_run_id FROM foliot.timers WHERE (live = 0) <> (live_run_id IS NULL)"
        ),
        "a status is the same in both tables": (
            "SELECT t.job_id FROM foliot.timers t JOIN foliot.jobs j ON j.id = t.job_id WHERE j.status <> t.status"
        ),
        "numbers are given once": (
            "SELECT job_id, number FROM foliot.runs GROUP BY 1, 2 HAVING count(*) > 1"
        ),
    }
    for claim_, question in odd.items():
        assert owner.execute(question).fetchall() == [], claim_
