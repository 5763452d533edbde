"""`foliot host`, and `foliot worker --server`: workers that have no database and fetch their work over HTTPS.

A host executes the runs that are bound to it; a worker serves queues of the workspace of its key.
"""

from __future__ import annotations

import asyncio
import logging
import os
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
from foliot.handlers.python import app_handlers
from foliot.handlers.registry import Handler
from foliot.handlers.supervised_process import ProcessLimits
from foliot.sdk import AsyncClient, Untrusted
from foliot.sdk.connection import Connection, resolve_connection
from foliot.services.jobs.job_types import JobTypeDescription
from foliot.services.workers.workers import LEASE
from foliot.settings import Settings
from foliot.wire.shape import pointer
from foliot.wire.worker import LONGEST_DESCRIPTION, HostIn
from foliot.wiring.policies import sandbox_of
from foliot.wiring.process import prepare_worker_process
from foliot.wiring.worker_loops import HeartbeatThread, WorkerLoops, stop_on_signals
from foliot.worker.heartbeat import CancelPoll
from foliot.worker.http_link import ANSWER_WITHIN, HttpLink, WorkerIntroduction
from foliot.worker.worker import Worker

log = logging.getLogger(__name__)
LAST_REPORTS_WITHIN = 5.0  # seconds: they travel further than those of a worker beside the database
RUNS_CODE = frozenset({"command", "python"})  # the authors of such jobs can run any code on this host


@dataclass(frozen=True, slots=True)
class HostOptions:
    url: str | None
    key: str | None = field(repr=False)
    name: str
    labels: Mapping[str, str] | None  # None leaves them unchanged
    instances: tuple[str, ...]
    permits: int
    allowed: frozenset[str]  # of RUNS_CODE
    queues: tuple[str, ...] = ()  # of a worker that is no host
    app: str | None = None  # module:app, whose functions it runs
    insecure: bool = False
    ca: Path | None = None  # certificates to trust instead of the machine's


def serve_as_host(settings: Settings, options: HostOptions) -> None:
    """Run until a signal ends it."""
    place = resolve_connection(options.url, options.key, options.ca)
    telemetry.configure(
        style=settings.log_format,
        level=settings.log_level,
        stream=sys.stderr,
        environ=os.environ,
        secrets=(place.key, *settings.secrets()),
    )
    _refuse_plain_text(place, insecure=options.insecure)
    prepare_worker_process()
    # This machine decides which networks its jobs may reach, not the server: without a setting, the public internet only.
    deps = HandlerDeps(
        egress_policy=EgressPolicy(settings.egress_allow),
        allow_commands="command" in options.allowed,
        command_env=settings.command_env,
        python_packages=settings.python_packages,
        process_limits=ProcessLimits.of(settings.child_memory, settings.child_processes),
        sandbox=sandbox_of(settings),
        event_url=settings.event_url,
    )
    found = registry.load_handlers(deps)
    handlers = {name: found[name] for name in found if name not in RUNS_CODE - options.allowed}
    if options.app is not None:
        # It imports much of the edge, which others do not need.
        from foliot.wiring.app_sync import load_app  # noqa: PLC0415

        handlers |= app_handlers(load_app(options.app), handlers)
    introduction = _introduction(options, handlers)
    asyncio.run(_run(place, options, introduction, handlers, settings.worker_grace))


async def _run(
    place: Connection,
    options: HostOptions,
    introduction: WorkerIntroduction,
    handlers: Mapping[str, Handler],
    grace: float,
) -> None:
    stopping = stop_on_signals()
    open_link = partial(_open_link, place, introduction)
    async with open_link() as link:
        loops = WorkerLoops(link, handlers, options.permits, last_reports_within=LAST_REPORTS_WITHIN)
        worker = loops.worker
        cancels = Loop("cancels", CancelPoll(link, worker).step)
        worker.on_started = cancels.wake
        loops.loops.append(cancels)
        async with HeartbeatThread(worker, LEASE, open_link, lambda: link.lease):
            await _register(worker)
            log.info(
                "worker.started" if options.queues else "host.started",
                extra={"host": options.name, "pid": os.getpid(), "server": place.url},
            )
            await loops.run(stopping, grace, cancel_claim=True)
    log.info(
        "worker.stopped" if options.queues else "host.stopped",
        extra={"host": options.name, "unsent_reports": worker.reporter.unsent},
    )


@asynccontextmanager
async def _open_link(place: Connection, introduction: WorkerIntroduction) -> AsyncIterator[HttpLink]:
    async with AsyncClient(place.url, place.key, ca=place.ca, timeout=ANSWER_WITHIN, retries=0) as client:
        yield HttpLink(client, introduction)


def _introduction(options: HostOptions, handlers: Collection[str]) -> WorkerIntroduction:
    name, described = f"{options.name[:80]}/{os.getpid()}", list(_describe(handlers))
    if options.queues:
        return WorkerIntroduction(name, queues=options.queues, described=described)
    labels = None if options.labels is None else dict(options.labels)
    try:
        host = HostIn(name=options.name, labels=labels, instances=list(options.instances))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise Invalid(
            f"{pointer(first['loc'])}: {first['msg']}",
            hint="Names have up to 100 characters and no blanks at their ends, labels up to 200.",
        ) from None
    return WorkerIntroduction(name, host, described=described)


def _describe(types: Collection[str]) -> Iterator[JobTypeDescription]:
    """Describe the job types of this host. A schema that the server would refuse is not sent: the handler checks configs anyway."""
    described = registry.describe_types()
    for name in sorted(described.keys() & set(types)):
        schema = described[name].config_schema
        if (problem := schemas.problem_of(schema)) is None:
            yield JobTypeDescription(name, described[name].description[:LONGEST_DESCRIPTION], schema)
        else:
            log.warning("type.not_described", extra={"type": name, "reason": problem})


async def _register(worker: Worker) -> None:
    """Register. Wait for a server that is away; end with the reason where it refuses this host, or its certificate is not trusted."""
    try:
        await worker.register()
    except Unavailable as error:
        if isinstance(error.__cause__, Untrusted):
            raise
        log.warning("host.waiting", extra={"reason": error.message})


def _refuse_plain_text(place: Connection, *, insecure: bool) -> None:
    if place.is_local or insecure or place.url.startswith("https://"):
        return
    raise Invalid(
        f"{place.url} is not https: the key and everything this host does would go over the wire in the clear.",
        hint="Use an https address. --insecure allows http on a network that you trust.",
    )
