"""Nothing that a workspace wrote reaches another, by whichever request; and nothing of it moves.

Operations and their parameters come from the description of the API, statements from what its own people's requests ran.
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from docs.api_reference import description
from foliot.domain.access import MemberRole, PrincipalKind
from foliot.domain.ids import WorkspaceId
from foliot.storage.queries import SqlQuery
from foliot.storage.queries import sql as named
from foliot.storage.tx import Database, Role, Tx
from foliot.testing.clock import ManualClock
from foliot.testing.database import Databases, pool_url
from tests.web.canaries import CANARY, FRAGMENT, KEY, CanaryData, plant_canaries, sent_bodies
from tests.web.conftest import ApiHarness, open_api

pytestmark = pytest.mark.anyio
METHODS = ("get", "post", "put", "patch", "delete")
# Of parameters that name something: what a stranger would try. Each is sent alone; those not here have nothing to do with others.
PICKED_UP = {
    "q": [
        FRAGMENT,
        f"name:{FRAGMENT}",
        f"-name:{FRAGMENT}",
        f"tag:{FRAGMENT}*",
        "status:failed",
        "since:24h",
    ],
    "name": [FRAGMENT],
    "count": ["true"],
    "sort": ["name", "-next_run_at"],
    "installation": ["true"],
    "follow": ["true"],
    "key": [f"{FRAGMENT}-a"],
}
NOBODYS = {
    "events.load_bounds": "numbers of the server's transactions",
    "statistics.load_roll_up_position": "where there is none, the first id of all",
}
# Columns that hold parameters of the statement, without any row: the counts beside them are looked at.
OF_PARAMETERS = {"run_search.summarize_runs": {"low", "width"}}
SHARED_WITH_AGENTS = re.compile(
    r"^/api/v1/(calendars|freezes|hosts|queues|workers|job-types)|^/api/v1/events$"
)


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    at: str
    params: Mapping[str, str]
    headers: Mapping[str, str]
    body: dict[str, Any] | None

    @property
    def text(self) -> str:
        return f"{self.at} {self.params} {self.headers} {self.body}"


@dataclass
class Stand:
    api: ApiHarness
    canaries: CanaryData
    schema: dict[str, Any]
    ran: list[tuple[Role, SqlQuery, Any, bool]]  # and whether it was a plain read

    async def request(self, asked: Request, key: str) -> Any:
        more: dict[str, Any] = {} if asked.body is None else {"json": asked.body}
        return await self.api.http.request(
            asked.method,
            asked.at,
            params=dict(asked.params),
            headers={"Authorization": f"Bearer {key}", **asked.headers},
            **more,
        )

    async def seen_by_owner(self) -> dict[str, Any]:
        """All that the owner finds, to be held against itself later."""
        found = {}
        for path in (
            "/jobs?status=paused",
            "/runs",
            "/keys",
            "/members",
            "/calendars",
            "/freezes?ended=true",
            "/rooms",
            f"/rooms/{self.canaries.ids['room_id']}/messages",
            "/secrets",
            "/audit",
            "/channels",
            "/notification-rules",
            "/incidents",
            "/deliveries",
        ):
            answer = await self.api.request("GET", path, who="acme", role="admin")
            assert CANARY in answer.text, path
            found[path] = re.sub(r'"last_used_at":("[^"]*"|null)', "", answer.text)
        return found


@pytest.fixture(scope="module")
async def stand(server: Databases) -> AsyncIterator[Stand]:
    with server.fresh() as url, pytest.MonkeyPatch.context() as patch:
        clock = ManualClock()
        async with (
            Database(pool_url(url), clock=clock) as database,
            open_api(database, stopping=True) as api,
        ):
            made = Stand(api, CanaryData(), description(), [])
            overhear(patch, made.ran)
            made.canaries = await plant_canaries(api, clock)
            works = await api.create_key("globex", MemberRole.ADMIN, scopes=frozenset({"worker"}))
            api.keys["globex", "worker"] = works
            for asked in probes(made, reading_only=True):
                await made.request(asked, api.keys["acme", "admin"])
            patch.undo()
            yield made


def overhear(patch: pytest.MonkeyPatch, ran: list[tuple[Role, SqlQuery, Any, bool]]) -> None:
    """Keeps each statement that a transaction of the app runs in acme, with its parameters."""
    run, run_tuples, fetch_tuples = Tx._run, Tx._run_tuples, Tx.fetch_tuples

    def note(tx: Tx, query: SqlQuery, params: Any) -> None:
        reads = re.match(rb"\s*(SELECT|WITH)\b(?!.*\b(INSERT|UPDATE|DELETE)\b)", query.text, re.DOTALL)
        if tx.role is Role.APP and tx.workspace_id is not None:
            ran.append((tx.role, query, tx._bind(query, params), reads is not None))

    async def noted_run(tx: Tx, query: SqlQuery, params: Any) -> Any:
        note(tx, query, params)
        return await run(tx, query, params)

    async def noted_run_tuples(tx: Tx, query: SqlQuery, params: Any) -> Any:
        note(tx, query, params)
        return await run_tuples(tx, query, params)

    async def noted_tuples(tx: Tx, query: SqlQuery, params: Any = None) -> Any:
        note(tx, query, params)
        return await fetch_tuples(tx, query, params)

    patch.setattr(Tx, "_run", noted_run)
    patch.setattr(Tx, "_run_tuples", noted_run_tuples)
    patch.setattr(Tx, "fetch_tuples", noted_tuples)


def probes(stand: Stand, *, reading_only: bool = False) -> Iterator[Request]:
    """Every operation: with the owner's ids in its path, with each thing picked up in each parameter, header and body that takes it."""
    bodies = sent_bodies(stand.canaries)
    ids, canaries = stand.canaries.ids, stand.canaries
    headers: list[dict[str, str]] = [
        {},
        {"Last-Event-ID": canaries.last_event_id},
        {"If-None-Match": canaries.etag},
    ]
    headers += [{"If-Match": canaries.etag}, {"Idempotency-Key": f"{KEY}a"}, {"Accept": "text/event-stream"}]
    for path, item in stand.schema["paths"].items():
        for method in METHODS:
            if method not in item or (reading_only and method != "get"):
                continue
            operation = item[method]
            at = re.sub(r"{(\w+)}", lambda found: ids[found[1]], path)
            key = (method.upper(), path)
            some: list[dict[str, Any] | None] = [None]
            if "requestBody" in operation:
                some = [*bodies.get(key, [{}])]
            for body in some:
                yield from (Request(*key, at, {}, each, body) for each in headers)
            names = [each["name"] for each in operation.get("parameters", ()) if each["in"] == "query"]
            for name in names:
                values = PICKED_UP.get(name, [])
                if name == "cursor":
                    values = canaries.cursors
                elif name in {"job", "owner", "principal", "actor", "worker", "object"}:
                    values = (
                        sorted(canaries.all_ids()) if name != "object" else [f"job:{ids['job_id']}", "job"]
                    )
                yield from (Request(*key, at, {name: value}, {}, some[0]) for value in values)


