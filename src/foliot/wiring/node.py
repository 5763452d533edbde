"""`foliot serve`: the engine in this process, HTTP and the worker in child processes, a database and an orderly shutdown.

Why: docs/decisions/008-node-roles-and-child-processes.md
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from datetime import timedelta
from pathlib import Path
from types import FrameType

from foliot import __version__
from foliot.clock import monotonic
from foliot.domain.addresses import networks
from foliot.domain.errors import DatabaseUnavailable, FoliotError
from foliot.domain.schedule.zone import ZONE_DATA_VERSION
from foliot.egress.client import Egress
from foliot.embedded.server import EmbeddedServer
from foliot.engine.courier import Courier
from foliot.engine.loop import Loop
from foliot.engine.watcher import Watcher
from foliot.services.identity import installation
from foliot.services.jobs import defaults
from foliot.services.secrets import master_key
from foliot.settings import ROLES, Settings
from foliot.settings.sources import ALIASES
from foliot.storage.server import ServerFacts
from foliot.storage.tx import Database, PoolSize
from foliot.web.console.session import SignInLinks
from foliot.wiring.api_main import ENGINE_SPEAKS_EVERY, ApiAssignment
from foliot.wiring.api_process import ApiProcess, ForkedProcess, fork_api_processes
from foliot.wiring.database import (
    DatabaseHandle,
    configure_logging,
    lock_data_dir,
    migrate_and_inspect,
    open_database,
    restart_postgres,
    write_admin_key,
)
from foliot.wiring.engine import Engine, EnginePace
from foliot.wiring.janitor_tasks import inbox_task, janitor_tasks
from foliot.wiring.listener import listener, publish_address, url_of
from foliot.wiring.master_keys import given_keys, vault_of
from foliot.wiring.notifications import notifier_policy_of, ping_of, sender_of
from foliot.wiring.policies import (
    allows_loopback,
    defaults_of,
    egress_allow_of,
    egress_policy_of,
    is_loopback,
    quotas_of,
    reject_database_user,
    sandbox_of,
)
from foliot.wiring.process import tune_garbage_collector
from foliot.wiring.worker_main import check_sandbox
from foliot.wiring.worker_process import WorkerProcess

log = logging.getLogger(__name__)
Say = Callable[[str], None]
SIGNALS = (signal.SIGINT, signal.SIGTERM)
MOST_RESTARTS, RESTARTS_WITHIN = 3, 600.0  # of the private PostgreSQL; seconds
# Seconds after the stop signal. Requests get at most ten, runs at most nine and a half at the same time.
STOP_POSTGRES_AT = 10.5  # which also ends whatever still waits for its answer
ALL_STOPPED_AT = 14.0
EXIT_AT = 14.5  # of the 15 that we promise
ENGINE_POOL = PoolSize(1, 8)
LOOPBACK_LINE = (
    "  http jobs  may call this machine too, as it serves nobody else; FOLIOT_EGRESS_ALLOW=none forbids it"
)


def serve(settings: Settings, say: Say) -> None:
    """Run until a signal ends it. `say` prints for people; events go to the log."""
    configure_logging(settings)
    exit_on_signals()
    with ExitStack() as stack:
        stack.enter_context(lock_data_dir(settings))
        listening = stack.enter_context(listener(settings.host, settings.port))
        tune_garbage_collector()
        forked = fork_api_processes(settings.api_processes, listening)
        for each in forked:
            stack.callback(each.end)  # where the start fails before they get their settings
        handle = stack.enter_context(open_database(settings))
        if settings.allow_commands and handle.server is not None:
            reject_database_user(sandbox_of(settings), handle.server.cluster)
        _, facts = migrate_and_inspect(handle)
        try:
            tune_garbage_collector()
            asyncio.run(Node(settings, handle, facts, say).run(listening, forked))
        finally:
            exit_on_signals()  # asyncio has restored the defaults; PostgreSQL has still to be stopped
    log.info("server.stopped")


class Node:
    def __init__(self, settings: Settings, handle: DatabaseHandle, facts: ServerFacts, say: Say) -> None:
        self._settings = settings
        self._handle = handle
        self._facts = facts
        self._say = say
        self._stopping = asyncio.Event()
        self._is_hurried = False
        self._shutdown = Shutdown(handle)
        self._deaths: deque[float] = deque(maxlen=MOST_RESTARTS)
        self._broken: FoliotError | None = None
        self._db = Database(handle.url, size=ENGINE_POOL)
        self._vault = vault_of(given_keys(settings), settings.data_dir)
        self._egress = Egress(networks(egress_allow_of(settings)))
        self._sender = sender_of(settings, self._egress, self._db)
        self._url: str | None = None  # that it listens on, once it does
        self._engine = Engine(
            self._db,
            settings.listen_url or handle.url,
            self._worker_process(),
            janitor_tasks=janitor_tasks(self._db, settings.keep_messages, settings.host_retention),
            inbox_task=inbox_task(self._db, egress_policy_of(settings), quotas_of(settings)),
            courier=Courier(self._db, self._sender.send, self._vault),
            policy=lambda: notifier_policy_of(settings, self._url),
            watcher=Watcher(self._db, ping_of(settings, self._egress))
            if "watcher" in settings.roles
            else None,
            is_scheduling="scheduler" in settings.roles,
            pace=EnginePace(
                settings.poll_interval / 1000, settings.poll_batch, settings.sweep_interval / 1000
            ),
        )
        self._apis: list[ApiProcess] = []

    def _worker_process(self) -> WorkerProcess | None:
        if "worker" not in self._settings.roles or self._settings.worker_concurrency == 0:
            return None
        check_sandbox(self._settings)
        if self._settings.app is not None:
            from foliot.wiring.app_sync import check_app_exists  # noqa: PLC0415  # most nodes never need it

            check_app_exists(self._settings.app)
        return WorkerProcess(self._settings, self._handle.url)

    async def run(self, listening: socket.socket, forked: Sequence[ForkedProcess]) -> None:
        loop = asyncio.get_running_loop()
        for each in SIGNALS:
            loop.add_signal_handler(each, self.stop, each.name)
        if self._handle.server is not None:
            self._watch(self._handle.server, loop)
        async with self._db:
            lines = await self._first_lines()
            self._url = url_of(listening)
            self._engine.start()
            with ExitStack() as while_serving:
                on_ready = self._on_ready(listening, lines, while_serving)
                self._apis = [
                    ApiProcess(self._settings, listening, self._assignment(), each, on_ready)
                    for each in forked
                ]
                steps = [*(Loop("api", each.step, within=None) for each in self._apis)]
                steps.append(Loop("api status", self._tell_status))
                tasks = [asyncio.create_task(each.run(), name=each.name) for each in steps]
                try:
                    await self._stopping.wait()
                finally:
                    await asyncio.gather(*(each.wait() for each in self._apis))
                    await self._engine.stop()
                    self._egress.close()
                    for task in tasks:
                        task.cancel()
        if self._broken is not None:
            raise self._broken

    def stop(self, reason: str) -> None:
        """Stop the node. A second call no longer waits for requests and runs under way."""
        self._is_hurried = self._stopping.is_set()
        log.info("server.stopping", extra={"reason": reason, "at_once": self._is_hurried})
        self._stopping.set()
        self._shutdown.begin()
        self._engine.drain(at_once=self._is_hurried)  # runs end while HTTP does
        for each in self._apis:
            each.terminate(at_once=self._is_hurried)

    def _assignment(self) -> ApiAssignment:
        # Who asks for /readyz has shown no key: names of logins are for the log only.
        warnings = [each.replace(f"login {self._facts.login}", "login") for each in self._facts.warnings]
        return ApiAssignment(self._handle.url, tuple(warnings), self._handle.server is not None)

    async def _tell_status(self) -> timedelta:
        for each in self._apis:
            each.tell(self._engine.missing)
        return timedelta(seconds=ENGINE_SPEAKS_EVERY)

    def _on_ready(self, listening: socket.socket, lines: list[str], stack: ExitStack) -> Callable[[], None]:
        """Return what to do when an HTTP process listens: the first one is the start of the server."""
        is_first = True

        def on_ready() -> None:
            nonlocal is_first
            if is_first and not self._stopping.is_set():
                is_first = False
                url = url_of(listening)
                stack.enter_context(publish_address(self._settings.data_dir, url))
                self._announce(url, lines)

        return on_ready

    async def _first_lines(self) -> list[str]:
        """Prepare the installation and return the greeting's lines about it; the first start makes the admin key."""
        written: list[Path] = []
        first = await installation.first_start(
            self._db,
            tzdata_version=ZONE_DATA_VERSION,
            keep=lambda key: written.append(write_admin_key(self._settings.data_dir, key)),
            timezone=self._settings.default_timezone,
        )
        await defaults.set_of_installation(self._db, defaults_of(self._settings))
        await master_key.begin(self._db, self._vault, makes=self._handle.server is not None)
        lines = [f"  database   PostgreSQL {self._facts.version}, {self._handle.where}"]
        if first is not None:
            log.info("key.created", extra={"prefix": first.prefix, "path": written[0]})
            if sys.stdout.isatty():
                lines.append(f"  admin key  {first.secret}")
                lines.append(f"             shown this once, kept in {written[0]}")
            else:  # a file or a log collector would keep it
                lines.append(f"  admin key  kept in {written[0]}")
        if allows_loopback(self._settings):
            lines.append(LOOPBACK_LINE)
        return lines

    def _sign_in_link(self, url: str) -> str | None:
        """Return a console link for the person who started this server: only on a loopback address, with the key in the data directory."""
        if "api" not in self._settings.roles or not is_loopback(self._settings.host):
            return None
        try:
            key = (self._settings.data_dir / "admin.key").read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            return None
        token = SignInLinks(self._settings.data_dir).make(key) if key else None
        return None if token is None else f"{url}/console/sign-in?link={token}"

    def _announce(self, url: str, lines: list[str]) -> None:
        if self._settings.log_format != "json":
            greeting = f"Foliot {__version__} is serving at {url}"
            if link := self._sign_in_link(url):
                lines = [f"  console    {link}", "             signs in once, within ten minutes", *lines]
            if self._settings.roles != ROLES:
                lines = [*lines, f"  roles      {', '.join(self._settings.roles)}"]
            self._say("\n".join(("", greeting, "", *lines, "  stop       Ctrl-C", "")))
        if not is_loopback(self._settings.host):
            log.warning(
                "server.exposed", extra={"host": self._settings.host, "advice": "put TLS in front of it"}
            )
        for name, origin in self._settings.origins.items():
            if (variable := origin.split()[0]) in ALIASES:
                log.info("setting.alias", extra={"setting": name, "variable": variable})
        log.info("egress.allowed", extra={"networks": egress_allow_of(self._settings)})
        log.info(
            "server.started",
            extra={
                "url": url,
                "pid": os.getpid(),
                "version": __version__,
                "roles": self._settings.roles,
                "poll_interval_ms": self._settings.poll_interval,
            },
        )

    def _watch(self, server: EmbeddedServer, loop: asyncio.AbstractEventLoop) -> None:
        def on_lost(code: int) -> None:
            with suppress(RuntimeError):  # the loop is closed: the node is stopping anyway
                loop.call_soon_threadsafe(self._postgres_died, code)

        server.on_lost(on_lost)

    def _postgres_died(self, code: int) -> None:
        """Restart PostgreSQL at the same address, where the pool finds it again; give up when it keeps dying.

        This blocks the loop: the server must be started from the main thread, and nothing works without it.
        """
        if self._stopping.is_set():
            return
        log.error("postgres.died", extra={"exit_code": code})
        now = monotonic()
        too_often = len(self._deaths) == MOST_RESTARTS and now - self._deaths[0] < RESTARTS_WITHIN
        self._deaths.append(now)
        try:
            if too_often:
                raise DatabaseUnavailable(
                    f"The private PostgreSQL died {MOST_RESTARTS + 1} times within {RESTARTS_WITHIN / 60:.0f} minutes.",
                    hint="Its log in the data directory says why; a full disk and too little memory are the usual reasons.",
                )
            self._watch(restart_postgres(self._settings, self._handle), asyncio.get_running_loop())
        except FoliotError as error:
            self._broken = error
            self.stop("PostgreSQL died")


class Shutdown:
    """One deadline for the whole stop, from the signal on, whatever hangs."""

    def __init__(self, handle: DatabaseHandle) -> None:
        self._handle = handle
        self._has_begun = False

    def begin(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            self._handle.stop_by = monotonic() + ALL_STOPPED_AT
            threading.Thread(target=self._watch, name="shutdown", daemon=True).start()

    def _watch(self) -> None:
        """Run in a thread, since the loop may hang. As a rule the process ends first and takes the thread along."""
        never = threading.Event()
        never.wait(STOP_POSTGRES_AT)
        began = monotonic()
        if self._handle.server is not None:
            log.warning(
                "server.hurried", extra={"reason": "something still waits; PostgreSQL is stopped under it"}
            )
            self._handle.server.stop(ALL_STOPPED_AT - STOP_POSTGRES_AT)
        never.wait(max(0.0, EXIT_AT - STOP_POSTGRES_AT - (monotonic() - began)))
        log.error("server.cut_off", extra={"reason": "something did not end in time"})
        os._exit(1)


def exit_on_signals() -> None:
    """Unwind the process on a signal, before and after the loop runs; a shell expects exit code 128 + n."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    for each in SIGNALS:
        signal.signal(each, leave)
