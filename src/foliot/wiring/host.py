"""`foliot host`: a worker on another machine, which knows no database and fetches its work over HTTPS."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from foliot import telemetry
from foliot.domain import schemas
from foliot.domain.errors import Invalid, Unavailable
from foliot.engine.loop import Loop
from foliot.handlers import registry
from foliot.handlers.dependencies import EgressPolicy, HandlerDeps
from foliot.handlers.registry import Handler
from foliot.handlers.supervised_process import ProcessLimits
from foliot.sdk import AsyncClient, Untrusted
from foliot.sdk.connection import Place, find
from foliot.services.jobs.job_types import JobTypeDescription
from foliot.services.workers.workers import LEASE
from foliot.settings import Settings
from foliot.wire.shape import pointer
from foliot.wire.worker import LONGEST_DESCRIPTION, HostIn
from foliot.wiring.heartbeat_thread import HeartbeatThread, leave
from foliot.wiring.policies import sandbox_of
from foliot.wiring.process import tune_garbage_collector, without_secrets
from foliot.worker.heartbeat import CancelPoll
from foliot.worker.http_link import PATIENCE, HttpLink, WorkerIntroduction
from foliot.worker.log_buffer import LogBuffer
from foliot.worker.progress import ProgressBuffer
from foliot.worker.reporter import Reporter
from foliot.worker.worker import Worker

log = logging.getLogger(__name__)
LAST_WORDS_WITHIN = 5.0  # seconds: they go a longer way than a worker's on the same machine


@dataclass(frozen=True, slots=True)
class HostOptions:
    url: str | None
    key: str | None = field(repr=False)
    name: str
    labels: Mapping[str, str] | None  # None leaves them as they are
    instances: tuple[str, ...]
    permits: int
    allowed: frozenset[str]  # of the types that run code of this machine
    insecure: bool = False
    ca: Path | None = None  # certificates to trust in the place of the machine's


RUNS_CODE = frozenset({"command", "python"})  # whoever may write such jobs may run what they like here


def serve_as_host(settings: Settings, orders: HostOptions) -> None:
    """Run until a signal ends it."""
    place = find(orders.url, orders.key, orders.ca)
    telemetry.configure(
        style=settings.log_format,
        level=settings.log_level,
        stream=sys.stderr,
        environ=os.environ,
        secrets=(place.key, *settings.secrets()),
    )
    _refuse_plain_text(place, insecure=orders.insecure)
    kept = without_secrets(os.environ)
    for name in set(os.environ) - set(kept):
        del os.environ[name]  # jobs' own code need not see them, here or in its processes
    sys.path.append(os.getcwd())  # noqa: PTH109  # last, so that a file lying there cannot pose as a library
    tune_garbage_collector()
    # Which networks are open to jobs is for this machine to say, not for the server: the internet alone, unless it does.
    means = HandlerDeps(
        reach=EgressPolicy(settings.egress_allow),
        allow_commands="command" in orders.allowed,
        command_env=settings.command_env,
        python_packages=settings.python_packages,
        bounds=ProcessLimits.of(settings.child_memory, settings.child_processes),
        confines=sandbox_of(settings),
    )
    handlers = _handlers(orders, means)
    asyncio.run(_run(place, orders, _introduction(orders, handlers), handlers, settings.worker_grace))


async def _run(
    place: Place, orders: HostOptions, me: WorkerIntroduction, handlers: Mapping[str, Handler], grace: float
) -> None:
    stopping, loop = asyncio.Event(), asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stopping.set)
    open_line = partial(_line, place, me)
    async with open_line() as link:
        reporter, logbook, meter = Reporter(link), LogBuffer(link), ProgressBuffer(link)
        worker = Worker(link, handlers, reporter, orders.permits, logbook=logbook, meter=meter)
        claims, reports = Loop("claim", worker.step), Loop("report", reporter.step)
        lines, words = Loop("logs", logbook.step), Loop("progress", meter.step)
        worker.wake, reporter.wake = claims.wake, reports.wake
        logbook.wake, meter.wake = lines.wake, words.wake
        reporter.when_accepted = claims.wake
        stops = Loop("stops", CancelPoll(link, worker).step)
        worker.when_begun = stops.wake
        async with HeartbeatThread(worker, LEASE, open_line, lambda: link.lease):
            await _introduce(worker)
            claiming, *others = tasks = [
                asyncio.create_task(each.run()) for each in (claims, reports, lines, words, stops)
            ]
            log.info("host.started", extra={"host": orders.name, "pid": os.getpid(), "server": place.url})
            await stopping.wait()
            log.info("host.draining", extra={"grace": grace})
            claiming.cancel()  # it waits for work; what it may have been given is handed back by leaving
            await worker.drain(grace)
            await reporter.all_sent(LAST_WORDS_WITHIN)
            await leave(link, worker.id, LAST_WORDS_WITHIN)
            for task in others:
                task.cancel()
            await asyncio.wait(tasks)
    log.info("host.stopped", extra={"host": orders.name, "owed": reporter.owed})


@asynccontextmanager
async def _line(place: Place, me: WorkerIntroduction) -> AsyncIterator[HttpLink]:
    async with AsyncClient(place.url, place.key, ca=place.ca, timeout=PATIENCE, retries=0) as client:
        yield HttpLink(client, me)


def _introduction(orders: HostOptions, handlers: Collection[str]) -> WorkerIntroduction:
    labels = None if orders.labels is None else dict(orders.labels)
    try:
        host = HostIn(name=orders.name, labels=labels, instances=list(orders.instances))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise Invalid(
            f"{pointer(first['loc'])}: {first['msg']}",
            hint="Names have up to 100 characters and no blanks at their ends, labels up to 200.",
        ) from None
    return WorkerIntroduction(f"{orders.name[:80]}/{os.getpid()}", host, described=list(_told(handlers)))


def _told(types: Collection[str]) -> Iterator[JobTypeDescription]:
    """What configs of its types look like. What the server would not take is not sent: the handler has the last word anyway."""
    described = registry.describe_types()
    for name in sorted(described.keys() & set(types)):
        schema = described[name].config_schema
        if (problem := schemas.problem_of(schema)) is None:
            yield JobTypeDescription(name, described[name].description[:LONGEST_DESCRIPTION], schema)
        else:
            log.warning("type.not_told", extra={"type": name, "reason": problem})


async def _introduce(worker: Worker) -> None:
    """A server that is away is waited for; one that refuses us, or that we do not trust, ends it here, with the reason."""
    try:
        await worker.register()
    except Unavailable as error:
        if isinstance(error.__cause__, Untrusted):
            raise
        log.warning("host.waiting", extra={"reason": error.message})


def _handlers(orders: HostOptions, means: HandlerDeps) -> dict[str, Handler]:
    found = registry.load_handlers(means)
    return {name: found[name] for name in found if name not in RUNS_CODE - orders.allowed}


def _refuse_plain_text(place: Place, *, insecure: bool) -> None:
    if "://" not in place.url:
        raise Invalid(
            f"{place.url} is no whole address.", hint=f"Say how to speak to it, such as https://{place.url}."
        )
    if place.is_local or insecure or place.url.startswith("https://"):
        return
    raise Invalid(
        f"{place.url} is not https: the key and everything this host does would go over the wire in the clear.",
        hint="Use an https address. --insecure allows http on a network that you trust.",
    )