async def test_a_body_that_takes_an_id_is_tried_with_the_ids_of_others(stand: Stand) -> None:
    shapes = stand.schema["components"]["schemas"]

    def takes_ids(shape: Any) -> bool:
        if isinstance(shape, list):
            return any(map(takes_ids, shape))
        if not isinstance(shape, dict):
            return False
        if "$ref" in shape:
            return takes_ids(shapes[shape["$ref"].rpartition("/")[2]])
        return shape.get("format") == "uuid" or any(map(takes_ids, shape.values()))

    wanted = {
        (method.upper(), path)
        for path, item in stand.schema["paths"].items()
        for method in METHODS
        if takes_ids(item.get(method, {}).get("requestBody"))
    }
    assert wanted - sent_bodies(stand.canaries).keys() == set(), "teach sent_bodies what these take"


@pytest.mark.parametrize(
    "role", ["admin", *(pytest.param(each, marks=pytest.mark.slow) for each in ("viewer", "worker"))]
)
async def test_no_operation_gives_another_workspace_a_word_or_an_id(
    stand: Stand, role: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = await stand.seen_by_owner()
    caplog.set_level(logging.DEBUG)
    caplog.clear()
    count = 0
    for asked in probes(stand):
        answer = await stand.request(asked, stand.api.keys["globex", role])
        leaks(stand, asked, answer)
        count += 1
    assert count > 300
    assert CANARY not in caplog.text
    assert CANARY not in "".join(str(vars(record)) for record in caplog.records)
    assert await stand.seen_by_owner() == before


@pytest.mark.slow
@pytest.mark.requirement("S4-27")
async def test_no_operation_gives_an_agent_a_word_of_what_others_own(stand: Stand) -> None:
    key = await stand.api.create_key("acme", MemberRole.EDITOR, kind=PrincipalKind.AGENT)
    before = await stand.seen_by_owner()
    for asked in probes(stand):
        if SHARED_WITH_AGENTS.match(asked.path) or re.search("calendars|target", str(asked.body)):
            continue  # calendars, freezes and the fleet are the workspace's, and agents see them
        answer = await stand.request(asked, key)
        leaks(
            stand, asked, answer, shared={stand.canaries.ids["calendar_id"], stand.canaries.ids["workspace"]}
        )
    after = await stand.seen_by_owner()
    assert {path: after[path] for path in after if path != "/audit"} == {
        path: before[path] for path in before if path != "/audit"
    }


def leaks(stand: Stand, asked: Request, answer: Any, shared: frozenset[str] | set[str] = frozenset()) -> None:
    reported = f"{answer.status_code} {dict(answer.headers)} {answer.text}"
    assert answer.status_code < 500, (asked, reported)
    assert CANARY not in reported, (asked, reported)
    ids = stand.canaries.all_ids() - shared
    assert [each for each in ids if each in reported and each not in asked.text] == [], (asked, reported)


async def test_what_the_owners_requests_asked_the_database_answers_nobody_else(stand: Stand) -> None:
    """The same statements with the same parameters: in no workspace, in another, in one that does not exist."""
    seen = {query.text: (query, params) for _, query, params, reads in stand.ran if reads}
    known = {query.name for query in named}
    assert len({query.name for query, _ in seen.values()} & known) > 40
    reported: set[tuple[str, str]] = set()
    for place in (None, stand.api.ids["globex"], WorkspaceId(uuid4())):
        for query, params in seen.values():
            rows = await replayed(stand.api.database, place, query, params)
            own = OF_PARAMETERS.get(query.name, set())
            values = [value for row in rows for name, value in row.items() if name not in own]
            if CANARY in str(rows) or (place is None and any(values)):
                reported.add((query.name, str(rows)[:300]))
    assert {each for each in reported if each[0] not in NOBODYS} == set()


async def replayed(database: Database, place: WorkspaceId | None, query: SqlQuery, params: Any) -> list[Any]:
    try:
        async with database.tx(Role.APP, place) as tx:
            return await tx.fetch(query, params)
    except psycopg.errors.InsufficientPrivilege:
        return []


async def test_what_the_owners_requests_wrote_nobody_else_can_write(stand: Stand) -> None:
    written = {query.text: (query, params) for _, query, params, reads in stand.ran if not reads}
    before = await stand.seen_by_owner()
    for place in (None, stand.api.ids["globex"]):
        for query, params in written.values():
            if query.name.startswith("tx."):
                continue
            try:
                async with stand.api.database.tx(Role.APP, place) as tx:
                    await tx.execute(query, params)
            except psycopg.Error:
                continue  # a policy or a constraint has refused it
    assert await stand.seen_by_owner() == before
