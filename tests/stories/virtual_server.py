"""Foliot in virtual time: the API on a socket, the engine's steps and a worker with the real handlers, on PostgreSQL and a manual clock.

Hosts and further workers are processes that speak to the API. Time moves only by `advance`: it stops wherever something is due, and
goes on when all that can be done at that instant is done.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import uvicorn

from foliot.channels.email import EmailChannel
from foliot.channels.parcel_sender import ParcelSender
from foliot.channels.slack import SlackChannel
from foliot.channels.webhook import WebhookChannel
from foliot.domain.bridge_policy import EVERYTHING, BridgePolicy
from foliot.domain.notifications.channel import ChannelKind
from foliot.egress.client import Egress
from foliot.engine.courier import Courier
from foliot.engine.scheduler import Scheduler
from foliot.engine.sweeper import Sweeper
from foliot.handlers.action import ActionHandler
from foliot.handlers.dependencies import EgressPolicy, HandlerDeps
from foliot.handlers.registry import Assignment, Handler, HandlerResult, load_handlers
from foliot.sdk import AsyncClient
from foliot.services.hints import Hint
from foliot.services.identity.installation import first_start
from foliot.services.jobs.job_types import JobTypeDescription
from foliot.services.notifications.dispatch import NotifierPolicy, dispatch
from foliot.services.notifications.event_feed import feed
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from foliot.testing.fixtures import a_vault
from foliot.web.app import create_app
from foliot.web.dialects import DIALECTS
from foliot.web.health import Readiness
from foliot.web.work_signal import WorkSignal
from foliot.wiring.worker_loops import WorkerLoops
from foliot.worker.link import LocalLink
from tests.engine.webhook_receiver import LOOPBACK, work
from tests.fork_server import environ_without_foliot, run_foliot, start_foliot
from tests.polling import wait_until
from tests.stories.server_process import LoggedProcess

LEASE = timedelta(minutes=5)
LOCAL = EgressPolicy(("127.0.0.0/8",), BridgePolicy(EVERYTHING, EVERYTHING))
Function = Callable[[Assignment], Awaitable[HandlerResult]]
# The next instant at which a timer, a run or a delivery is due, and the end of a silent worker's lease.
_NEXT = """
SELECT min(at) FROM (
    SELECT due_at AS at FROM foliot.timers UNION ALL SELECT available_at FROM foliot.ready UNION ALL SELECT expires_at FROM foliot.ready
    UNION ALL SELECT available_at FROM foliot.waiting UNION ALL SELECT expires_at FROM foliot.waiting
    UNION ALL SELECT alive_until FROM foliot.workers UNION ALL SELECT due_at FROM foliot.outbox WHERE ended_at IS NULL) AS due
 WHERE at > %(now)s AND at <= %(end)s"""
_BUSY = """
SELECT j.name FROM (SELECT job_id FROM foliot.ready WHERE available_at <= %(now)s UNION ALL SELECT job_id FROM foliot.leases) AS open
  JOIN foliot.jobs j ON j.id = open.job_id WHERE j.name <> ALL (%(held)s)"""
_DUE = """
SELECT EXISTS (SELECT FROM foliot.timers WHERE due_at <= %(now)s) OR EXISTS (SELECT FROM foliot.waiting)
    OR EXISTS (SELECT FROM foliot.notices) OR EXISTS (SELECT FROM foliot.leases) OR EXISTS (SELECT FROM foliot.ready WHERE available_at <= %(now)s)"""
_STATE = """
SELECT (SELECT count(*) FROM foliot.runs), (SELECT count(*) FROM foliot.runs WHERE status IS NULL), (SELECT count(*) FROM foliot.attempts),
       (SELECT count(*) FROM foliot.waiting), (SELECT count(*) FROM foliot.notices), (SELECT count(*) FROM foliot.workers),
       (SELECT count(*) FROM foliot.leases), (SELECT count(*) FROM foliot.outbox WHERE ended_at IS NULL)"""


class FunctionHandler:
    """A job type of the story: an async function."""

    def __init__(self, function: Function) -> None:
        self._function = function

    async def run(self, assignment: Assignment) -> HandlerResult:
        return await self._function(assignment)

    async def close(self) -> None:
        pass


@dataclass
class VirtualServer:
    """`held` are names of jobs whose runs may stay ready or running while time goes on. `dead` are workers that beat no more."""

    database: Database
    clock: ManualClock
    owner: psycopg.Connection[Any]
    folder: Path
    url: str
    key: str
    bell: WorkSignal
    held: set[str] = field(default_factory=set)
    dead: set[UUID] = field(default_factory=set)
    processes: list[LoggedProcess] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.schedulers = [Scheduler(self.database, self.announce)]
        self.sweeper = Sweeper(self.database, self.announce)
        self.egress = Egress(LOOPBACK)
        senders = {
            ChannelKind.EMAIL: EmailChannel(self.egress).send,
            ChannelKind.SLACK: SlackChannel(self.egress, self.clock).send,
        }
        sender = ParcelSender(WebhookChannel(self.egress, self.clock), senders)
        self.vault = a_vault()
        self.courier = Courier(self.database, sender.send, self.vault)
        self.workers: list[WorkerLoops] = []
        self._until_notice: timedelta | None = None

    def announce(self, hint: Hint) -> None:
        if hint is Hint.READY:
            self.bell.ring()
            for each in self.workers:
                each.claims.wake()

    def now(self) -> datetime:
        return self.clock.now()

    def sql(self, text: Any, *params: object) -> list[tuple[Any, ...]]:
        return self.owner.execute(text, params).fetchall()

    def client(self, key: str | None = None, workspace: str | None = None) -> AsyncClient:
        return AsyncClient(self.url, key or self.key, workspace)

    async def command(self, *words: str, key: str | None = None, fails: bool = False, **environ: str) -> Any:
        """Run a `foliot` command against this server and return its text."""
        known = {"FOLIOT_API_URL": self.url, "FOLIOT_API_KEY": key or self.key, "TZ": "UTC", **environ}
        env = environ_without_foliot() | known
        done = await asyncio.to_thread(run_foliot, *words, cwd=self.folder, env=env)
        assert (done.returncode != 0) is fails, (done.stdout, done.stderr)
        return done.stderr if fails else done.stdout

    async def command_json(self, *words: str, key: str | None = None) -> Any:
        return json.loads(await self.command(*words, "-o", "json", key=key))

    def start(self, *words: str, key: str) -> LoggedProcess:
        """Start a `foliot host` or `foliot worker` that works for this server."""
        given = {"FOLIOT_API_KEY": key, "FOLIOT_LOG_FORMAT": "json", "FOLIOT_WORKER_GRACE": "1"}
        env = environ_without_foliot() | given
        process = LoggedProcess(
            start_foliot(words[0], "--server", self.url, *words[1:], cwd=self.folder, env=env)
        )
        self.processes.append(process)
        return process

    @asynccontextmanager
    async def worker(
        self, types: Mapping[str, Handler] | None = None, event_url: str | None = None, permits: int = 10
    ) -> AsyncIterator[WorkerLoops]:
        """A worker of the default queue with all handlers of the product, and these job types."""
        deps = HandlerDeps(self.database, egress_policy=LOCAL, event_url=event_url, announce=self.announce)
        given = types or {}
        described = [JobTypeDescription(name, "A type of this story.", {"type": "object"}) for name in given]
        handlers = {**load_handlers(deps), **given, "action": ActionHandler(given)}
        link = LocalLink(self.database, "worker", LEASE, ("default",), self.vault, described=described)
        loops = WorkerLoops(link, handlers, permits)
        stopping = asyncio.Event()
        await loops.worker.register()
        self.workers.append(loops)
        running = asyncio.create_task(loops.run(stopping, 1.0, cancel_claim=False))
        try:
            yield loops
        finally:
            self.workers.remove(loops)
            stopping.set()
            await running
            for each in handlers.values():
                await each.close()

    async def advance(self, by: timedelta) -> None:
        await self.advance_to(self.now() + by)

    async def advance_to(self, end: datetime) -> None:
        """Move the clock, and do what is due on the way at its instant."""
        assert end >= self.now(), (end, self.now())
        await self.settle()
        while self.now() < end:
            self._keep_workers_alive(end)
            [(due,)] = self.owner.execute(_NEXT, {"now": self.now(), "end": end}).fetchall()
            notice = None if self._until_notice is None else self.now() + self._until_notice
            self.clock.set(min(at for at in (due, notice, end) if at is not None and at <= end))
            await self.settle()

    def stand_still(self, by: timedelta) -> None:
        """Move the clock while no scheduler, sweeper or notifier does anything."""
        self._keep_workers_alive(self.now() + by)
        self.clock.advance(by)

    async def settle(self) -> None:
        """Do everything that can be done at this instant."""
        while True:
            before = self.sql(_STATE)
            await feed(self.database)  # renews its interest in events, which ends after minutes
            await asyncio.gather(*(each.step() for each in self.schedulers))
            await self.sweeper.step()
            self.announce(Hint.READY)
            await wait_until(self._is_idle)
            await self._notify()
            if not self._is_due() or self.sql(_STATE) == before:
                return

    def _is_idle(self) -> bool:
        """Whether no run can start or end now."""
        held = {"now": self.now(), "held": list(self.held)}
        return not self.owner.execute(_BUSY, held).fetchall() and all(
            each.worker.reporter.unsent == 0 for each in self.workers
        )

    def _is_due(self) -> bool:
        """Whether a further step may find something at this instant."""
        [(found,)] = self.owner.execute(_DUE, {"now": self.now()}).fetchall()
        return bool(found)

    async def _notify(self) -> None:
        await feed(self.database)
        is_more = True
        while is_more:
            done = await dispatch(self.database, NotifierPolicy(self.url))
            is_more, self._until_notice = done.is_more, done.until_next
        await work(self.courier)

    def _keep_workers_alive(self, until: datetime) -> None:
        """Beat for the workers through the hours that pass in a moment."""
        self.owner.execute(
            "UPDATE foliot.workers SET alive_until = greatest(alive_until, %s) WHERE id <> ALL (%s)",
            [until + LEASE, list(self.dead)],
        )


@asynccontextmanager
async def serve_in_virtual_time(
    database: Database, owner: psycopg.Connection[Any], folder: Path, dialects: Sequence[str] = DIALECTS
) -> AsyncIterator[VirtualServer]:
    async def probe() -> Readiness:
        return Readiness()

    assert isinstance(database.clock, ManualClock)
    first = await first_start(database, tzdata_version="2026a")
    assert first is not None
    stopping, bell = asyncio.Event(), WorkSignal()
    async with AsyncExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        made = VirtualServer(database, database.clock, owner, folder, url, first.secret, bell)
        app = create_app(
            probe, stopping, database, made.announce, vault=made.vault, reach=LOCAL, bell=bell, lease=LEASE,
            dialects=dialects,
        )  # fmt: skip
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield made
        finally:
            for each in made.processes:
                each.end()
            stopping.set()
            server.should_exit = True
            await serving
            await made.courier.close()
            made.egress.close()
            await app.state.authenticator.close()
