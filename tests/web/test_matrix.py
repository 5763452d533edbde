"""Every operation of the app x who asks x whose thing it is x what their key is worth.

Nothing is written down here per route: operations come from the app and what is expected from the permission that each
declares. A route with a path parameter that nobody here can make a thing for fails, so that no route is left out unseen.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from secrets import token_bytes
from typing import Any
from uuid import UUID, uuid4

import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

from foliot.domain.access import KEY_ENTROPY, ApiKey, MemberRole, Permission, PrincipalKind
from foliot.domain.ids import IncidentId, JobId, PrincipalId
from foliot.domain.notifications.incidents import open_incident
from foliot.domain.notifications.notice import Notice, NoticeEvent
from foliot.services.identity import workspaces
from foliot.services.scheduling.tick import tick
from foliot.services.workers import remote_register
from foliot.services.workers.remote_register import HostIntroduction, RemoteWorkerHello, WorkerPrincipal
from foliot.storage.jobs import job_types
from foliot.storage.jobs.job_types import JobTypeDescription
from foliot.storage.notifications import incidents
from foliot.storage.tx import Database, Role
from foliot.testing.clock import ManualClock
from foliot.testing.database import Databases, pool_url
from foliot.testing.fixtures import TEST
from foliot.web.app import OPEN
from foliot.web.routes import guard_of
from tests.web.artifact_files import store_artifact
from tests.web.conftest import ApiHarness, job, open_api

pytestmark = pytest.mark.anyio
SAME = {"X-Request-Id": "same-for-all"}
ROLES = list(MemberRole)
# What an operation must be sent, beside its path, before it looks for the thing. Others take an empty object.
CALENDAR = {
    "name": "nights",
    "kind": "blackout",
    "rules": [{"kind": "weekly", "start": "22:00", "end": "06:00"}],
}
CHANNEL = {"name": "ops", "config": {"kind": "email", "to": ["ops@example.test"]}}
RULE = {"name": "all", "events": ["run_failed"]}
WEBHOOK = {
    "name": "cron",
    "kind": "check_in",
    "job_id": "01980000-0000-7000-8000-000000000000",
}
SENT: dict[tuple[str, str], dict[str, Any]] = {
    ("PUT", "/api/v1/job-types/{job_type}"): {"json": {"enabled": True}},
    ("PUT", "/api/v1/calendars/{calendar_id}"): {"json": CALENDAR},
    ("PUT", "/api/v1/jobs/{job_id}"): {"json": job()},
    ("PUT", "/api/v1/channels/{channel_id}"): {"json": CHANNEL},
    ("PUT", "/api/v1/notification-rules/{rule_id}"): {"json": RULE},
    ("PUT", "/api/v1/webhooks/{webhook_id}"): {"json": WEBHOOK},
    ("PUT", "/api/v1/incidents/{incident_id}/note"): {"json": {"note": "a note"}},
    ("POST", "/api/v1/incidents/{incident_id}/snooze"): {"json": {"until": "2100-01-01T00:00:00Z"}},
    ("PUT", "/api/v1/budgets"): {"json": {"items": []}},
    ("POST", "/api/v1/runs/{run_id}/usage"): {"json": {"usage": {"tokens": 1}}},
    ("PUT", "/api/v1/limits"): {"json": {"key": "db", "cap": 1}},
    ("DELETE", "/api/v1/limits"): {"params": {"key": "none has this"}},
    ("PUT", "/api/v1/secrets/{secret_id}"): {"json": {"value": "another"}},
    ("PATCH", "/api/v1/secrets/{secret_id}"): {"json": {"agents": []}},
    ("POST", "/api/v1/jobs/{job_id}/revert"): {"json": {"revision": 1}},
    ("POST", "/api/v1/rooms/{room_id}/messages"): {"json": {"text": "hello"}},
    ("POST", "/api/v1/hosts/{host_id}/instances"): {"json": {"name": "pve"}},
    ("POST", "/api/v1/jobs/{job_id}/backfill"): {
        "json": {"from": "2027-01-14T00:00:00Z", "to": "2027-01-15T00:00:00Z", "dry_run": True}
    },
}
ABSENT = frozenset({("DELETE", "/api/v1/limits")})  # what it is about has no id, and is not there
# What a workspace shares: its agents look at these and change none.
SHARED = frozenset({"calendar_id", "freeze_id", "host_id", "instance_id"})
# What agents may ask for beside the things they own. A new route that changes something is not for them until it stands here.
# The verbs on many jobs find the agent's own alone, by filter and by id. Each write of a batch or an import passes the guard of its own route.
FOR_AGENTS = frozenset(
    ("POST", f"/api/v1/{path}")
    for path in (
        "batch",
        "imports",
        "jobs",
        "jobs/bulk",
        "jobs/batch-delete",
        "runs/bulk",
        "preview",
        "keys",
        "rooms",
    )
)


@dataclass(frozen=True, slots=True)
class Operation:
    method: str
    path: str
    permission: Permission
    agents: bool

    @property
    def parameters(self) -> list[str]:
        return re.findall(r"{(\w+)(?::\w+)?}", self.path)

    def at(self, things: Mapping[str, str]) -> str:
        return re.sub(r"{(\w+)(?::\w+)?}", lambda found: things[found[1]], self.path)

    def lets_in(self, who: Who) -> bool:
        if who.is_agent and not self.agents:
            return False
        if (
            who.is_worker or self.permission is Permission.WORKER
        ):  # such a key does this alone, and no other does it
            return who.is_worker and self.permission is Permission.WORKER
        if self.permission is Permission.INVITE:
            return False  # of an invite alone: tests/web/test_invites.py
        if self.permission is Permission.SYSTEM:
            return who.role is None
        reach = MemberRole.ADMIN if who.role is None else who.role
        if who.is_agent and reach is MemberRole.ADMIN:
            reach = MemberRole.EDITOR
        return reach.is_at_least(MemberRole(self.permission.value))


@dataclass(frozen=True, slots=True)
class Who:
    name: str
    key: str = field(repr=False)
    role: MemberRole | None  # None: a key of the installation
    is_agent: bool = False
    is_worker: bool = False  # its key is of the scope worker

    def headers(self, workspace: str = "acme") -> dict[str, str]:
        chosen = {"Foliot-Workspace": workspace} if self.role is None else {}
        return {"Authorization": f"Bearer {self.key}", **SAME, **chosen}


class Makers:
    """How to make a thing for each path parameter, as an administrator of a workspace. It answers with the thing's id."""

    def __init__(self, api: ApiHarness, clock: ManualClock) -> None:
        self.api = api
        self.clock = clock
        self.newest_run = ""
        self.of: dict[str, Callable[[str], Awaitable[str]]] = {
            "job_id": self.job,
            "run_id": self.run,
            "artifact_name": self.artifact,
            "job_type": self.job_type,
            "key_id": self.key,
            "member_id": self.member,
            "workspace": self.workspace,
            "calendar_id": self.calendar,
            "freeze_id": self.freeze,
            "room_id": self.room,
            "secret_id": self.secret,
            "host_id": self.host,
            "instance_id": self.instance,
            "channel_id": self.channel,
            "rule_id": self.notification_rule,
            "incident_id": self.incident,
            "delivery_id": self.delivery,
            "webhook_id": self.webhook,
        }
        self.channels: dict[str, str] = {}
        self.last_host = ""

    async def things(self, operation: Operation, workspace: str) -> dict[str, str]:
        return {name: await self.of[name](workspace) for name in operation.parameters}

    async def made(self, workspace: str, path: str, body: dict[str, Any], role: str = "admin") -> str:
        answer = await self.api.request("POST", path, who=workspace, role=role, json=body)
        assert answer.status_code == 201, (path, answer.text)
        found: str = answer.json()["id"]
        return found

    async def job(self, workspace: str, **fields: Any) -> str:
        return await self.made(workspace, "/jobs", job(name="canary-5b1f", **fields))

    async def run(self, workspace: str) -> str:
        self.newest_run = await self.made(workspace, f"/jobs/{await self.job(workspace)}/run", {})
        return self.newest_run

    async def job_type(self, workspace: str) -> str:
        name = f"canary-shared-{uuid4().hex}"
        found = await workspaces.get(self.api.database, workspace)
        async with self.api.database.tx(Role.ENGINE) as tx:
            await job_types.describe(tx, found.id, [JobTypeDescription(name, "canary-shared", {})])
        return name

    async def artifact(self, workspace: str) -> str:
        """Of the run that was made just before."""
        return await store_artifact(self.api.database, self.newest_run)

    async def key(self, workspace: str) -> str:
        return await self.made(workspace, "/keys", {"name": "canary-5b1f"})

    async def member(self, workspace: str) -> str:
        return await self.made(
            workspace, "/members", {"kind": "user", "name": "canary-5b1f", "role": "viewer"}
        )

    async def calendar(self, workspace: str) -> str:
        return await self.made(workspace, "/calendars", {**CALENDAR, "name": f"canary-shared {uuid4().hex}"})

    async def freeze(self, workspace: str) -> str:
        """One that holds nothing of the other things, for it begins long after them."""
        return await self.made(
            workspace, "/freezes", {"reason": "canary-shared", "start_at": "2100-01-01T00:00:00Z"}
        )

    async def room(self, workspace: str) -> str:
        return await self.made(workspace, "/rooms", {"name": "canary-5b1f"})

    async def secret(self, workspace: str) -> str:
        return await self.made(
            workspace, "/secrets", {"name": f"canary-5b1f-{uuid4().hex}", "value": "canary-5b1f"}
        )

    async def host(self, workspace: str) -> str:
        speaker = WorkerPrincipal(self.api.ids[workspace], PrincipalId(uuid4()), TEST)
        hello = RemoteWorkerHello(
            "canary-shared", ["http"], 1, host=HostIntroduction(f"canary-shared {uuid4().hex}")
        )
        made = await remote_register.register(self.api.database, speaker, hello)
        self.last_host = str(made.host_id)
        return self.last_host

    async def instance(self, workspace: str) -> str:
        """On the host that was made last: paths name the host before the instance."""
        body = {"name": f"canary-shared {uuid4().hex}"}
        return await self.made(workspace, f"/hosts/{self.last_host}/instances", body)

    async def channel(self, workspace: str) -> str:
        body = {**CHANNEL, "name": f"canary-5b1f {uuid4().hex}"}
        return await self.made(workspace, "/channels", body)

    async def notification_rule(self, workspace: str) -> str:
        body = {**RULE, "name": f"canary-5b1f {uuid4().hex}"}
        return await self.made(workspace, "/notification-rules", body)

    async def incident(self, workspace: str) -> str:
        job_id = JobId(UUID(await self.job(workspace)))
        notice = Notice(1, NoticeEvent.RUN_FAILED, self.clock.now(), job_id)
        async with self.api.database.tx(Role.APP, self.api.ids[workspace]) as tx:
            opened = open_incident(IncidentId(tx.new_id()), notice)
            await incidents.insert(tx, [opened])
        return str(opened.id)

    async def delivery(self, workspace: str) -> str:
        if workspace not in self.channels:
            self.channels[workspace] = await self.channel(workspace)
        path = f"/channels/{self.channels[workspace]}/test"
        answer = await self.api.request("POST", path, who=workspace, role="admin")
        found: str = answer.json()["id"]
        return found

    async def webhook(self, workspace: str) -> str:
        job_id = await self.job(workspace, type="check_in", config={})
        return await self.made(
            workspace, "/webhooks", {**WEBHOOK, "name": f"canary-5b1f {uuid4().hex}", "job_id": job_id}
        )

    async def workspace(self, workspace: str) -> str:
        answer = await self.api.request(
            "POST", "/workspaces", who="system", json={"slug": f"w-{uuid4().hex[:8]}"}
        )
        found: str = answer.json()["id"]
        return found


