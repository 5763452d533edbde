"""A logical node: a scheduler, a worker and a sweeper over one database pool, calling the product's own services step by step."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from random import Random

from foliot.domain.errors import DatabaseUnavailable
from foliot.domain.ids import HostId, JobId, RunId, WorkerId
from foliot.domain.outcomes import Cancelled, HandedBack, Outcome, TimedOut
from foliot.services.runs.statistics import roll_up
from foliot.services.scheduling import freezes
from foliot.services.scheduling.repair import refresh_zone_data
from foliot.services.scheduling.tick import tick
from foliot.services.secrets.vault import Vault
from foliot.services.settlement.report import Report, report
from foliot.services.settlement.sweep import sweep
from foliot.services.settlement.waiting_runs import expire_runs, judge_gates, open_windows
from foliot.services.workers import limits, remote, remote_register, workers
from foliot.services.workers.claim import Claimer, ClaimSize, Turns, claim, claim_work
from foliot.services.workers.remote_register import (
    HostIntroduction,
    RegisteredWorker,
    RemoteWorkerHello,
    WorkerPrincipal,
)
from foliot.storage.queue.run_queue import Claimed
from foliot.storage.tx import Database, PoolSize
from foliot.testing.clock import ManualClock
from foliot.testing.fixtures import a_vault
from tools.simulation.faults import FaultyDatabase
from tools.simulation.handlers import plan_attempt
from tools.simulation.world import BOX, MINUTE, TYPE, Behaviour

QUEUE = "default"
MOST_CLAIMS = 20
ALL_DUE = 20_000  # in one batch, so that the result does not depend on an order
HOST_CAPACITY = 10
FEW = 50  # a claim that finds fewer has found nearly all
# Every instant costs transactions, so steps share instants: workers claim and beat on the whole grain. Leases are longer than in
# production for it; no check depends on their length.
GRAIN = 10 * MINUTE
LEASE = 25 * MINUTE
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Handler:
    name: str
    behaviour: Behaviour


@dataclass(frozen=True, slots=True)
class HostAccount:
    """A host of a workspace: the principal of its key, and the value of the secret that its jobs name."""

    speaker: WorkerPrincipal
    token: str

    async def register(self, database: Database, process: str) -> RegisteredWorker:
        hello = RemoteWorkerHello(
            f"{BOX.name}/{process}", [TYPE], HOST_CAPACITY, host=HostIntroduction(BOX.name)
        )
        return await remote_register.register(database, self.speaker, hello, lease=LEASE)


@dataclass(frozen=True, slots=True)
class HostProcess:
    """The process of a host on a node. Every node has one of each host."""

    account: HostAccount
    worker_id: WorkerId
    host_id: HostId | None


@dataclass(slots=True)
class SharedState:
    """State that all nodes share."""

    url: str
    clock: ManualClock
    lot: str
    capacity: int
    handlers: dict[JobId, Handler] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    hosts: list[HostAccount] = field(default_factory=list)
    vault: Vault = field(default_factory=a_vault)

    def count(self, what: str, by: int = 1) -> None:
        self.counts[what] = self.counts.get(what, 0) + by


@dataclass(frozen=True, slots=True)
class HeldRun:
    claimed: Claimed
    ends_at: datetime
    outcome: Outcome
    worker_id: WorkerId


class Node:
    def __init__(self, shared: SharedState, name: str) -> None:
        self.shared = shared
        self.name = name
        self.is_up = False
        self.is_frozen = False
        self.held: dict[RunId, HeldRun] = {}
        self._ends: list[tuple[datetime, RunId]] = []
        self._lives = 0
        self._turns = Turns()
        self.database: FaultyDatabase
        self.worker_id: WorkerId
        self.processes: list[HostProcess] = []

    @property
    def is_awake(self) -> bool:
        return self.is_up and not self.is_frozen

    @property
    def worker_ids(self) -> list[WorkerId]:
        return [self.worker_id, *(each.worker_id for each in self.processes)]

    @property
    def next_end(self) -> datetime | None:
        """Return the instant of its next report."""
        while self._ends and self._ends[0][1] not in self.held:
            heappop(self._ends)
        return self._ends[0][0] if self._ends else None

    async def start(self) -> None:
        self._lives += 1
        chance = Random(f"{self.shared.lot}/{self.name}/{self._lives}")
        self.database = FaultyDatabase(
            self.shared.url, clock=self.shared.clock, size=PoolSize(most=1), chance=chance
        )
        self.is_up, self.is_frozen = True, False
        await self.database.open()
        await self._register()
        self.processes = [await self._start_process(account) for account in self.shared.hosts]

    async def die(self) -> None:
        """Forget all runs: only the leases remember them."""
        was_up, self.is_up, self.is_frozen = self.is_up, False, False
        self._forget()
        if was_up:
            await self.database.close()

    async def drain(self) -> None:
        await self._report({run_id: HandedBack() for run_id in self.held})
        await workers.leave(self.database, self.worker_id)
        for process in self.processes:
            await remote.leave(self.database, process.account.speaker, process.worker_id)
        self.shared.count("drained")
        await self.die()

    async def tick(self) -> bool:
        """Fire all due timers and return whether none is left."""
        while True:
            self.shared.count("ticks")
            ticked = await tick(self.database, ALL_DUE)
            if ticked.looked_at < ALL_DUE:
                return True

    async def claim(self) -> list[Claimed]:
        """Claim batches until the capacity is used: one batch serves some of the workspaces only."""
        taken: list[Claimed] = []
        for _ in range(MOST_CLAIMS):
            permits = self.shared.capacity - len(self.held)
            if permits <= 0:
                break
            self.shared.count("claims")
            try:
                claimed = await claim(self.database, self.worker_id, QUEUE, [TYPE], permits, self._turns)
            except DatabaseUnavailable:
                await self._hand_back_unknown()
                break
            for each in claimed:
                self._take(each, self.worker_id)
            taken += claimed
            if len(claimed) < FEW:
                break
        for process in self.processes:
            taken += await self._claim_for(process)
        return taken

    async def _claim_for(self, process: HostProcess) -> list[Claimed]:
        """Claim for a host. The worker gets the values of the secrets with its runs, and no other workspace's."""
        account = process.account
        claimer = Claimer(
            process.worker_id, "", [TYPE], ClaimSize(HOST_CAPACITY), Turns(), account.speaker.workspace_id, process.host_id
        )  # fmt: skip
        try:
            found = await claim_work(self.database, claimer, self.shared.vault)
        except DatabaseUnavailable:
            await self._hand_back_unknown()
            return []
        for work in found.work:
            if work.config != {"token": account.token} or work.masks != (account.token,):
                raise AssertionError(f"secrets: {work.job} got another value than its workspace's")
            self._take(work.claimed, process.worker_id)
        self.shared.count("claimed by hosts", len(found.work))
        return [work.claimed for work in found.work]

    async def report(self) -> None:
        now = self.shared.clock.now()
        ended = {}
        while (at := self.next_end) is not None and at <= now:
            _, run_id = heappop(self._ends)
            ended[run_id] = self.held[run_id].outcome
        try:
            await self._report(ended)
        except DatabaseUnavailable:  # stored or not, the fence decides: report again
            for run_id in ended:
                heappush(self._ends, (now, run_id))

    async def beat(self) -> None:
        beat = await workers.beat(self.database, self.worker_id, lease=LEASE)
        if not beat.is_alive:  # given up for lost: other workers have the runs now
            self.shared.count("struck_off")
            self._forget()
            await self._register()
            return
        await self._report({run_id: Cancelled() for run_id, _ in beat.cancels if run_id in self.held})
        for place, process in enumerate(self.processes):
            await self._beat_for(place, process)

    async def _beat_for(self, place: int, process: HostProcess) -> None:
        mine = [
            (run_id, held.claimed.fence)
            for run_id, held in self.held.items()
            if held.worker_id == process.worker_id
        ]
        beat = await remote.beat(self.database, process.account.speaker, process.worker_id, mine, lease=LEASE)
        if beat.is_alive:
            await self._report({run_id: Cancelled() for run_id, _ in beat.cancels if run_id in self.held})
            return
        for run_id, _ in mine:
            del self.held[run_id]
        self.processes[place] = await self._start_process(process.account)

    async def sweep(self) -> None:
        swept = await sweep(self.database)
        self.shared.count("swept lost", swept.lost)
        self.shared.count("swept timed out", swept.timed_out)
        self.shared.count("swept cancelled", swept.cancelled)

    async def expire_and_open(self) -> None:
        self.shared.count("expired", await expire_runs(self.database))
        self.shared.count("windows opened", await open_windows(self.database))

    async def answer_gates(self) -> None:
        self.shared.count("gates answered", await judge_gates(self.database))

    async def renew_zone_data(self) -> None:
        """Replan every timer, as after an upgrade; none gets another time."""
        moved = await refresh_zone_data(self.database)
        self.shared.count("zone data renewed", moved is not None)
        self.shared.count("moved by zone data", moved or 0)

    async def roll_up(self) -> None:
        while (step := await roll_up(self.database)).is_more:
            self.shared.count("rolled up", step.counted)
        self.shared.count("rolled up", step.counted)

    async def recount(self) -> None:
        self.shared.count("caps miscounted", await limits.recount(self.database))

    async def apply_freezes(self) -> None:
        self.shared.count("held by a freeze", await freezes.hold(self.database))
        thawed = await freezes.thaw(self.database)
        self.shared.count("thawed", thawed.runs)

    async def report_all(self) -> tuple[frozenset[RunId], frozenset[RunId]]:
        """Report every held run at once, as a process that was frozen does. Return the reported and the accepted runs."""
        reported = {run_id: held.outcome for run_id, held in self.held.items()}
        return frozenset(reported), await self._report(reported)

    async def _register(self) -> None:
        self.worker_id = await workers.register(
            self.database, self.name, [QUEUE], [TYPE], self.shared.capacity, lease=LEASE
        )

    async def _start_process(self, account: HostAccount) -> HostProcess:
        made = await account.register(self.database, self.name)
        return HostProcess(account, made.worker_id, made.host_id)

    def _take(self, claimed: Claimed, worker_id: WorkerId) -> None:
        handler = self.shared.handlers[claimed.job_id]
        planned = plan_attempt(
            self.shared.lot, handler.name, handler.behaviour, claimed.planned_for, claimed.attempt
        )
        now, outcome = self.shared.clock.now(), planned.outcome
        ends_at = now + planned.takes
        if ends_at > claimed.deadline_at:
            ends_at, outcome = claimed.deadline_at, TimedOut()
        ends_at = whole(ends_at, GRAIN if handler.behaviour.typical > MINUTE else MINUTE)
        self.held[claimed.run_id] = HeldRun(claimed, ends_at, outcome, worker_id)
        heappush(self._ends, (ends_at, claimed.run_id))

    async def _report(self, outcomes: dict[RunId, Outcome]) -> frozenset[RunId]:
        if not outcomes:
            return frozenset()
        # By name and time: the order of a batch determines the jitter of its retries, and ids must not.
        ordered = sorted(outcomes, key=lambda run_id: self._order(self.held[run_id].claimed))
        holding = [self.held[run_id] for run_id in ordered]
        reports = [
            Report(each.run_id, each.job_id, each.fence, held.worker_id, outcomes[each.run_id])
            for held in holding
            for each in (held.claimed,)
        ]
        self.shared.count("reports")
        accepted = await report(self.database, reports)
        self.shared.count("refused", len(reports) - len(accepted))
        for run_id in outcomes:
            self.held.pop(run_id)
        return accepted

    def _order(self, claimed: Claimed) -> tuple[str, datetime, int]:
        return self.shared.handlers[claimed.job_id].name, claimed.planned_for, claimed.fence

    async def _hand_back_unknown(self) -> None:
        """Hand back runs of a claim whose commit was not confirmed: the leases show them."""
        for worker_id in self.worker_ids:
            for lease in await workers.held(self.database, worker_id):
                if lease.run_id not in self.held:
                    gone = Report(lease.run_id, lease.job_id, lease.fence, worker_id, HandedBack())
                    await report(self.database, [gone])
                    self.shared.count("handed back")

    def _forget(self) -> None:
        self.held.clear()
        self._ends.clear()


def whole(at: datetime, grain: timedelta = GRAIN) -> datetime:
    """Return the next instant on the grain."""
    return at + (-(at - _EPOCH) % grain)
