"""The worker process: `python -m foliot.wiring.worker_main` as a child of `foliot serve`, or `foliot worker` by itself.

The child reads the database's URL and the settings from stdin, one line each, where no other user and no job can read them. The pipe
stays open: when the parent dies it ends, and so does the worker.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import partial

from foliot import telemetry
from foliot.clock import pause
from foliot.domain.errors import DatabaseUnavailable, FoliotError, Invalid
from foliot.domain.logs import LogLimits
from foliot.engine.hints import HintListener
from foliot.engine.loop import Loop
from foliot.handlers import registry
from foliot.handlers.bridge_handlers import NO_RESULT_BACKEND
from foliot.handlers.dependencies import HandlerDeps, QueueEngineUrls
from foliot.handlers.python import app_handlers, describe_app_types
from foliot.handlers.registry import Handler, HandlerDescription
from foliot.handlers.supervised_process import ProcessLimits
from foliot.sdk.app.application import Foliot
from foliot.sdk.app.options import AppDefinitionError
from foliot.services.hints import Announce, Announcer, Hint
from foliot.services.jobs.job_types import JobTypeDescription
from foliot.services.secrets import master_key
from foliot.settings import Settings
from foliot.storage.migrate import is_current
from foliot.storage.tx import Database, PoolSize
from foliot.wiring.database import configure_logging
from foliot.wiring.master_keys import given_keys, vault_of
from foliot.wiring.policies import egress_policy_of, quotas_of, sandbox_of
from foliot.wiring.process import prepare_worker_process
from foliot.wiring.worker_loops import HeartbeatThread, WorkerLoops, call_soon, stop_on_signals
from foliot.worker.heartbeat import STUCK
from foliot.worker.link import Link, LocalLink

log = logging.getLogger("foliot.wiring.worker_main")  # run as a program, its name would be __main__
TIMERS_PAUSE = 0.25  # seconds between hints that settlement may have moved a timer
RESERVE = 10  # places beyond the permits, unless a setting says otherwise
EXIT_WITHIN = 5.0  # seconds after the grace, should the loop be stuck and the parent dead


def main() -> None:
    """Run as the child of a node."""
    database_url = sys.stdin.buffer.readline().decode().rstrip("\n")
    settings = Settings.from_json(sys.stdin.buffer.readline())
    telemetry.configure(
        style=settings.log_format,
        level=settings.log_level,
        stream=sys.stderr,
        environ=os.environ,
        secrets=(database_url, *settings.secrets(), *given_keys(settings)),
    )
    prepare_worker_process()
    try:
        asyncio.run(_run(settings, database_url))
    except FoliotError as error:
        log.error("worker.failed", extra={"reason": error.message, "hint": error.hint})  # noqa: TRY400  # the sentence says it all
        sys.exit(1)


def run_standalone(settings: Settings) -> None:
    """Run `foliot worker` until a signal ends it: a worker on a database that nodes serve."""
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
    if settings.worker_concurrency == 0:
        raise Invalid("A worker with no permit for a run does nothing.", hint="Give --concurrency 1 or more.")
    check_sandbox(settings)
    prepare_worker_process()
    asyncio.run(_run(settings, url, is_child=False))


def check_sandbox(settings: Settings) -> None:
    """Raise Invalid for a wrong FOLIOT_COMMAND_USER before anything starts."""
    if settings.allow_commands:
        sandbox_of(settings)


def refuse_celery_without_results(settings: Settings) -> None:
    """Refuse celery jobs wherever jobs are written, by the API or by a worker's app, when Celery keeps no results."""
    registry.refuse_type("celery", None if settings.celery_result_url else NO_RESULT_BACKEND)


def handler_deps(settings: Settings, database: Database, announce: Announce) -> HandlerDeps:
    return HandlerDeps(
        database,
        egress_policy=egress_policy_of(settings),
        allow_commands=settings.allow_commands,
        command_env=settings.command_env,
        python_packages=settings.python_packages,
        process_limits=ProcessLimits.of(settings.child_memory, settings.child_processes),
        sandbox=sandbox_of(settings),
        queue_engines=QueueEngineUrls(
            settings.bridge_redis_url, settings.celery_broker_url, settings.celery_result_url
        ),
        event_url=settings.event_url,
        quotas=quotas_of(settings),
        announce=announce,
    )