@dataclass
class Grid:
    api: ApiHarness
    makers: Makers
    operations: list[Operation]
    people: list[Who]

    def chosen(self, names: frozenset[str] | None) -> list[Who]:
        return [who for who in self.people if names is None or who.name in names]

    async def send(self, operation: Operation, things: Mapping[str, str], headers: dict[str, str]) -> Any:
        sent = SENT.get((operation.method, operation.path))
        if sent is None:
            sent = {"json": {}} if operation.method in {"POST", "PUT", "PATCH"} else {}
        return await self.api.http.request(operation.method, operation.at(things), headers=headers, **sent)


def operations_of(app: FastAPI) -> list[Operation]:
    found = []
    for route in iter_route_contexts(app.routes):
        guard = guard_of(route.dependant) if hasattr(route, "dependant") else None
        if route.path in OPEN:
            continue
        assert guard is not None, route.path
        found += [
            Operation(method, str(route.path), guard.permission, guard.agents)
            for method in sorted(route.methods or ())
        ]
    return found


@pytest.fixture(scope="module")
async def grid(server: Databases) -> AsyncIterator[Grid]:
    with server.fresh() as url:
        clock = ManualClock()
        async with (
            Database(pool_url(url), clock=clock) as database,
            open_api(database, stopping=True) as api,
        ):
            people = [Who(role.value, api.keys["acme", role.value], role) for role in ROLES]
            for role in ROLES:
                key = await api.create_key("acme", role, kind=PrincipalKind.AGENT)
                people.append(Who(f"agent-{role}", key, role, is_agent=True))
            people.append(Who("system", api.system, None))
            works = await api.create_key("acme", MemberRole.ADMIN, scopes=frozenset({"worker"}))
            people.append(Who("worker", works, MemberRole.ADMIN, is_worker=True))
            app = api.http._transport.app  # type: ignore[attr-defined]
            yield Grid(api, Makers(api, clock), operations_of(app), people)


