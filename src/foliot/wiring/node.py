"""`foliot serve`: one process with a database, an HTTP edge and an orderly end."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import signal
import socket
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from ipaddress import ip_address
from pathlib import Path
from types import FrameType

import uvicorn

from foliot import __version__
from foliot.channels.webhook import WebhookChannel
from foliot.clock import monotonic
from foliot.domain.addresses import networks
from foliot.domain.errors import Conflict, DatabaseUnavailable, FoliotError, Invalid
from foliot.domain.schedule.zone import ZONE_DATA_VERSION
from foliot.egress.client import Egress
from foliot.embedded.server import EmbeddedServer
from foliot.engine.courier import Courier
from foliot.services.identity import installation
from foliot.services.identity.authentication import Door
from foliot.services.secrets import master_key
from foliot.services.workers import workers
from foliot.settings import ROLES, Settings
from foliot.storage.server import ServerFacts
from foliot.storage.tx import Database
from foliot.web.app import create_app
from foliot.web.health import Readiness
from foliot.web.rate_limits import Rates
from foliot.web.work_signal import Bell
from foliot.wiring.database import (
    DatabaseHandle,
    configure_logging,
    lock_data_dir,
    migrate_and_inspect,
    open_database,
    restart_postgres,
    write_admin_key,
)
from foliot.wiring.engine import Engine
from foliot.wiring.janitor_tasks import janitor_tasks
from foliot.wiring.listener import publish_address
from foliot.wiring.master_keys import given_keys, vault_of
from foliot.wiring.policies import (
    OWN_MACHINE,
    allows_loopback,
    auth_failure_rate,
    egress_allow_of,
    egress_policy_of,
    is_loopback,
    quotas_of,
    reject_database_user,
    sandbox_of,
)
from foliot.wiring.process import tune_garbage_collector
from foliot.wiring.shutdown import Shutdown
from foliot.wiring.worker_main import orders_of, refuse_without_results

log = logging.getLogger(__name__)
Say = Callable[[str], None]
SIGNALS = (signal.SIGINT, signal.SIGTERM)
PATIENCE_OF_READYZ = 2.0  # seconds
MOST_RESTARTS, RESTARTS_WITHIN = 3, 600.0  # of a PostgreSQL that dies under us; seconds
HELD = "A backup was restored: no job runs until `foliot db release` says what becomes of the times missed."
ALONE = "This node does not do everything, and no other can share its private PostgreSQL: set FOLIOT_DATABASE_URL."
NO_WORKER = "No worker is running: runs are recorded, but nothing executes them."


def serve(settings: Settings, say: Say) -> None:
    """Run until a signal ends it. `say` prints for people; facts go to the log."""
    configure_logging(settings)
    signals_end_it()
    with (
        lock_data_dir(settings),
        listener(settings.host, settings.port) as listening,
        open_database(settings) as here,
    ):
        if settings.allow_commands and here.server is not None:
            reject_database_user(sandbox_of(settings), here.server.cluster)
        _, facts = migrate_and_inspect(here)
        try:
            tune_garbage_collector()
            asyncio.run(Node(settings, here, facts, say).run(listening))
        finally:
            signals_end_it()  # asyncio has put back the defaults; PostgreSQL has still to be stopped
    log.info("server.stopped")


class Node:
    def __init__(self, settings: Settings, here: DatabaseHandle, facts: ServerFacts, say: Say) -> None:
        self._settings = settings
        self._here = here
        self._facts = facts
        self._say = say
        self._stopping = asyncio.Event()
        self._ending = Shutdown(here)
        self._deaths: deque[float] = deque(maxlen=MOST_RESTARTS)
        self._broken: FoliotError | None = None
        self._db = Database(here.url)
        self._door = Door(self._db, quotas_of(settings))
        self._vault = vault_of(given_keys(settings), settings.data_dir)
        bell, cancel_bell = Bell(), Bell()
        self._webhooks = WebhookChannel(Egress(networks(egress_allow_of(settings))))
        self._engine = Engine(
            self._db,
            settings.listen_url or here.url,
            orders_of(settings, here.url) if "worker" in settings.roles else None,
            janitor_tasks(self._db, settings.keep_messages, settings.host_retention),
            courier=Courier(self._db, self._webhooks.send, self._vault),
            is_scheduling="scheduler" in settings.roles,
            who_may_enter_changed=self._door.forget,
            there_may_be_work=bell.ring,
            work_may_be_cancelled=cancel_bell.ring,
        )
        refuse_without_results(settings.celery_result_url)
        self._http = HttpServer(
            uvicorn.Config(
                create_app(
                    self.readiness,
                    self._stopping,
                    self._db,
                    self._engine.announce,
                    door=self._door,
                    vault=self._vault,
                    rates=Rates(auth_failure_rate(settings)),
                    reach=egress_policy_of(settings),
                    bell=bell,
                    cancel_bell=cancel_bell,
                    lease=timedelta(seconds=settings.worker_lease),
                    artifact_bytes=settings.artifact_bytes,
                    with_api="api" in settings.roles,
                ),
                lifespan="off",
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=settings.shutdown_grace,
            )
        )

    async def run(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for each in SIGNALS:
            loop.add_signal_handler(each, self.stop, each.name)
        if self._here.server is not None:
            self._watch(self._here.server, loop)
        async with self._db:
            lines = await self._first_lines()
            url = url_of(listening)
            self._engine.start()
            with ExitStack() as until_http_ends:

                def started() -> None:
                    until_http_ends.enter_context(publish_address(self._settings.data_dir, url))
                    self._announce(url, lines)

                self._http.when_started = started
                try:
                    await self._http.serve([listening])
                finally:
                    await self._engine.stop()
                    self._webhooks.close()
                    await self._door.close()
        if self._broken is not None:
            raise self._broken

    def stop(self, why: str) -> None:
        """Called again, it no longer waits for requests under way."""
        if self._stopping.is_set():
            self._http.force_exit = True
        log.info("server.stopping", extra={"why": why, "at_once": self._http.force_exit})
        self._stopping.set()
        self._ending.begin()
        self._engine.drain(at_once=self._http.force_exit)  # while HTTP comes to its end, so do the runs
        self._http.should_exit = True

    async def readiness(self) -> Readiness:
        missing = ["this node is stopping"] if self._stopping.is_set() else []
        missing += self._engine.missing
        # Who asks has shown no key: names of logins are for the log only.
        warnings = [each.replace(f"login {self._facts.login}", "login") for each in self._facts.warnings]
        try:
            async with asyncio.timeout(PATIENCE_OF_READYZ):
                state = await installation.state(self._db)
                if state.is_held:
                    warnings.append(HELD)
                if not master_key.opens_canary(self._vault, state):
                    warnings.append(master_key.WRONG)
                if not await workers.count_alive(self._db):
                    warnings.append(NO_WORKER)
        except (FoliotError, TimeoutError):
            missing.append("database")
        if self._here.server is not None and self._settings.roles != ROLES:
            warnings.append(ALONE)
        return Readiness(tuple(missing), tuple(warnings), self._settings.roles)

    async def _first_lines(self) -> list[str]:
        """What the greeting tells about the database; on the first start this makes the administrator's key."""
        kept: list[Path] = []
        first = await installation.first_start(
            self._db,
            tzdata_version=ZONE_DATA_VERSION,
            keep=lambda key: kept.append(write_admin_key(self._settings.data_dir, key)),
        )
        await master_key.begin(self._db, self._vault, makes=self._here.server is not None)
        lines = [f"  database   PostgreSQL {self._facts.version}, {self._here.where}"]
        if first is not None:
            log.info("key.created", extra={"prefix": first.prefix, "path": kept[0]})
            lines.append(f"  admin key  {first.secret}")
            lines.append(f"             shown this once, kept in {kept[0]}")
        if allows_loopback(self._settings):
            lines.append(OWN_MACHINE)
        return lines

    def _announce(self, url: str, lines: list[str]) -> None:
        if self._settings.log_format != "json":
            greeting = f"Foliot {__version__} is serving at {url}"
            if self._settings.roles != ROLES:
                lines = [*lines, f"  roles      {', '.join(self._settings.roles)}"]
            self._say("\n".join(("", greeting, "", *lines, "  stop       Ctrl-C", "")))
        if not is_loopback(self._settings.host):
            log.warning(
                "server.exposed", extra={"host": self._settings.host, "advice": "put TLS in front of it"}
            )
        log.info("egress.allowed", extra={"networks": egress_allow_of(self._settings)})
        log.info(
            "server.started",
            extra={"url": url, "pid": os.getpid(), "version": __version__, "roles": self._settings.roles},
        )

    def _watch(self, server: EmbeddedServer, loop: asyncio.AbstractEventLoop) -> None:
        def tell(code: int) -> None:
            with suppress(RuntimeError):  # the loop is over: we are stopping anyway
                loop.call_soon_threadsafe(self._postgres_died, code)

        server.when_lost(tell)

    def _postgres_died(self, code: int) -> None:
        """Start it again under the same address, where the pool finds it by itself; give up when it keeps dying.

        This holds up the loop: the server must be started from the main thread, and nothing can be done without it.
        """
        if self._stopping.is_set():
            return
        log.error("postgres.died", extra={"exit_code": code})
        now = monotonic()
        often = len(self._deaths) == MOST_RESTARTS and now - self._deaths[0] < RESTARTS_WITHIN
        self._deaths.append(now)
        try:
            if often:
                raise DatabaseUnavailable(
                    f"The private PostgreSQL died {MOST_RESTARTS + 1} times within {RESTARTS_WITHIN / 60:.0f} minutes.",
                    hint="Its log in the data directory says why; a full disk and too little memory are the usual reasons.",
                )
            self._watch(restart_postgres(self._settings, self._here), asyncio.get_running_loop())
        except FoliotError as error:
            self._broken = error
            self.stop("PostgreSQL died")