async def _run(settings: Settings, database_url: str, *, is_child: bool = True) -> None:
    stopping = stop_on_signals()
    if is_child:
        loop = asyncio.get_running_loop()
        _stop_with_parent(
            lambda: call_soon(loop, stopping.set), exit_after=settings.worker_grace + EXIT_WITHIN
        )
    async with AsyncExitStack() as stack:
        is_private = settings.database_url is None  # the private PostgreSQL has no pooler before it
        database = await stack.enter_async_context(
            Database(database_url, size=PoolSize(1, 4), is_direct=is_private)
        )
        refuse_celery_without_results(settings)
        app = None if settings.app is None else await _load_app(settings, settings.app, database)
        lease = timedelta(seconds=settings.worker_lease)
        vault = vault_of(given_keys(settings), settings.data_dir)
        if not is_child:  # the node has checked the master key already
            await master_key.begin(database, vault, makes=False)
        announcer = Announcer(database, TIMERS_PAUSE)
        stack.push_async_callback(announcer.close)
        handlers, described = _load_handlers(handler_deps(settings, database, announcer.announce), app)
        link = LocalLink(
            database,
            f"{os.uname().nodename}/{os.getpid()}",
            lease,
            settings.worker_queues,
            vault,
            most_artifact_bytes=settings.artifact_bytes,
            described=[
                JobTypeDescription(name, described[name].description, described[name].config_schema)
                for name in sorted(handlers.keys() & described.keys())
            ],
            longest_timeout=quotas_of(settings).longest_timeout,
            artifact_quota=quotas_of(settings).artifact_bytes,
            log_limits=LogLimits(settings.log_lines, settings.log_bytes),
        )
        permits, reserve = settings.worker_concurrency, settings.worker_reserve
        loops = WorkerLoops(
            link,
            handlers,
            permits,
            settings.bridge_in_flight,
            reserve=min(permits, RESERVE) if reserve is None else reserve,
        )
        worker, claims = loops.worker, loops.claims

        def on_cancel() -> None:
            worker.beat_soon()  # which the heartbeat's thread sets

        wakes = {Hint.READY: claims.wake, Hint.CANCELS: on_cancel}
        hints = HintListener(database, settings.listen_url or database_url, wakes)
        loops.loops.append(Loop("hints", hints.step, within=None))

        def on_accepted() -> None:
            claims.wake()  # the end of one run may let another start
            announcer.announce(Hint.TIMERS)

        worker.reporter.on_accepted = on_accepted
        async with HeartbeatThread(worker, lease, partial(_heartbeat_link, database_url, lease)):
            log.info(
                "worker.started",
                extra={
                    "pid": os.getpid(),
                    "permits": settings.worker_concurrency,
                    "queues": settings.worker_queues,
                },
            )
            await loops.run(stopping, settings.worker_grace, cancel_claim=False)
    log.info("worker.stopped", extra={"unsent_reports": worker.reporter.unsent})


def _load_handlers(
    deps: HandlerDeps, app: Foliot | None
) -> tuple[dict[str, Handler], dict[str, HandlerDescription]]:
    handlers = registry.load_handlers(deps)
    described = dict(registry.describe_types())
    if app is not None:
        try:
            handlers |= app_handlers(app, handlers)
        except AppDefinitionError as error:
            raise Invalid(error.message, hint=error.hint) from error
        described |= describe_app_types(app)
    return handlers, described


async def _load_app(settings: Settings, address: str, database: Database) -> Foliot:
    # It imports much of the edge, which a worker without an app does not need.
    from foliot.wiring import app_sync  # noqa: PLC0415

    app = await asyncio.to_thread(app_sync.load_app, address)
    await app_sync.sync_app(database, app, egress_policy_of(settings))
    return app


@asynccontextmanager
async def _heartbeat_link(database_url: str, lease: timedelta) -> AsyncIterator[Link]:
    async with Database(database_url, size=PoolSize(1, 1)) as database:
        yield LocalLink(database, "", lease)


def _stop_with_parent(stop: Callable[[], None], *, exit_after: float) -> None:
    """Stop when stdin ends, which is when the parent is gone; exit by force `exit_after` seconds later."""

    def watch() -> None:
        # Not through the buffer of sys.stdin: Python aborts a process that ends while a thread holds its lock.
        while os.read(sys.stdin.fileno(), 1):
            pass
        stop()
        pause(exit_after)
        os._exit(STUCK)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


if __name__ == "__main__":
    main()