# tests/web/test_access.py tries each role on each route; here people who differ in kind are enough in an ordinary run.
FEW = frozenset({"viewer", "agent-editor", "worker", "admin"})
by_few_or_all = pytest.mark.parametrize(
    "names", [pytest.param(FEW, id="few"), pytest.param(None, id="all", marks=pytest.mark.slow)]
)


def reported(answer: Any) -> tuple[int, Mapping[str, str], bytes]:
    """All of an answer but the date."""
    return answer.status_code, {k: v for k, v in answer.headers.items() if k != "date"}, answer.content


async def test_there_is_a_maker_for_every_path_parameter(grid: Grid) -> None:
    wanted = {(name, each.path) for each in grid.operations for name in each.parameters}
    missing = sorted({(name, path) for name, path in wanted if name not in grid.makers.of})
    assert missing == [], "teach Makers to make a thing for these, or nobody checks whose it is"


@by_few_or_all
async def test_everybody_may_what_the_permission_says_with_their_own_things_and_no_more(
    grid: Grid, names: frozenset[str] | None
) -> None:
    for operation in grid.operations:
        things = await grid.makers.things(operation, "acme")
        for who in grid.chosen(names):
            if operation.method != "GET" and operation.lets_in(who):  # an earlier request may have used it up
                things = await grid.makers.things(operation, "acme")
            answer = await grid.send(operation, things, who.headers())
            case = (operation, who.name, answer.text[:300])
            assert answer.status_code < 500, case
            assert answer.status_code != 401, case
            if not operation.lets_in(who):
                assert (answer.status_code, answer.json()["code"]) == (403, "denied"), case
            elif who.is_agent and set(operation.parameters) - SHARED:
                assert answer.status_code == 404, case  # it is an administrator's
            elif who.role in {None, MemberRole.ADMIN}:
                assert answer.status_code != 403, case
                assert answer.status_code != 404 or (operation.method, operation.path) in ABSENT, case
                assert answer.status_code != 422 or not operation.parameters, (
                    case,
                    "teach SENT what it takes",
                )
            else:  # a thing may belong to another member: then it is not there for this one
                assert answer.status_code != 403, case


