"""Random actions on jobs with freezes, caps, gates, windows, deadlines and retries."""

from __future__ import annotations

import asyncio
from datetime import time, timedelta
from random import Random
from typing import Any

from foliot.domain.access import Actor, Scope
from foliot.domain.dependencies import Edge, EdgeCondition, EdgeMode, JoinRule
from foliot.domain.errors import Conflict, NotFound
from foliot.domain.freeze import FreezePolicy, RunningPolicy
from foliot.domain.ids import FreezeId, JobId
from foliot.domain.outcomes import Cancelled, HandedBack, Lost, Outcome, Succeeded, TimedOut
from foliot.domain.policy import Breaker, BreakerAction, Limits, Overlap, OverlapRule, Retry
from foliot.domain.schedule import Cron, Interval, IntervalMode, Otherwise, Window
from foliot.services.scheduling import freezes
from foliot.services.scheduling.freezes import NewFreeze
from foliot.services.settlement.waiting_runs import advance_waiting_runs
from foliot.services.workers import limits
from foliot.storage.queue.run_queue import Claimed
from tests.services.workspace_harness import BROKE, BROKE_FOR_GOOD, MANUAL, WorkspaceHarness

MINUTE = timedelta(minutes=1)
NEVER = Breaker(action=BreakerAction.NONE)
QUICK = Retry(delays=(MINUTE, 3 * MINUTE), past_next=True)
OUTCOMES: tuple[Outcome, ...] = (
    Succeeded(), Succeeded(), Succeeded(), BROKE, BROKE_FOR_GOOD, TimedOut(), Lost(), HandedBack(), Cancelled(),
)  # fmt: skip

_UNBALANCED = """
SELECT timers.job_id, timers.live, timers.waiting, timers.live_run_id, found.live, found.behind
  FROM foliot.timers
 CROSS JOIN LATERAL (
       SELECT (SELECT count(*) FROM foliot.ready WHERE ready.job_id = timers.job_id)
              + (SELECT count(*) FROM foliot.leases WHERE leases.job_id = timers.job_id)
              + (SELECT count(*) FROM foliot.waiting WHERE waiting.job_id = timers.job_id AND waits_for <> 'turn') AS live,
              (SELECT count(*) FROM foliot.waiting WHERE waiting.job_id = timers.job_id AND waits_for = 'turn') AS behind) AS found
 WHERE timers.live <> found.live OR timers.waiting <> found.behind OR (timers.live = 0 AND timers.live_run_id IS NOT NULL)
    OR (timers.live = 0 AND timers.waiting > 0)"""
_NOT_IN_ONE_PLACE = """
SELECT runs.id FROM foliot.runs
  LEFT JOIN LATERAL (SELECT (SELECT count(*) FROM foliot.ready WHERE run_id = runs.id)
                            + (SELECT count(*) FROM foliot.waiting WHERE run_id = runs.id)
                            + (SELECT count(*) FROM foliot.leases WHERE run_id = runs.id) AS places) AS found ON true
 WHERE (runs.status IS NULL) <> (found.places = 1) OR found.places > 1"""
_MISCOUNTED = """
SELECT key, cap, in_use FROM foliot.limits
 WHERE in_use <> (SELECT count(*) FROM foliot.leases WHERE limits.key = '' OR leases.concurrency_key = limits.key)"""


