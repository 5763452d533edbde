"""The event loop of virtual time: jump to the next instant at which anything can happen, and let the nodes do it.

One thread, one step at a time; every step is a whole call of a service, and what may vary is drawn from the seed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import Any

import psycopg

from foliot.domain.errors import DatabaseUnavailable
from foliot.storage.queue.run_queue import Claimed
from foliot.storage.tx import Database, PoolSize
from foliot.testing.clock import ManualClock
from foliot.testing.database import pool_url
from tools.simulation.chronicle import Chronicle
from tools.simulation.faults import Fault, FaultKind, NodeDied, faults
from tools.simulation.nodes import GRAIN, LEASE, Node, Stage, whole
from tools.simulation.people import People
from tools.simulation.world import HOUR, MINUTE, Size

NODES = 2
DAY = timedelta(days=1)
UPGRADES = 5  # days between new versions of the zone data
ENOUGH = 5  # times that nodes look after a freeze that is over
Deed = Callable[[], Awaitable[None]]
_LOOK = """
SELECT (SELECT min(due_at) FROM foliot.timers WHERE due_at < 'infinity'),
       (SELECT min(available_at) FROM foliot.ready WHERE expires_at IS NULL OR expires_at > %(now)s),
       LEAST((SELECT min(expires_at) FROM foliot.ready), (SELECT min(expires_at) FROM foliot.waiting),
             (SELECT min(available_at) FROM foliot.waiting WHERE waits_for = 'window'))
"""
_BUSY = """
SELECT EXISTS (SELECT FROM foliot.leases) OR EXISTS (SELECT FROM foliot.ready)
    OR EXISTS (SELECT FROM foliot.waiting JOIN foliot.jobs ON jobs.id = waiting.job_id
                WHERE waits_for <> 'window' AND jobs.status IN ('active', 'pending'))