@pytest.mark.parametrize("worth", ["none", "garbage", "mistyped", "unknown", "revoked", "expired", "retired"])
async def test_a_key_that_is_not_valid_opens_nothing(grid: Grid, worth: str) -> None:
    key = await worthless(grid.api, worth, grid.makers.clock)
    headers = {**SAME, **({} if worth == "none" else {"Authorization": f"Bearer {key}"})}
    answers = set()
    for operation in grid.operations:
        things = dict.fromkeys(operation.parameters, str(uuid4()))
        answer = await grid.send(operation, things, headers)
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated"), operation
        answers.add(answer.content)
    assert len(answers) == 1


@pytest.mark.requirement("S0-1")
@by_few_or_all
async def test_another_workspace_s_things_answer_byte_for_byte_like_things_that_do_not_exist(
    grid: Grid, names: frozenset[str] | None
) -> None:
    for operation in (each for each in grid.operations if each.parameters):
        if operation.permission is Permission.SYSTEM:
            continue  # the installation's administrator sees every workspace
        theirs = await grid.makers.things(operation, "globex")
        nobodys = {name: str(uuid4()) for name in theirs}
        for who in grid.chosen(names):
            if not operation.lets_in(who):
                continue
            expected = reported(await grid.send(operation, nobodys, who.headers()))
            found = reported(await grid.send(operation, theirs, who.headers()))
            assert found == expected, (operation, who.name)
            assert found[0] == 404, (operation, who.name, found)
            assert b"canary" not in found[2]


