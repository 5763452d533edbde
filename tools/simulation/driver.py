"""The event loop of virtual time: jump to the next instant at which anything can happen, and let the nodes act.

One thread, one step at a time; every step is a whole call of a service, and all variation comes from the seed.
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
from tools.simulation.command_log import CommandLog
from tools.simulation.faults import Fault, FaultKind, NodeDied, faults
from tools.simulation.nodes import GRAIN, LEASE, Node, SharedState, whole
from tools.simulation.readers import Readers
from tools.simulation.users import Users
from tools.simulation.world import HOUR, MINUTE, Size

NODES = 2
DAY = timedelta(days=1)
UPGRADES = 5  # days between new versions of the zone data
FREEZE_CHECKS = 5  # of a freeze that is over
Action = Callable[[], Awaitable[None]]
_NEXT_EVENTS = """
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
class NextEvents:
    """The next events, by the database."""

    due: datetime | None
    ready: datetime | None
    upkeep: datetime | None


class Driver:
    def __init__(
        self,
        size: Size,
        owner_url: str,
        owner: psycopg.Connection[Any],
        on_day: Action,
        on_claim: Callable[[Sequence[Claimed]], None],
    ) -> None:
        self.size = size
        self.clock = ManualClock(size.start)
        self.command_log = CommandLog()
        capacity = max(50, size.workspaces * size.jobs // 4)
        self.shared = SharedState(pool_url(owner_url), self.clock, size.lot, capacity)
        self.nodes = [Node(self.shared, f"node-{number}") for number in range(NODES)]
        self._owner = owner
        self._on_day = on_day
        self._on_claim = on_claim
        self._chance = Random(f"{size.lot}/drive")
        self._agenda: list[tuple[datetime, int, Action]] = []
        self._order = count()
        self._claim_from = self._upkeep_from = size.start
        self._is_ticking = True
        self.readers: Readers | None = None

    async def run(self) -> None:
        """Run from the start to the end of the world, then without faults and new planned times until all work has drained."""
        chance = Random(f"{self.size.lot}/people")
        async with Database(
            self.shared.url, clock=self.clock, size=PoolSize(most=1), chance=chance
        ) as database:
            users = Users(self.size, self.shared, self.command_log, database, self._owner, chance)
            await users.create_world()
            for at, action in users.actions():
                self._at(at, action)
            for fault in faults(self.size, NODES):
                self._at(fault.at, partial(self._inject, fault))
            readers = self.readers = Readers(database, self._owner, self.command_log)
            for day in range(1, self.size.days + 1):
                self._at(self.size.start + day * DAY, partial(self._end_day, readers))
                self._at(self.size.start + day * DAY + HOUR, self._roll_up)
            for day in range(1, self.size.days, UPGRADES):
                self._at(self.size.start + day * DAY + HOUR, self._upgrade)
            try:
                for number, node in enumerate(self.nodes):
                    await node.start()
                    self._at(self.size.start + GRAIN, partial(self._beat, node, number))
                await self._until(self.size.end)
                await self._drain()
                await readers.check_everything()
            finally:  # an open pool would keep the event loop alive, and hide the error
                for node in self.nodes:
                    await node.die()

    async def _drain(self) -> None:
        for node in self.nodes:
            if not node.is_up:
                await node.start()
            elif node.is_frozen:
                await self._unfreeze(node)
            node.database.armed = None
        if not await self.nodes[0].tick():
            raise AssertionError("a tick without faults left something due")
        self.command_log.ticks.append(self.clock.now())
        self._is_ticking = False
        limit = self._drain_limit()
        await self._until(self.size.end + limit)

    def _drain_limit(self) -> timedelta:
        """Return how long the last run of the deepest queue may take, with every loss and retry, and five minutes more."""
        longest = timedelta(0)
        for history in self.command_log.histories.values():
            spec = history.spec
            attempts = spec.retry.max + 3
            one = attempts * (spec.limits.timeout + LEASE + 20 * MINUTE)
            longest = max(longest, one * (spec.overlap.max_queued + spec.misfire.max_catch_up + 1))
        return 2 * longest + 5 * MINUTE  # two jobs may take turns on one host

    async def _until(self, end: datetime) -> None:
        while True:
            events = self._next_events()
            at = max(self._next_instant(events), self.clock.now())
            if at > end:
                self.clock.set(end)
                return
            self.clock.set(at)
            await self._step(events)
            if not self._is_ticking and self._is_drained():
                return

    def _next_instant(self, events: NextEvents) -> datetime:
        instants = [self._agenda[0][0]] if self._agenda else []
        awake = [node for node in self.nodes if node.is_awake]
        if awake:
            instants += [node.next_end for node in awake if node.next_end]
            if events.due and self._is_ticking:
                instants.append(events.due)
            if events.ready:
                instants.append(max(whole(events.ready), self._claim_from))
            if events.upkeep:
                instants.append(max(whole(events.upkeep), self._upkeep_from))
        return min(instants, default=datetime.max.replace(tzinfo=self.size.end.tzinfo))

    async def _step(self, events: NextEvents) -> None:
        now = self.clock.now()
        self.shared.count("instants")
        for node in self.nodes:
            if node.is_awake and node.next_end is not None and node.next_end <= now:
                await self._run_step(node, Node.report)
        while self._agenda and self._agenda[0][0] <= now:
            await heappop(self._agenda)[2]()
        nodes = [node for node in self.nodes if node.is_awake]
        if self._chance.random() < 0.5:
            nodes.reverse()
        if not nodes:
            return
        if events.due and events.due <= now and self._is_ticking:
            await self._run_step(nodes[0], self._tick)
        if events.upkeep and events.upkeep <= now and self._upkeep_from <= now and nodes[0].is_awake:
            self._upkeep_from = whole(now + MINUTE)  # what is left waits for the next turn
            await self._run_step(nodes[0], Node.expire_and_open)
        if self._claim_from <= now:
            await self._claim(nodes, now)

    async def _claim(self, nodes: Iterable[Node], now: datetime) -> None:
        ready = self._next_events().ready
        taken = 0
        for node in nodes:
            if ready is None or ready > now:
                return
            if node.is_awake:
                before = len(node.held)
                await self._run_step(node, self._claim_with)
                taken += len(node.held) - before
                ready = self._next_events().ready
        if ready is not None and ready <= now and not taken:
            self._claim_from = whole(now + GRAIN)

    async def _claim_with(self, node: Node) -> None:
        self._on_claim(await node.claim())

    async def _tick(self, node: Node) -> None:
        if await node.tick():
            self.command_log.ticks.append(self.clock.now())

    async def _run_step(self, node: Node, step: Callable[[Node], Awaitable[None]]) -> bool:
        """Run one step of a node, which may kill it."""
        try:
            await step(node)
        except NodeDied:
            self.shared.count("died in a transaction")
            await self._crash(node, self.clock.now() + MINUTE * self._chance.randint(1, 30))
            return False
        except DatabaseUnavailable:
            self.shared.count("replies lost")
        return True

    async def _beat(self, node: Node, turn: int) -> None:
        """Let the node beat; nodes take turns in sweeping."""
        self._at(self.clock.now() + GRAIN, partial(self._beat, node, turn + 1))
        steps: list[Callable[[Node], Awaitable[None]]] = [Node.beat]
        if turn % NODES == 0:
            steps += [Node.sweep, Node.answer_gates, Node.recount]
            if self.command_log.freezes:
                steps.append(self._apply_freezes)
        for step in steps:
            if node.is_awake:
                await self._run_step(node, step)

    async def _end_day(self, readers: Readers) -> None:
        await self._on_day()
        await readers.end_day(self.clock.now())

    async def _roll_up(self) -> None:
        for node in self.nodes:
            if node.is_awake:
                await self._run_step(node, Node.roll_up)
                return

    async def _upgrade(self) -> None:
        self._owner.execute("UPDATE foliot.installation SET tzdata_version = '2000a'")
        for node in self.nodes:
            if node.is_awake:
                await self._run_step(node, Node.renew_zone_data)

    async def _apply_freezes(self, node: Node) -> None:
        """Apply freezes until a while after each has ended: held runs are released in batches."""
        await node.apply_freezes()
        now, left = self.clock.now(), []
        for frozen in self.command_log.freezes:
            frozen.checks += frozen.end_at <= now
            if frozen.checks < FREEZE_CHECKS:
                left.append(frozen)
        self.command_log.freezes = left

    async def _inject(self, fault: Fault) -> None:
        node = self.nodes[fault.node]
        back = self.clock.now() + fault.lasts
        self.shared.count(f"fault {fault.kind.value}")
        match fault.kind:
            case FaultKind.CRASH if node.is_up:
                await self._crash(node, back)
            case FaultKind.FREEZE if node.is_awake:
                node.is_frozen = True
                self._at(back, partial(self._unfreeze, node))
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

    async def _unfreeze(self, node: Node) -> None:
        """Let a frozen node go on; reports of runs that it no longer leases must be refused."""
        if not node.is_frozen:
            return
        node.is_frozen = False
        node.database.armed = None
        rows = self._owner.execute(
            "SELECT run_id FROM foliot.leases WHERE worker_id = ANY (%s)", [node.worker_ids]
        ).fetchall()
        leased = {run_id for (run_id,) in rows}
        reported, accepted = await node.report_all()
        self.shared.count("stale reports", len(reported - leased))
        if accepted != reported & leased:
            raise AssertionError(
                "I6: a report was accepted under a lease that was lost, or refused under one that was held"
            )
        await self._run_step(node, Node.beat)

    def _is_drained(self) -> bool:
        row = self._owner.execute(_BUSY).fetchone()
        return row is not None and not row[0]

    def _next_events(self) -> NextEvents:
        row = self._owner.execute(_NEXT_EVENTS, {"now": self.clock.now()}).fetchone()
        assert row is not None
        return NextEvents(*row)

    def _at(self, at: datetime, action: Action) -> None:
        heappush(self._agenda, (at, next(self._order), action))