class RandomWalk:
    """Jobs that depend on and overlap each other, and random actions on them."""

    def __init__(self, harness: WorkspaceHarness, seed: int) -> None:
        self.harness = harness
        self.chance = Random(seed)
        self.jobs: list[JobId] = []
        self.upstream: JobId | None = None
        self.under_way: list[Claimed] = []
        self.frozen: list[FreezeId] = []
        self.acts = (
            self.claim, self.claim, self.claim, self.report, self.report, self.report, self.run_manually, self.freeze, self.lift,
            self.cap, self.uncap, self.sweep, self.sweep,
        )  # fmt: skip
        self.seen: set[str] = set()  # reasons for which runs have waited

    async def create_jobs(self) -> None:
        job = self.harness.job
        plain: dict[str, Any] = {"breaker": NEVER, "retry": QUICK}
        self.upstream = await job("up", MANUAL, **plain)
        sync = await job("sync", Interval(7 * MINUTE), **plain)
        self.jobs = [self.upstream, sync]
        for rule in OverlapRule:
            beat = await job(
                rule.value, Interval(5 * MINUTE), overlap=Overlap(rule, 3), concurrency_key="db", **plain
            )
            after = await job(
                f"after {rule.value}",
                MANUAL,
                [Edge(sync, EdgeCondition.ANY, delay=2 * MINUTE)],
                overlap=Overlap(rule, 3),
                **plain,
            )
            gated = await job(
                f"gated {rule.value}", Interval(11 * MINUTE), [Edge(sync, mode=EdgeMode.GATE), Edge(beat, mode=EdgeMode.GATE)],
                overlap=Overlap(rule, 3), depends_when=self.chance.choice(list(JoinRule)), **plain,
            )  # fmt: skip
            self.jobs += [beat, after, gated]
        for otherwise in Otherwise:
            window = Window(time(12), time(12, 40), otherwise=otherwise)
            limits = Limits(start_deadline=6 * MINUTE)
            self.jobs.append(
                await job(
                    f"window {otherwise.value}", Cron("*/4 * * * *"), window=window, limits=limits, **plain
                )
            )
        chained = Interval(3 * MINUTE, mode=IntervalMode.FIXED_DELAY)
        self.jobs.append(await job("chained", chained, tags=("a",), **plain))

    async def step(self) -> None:
        """Do one random action, then tick."""
        await self.chance.choice((*self.acts, self.pass_time, self.pass_time, self.pass_time))()
        await self.harness.tick()

    async def step_together(self) -> None:
        """Do five random actions and two ticks concurrently. A freeze that two of them lift is refused once."""
        acts = [self.chance.choice(self.acts)() for _ in range(5)]
        answers = await asyncio.gather(
            *acts, self.harness.tick(), self.harness.tick(), return_exceptions=True
        )
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, Conflict | NotFound):
                raise answer
        await self.pass_time()
        await limits.recount(self.harness.database)  # a cap set in mid-claim is right after this

    async def claim(self) -> None:
        self.under_way += await self.harness.claim(self.chance.randint(1, 8))

    async def report(self) -> None:
        self.chance.shuffle(self.under_way)
        mine = [self.under_way.pop() for _ in range(min(len(self.under_way), self.chance.randint(1, 4)))]
        for each in mine:
            assert await self.harness.report(each, self.chance.choice(OUTCOMES))

    async def run_manually(self) -> None:
        assert self.upstream is not None
        if self.harness.timer(self.upstream, "live") == (0,):
            await self.harness.run_manually(self.upstream)

    async def freeze(self) -> None:
        if len(self.frozen) > 2:
            return
        some = frozenset(self.chance.sample(self.jobs, 6))
        scope: Any = self.chance.choice(({"everything": True}, {"jobs": some}, {"tags": frozenset("a")}))
        now = self.harness.clock.now()
        new = NewFreeze(
            "chance",
            start_at=self.chance.choice((None, now + 3 * MINUTE)),
            end_at=self.chance.choice((None, now + 10 * MINUTE)),
            after=self.chance.choice(list(FreezePolicy)),
            running=self.chance.choice(list(RunningPolicy)),
            **scope,
        )
        self.frozen.append(
            await freezes.turn_on(self.harness.database, Scope(self.harness.workspace, Actor("chance")), new)
        )

    async def lift(self) -> None:
        for row in await freezes.page(self.harness.database, self.harness.workspace):
            if self.chance.random() < 0.6:
                await freezes.lift(
                    self.harness.database,
                    Scope(self.harness.workspace, Actor("chance")),
                    row.scoped.freeze.id,
                )
        on = await freezes.page(self.harness.database, self.harness.workspace)
        self.frozen = [row.scoped.freeze.id for row in on]

    async def cap(self) -> None:
        key = self.chance.choice(("", "db"))
        await limits.set_limit(
            self.harness.database,
            Scope(self.harness.workspace, Actor("chance")),
            key,
            self.chance.randint(1, 4),
        )

    async def uncap(self) -> None:
        await limits.set_limit(
            self.harness.database,
            Scope(self.harness.workspace, Actor("chance")),
            self.chance.choice(("", "db")),
            None,
        )

    async def pass_time(self) -> None:
        self.harness.clock.advance(timedelta(seconds=self.chance.randint(1, 200)))

    async def sweep(self) -> None:
        while (await advance_waiting_runs(self.harness.database)).is_full:
            pass

    def check(self) -> None:
        self.seen.update(waits_for for _, waits_for in self.harness.waits())
        for question in (_UNBALANCED, _NOT_IN_ONE_PLACE, _MISCOUNTED):
            assert self.harness.owner.execute(question).fetchall() == []

    async def finish_all(self) -> None:
        """No more ticks, no freeze, no cap: what there is comes to its end."""
        for row in await freezes.page(self.harness.database, self.harness.workspace):
            await freezes.lift(
                self.harness.database, Scope(self.harness.workspace, Actor("chance")), row.scoped.freeze.id
            )
        for key in ("", "db"):
            await limits.set_limit(
                self.harness.database, Scope(self.harness.workspace, Actor("chance")), key, None
            )
        for _ in range(30):
            self.harness.clock.advance(60 * MINUTE)
            await self.sweep()
            self.under_way += await self.harness.claim(50)
            while self.under_way:
                await self.harness.report(self.under_way.pop())
            self.check()