@pytest.mark.requirement("S4-27")
async def test_an_agent_finds_the_things_of_others_as_little_as_things_that_do_not_exist(grid: Grid) -> None:
    for operation in (each for each in grid.operations if set(each.parameters) - SHARED):
        others = await grid.makers.things(operation, "acme")
        nobodys = {name: str(uuid4()) for name in others}
        for who in (each for each in grid.people if each.is_agent and operation.lets_in(each)):
            expected = reported(await grid.send(operation, nobodys, who.headers()))
            assert reported(await grid.send(operation, others, who.headers())) == expected, (
                operation,
                who.name,
            )


async def test_an_agent_changes_nothing_that_others_share(grid: Grid) -> None:
    found = {
        (each.method, each.path)
        for each in grid.operations
        if each.method != "GET"
        and each.agents
        and each.permission not in {Permission.ADMIN, Permission.SYSTEM}
        if set(each.parameters) & SHARED or not each.parameters
    }
    assert found == FOR_AGENTS, "guard it with SharedOperator or SharedEditor, or say why an agent may"


async def test_no_list_shows_an_agent_what_others_own(grid: Grid) -> None:
    for name in grid.makers.of.keys() - SHARED:
        await grid.makers.of[name]("acme")
    grid.makers.clock.advance(timedelta(hours=1))
    await tick(grid.api.database)
    for operation in grid.operations:
        if operation.parameters or operation.method != "GET" or not operation.agents:
            continue
        for who in (each for each in grid.people if each.is_agent and operation.lets_in(each)):
            answer = await grid.send(operation, {}, who.headers())
            assert answer.status_code < 500
            assert "canary-5b1f" not in answer.text, (operation, who.name)


async def test_nobody_works_in_a_workspace_that_is_not_there(grid: Grid) -> None:
    system = next(who for who in grid.people if who.role is None)
    editor = next(who for who in grid.people if who.name == "editor")
    for operation in grid.operations:
        things = dict.fromkeys(operation.parameters, str(uuid4()))
        nowhere = await grid.send(operation, things, system.headers("nowhere"))
        assert (nowhere.status_code, nowhere.json()["code"]) == (404, "not_found"), operation
        answers = [
            await grid.send(operation, things, {**editor.headers(), "Foliot-Workspace": slug})
            for slug in ("globex", "nowhere")
        ]
        assert {answer.status_code for answer in answers} == {403}, operation
        assert answers[0].content == answers[1].content, operation


async def worthless(api: ApiHarness, worth: str, clock: ManualClock) -> str:
    """An administrator's key that is no longer good for anything."""
    if worth in {"none", "garbage"}:
        return "fol_nonsense"
    if worth == "unknown":
        return ApiKey.make(token_bytes(KEY_ENTROPY)).secret
    key = await api.create_key("acme", MemberRole.ADMIN, name=f"{worth}-{uuid4().hex[:8]}")
    if worth == "mistyped":
        return key[:-1] + ("x" if key[-1] != "x" else "y")
    api.keys["acme", worth] = key
    mine = (await api.request("GET", "/me", role=worth)).json()
    if worth == "revoked":
        assert (await api.request("DELETE", f"/keys/{mine['key']['id']}", role=worth)).status_code == 204
    elif worth == "retired":
        path = f"/members/{mine['principal']['id']}"
        assert (await api.request("DELETE", path, role="admin")).status_code == 204
    else:
        soon = (clock.now() + timedelta(minutes=1)).isoformat()
        changed = await api.request(
            "PATCH", f"/keys/{mine['key']['id']}", role=worth, json={"expires_at": soon}
        )
        assert changed.status_code == 200, changed.text
        clock.advance(timedelta(minutes=1))
    return key
