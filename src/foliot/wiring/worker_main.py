"""`foliot worker`: a worker of its own, on a database that others serve too."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path

from foliot import telemetry
from foliot.clock import pause
from foliot.domain.artifacts import MOST_BYTES
from foliot.domain.bridge_policy import Handing
from foliot.domain.errors import DatabaseUnavailable, FoliotError, Invalid
from foliot.domain.quotas import Quotas
from foliot.engine.hints import HintListener
from foliot.engine.loop import Loop
from foliot.handlers import registry
from foliot.handlers.bridge_handlers import NO_RESULT_BACKEND
from foliot.handlers.dependencies import EgressPolicy, HandlerDeps, QueueEngineUrls
from foliot.handlers.python import app_handlers, describe_app_types
from foliot.handlers.registry import HandlerDescription
from foliot.handlers.supervised_process import ProcessLimits
from foliot.sdk.app.application import Foliot
from foliot.sdk.app.errors import Misdefined
from foliot.services.hints import Announce, Announcer, Hint
from foliot.services.jobs.job_types import JobTypeDescription
from foliot.services.secrets import master_key
from foliot.settings import Settings
from foliot.storage.migrate import is_current
from foliot.storage.tx import Database, PoolSize
from foliot.wiring.database import configure_logging
from foliot.wiring.heartbeat_thread import LAST_WORDS_WITHIN, HeartbeatThread, call_soon, leave
from foliot.wiring.master_keys import given_keys, vault_of
from foliot.wiring.policies import artifact_quota, egress_policy_of, quotas_of, sandbox_of
from foliot.wiring.process import tune_garbage_collector, without_secrets
from foliot.worker.artifact_upload import ArtifactUpload
from foliot.worker.heartbeat import STUCK
from foliot.worker.link import Link, LocalLink
from foliot.worker.log_buffer import LogBuffer
from foliot.worker.progress import ProgressBuffer
from foliot.worker.reporter import Reporter
from foliot.worker.worker import Worker


def work(settings: Settings) -> None:
    """Run until a signal ends it."""
    configure_logging(settings)
    url = settings.database_url
    if url is None:
        raise Invalid(
            "A worker of its own needs the address of a database.",
            hint="Set FOLIOT_DATABASE_URL. The private PostgreSQL belongs to `foliot serve`, which has a worker: "
            "`foliot serve --app module:app`.",
        )
    if not is_current(url):
        raise DatabaseUnavailable(
            "The tables of this database are not those of this version.",
            hint="Start `foliot serve` on it first, or `foliot migrate`.",
        )
    orders = orders_of(settings, url)
    if orders is None:
        raise Invalid("A worker with no room for a run does nothing.", hint="Give --concurrency 1 or more.")
    kept = without_secrets(os.environ)
    for name in set(os.environ) - set(kept):
        del os.environ[name]  # jobs' own code need not see them, here or in its processes
    sys.path.append(os.getcwd())  # noqa: PTH109  # last, so that a file lying there cannot pose as a library
    tune_garbage_collector()
    asyncio.run(run(orders, is_child=False))


log = logging.getLogger("foliot.wiring.worker_main")  # run as a program, its name would be __main__
TIMERS_PAUSE = 0.25  # seconds between hints that settling may have moved a timer
HARD_END = 5.0  # seconds after the grace, should the loop be stuck and nobody left to kill us


@dataclass(frozen=True, slots=True)
class Orders:
    url: str = field(repr=False)
    listen_url: str = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)
    permits: int
    queues: tuple[str, ...]
    grace: float
    lease: float
    log_format: str
    log_level: str
    data_dir: str  # where the master key is, unless it is among master_keys
    allow_commands: bool = False
    command_env: tuple[str, ...] = ()
    python_packages: tuple[str, ...] = ()
    command_user: str | None = None
    command_umask: int | None = None
    command_file_size: int = 0  # MiB
    command_processes: int = 0
    child_memory: int = 0  # MiB
    child_processes: int = 0
    artifact_bytes: int = MOST_BYTES
    artifact_room: int | None = None  # of a workspace, in bytes
    rooms: int | None = None  # that a workspace may have
    room_messages: int | None = None
    master_keys: tuple[str, ...] = field(default=(), repr=False)
    egress_allow: tuple[str, ...] = ()
    app: str | None = None  # module:app, whose jobs are brought up to date before any run starts
    bridge_redis_url: str | None = field(default=None, repr=False)
    celery_broker_url: str | None = field(default=None, repr=False)
    celery_result_url: str | None = field(default=None, repr=False)
    bridge_queues: tuple[str, ...] = ()
    bridge_tasks: tuple[str, ...] = ()
    bridge_in_flight: int = 1_000

    def as_line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @property
    def reach(self) -> EgressPolicy:
        """Orders came as JSON, which has lists alone."""
        handing = Handing(tuple(self.bridge_queues), tuple(self.bridge_tasks))
        return EgressPolicy(tuple(self.egress_allow), handing)


def orders_of(settings: Settings, url: str) -> Orders | None:
    """For the worker of this node; None where the settings want none."""
    if settings.worker_concurrency == 0:
        return None
    reach = egress_policy_of(settings)
    if settings.allow_commands:
        sandbox_of(settings)  # what is wrong with it is told before anything starts
    return Orders(
        url=url,
        listen_url=settings.listen_url or url,
        secrets=(url, *settings.secrets(), *given_keys(settings)),
        permits=settings.worker_concurrency,
        queues=settings.worker_queues,
        grace=settings.worker_grace,
        lease=settings.worker_lease,
        log_format=settings.log_format,
        log_level=settings.log_level,
        egress_allow=reach.egress_allow,
        bridge_queues=reach.handing.queues,
        bridge_tasks=reach.handing.tasks,
        allow_commands=settings.allow_commands,
        command_env=settings.command_env,
        python_packages=settings.python_packages,
        command_user=settings.command_user,
        command_umask=settings.command_umask,
        command_file_size=settings.command_file_size,
        command_processes=settings.command_processes,
        child_memory=settings.child_memory,
        child_processes=settings.child_processes,
        artifact_bytes=settings.artifact_bytes,
        artifact_room=artifact_quota(settings),
        rooms=quotas_of(settings).rooms,
        room_messages=quotas_of(settings).room_messages,
        data_dir=str(settings.data_dir),
        master_keys=given_keys(settings),
        app=settings.app,
        bridge_redis_url=settings.bridge_redis_url,
        celery_broker_url=settings.celery_broker_url,
        celery_result_url=settings.celery_result_url,
        bridge_in_flight=settings.bridge_in_flight,
    )


def refuse_without_results(celery_result_url: str | None) -> None:
    """Wherever jobs are written: by the API, and by the app of a worker."""
    registry.refuse_type("celery", None if celery_result_url else NO_RESULT_BACKEND)


def means_of(
    orders: Orders, database: Database | None, announce: Announce = lambda hint: None
) -> HandlerDeps:
    """What handlers get of this process."""
    return HandlerDeps(
        database,
        reach=orders.reach,
        allow_commands=orders.allow_commands,
        command_env=tuple(orders.command_env),
        python_packages=tuple(orders.python_packages),
        bounds=ProcessLimits.of(orders.child_memory, orders.child_processes),
        confines=sandbox_of(orders),
        engines=QueueEngineUrls(orders.bridge_redis_url, orders.celery_broker_url, orders.celery_result_url),
        quotas=Quotas(rooms=orders.rooms, room_messages=orders.room_messages),
        announce=announce,
    )


def main() -> None:
    orders = Orders(**json.loads(sys.stdin.buffer.readline()))
    sys.path.append(os.getcwd())  # noqa: PTH109  # last, so that a file lying there cannot pose as a library
    telemetry.configure(
        style=orders.log_format,
        level=orders.log_level,
        stream=sys.stderr,
        environ=os.environ,
        secrets=orders.secrets,
    )
    tune_garbage_collector()
    try:
        asyncio.run(run(orders))
    except FoliotError as error:
        log.error("worker.failed", extra={"reason": error.message, "hint": error.hint})  # noqa: TRY400  # the sentence says it all
        sys.exit(1)


async def run(orders: Orders, *, is_child: bool = True) -> None:
    stopping, loop = asyncio.Event(), asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stopping.set)
    if is_child:
        _watch_the_parent(lambda: call_soon(loop, stopping.set), orders.grace + HARD_END)
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(Database(orders.url, size=PoolSize(1, 4)))
        refuse_without_results(orders.celery_result_url)
        app = None if orders.app is None else await _load(orders.app, database, orders.reach)
        name, lease = f"{os.uname().nodename}/{os.getpid()}", timedelta(seconds=orders.lease)
        vault = vault_of(orders.master_keys, Path(orders.data_dir))
        if not is_child:  # the node has looked already
            await master_key.begin(database, vault, makes=False)
        announcer = Announcer(database, TIMERS_PAUSE)
        stack.push_async_callback(announcer.close)
        handlers = registry.load_handlers(means_of(orders, database, announcer.announce))
        described = dict(registry.describe_types())
        if app is not None:
            try:
                handlers |= app_handlers(app, handlers)
            except Misdefined as error:
                raise Invalid(error.message, hint=error.hint) from error
            described |= describe_app_types(app)
        link = LocalLink(
            database,
            name,
            lease,
            orders.queues,
            vault,
            most_artifact_bytes=orders.artifact_bytes,
            described=[_told(each, described[each]) for each in sorted(handlers.keys() & described.keys())],
            artifact_room=orders.artifact_room,
        )
        reporter = Reporter(link)
        logbook, meter = LogBuffer(link), ProgressBuffer(link)
        keeping = ArtifactUpload(link)
        worker = Worker(
            link,
            handlers,
            reporter,
            orders.permits,
            logbook=logbook,
            meter=meter,
            keeping=keeping,
            beside=orders.bridge_in_flight,
        )
        claims, reports = Loop("claim", worker.step), Loop("report", reporter.step)

        def taken_away() -> None:
            worker.beat_soon()

        wakes = {Hint.READY: claims.wake, Hint.CANCELS: taken_away}
        listening = HintListener(database, orders.listen_url, wakes)
        hints = Loop("hints", listening.step, within=None)
        lines, words = Loop("logs", logbook.step), Loop("progress", meter.step)
        worker.wake, reporter.wake = claims.wake, reports.wake
        logbook.wake, meter.wake = lines.wake, words.wake

        def settled() -> None:
            claims.wake()  # the end of one run may have let another go
            announcer.announce(Hint.TIMERS)

        reporter.when_accepted = settled
        async with HeartbeatThread(worker, lease, partial(_own_line, orders)):
            tasks = [asyncio.create_task(each.run()) for each in (claims, reports, hints, lines, words)]
            log.info(
                "worker.started",
                extra={"pid": os.getpid(), "permits": orders.permits, "queues": orders.queues},
            )
            await stopping.wait()
            log.info("worker.draining", extra={"grace": orders.grace})
            claims.stop()
            await worker.drain(orders.grace)
            await asyncio.wait(tasks[:1], timeout=LAST_WORDS_WITHIN)  # a claim under way is handed back too
            await reporter.all_sent(LAST_WORDS_WITHIN)
            await leave(link, worker.id)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
    log.info("worker.stopped", extra={"owed": reporter.owed})


def _told(name: str, described: HandlerDescription) -> JobTypeDescription:
    return JobTypeDescription(name, described.description, described.config_schema)


async def _load(address: str, database: Database, reach: EgressPolicy) -> Foliot:
    # With it comes much of the edge, which a worker without an app does not need.
    from foliot.wiring import app_sync  # noqa: PLC0415

    app = await asyncio.to_thread(app_sync.load_app, address)
    await app_sync.sync_app(database, app, reach)
    return app


@asynccontextmanager
async def _own_line(orders: Orders) -> AsyncIterator[Link]:
    async with Database(orders.url, size=PoolSize(1, 1)) as database:
        yield LocalLink(database, "", timedelta(seconds=orders.lease))


def _watch_the_parent(stop: Callable[[], None], hard_after: float) -> None:
    def watch() -> None:
        # Past the buffer of sys.stdin: Python aborts a process that ends while a thread holds the lock of that.
        while os.read(sys.stdin.fileno(), 1):
            pass
        stop()
        pause(hard_after)
        os._exit(STUCK)

    threading.Thread(target=watch, name="line-of-life", daemon=True).start()


if __name__ == "__main__":
    main()
