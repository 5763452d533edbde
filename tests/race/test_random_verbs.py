"""Everything at once, from both nodes: whatever meets, the ledger balances and no run is left standing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from foliot.domain.access import Scope
from foliot.domain.errors import Conflict, Invalid
from foliot.domain.ids import JobId, RunId, WorkerId
from foliot.domain.outcomes import Cancelled, Failed, HandedBack, Lost, Outcome, Succeeded
from foliot.domain.policy import Backoff, Breaker, Misfire, MisfireRule, Retry
from foliot.domain.run import RunError
from foliot.domain.schedule import Interval, IntervalMode, Manual
from foliot.services.jobs import job_edits, job_status
from foliot.services.runs import run_control
from foliot.services.runs.backfill import backfill
from foliot.services.scheduling.tick import tick
from foliot.services.settlement.report import Report, report
from foliot.services.workers.claim import Turns, claim
from foliot.storage.queue.run_queue import Claimed
from foliot.storage.tx import Database
from foliot.testing.fixtures import ANA
from tests.examples import seeds
from tests.race.race_nodes import RaceNodes
from tests.services.service_driver import MINUTE, ServiceDriver, definition

pytestmark = pytest.mark.anyio
SECOND = timedelta(seconds=1)
RULES = ("skip", "queue", "queue_one", "cancel_running", "concurrent")
QUICK = Retry(2, Backoff.FIXED, base=5 * SECOND, past_next=True)
OUTCOMES: tuple[Outcome, ...] = (
    Succeeded(),
    Succeeded(),
    Succeeded(),
    Failed(RunError("boom", "It broke.")),
    Cancelled(),
    Lost(),
    HandedBack(),
)


@seeds(3)
async def test_whatever_meets_nothing_is_lost_doubled_or_stuck(
    nodes: RaceNodes, driver: ServiceDriver, seed: int
) -> None:
    storm = Storm(nodes, driver, Random(seed))
    await storm.set_up()
    for _ in range(6):
        driver.clock.advance(7 * SECOND)
        await asyncio.gather(*(storm.blow(node) for node in (nodes.left, nodes.right) for _ in range(4)))
        driver.balance()
    await storm.calm_down()
    stuck = (
        "SELECT t.status, t.spec, t.live, t.waiting, r.number, r.trigger, w.waits_for, w.available_at FROM foliot.runs r"
        " JOIN foliot.timers t ON t.job_id = r.job_id LEFT JOIN foliot.waiting w ON w.run_id = r.id WHERE r.status IS NULL"
    )
    assert driver.sql(stuck) == []


class Storm:
    def __init__(self, nodes: RaceNodes, driver: ServiceDriver, chance: Random) -> None:
        self.nodes = nodes
        self.driver = driver
        self.chance = chance
        self.jobs: list[JobId] = []
        self.leased: list[tuple[Claimed, WorkerId]] = []

    async def set_up(self) -> None:
        for rule in RULES:
            self.jobs.append(await self.driver.job(Interval(3 * SECOND), **self._spec(rule)))
        chain = Interval(2 * SECOND, mode=IntervalMode.FIXED_DELAY)
        self.jobs.append(await self.driver.job(chain, **self._spec("skip")))
        for rule in ("skip", "queue"):
            dependent = await self.driver.job(Manual(), **self._spec(rule), depends_when="all")
            self._depend(dependent, self.jobs[0], self.jobs[1])
            self.jobs.append(dependent)

    async def blow(self, node: Database) -> None:
        for _ in range(12):
            with suppress(Conflict, Invalid):  # another caller was first, and this one gets an error
                await self.chance.choice(self._verbs())(node)

    async def calm_down(self) -> None:
        """Everybody goes home: what is running ends, what stands is done, until nothing is left."""
        for job_id in self.jobs:
            with suppress(Conflict):
                await job_status.resume(self.nodes.left, Scope(self.driver.workspace, ANA), job_id)
        self.driver.owner.execute("UPDATE foliot.timers SET due_at = 'infinity', next_at = NULL")
        for _ in range(400):
            self.driver.clock.advance(MINUTE)
            await self._claim(self.nodes.left)
            if not self.leased:
                break
            while self.leased:
                await self._report(self.nodes.left, Succeeded())
            self.driver.owner.execute("UPDATE foliot.timers SET due_at = 'infinity', next_at = NULL")
        self.driver.balance()

    def _verbs(self) -> list[Callable[[Database], Awaitable[Any]]]:
        space, chance = self.driver.workspace, self.chance
        job_id = chance.choice(self.jobs)
        often: list[Callable[[Database], Awaitable[Any]]] = [tick, self._claim, self._report] * 4
        return [
            *often,
            lambda node: run_control.run_now(node, Scope(space, ANA), job_id),
            lambda node: job_status.pause(node, Scope(space, ANA), job_id),
            lambda node: job_status.resume(node, Scope(space, ANA), job_id, catch_up=chance.random() < 0.5),
            lambda node: run_control.skip_next(node, Scope(space, ANA), job_id, reason="storm"),
            lambda node: backfill(
                node,
                Scope(space, ANA),
                job_id,
                self.driver.clock.now() - 10 * SECOND,
                self.driver.clock.now(),
                dry_run=False,
                skipped=True,
            ),
            self._edit,
            self._cancel,
            self._retry,
        ]

    async def _claim(self, node: Database) -> None:
        worker = WorkerId(self.driver.worker)
        for run in await claim(node, worker, "default", ["python"], 5, Turns()):
            self.leased.append((run, worker))

    async def _report(self, node: Database, outcome: Outcome | None = None) -> None:
        if self.leased:
            run, worker = self.leased.pop(self.chance.randrange(len(self.leased)))
            reported = outcome or self.chance.choice(OUTCOMES)
            assert await report(node, [Report(run.run_id, run.job_id, run.fence, worker, reported)]) == {
                run.run_id
            }

    async def _edit(self, node: Database) -> None:
        place = self.chance.randrange(len(RULES))
        every = self.chance.choice((2, 3, 5)) * SECOND
        new = definition(
            Interval(every), **self._spec(self.chance.choice(RULES)), priority=self.chance.randrange(3)
        )
        await job_edits.edit(node, Scope(self.driver.workspace, ANA), self.jobs[place], new)

    async def _cancel(self, node: Database) -> None:
        if (run_id := self._some_run("IS NULL")) is not None:
            await run_control.cancel_run(node, Scope(self.driver.workspace, ANA), run_id)

    async def _retry(self, node: Database) -> None:
        if (run_id := self._some_run("IS NOT NULL")) is not None:
            await run_control.retry_run(node, Scope(self.driver.workspace, ANA), run_id)

    def _some_run(self, status: str) -> RunId | None:
        found = self.driver.sql(f"SELECT id FROM foliot.runs WHERE status {status} ORDER BY id DESC LIMIT 20")
        return RunId(self.chance.choice(found)[0]) if found else None

    def _spec(self, rule: str) -> dict[str, Any]:
        return {
            "rule": rule,
            "retry": QUICK,
            "breaker": Breaker(3),
            "misfire": Misfire(MisfireRule.ALL, SECOND, 3),
        }

    def _depend(self, job_id: JobId, *upstreams: JobId) -> None:
        for upstream in upstreams:
            self.driver.owner.execute(
                'INSERT INTO foliot.dependencies (workspace_id, job_id, upstream_id, "on", mode)'
                " VALUES (%s, %s, %s, 'any', 'trigger')",
                [self.driver.workspace, job_id, upstream],
            )
            self.driver.owner.execute(
                "UPDATE foliot.timers SET has_dependents = true WHERE job_id = %s", [upstream]
            )
