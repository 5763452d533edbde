"""The message handler: one message per run, in the room that was named or in one of its own."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from foliot.domain.access import MemberRole, Principal, PrincipalKind, Scope
from foliot.domain.definition import Definition, Spec
from foliot.domain.ids import JobId, PrincipalId, RoomId, WorkspaceId
from foliot.domain.outcomes import Failed, Succeeded
from foliot.domain.quotas import Quotas
from foliot.domain.rooms import Hook
from foliot.domain.schedule import Manual
from foliot.handlers.dependencies import HandlerDeps
from foliot.handlers.message import MessageHandler
from foliot.handlers.registry import Assignment, HandlerResult, load_handlers
from foliot.sdk.context import Context
from foliot.services.jobs import jobs
from foliot.storage.content import rooms
from foliot.storage.content.rooms import NewRoom
from foliot.storage.identity import members
from foliot.storage.outbox import webhooks
from foliot.storage.tx import Database, Role
from foliot.testing.fixtures import TEST

pytestmark = pytest.mark.anyio
Owner = psycopg.Connection[Any]


class Post:
    def __init__(self, database: Database, workspace: WorkspaceId, owner: Owner) -> None:
        self.database = database
        self.workspace = workspace
        self._owner = owner
        self.handler = MessageHandler(database)

    async def job(self, owner_id: PrincipalId | None = None) -> JobId:
        definition = Definition("remind", Spec(Manual(), "message"), owner_id=owner_id)
        return (await jobs.create(self.database, Scope(self.workspace, TEST), definition)).id

    async def run(self, job_id: JobId, run_id: str, **config: Any) -> HandlerResult:
        ctx = Context(
            str(self.workspace),
            str(job_id),
            "remind",
            run_id,
            1,
            1,
            "schedule",
            datetime(2027, 1, 15, tzinfo=UTC),
        )
        return await self.handler.run(Assignment(ctx, {"text": "stand up", **config}, {}))

    async def agent(self) -> PrincipalId:
        agent = Principal(PrincipalId(uuid4()), self.workspace, PrincipalKind.AGENT, "ada", MemberRole.EDITOR)
        async with self.database.tx(Role.APP, self.workspace) as tx:
            await members.insert_principal(tx, agent)
        return agent.id

    async def room(self, **fields: Any) -> str:
        async with self.database.tx(Role.APP, self.workspace) as tx:
            return str(await rooms.insert(tx, NewRoom("support", **fields)))

    def rows(self, query: str) -> list[Any]:
        return self._owner.execute(query.encode()).fetchall()


@pytest.fixture
def post(database: Database, workspace: WorkspaceId, owner: Owner) -> Post:
    return Post(database, workspace, owner)


def code(done: HandlerResult) -> str:
    assert isinstance(done.outcome, Failed)
    assert done.outcome.permanent
    return done.outcome.error.code


@pytest.mark.requirement("S4-13", "S4-18", "S4-7")
async def test_a_message_goes_into_the_jobs_own_room_and_its_id_onto_the_run(post: Post) -> None:
    job_id = await post.job()
    first, second = await post.run(job_id, str(uuid4())), await post.run(job_id, str(uuid4()))
    assert isinstance(first.outcome, Succeeded)
    assert first.output["room_id"] == second.output["room_id"]
    found = post.rows(
        "SELECT id::text, room_id::text, kind, sender, text, job_id FROM foliot.messages ORDER BY seq"
    )
    assert found[0] == (
        first.output["message_id"],
        first.output["room_id"],
        "message",
        "user",
        "stand up",
        job_id,
    )
    assert [row[0] for row in found] == [first.output["message_id"], second.output["message_id"]]
    assert post.rows("SELECT key, name, job_id FROM foliot.rooms") == [(f"job:{job_id}", "remind", job_id)]


async def test_an_attempt_after_the_first_finds_its_message_and_leaves_no_other(post: Post) -> None:
    job_id, run_id, other = await post.job(), str(uuid4()), await post.room(key="other")
    first = await post.run(job_id, run_id)
    assert await post.run(job_id, run_id) == first
    assert await post.run(job_id, run_id, room=other, text="edited meanwhile") == first
    assert post.rows("SELECT count(*) FROM foliot.messages") == [(1,)]


@pytest.mark.requirement("S4-18")
async def test_attempts_that_meet_leave_one_message(post: Post) -> None:
    job_id, run_id = await post.job(), str(uuid4())
    done = await asyncio.gather(*(post.run(job_id, run_id) for _ in range(8)))
    assert len({each.output["message_id"] for each in done}) == 1
    assert post.rows("SELECT count(*) FROM foliot.messages") == [(1,)]
    assert post.rows("SELECT count(*) FROM foliot.rooms") == [(1,)]


@pytest.mark.requirement("S4-6", "S4-7")
async def test_a_room_is_named_by_id_or_key_or_is_new_for_each_run(post: Post) -> None:
    job_id, room_id = await post.job(), await post.room(key="support")
    for named in (room_id, "support"):
        assert (await post.run(job_id, str(uuid4()), room=named)).output["room_id"] == room_id
    new = {(await post.run(job_id, str(uuid4()), new_room=True)).output["room_id"] for _ in range(2)}
    assert len(new) == 2
    assert code(await post.run(job_id, str(uuid4()), room="nowhere")) == "room_unknown"
    assert code(await post.run(job_id, str(uuid4()), room=str(uuid4()))) == "room_unknown"


async def test_an_agents_job_writes_where_the_agent_may_go_and_its_own_room_is_the_agents(post: Post) -> None:
    agent = await post.agent()
    job_id = await post.job(agent)
    await post.room(key="hidden")
    await post.room(key="shared", agents=(agent,))
    assert code(await post.run(job_id, str(uuid4()), room="hidden")) == "room_unknown"
    assert isinstance((await post.run(job_id, str(uuid4()), room="shared")).outcome, Succeeded)
    await post.run(job_id, str(uuid4()))
    assert post.rows(f"SELECT agents FROM foliot.rooms WHERE key = 'job:{job_id}'") == [([agent],)]


@pytest.mark.requirement("S4-19")
async def test_an_event_is_the_systems_and_facts_of_the_run_are_filled_in(post: Post) -> None:
    run_id = str(uuid4())
    await post.run(await post.job(), run_id, kind="system_event", text="{{job.name}} by {{run.id}}")
    assert post.rows("SELECT kind, sender, text FROM foliot.messages") == [
        ("system_event", "system", f"remind by {run_id}")
    ]


async def test_a_full_room_or_workspace_is_a_failure_that_is_tried_again(
    post: Post, database: Database
) -> None:
    job_id, hints = await post.job(), list[str]()
    bounded = MessageHandler(database, Quotas(rooms=1, room_messages=2), hints.append)
    post.handler = bounded
    done = [await post.run(job_id, str(uuid4())) for _ in range(3)]
    assert [type(each.outcome) for each in done] == [Succeeded, Succeeded, Failed]
    elsewhere = await post.run(job_id, str(uuid4()), new_room=True)
    for refused in (done[2], elsewhere):
        assert isinstance(refused.outcome, Failed)
        assert (refused.outcome.error.code, refused.outcome.permanent) == ("quota_exceeded", False)
    assert post.rows("SELECT count(*) FROM foliot.messages") == [(2,)]
    assert hints == []


async def test_a_message_into_a_room_with_a_webhook_is_put_into_the_outbox_once(
    post: Post, database: Database
) -> None:
    job_id, run_id, room_id, hints = await post.job(), str(uuid4()), await post.room(), list[str]()
    async with database.tx(Role.APP, post.workspace) as tx:
        await webhooks.set_hook(tx, RoomId(UUID(room_id)), Hook("https://example.test/", "example.test:443"))
    post.handler = MessageHandler(database, announce=hints.append)
    for _ in range(2):
        await post.run(job_id, run_id, room=room_id)
    assert post.rows("SELECT kind, ordering_key::text, position FROM foliot.outbox") == [
        ("room.message", room_id, 1)
    ]
    assert hints == ["outbox"]


def test_a_process_without_a_database_serves_no_messages() -> None:
    assert "message" not in load_handlers(HandlerDeps())
