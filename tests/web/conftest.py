"""The API on a real database, without a socket: three workspaces and a key for every role in each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from secrets import token_bytes
from typing import Any
from uuid import uuid4

import httpx2 as httpx
import pytest

from foliot.domain.access import KEY_ENTROPY, ApiKey, MemberRole, Principal, PrincipalKind
from foliot.domain.bridge_policy import EVERYTHING, BridgePolicy
from foliot.domain.ids import KeyId, PrincipalId, WorkerId, WorkspaceId
from foliot.handlers.dependencies import EgressPolicy
from foliot.services.identity.authentication import Authenticator
from foliot.services.identity.installation import first_start
from foliot.services.secrets.vault import Vault
from foliot.storage.identity import keys, members, workspaces
from foliot.storage.tx import Database, Role, Tx
from foliot.storage.workers import workers
from foliot.storage.workers.workers import WorkerRow
from foliot.testing.clock import ManualClock
from foliot.testing.database import Databases, pool_url
from foliot.testing.fixtures import a_vault
from foliot.web.app import create_app
from foliot.web.console.openid import OpenIdSignIn
from foliot.web.health import Readiness
from foliot.web.rate_limits import RateLimits

FOR_EVER = datetime(9999, 1, 1, tzinfo=UTC)
WORKSPACES = ("acme", "globex", "outsider")
LOCAL = EgressPolicy(bridge_policy=BridgePolicy(EVERYTHING, EVERYTHING))


@dataclass
class ApiHarness:
    """The API with three workspaces, and a key for each role in each."""

    database: Database
    http: httpx.AsyncClient
    hints: list[str]
    ids: dict[str, WorkspaceId] = field(default_factory=dict)
    keys: dict[tuple[str, str], str] = field(default_factory=dict)
    system: str = ""

    async def request(
        self, method: str, path: str, *, who: str = "acme", role: str = "editor", **more: Any
    ) -> httpx.Response:
        key = self.system if who == "system" else self.keys[who, role]
        headers = {"Authorization": f"Bearer {key}", **more.pop("headers", {})}
        return await self.http.request(method, f"/api/v1{path}", headers=headers, **more)

    async def create_job(self, who: str = "acme", **fields: Any) -> dict[str, Any]:
        answer = await self.request("POST", "/jobs", who=who, json=job(**fields))
        assert answer.status_code == 201, answer.text
        made: dict[str, Any] = answer.json()
        return made

    async def register_worker(
        self, worker_id: WorkerId, queues: Sequence[str] = (), types: Sequence[str] = ()
    ) -> WorkerId:
        """Register a worker that never expires. Without queues, tests claim for it directly."""
        async with self.database.tx(Role.ENGINE) as tx:
            if not await workers.record_heartbeat(
                tx, worker_id, FOR_EVER, is_draining=False, running_count=0
            ):
                await workers.register(
                    tx, worker_id, WorkerRow("test", list(queues), list(types), 100, "0"), FOR_EVER
                )
        return worker_id

    async def create_key(
        self,
        who: str,
        role: MemberRole,
        *,
        kind: PrincipalKind = PrincipalKind.SERVICE,
        scopes: frozenset[str] = frozenset(),
        name: str | None = None,
    ) -> str:
        """Create a principal with a key and return the secret."""
        workspace = self.ids[who]
        holder = Principal(PrincipalId(uuid4()), workspace, kind, name or f"{role}-{uuid4().hex[:6]}", role)
        async with self.database.tx(Role.APP, workspace) as tx:
            return await _enrol(tx, holder, scopes)


def job(**fields: Any) -> dict[str, Any]:
    """The body of the smallest job, with these fields changed or added."""
    config = {"call": "shop.jobs:sync"} if fields.get("type") == "python" else {"url": "https://example.test"}
    least = {
        "name": "beat",
        "type": "http",
        "config": config,
        "schedule": {"kind": "interval", "every": "10m"},
    }
    return {**least, **fields}


def problems(answer: httpx.Response) -> Mapping[str, str]:
    """Message of each problem by its pointer."""
    return {each["pointer"]: each["message"] for each in answer.json()["errors"]}


async def _enrol(tx: Tx, holder: Principal, scopes: frozenset[str]) -> str:
    key = ApiKey.make(token_bytes(KEY_ENTROPY))
    await members.insert_principal(tx, holder)
    await keys.insert_key(tx, KeyId(uuid4()), key, holder, name=holder.name, scopes=scopes)
    return key.secret


@pytest.fixture
async def api(database: Database) -> AsyncIterator[ApiHarness]:
    async with open_api(database) as made:
        yield made


@pytest.fixture(scope="module")
async def shared_api(server: Databases) -> AsyncIterator[ApiHarness]:
    """Shared by the tests of a module that change nothing: they only read, or are refused."""
    async with open_fresh_api(server, ManualClock()) as made:
        yield made


@asynccontextmanager
async def open_fresh_api(server: Databases, clock: ManualClock) -> AsyncIterator[ApiHarness]:
    """The API on a database of its own, for fixtures that many tests share."""
    with server.fresh() as url:
        async with Database(pool_url(url), clock=clock) as database, open_api(database) as made:
            yield made


@asynccontextmanager
async def open_api(
    database: Database,
    *,
    stopping: bool = False,
    authenticator: Authenticator | None = None,
    rates: RateLimits | None = None,
    vault: Vault | None = None,
    root_path: str = "",
    openid: OpenIdSignIn | None = None,
    dialects: Sequence[str] = (),
) -> AsyncIterator[ApiHarness]:
    async def probe() -> Readiness:
        return Readiness()

    first = await first_start(database, tzdata_version="2026a")
    assert first is not None
    said: list[str] = []
    ending = asyncio.Event()
    if stopping:
        ending.set()  # streams end at once
    app = create_app(
        probe,
        ending,
        database,
        said.append,
        authenticator=authenticator,
        rates=rates,
        vault=vault or a_vault(),
        reach=LOCAL,
        public_url=f"https://foliot.test{root_path}" if root_path else None,
        openid=openid,
        dialects=dialects,
    )
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://foliot.test") as http:
        made = ApiHarness(database, http, said, system=first.secret)
        for slug in WORKSPACES:
            made.ids[slug] = WorkspaceId(uuid4())
            async with database.tx(Role.APP, system=True) as tx:
                await workspaces.insert_missing(tx, made.ids[slug], slug, slug.title())
            async with database.tx(Role.APP, made.ids[slug]) as tx:  # one transaction: many tests start here
                for role in MemberRole:
                    holder = Principal(
                        PrincipalId(uuid4()), made.ids[slug], PrincipalKind.SERVICE, f"{role}-{slug}", role
                    )
                    made.keys[slug, role.value] = await _enrol(tx, holder, frozenset())
        yield made
    await app.state.authenticator.close()