class HttpServer(uvicorn.Server):
    when_started: Callable[[], None]

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.when_started()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals end the whole node in its own order, so uvicorn may not take them."""
        yield


@contextmanager
def listener(host: str, port: int) -> Iterator[socket.socket]:
    """Taken before anything else starts, so that a busy port costs no PostgreSQL; listening begins when all is ready."""
    taken = None
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        taken = socket.socket(family, kind, protocol)
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(address)
    except OSError as error:
        if taken is not None:
            taken.close()
        raise cannot_listen(host, port, error) from error
    with taken:
        yield taken


def cannot_listen(host: str, port: int, error: OSError) -> FoliotError:
    if error.errno == errno.EADDRINUSE:
        return Conflict(
            f"Port {port} on {host} is taken by another program.",
            hint="Is Foliot running already? Else choose another with --port or FOLIOT_PORT; 0 takes a free one.",
        )
    if error.errno == errno.EACCES:
        return Invalid(
            f"This user may not listen on port {port}.",
            hint="Ports below 1024 belong to root: choose a higher one.",
        )
    return Invalid(
        f"Foliot cannot listen on host {host!r}: {error.strerror}.",
        hint="Use 127.0.0.1, 0.0.0.0 or an address of this machine.",
    )


def url_of(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    if ip_address(host).is_unspecified:
        host = "127.0.0.1" if listening.family == socket.AF_INET else "::1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def signals_end_it() -> None:
    """Before and after the loop runs, a signal unwinds what is there so far; 128 + n is what a shell expects of it."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    for each in SIGNALS:
        signal.signal(each, leave)