"""


@dataclass(frozen=True, slots=True)
class Look:
    """What the database says will happen next."""

    due: datetime | None
    ready: datetime | None
    house: datetime | None


class Drive:
    def __init__(
        self,
        size: Size,
        owner_url: str,
        owner: psycopg.Connection[Any],
        on_day: Deed,
        on_claim: Callable[[Sequence[Claimed]], None],
    ) -> None:
        self.size = size
        self.clock = ManualClock(size.start)
        self.chronicle = Chronicle()
        capacity = max(50, size.workspaces * size.jobs // 4)
        self.stage = Stage(pool_url(owner_url), self.clock, size.lot, capacity)
        self.nodes = [Node(self.stage, f"node-{number}") for number in range(NODES)]
        self._owner = owner
        self._on_day = on_day
        self._on_claim = on_claim
        self._chance = Random(f"{size.lot}/drive")
        self._agenda: list[tuple[datetime, int, Deed]] = []
        self._order = count()
        self._claim_from = self._house_from = size.start
        self._is_ticking = True

    async def run(self) -> None:
        """From the start to the end of the world, and then, without faults and new planned times, until all work has drained."""
        chance = Random(f"{self.size.lot}/people")
        async with Database(
            self.stage.url, clock=self.clock, size=PoolSize(most=1), chance=chance
        ) as database:
            people = People(self.size, self.stage, self.chronicle, database, self._owner, chance)
            await people.settle_in()
            for at, deed in people.deeds():
                self._at(at, deed)
            for fault in faults(self.size, NODES):
                self._at(fault.at, partial(self._strike, fault))
            for day in range(1, self.size.days + 1):
                self._at(self.size.start + day * DAY, self._on_day)
            for day in range(1, self.size.days, UPGRADES):
                self._at(self.size.start + day * DAY + HOUR, self._upgrade)
            try:
                for number, node in enumerate(self.nodes):
                    await node.start()
                    self._at(self.size.start + GRAIN, partial(self._beat, node, number))
                await self._until(self.size.end)
                await self._calm()
            finally:  # a pool that stays open holds the event loop, and whatever went wrong would never be told
                for node in self.nodes:
                    await node.die()

    async def _calm(self) -> None:
        for node in self.nodes:
            if not node.is_up:
                await node.start()
            elif node.is_frozen:
                await self._thaw(node)
            node.database.armed = None
        if not await self.nodes[0].tick():
            raise AssertionError("a tick without faults left something due")
        self.chronicle.ticks.append(self.clock.now())
        self._is_ticking = False
        limit = self._longest()
        await self._until(self.size.end + limit)

    def _longest(self) -> timedelta:
        """How long the last run of the deepest queue may take, with every loss and retry there is, and five minutes more."""
        longest = timedelta(0)
        for story in self.chronicle.stories.values():
            spec = story.spec
            attempts = spec.retry.max + 3
            one = attempts * (spec.limits.timeout + LEASE + 20 * MINUTE)
            longest = max(longest, one * (spec.overlap.max_queued + spec.misfire.max_catch_up + 1))
        return longest + 5 * MINUTE

    async def _until(self, end: datetime) -> None:
        while True:
            look = self._look()
            at = max(self._next_instant(look), self.clock.now())
            if at > end:
                self.clock.set(end)
                return
            self.clock.set(at)
            await self._step(look)
            if not self._is_ticking and self._is_drained():
                return

    def _next_instant(self, look: Look) -> datetime:
        instants = [self._agenda[0][0]] if self._agenda else []
        awake = [node for node in self.nodes if node.is_awake]
        if awake:
            instants += [node.next_end for node in awake if node.next_end]
            if look.due and self._is_ticking:
                instants.append(look.due)
            if look.ready:
                instants.append(max(whole(look.ready), self._claim_from))
            if look.house:
                instants.append(max(whole(look.house), self._house_from))
        return min(instants, default=datetime.max.replace(tzinfo=self.size.end.tzinfo))

    async def _step(self, look: Look) -> None:
        now = self.clock.now()
        self.stage.count("instants")
        for node in self.nodes:
            if node.is_awake and node.next_end is not None and node.next_end <= now:
                await self._let(node, Node.report)
        while self._agenda and self._agenda[0][0] <= now:
            await heappop(self._agenda)[2]()
        nodes = [node for node in self.nodes if node.is_awake]
        if self._chance.random() < 0.5:
            nodes.reverse()
        if not nodes:
            return
        if look.due and look.due <= now and self._is_ticking:
            await self._let(nodes[0], self._tick)
        if look.house and look.house <= now and self._house_from <= now and nodes[0].is_awake:
            self._house_from = whole(now + MINUTE)  # what is still there then must wait its turn
            await self._let(nodes[0], Node.keep_house)
        if self._claim_from <= now:
            await self._claim(nodes, now)

    async def _claim(self, nodes: Iterable[Node], now: datetime) -> None:
        ready = self._look().ready
        taken = 0
        for node in nodes:
            if ready is None or ready > now:
                return
            if node.is_awake:
                before = len(node.held)
                await self._let(node, self._claim_with)
                taken += len(node.held) - before
                ready = self._look().ready
        if ready is not None and ready <= now and not taken:
            self._claim_from = whole(now + GRAIN)

    async def _claim_with(self, node: Node) -> None:
        self._on_claim(await node.claim())

    async def _tick(self, node: Node) -> None:
        if await node.tick():
            self.chronicle.ticks.append(self.clock.now())

    async def _let(self, node: Node, step: Callable[[Node], Awaitable[None]]) -> bool:
        """One step of a node; it may die of it."""
        try:
            await step(node)
        except NodeDied:
            self.stage.count("died in a transaction")
            await self._crash(node, self.clock.now() + MINUTE * self._chance.randint(1, 30))
            return False
        except DatabaseUnavailable:
            self.stage.count("replies lost")
        return True

    async def _beat(self, node: Node, turn: int) -> None:
        """Every node beats; they take turns in sweeping."""
        self._at(self.clock.now() + GRAIN, partial(self._beat, node, turn + 1))
        steps: list[Callable[[Node], Awaitable[None]]] = [Node.beat]
        if turn % NODES == 0:
            steps += [Node.sweep, Node.answer_gates, Node.recount]
            if self.chronicle.freezes:
                steps.append(self._mind_freezes)
        for step in steps:
            if node.is_awake:
                await self._let(node, step)

    async def _upgrade(self) -> None:
        self._owner.execute("UPDATE foliot.installation SET tzdata_version = '2000a'")
        for node in self.nodes:
            if node.is_awake:
                await self._let(node, Node.renew_zone_data)

    async def _mind_freezes(self, node: Node) -> None:
        """Until a while after each has ended: what it held is let go in batches."""
        await node.mind_freezes()
        now, left = self.clock.now(), []
        for frozen in self.chronicle.freezes:
            frozen.minded += frozen.end_at <= now
            if frozen.minded < ENOUGH:
                left.append(frozen)
        self.chronicle.freezes = left

    async def _strike(self, fault: Fault) -> None:
        node = self.nodes[fault.node]
        back = self.clock.now() + fault.lasts
        self.stage.count(f"fault {fault.kind.value}")
        match fault.kind:
            case FaultKind.CRASH if node.is_up:
                await self._crash(node, back)
            case FaultKind.FREEZE if node.is_awake:
                node.is_frozen = True
                self._at(back, partial(self._thaw, node))
            case FaultKind.BLACKOUT:
                for each in self.nodes:
                    if each.is_up:
                        await self._crash(each, back)
            case FaultKind.TORN | FaultKind.LOST_REPLY if node.is_awake:
                node.database.armed = fault
            case FaultKind.DRAIN if node.is_awake:
                node.database.armed = None
                await node.drain()
                self._at(back, partial(self._start, node))
            case _:
                pass

    async def _crash(self, node: Node, back: datetime) -> None:
        await node.die()
        self._at(back, partial(self._start, node))

    async def _start(self, node: Node) -> None:
        if not node.is_up:
            await node.start()

    async def _thaw(self, node: Node) -> None:
        """It goes on as if nothing had happened; what it no longer holds by the books must be refused."""
        if not node.is_frozen:
            return
        node.is_frozen = False
        node.database.armed = None
        rows = self._owner.execute(
            "SELECT run_id FROM foliot.leases WHERE worker_id = %s", [node.worker_id]
        ).fetchall()
        mine = {run_id for (run_id,) in rows}
        said, accepted = await node.report_all()
        self.stage.count("stale reports", len(said - mine))
        if accepted != said & mine:
            raise AssertionError(
                "I6: a report was accepted under a lease that was lost, or refused under one that was held"
            )
        await self._let(node, Node.beat)

    def _is_drained(self) -> bool:
        row = self._owner.execute(_BUSY).fetchone()
        return row is not None and not row[0]

    def _look(self) -> Look:
        row = self._owner.execute(_LOOK, {"now": self.clock.now()}).fetchone()
        assert row is not None
        return Look(*row)

    def _at(self, at: datetime, deed: Deed) -> None:
        heappush(self._agenda, (at, next(self._order), deed))
