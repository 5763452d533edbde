"""/rooms: who sees which, what is written in them, and how it is read: by pages, by waiting, as it comes."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from foliot.domain.access import MemberRole, PrincipalKind
from foliot.testing.clock import ManualClock
from tests.polling import wait_until
from tests.web.conftest import ApiHarness, problems
from tests.web.event_streams import serve_streams

pytestmark = pytest.mark.anyio


async def room(api: ApiHarness, **fields: Any) -> dict[str, Any]:
    answer = await api.request("POST", "/rooms", json={"name": "support", **fields})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    assert answer.headers["Location"] == f"/api/v1/rooms/{made['id']}"
    return made


async def post(
    api: ApiHarness, room_id: str, text: str, role: str = "operator", **fields: Any
) -> dict[str, Any]:
    answer = await api.request("POST", f"/rooms/{room_id}/messages", role=role, json={"text": text, **fields})
    assert answer.status_code == 201, answer.text
    sent: dict[str, Any] = answer.json()
    return sent


async def agent(api: ApiHarness, name: str, role: MemberRole = MemberRole.EDITOR) -> str:
    """Enrolled under its name as a role; answers with its id."""
    api.keys["acme", name] = await api.create_key("acme", role, kind=PrincipalKind.AGENT, name=name)
    found: str = (await api.request("GET", "/me", role=name)).json()["principal"]["id"]
    return found


async def texts(api: ApiHarness, room_id: str, role: str = "viewer", **params: Any) -> list[str]:
    answer = await api.request("GET", f"/rooms/{room_id}/messages", role=role, params=params)
    assert answer.status_code == 200, answer.text
    return [each["text"] for each in answer.json()["items"]]


async def test_what_is_written_is_read_in_order_a_page_at_a_time(api: ApiHarness) -> None:
    made = await room(api, key="support")
    assert (made["key"], made["last_seq"], made["last_message_at"]) == ("support", 0, None)
    for text in ("one", "two", "three"):
        await post(api, made["id"], text)
    first = (await api.request("GET", f"/rooms/{made['id']}/messages", params={"limit": 2})).json()
    assert [(each["seq"], each["text"]) for each in first["items"]] == [(1, "one"), (2, "two")]
    assert await texts(api, made["id"], cursor=first["next_cursor"]) == ["three"]
    assert await texts(api, made["id"], cursor="3") == []
    assert (await api.request("GET", f"/rooms/{made['id']}")).json()["last_seq"] == 3


@pytest.mark.requirement("S4-19")
async def test_a_message_says_who_wrote_it_and_whether_it_asks_for_a_reply(api: ApiHarness) -> None:
    ada = await agent(api, "ada")
    made = await room(api, agents=[ada])
    asked = await post(api, made["id"], "how many?")
    reported = await post(api, made["id"], "deployed", kind="system_event")
    replied = await post(api, made["id"], "seven", role="ada")
    assert (asked["sender"]["kind"], asked["kind"], asked["expects_reply"]) == ("service", "message", True)
    assert (reported["kind"], reported["expects_reply"]) == ("system_event", False)
    assert replied["sender"] == {"kind": "agent", "id": ada, "name": "ada"}
    assert not replied["expects_reply"]


async def test_an_agent_sees_the_rooms_it_was_given_and_its_own(api: ApiHarness) -> None:
    ada, ben = await agent(api, "ada"), await agent(api, "ben")
    given, hidden = await room(api, agents=[ada]), await room(api)
    answer = await api.request("POST", "/rooms", role="ada", json={"name": "mine"})
    own = answer.json()
    assert own["agents"] == [ada]
    listed = (await api.request("GET", "/rooms", role="ada")).json()["items"]
    assert {each["id"] for each in listed} == {own["id"], given["id"]}
    assert (await api.request("GET", "/rooms", role="ben")).json()["items"] == []
    nowhere = await api.request("GET", f"/rooms/{own['id']}/messages", role="ben")
    assert nowhere.status_code == 404
    refused = await api.request("POST", f"/rooms/{hidden['id']}/messages", role="ada", json={"text": "x"})
    assert refused.status_code == 404
    changed = await api.request("PATCH", f"/rooms/{given['id']}", json={"agents": [ben], "name": "for ben"})
    assert (changed.json()["agents"], changed.json()["name"]) == ([ben], "for ben")
    assert (await api.request("GET", f"/rooms/{given['id']}", role="ada")).status_code == 404
    assert (await api.request("GET", f"/rooms/{given['id']}", role="ben")).status_code == 200


async def test_an_agent_sees_no_other_agent_among_those_a_room_was_given_to(api: ApiHarness) -> None:
    ada, ben = await agent(api, "ada"), await agent(api, "ben")
    given = await room(api, agents=[ada, ben])
    assert given["agents"] == [ada, ben]
    [listed] = (await api.request("GET", "/rooms", role="ben")).json()["items"]
    one = (await api.request("GET", f"/rooms/{given['id']}", role="ben")).json()
    assert listed["agents"] == one["agents"] == [ben]


async def test_rooms_are_given_to_agents_alone_and_an_agent_gives_them_to_nobody(api: ApiHarness) -> None:
    ada, ben = await agent(api, "ada"), await agent(api, "ben")
    me = (await api.request("GET", "/me")).json()["principal"]["id"]
    for role, agents in (("editor", [ada, me]), ("ada", [ada, ben])):
        answer = await api.request("POST", "/rooms", role=role, json={"name": "x", "agents": agents})
        assert (answer.status_code, problems(answer)) == (422, {"/agents/1": "There is no such agent."})


async def test_a_key_names_one_room(api: ApiHarness) -> None:
    made = await room(api, key="support")
    again = await api.request("POST", "/rooms", json={"name": "other", "key": "support"})
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    found = (await api.request("GET", "/rooms", params={"key": "support"})).json()["items"]
    assert [each["id"] for each in found] == [made["id"]]
    elsewhere = await api.request("POST", "/rooms", who="globex", json={"name": "theirs", "key": "support"})
    assert elsewhere.status_code == 201


async def test_rooms_are_listed_newest_first_by_pages(api: ApiHarness, clock: ManualClock) -> None:
    made = []
    for number in range(3):
        made.append((await room(api, name=f"room {number}"))["id"])
        clock.advance(timedelta(seconds=1))
    first = (await api.request("GET", "/rooms", params={"limit": 2})).json()
    rest = (await api.request("GET", "/rooms", params={"cursor": first["next_cursor"]})).json()
    assert [each["id"] for each in first["items"] + rest["items"]] == made[::-1]
    assert rest["next_cursor"] is None


async def test_a_deleted_room_is_gone_with_its_messages_and_the_audit_knows(api: ApiHarness) -> None:
    made = await room(api)
    await post(api, made["id"], "hunter2")
    assert (await api.request("DELETE", f"/rooms/{made['id']}")).status_code == 204
    assert (await api.request("GET", f"/rooms/{made['id']}/messages")).status_code == 404
    audit = await api.request("GET", "/audit", role="admin")
    actions = [each["action"] for each in audit.json()["items"]]
    assert sorted(actions[:3]) == ["message.posted", "room.created", "room.deleted"]
    assert "hunter2" not in audit.text


async def test_the_same_message_sent_twice_under_one_key_is_there_once(api: ApiHarness) -> None:
    made = await room(api)
    for _ in range(2):
        answer = await api.request(
            "POST", f"/rooms/{made['id']}/messages", json={"text": "once"}, headers={"Idempotency-Key": "k1"}
        )
        assert answer.status_code == 201
    assert await texts(api, made["id"]) == ["once"]


async def test_who_waits_gets_the_message_when_it_comes(api: ApiHarness) -> None:
    made = await room(api)
    async with serve_streams(api) as there:
        key = {"Authorization": f"Bearer {api.keys['acme', 'viewer']}"}
        waiting = asyncio.create_task(
            there.http.get(f"/api/v1/rooms/{made['id']}/messages?wait=19", headers=key)
        )
        streams = api.http._transport.app.state.streams  # type: ignore[attr-defined]
        await wait_until(streams.total)
        await post(api, made["id"], "here")
        answer = await asyncio.wait_for(waiting, 20)
    assert [each["text"] for each in answer.json()["items"]] == ["here"]
    assert streams.total() == 0


async def test_who_waits_for_nothing_gets_an_answer_in_the_end(api: ApiHarness) -> None:
    made = await room(api)
    assert await texts(api, made["id"], wait=1) == []


async def test_who_follows_gets_what_was_there_and_what_comes_and_goes_on_where_it_stopped(
    api: ApiHarness,
) -> None:
    made = await room(api)
    await post(api, made["id"], "one")
    async with serve_streams(api) as there:
        async with there.stream(f"/rooms/{made['id']}/messages?follow=true") as reader:
            first = await reader.event()
            await post(api, made["id"], "two")
            second = await reader.event()
        async with there.stream(f"/rooms/{made['id']}/messages?follow=true", Last_Event_ID="1") as reader:
            again = await reader.event()
    assert first is not None
    assert second is not None
    assert again is not None
    assert [each.data["text"] for each in (first, second, again)] == ["one", "two", "two"]
    assert (first.event, first.id, again.id) == ("message", "1", "2")


async def test_a_job_that_names_no_room_there_is_is_written_and_says_so(api: ApiHarness) -> None:
    wanted = {"text": "hello", "room": "standup"}
    made = await api.create_job(type="message", config=wanted)
    reported = "There is no room standup, or this job may not write in it. Its runs fail until there is one."
    assert reported in made["warnings"]
    await room(api, key="standup")
    assert reported not in (await api.create_job(type="message", config=wanted))["warnings"]
    elsewhere = await api.create_job(type="message", config={"text": "hello", "room": str(uuid4())})
    assert any("There is no room" in each for each in elsewhere["warnings"])
