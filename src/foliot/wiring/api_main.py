"""The HTTP process of a node: `python -m foliot.wiring.api_main`, or forked from `foliot serve`.

A socket leads to the node. The process reads its assignment and the settings from it, one line each, then what the engine lacks, again and
again; it writes one line when it listens. When the node dies the socket ends, and so does this process.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial
from io import BufferedReader
from typing import Self

from foliot import telemetry
from foliot.clock import monotonic
from foliot.domain.addresses import networks
from foliot.domain.errors import FoliotError, Invalid, MisplacedDatabase
from foliot.domain.logs import LogLimits
from foliot.egress.client import Egress
from foliot.engine.hints import HintListener
from foliot.engine.loop import Loop
from foliot.mcp.http import agent_routes
from foliot.services.hints import Announcer, Hint
from foliot.services.identity import installation
from foliot.services.identity.authentication import Authenticator
from foliot.services.secrets import master_key
from foliot.services.secrets.vault import Vault
from foliot.services.workers import workers
from foliot.settings import ROLES, Settings
from foliot.storage.tx import Database, PoolSize
from foliot.web.admission import RequestGate
from foliot.web.app import create_app
from foliot.web.console.openid import OpenIdProvider, OpenIdSignIn
from foliot.web.console.session import SignInLinks
from foliot.web.health import Readiness
from foliot.web.rate_limits import RateLimits
from foliot.web.work_signal import WorkSignal
from foliot.wiring.http_server import HttpServer, raise_file_limit, server_config
from foliot.wiring.master_keys import given_keys, vault_of
from foliot.wiring.policies import auth_failure_rate, egress_allow_of, egress_policy_of, quotas_of
from foliot.wiring.process import tune_garbage_collector
from foliot.wiring.worker_main import refuse_celery_without_results

log = logging.getLogger("foliot.wiring.api_main")  # run as a program, its name would be __main__
SIGNALS = (signal.SIGINT, signal.SIGTERM)
READYZ_WITHIN = 2.0  # seconds
CHECK_EVERY, CHECKED_FOR, ASKED_FOR = 0.5, 1.5, 60.0  # seconds
ENGINE_SPEAKS_EVERY, ENGINE_SILENT_AFTER = 2.0, 10.0  # seconds
CONNECTIONS = 10  # to the database, of all HTTP processes of a node together
LEAST_CONNECTIONS = 4  # of each
SPARE_CONNECTIONS = 2  # beyond those of admitted requests: for streams, hints and the use of keys
HELD = "A backup was restored: no job runs until `foliot db release` says what becomes of the times missed."
ROLES_MISSING = "This node does not do everything, and no other can share its private PostgreSQL: set FOLIOT_DATABASE_URL."
NO_WORKER = "No worker is running: runs are recorded, but nothing executes them."
PARENT_GONE = 3  # exit code


@dataclass(frozen=True, slots=True)
class ApiAssignment:
    """The facts that an HTTP process must know beside the settings."""

    database_url: str
    warnings: tuple[str, ...]  # about the database server
    has_private_database: bool

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_json(cls, line: bytes) -> Self:
        found = json.loads(line)
        return cls(found["database_url"], tuple(found["warnings"]), found["has_private_database"])


class EngineStatus:
    """The problems of the engine, as the node last said. A thread writes it and the loop reads it."""

    def __init__(self) -> None:
        self._heard_at = monotonic()
        self._missing: tuple[str, ...] = ()

    def hear(self, line: bytes) -> None:
        self._missing = tuple(json.loads(line))
        self._heard_at = monotonic()

    @property
    def missing(self) -> list[str]:
        is_silent = monotonic() - self._heard_at > ENGINE_SILENT_AFTER
        return ["engine"] if is_silent else list(self._missing)


def main() -> None:
    """Run as a program: the numbers of the two sockets are its arguments."""
    listening, control = (socket.socket(fileno=int(number)) for number in sys.argv[1:])
    run(listening, control)


def run(listening: socket.socket, control: socket.socket) -> None:
    """Serve HTTP until the node ends or stops this process."""
    lines = control.makefile("rb")
    first = lines.readline()
    if not first:  # the node could not start
        sys.exit(PARENT_GONE)
    assignment, settings = ApiAssignment.from_json(first), Settings.from_json(lines.readline())
    telemetry.configure(
        style=settings.log_format,
        level=settings.log_level,
        stream=sys.stderr,
        environ=os.environ,
        secrets=(assignment.database_url, *settings.secrets(), *given_keys(settings)),
    )
    raise_file_limit()
    status = EngineStatus()
    threading.Thread(target=_listen_to_node, args=(lines, status), name="node-watch", daemon=True).start()
    try:
        asyncio.run(HttpApi(settings, assignment, status).run(listening, control))
    except FoliotError as error:
        log.error("api.failed", extra={"reason": error.message, "hint": error.hint})  # noqa: TRY400  # the sentence says it all
        sys.exit(1)


def _listen_to_node(lines: BufferedReader, status: EngineStatus) -> None:
    """Exit at once when the node is gone, also when the loop hangs: its port must be free for the next node."""
    with suppress(ValueError, OSError):
        for line in lines:
            status.hear(line)
    os._exit(PARENT_GONE)


class HttpApi:
    def __init__(self, settings: Settings, assignment: ApiAssignment, engine: EngineStatus) -> None:
        self._settings = settings
        self._assignment = assignment
        self._engine = engine
        self._stopping = asyncio.Event()
        most = max(LEAST_CONNECTIONS, CONNECTIONS // settings.api_processes)
        self._db = Database(assignment.database_url, size=PoolSize(1, most))
        self._authenticator = Authenticator(self._db, quotas_of(settings))
        self._vault = vault_of(given_keys(settings), settings.data_dir)
        self._database_check = DatabaseCheck(self._db, self._vault)
        self._announcer = Announcer(self._db)
        bell, cancel_bell, changes = WorkSignal(), WorkSignal(), WorkSignal()
        self._changes = changes
        wakes: dict[Hint, Sequence[Callable[[], None]]] = {
            Hint.KEYS: [self._authenticator.forget, changes.ring],
            Hint.READY: [bell.ring, changes.ring],
            Hint.CANCELS: [cancel_bell.ring, changes.ring],
            Hint.TIMERS: [changes.ring],
            Hint.OUTBOX: [changes.ring],
        }
        listener = HintListener(
            self._db,
            settings.listen_url or assignment.database_url,
            {hint: partial(_call_all, calls) for hint, calls in wakes.items()},
        )
        self._hints = Loop("hints", listener.step, within=None)
        refuse_celery_without_results(settings)
        self._http = HttpServer(
            server_config(
                create_app(
                    self.readiness,
                    self._stopping,
                    self._db,
                    self._announcer.announce,
                    authenticator=self._authenticator,
                    vault=self._vault,
                    rates=RateLimits(auth_failure_rate(settings)),
                    gate=RequestGate(most - SPARE_CONNECTIONS),
                    reach=egress_policy_of(settings),
                    bell=bell,
                    cancel_bell=cancel_bell,
                    changes=changes,
                    lease=timedelta(seconds=settings.worker_lease),
                    artifact_bytes=settings.artifact_bytes,
                    log_limits=LogLimits(settings.log_lines, settings.log_bytes),
                    with_api="api" in settings.roles,
                    links=SignInLinks(settings.data_dir),
                    openid=_openid_of(settings),
                    agent_routes=agent_routes,
                    dialects=settings.dialects,
                    public_url=settings.public_url,
                ),
                grace=settings.shutdown_grace,
                trusted_proxies=settings.trusted_proxies,
            )
        )

    async def run(self, listening: socket.socket, control: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for each in SIGNALS:
            loop.add_signal_handler(each, self.stop)
        tune_garbage_collector()
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._db)
            stack.push_async_callback(self._announcer.close)
            stack.push_async_callback(self._authenticator.close)
            for background in (self._hints, self._database_check.loop):
                stack.push_async_callback(_end, asyncio.create_task(background.run(), name=background.name))

            def on_started() -> None:
                log.info("api.started", extra={"pid": os.getpid()})
                with suppress(OSError):  # the node is gone, and this process is about to go
                    control.sendall(b"ready\n")

            self._http.on_started = on_started
            await self._http.serve([listening])

    def stop(self) -> None:
        """Stop. A second call no longer waits for requests under way."""
        if self._stopping.is_set():
            self._http.force_exit = True
        self._stopping.set()
        self._changes.ring()  # streams wait for it, and end
        self._http.should_exit = True

    async def readiness(self) -> Readiness:
        missing = ["this node is stopping"] if self._stopping.is_set() else []
        missing += self._engine.missing
        checked = await self._database_check.latest()
        warnings = [*self._assignment.warnings, *checked.warnings]
        if self._assignment.has_private_database and self._settings.roles != ROLES:
            warnings.append(ROLES_MISSING)
        return Readiness((*missing, *checked.missing), tuple(warnings), self._settings.roles)


class DatabaseCheck:
    """The part of /readyz that queries the database. While probes come, it queries ahead: they must not wait behind requests."""

    def __init__(self, database: Database, vault: Vault) -> None:
        self._database = database
        self._vault = vault
        self._found = Readiness()
        self._checked_at = self._asked_at = -math.inf
        self.loop = Loop("readiness", self._step)

    async def latest(self) -> Readiness:
        """Return what was found at most `CHECKED_FOR` seconds ago."""
        self._asked_at = monotonic()
        if self._asked_at - self._checked_at > CHECKED_FOR:
            await self._check()
            self.loop.wake()
        return self._found

    async def _step(self) -> timedelta:
        if monotonic() - self._asked_at > ASKED_FOR:
            return timedelta(days=1)
        await self._check()
        return timedelta(seconds=CHECK_EVERY)

    async def _check(self) -> None:
        began, missing, warnings = monotonic(), [], []
        try:
            async with asyncio.timeout(READYZ_WITHIN):
                state = await installation.state(self._database)
                if state.is_held:
                    warnings.append(HELD)
                if not master_key.opens_canary(self._vault, state):
                    warnings.append(master_key.WRONG)
                if not await workers.count_alive(self._database):
                    warnings.append(NO_WORKER)
        except MisplacedDatabase as error:
            missing.append(f"database: {error.message}")
        except (FoliotError, TimeoutError):
            missing.append("database")
        self._found, self._checked_at = Readiness(tuple(missing), tuple(warnings)), began


def _openid_of(settings: Settings) -> OpenIdSignIn | None:
    """The provider that people sign in with; None where no issuer is set."""
    if settings.oidc_issuer is None:
        return None
    if settings.oidc_client_id is None or settings.oidc_client_secret is None:
        raise Invalid(
            "FOLIOT_OIDC_ISSUER is set, but not who Foliot is there.",
            hint="Set FOLIOT_OIDC_CLIENT_ID and FOLIOT_OIDC_CLIENT_SECRET.",
        )
    provider = OpenIdProvider(
        settings.oidc_issuer, settings.oidc_client_id, settings.oidc_client_secret, settings.oidc_workspace,
        settings.oidc_name, settings.public_url,
    )  # fmt: skip
    return OpenIdSignIn(provider, Egress(networks(egress_allow_of(settings))))


def _call_all(calls: Sequence[Callable[[], None]]) -> None:
    for call in calls:
        call()


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


if __name__ == "__main__":
    main()
