"""Members by the API: roles, the last administrator, and keys that follow their holder."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from foliot.testing.clock import ManualClock
from tests.web.conftest import Town, job, problems

pytestmark = pytest.mark.anyio
SECOND = timedelta(seconds=1)


async def join(town: Town, **fields: Any) -> dict[str, Any]:
    body = {"kind": "user", "name": "Ana", "role": "editor", **fields}
    answer = await town.ask("POST", "/members", role="admin", json=body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    key = await town.ask("POST", "/keys", role="admin", json={"name": "k", "principal": made["id"]})
    town.keys["acme", made["id"]] = key.json()["secret"]
    return made


async def me(town: Town, role: str) -> str:
    found: str = (await town.ask("GET", "/me", role=role)).json()["principal"]["id"]
    return found


async def test_a_changed_role_holds_from_the_next_request_on(town: Town) -> None:
    ana = await join(town)
    assert (await town.ask("POST", "/jobs", role=ana["id"], json=job())).status_code == 201
    changed = await town.ask("PATCH", f"/members/{ana['id']}", role="admin", json={"role": "viewer"})
    assert (changed.status_code, changed.json()["role"]) == (200, "viewer")
    assert (await town.ask("POST", "/jobs", role=ana["id"], json=job())).status_code == 403


async def test_a_member_who_leaves_takes_the_keys_along_for_good(town: Town, clock: ManualClock) -> None:
    ana = await join(town)
    clock.advance(SECOND)
    assert (await town.ask("GET", "/jobs", role=ana["id"])).status_code == 200
    assert (await town.ask("DELETE", f"/members/{ana['id']}", role="admin")).status_code == 204
    assert (await town.ask("GET", "/jobs", role=ana["id"])).status_code == 401
    clock.advance(SECOND)
    back = await town.ask("PATCH", f"/members/{ana['id']}", role="admin", json={"active": True})
    assert back.json()["active"] is True
    assert (await town.ask("GET", "/jobs", role=ana["id"])).status_code == 401
    entries = (await town.ask("GET", f"/audit?object=member:{ana['id']}", role="admin")).json()["items"]
    assert [each["action"] for each in entries] == ["member.changed", "member.changed", "member.created"]
    assert (entries[1]["before"]["active"], entries[1]["after"]["revoked_keys"]) == (True, 1)


async def test_the_last_administrator_stays(town: Town) -> None:
    first = await me(town, "admin")
    for change in ({"role": "editor"}, {"active": False}):
        answer = await town.ask("PATCH", f"/members/{first}", role="admin", json=change)
        assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert (await town.ask("DELETE", f"/members/{first}", role="admin")).status_code == 409
    second = await join(town, role="admin")
    assert (await town.ask("DELETE", f"/members/{first}", role="admin")).status_code == 204
    assert (await town.ask("DELETE", f"/members/{second['id']}", role=second["id"])).status_code == 409


async def test_an_agent_is_never_an_administrator_and_nobody_is_made_a_system(town: Town) -> None:
    agent = {"kind": "agent", "name": "bot", "role": "admin"}
    refused = await town.ask("POST", "/members", role="admin", json=agent)
    assert (refused.status_code, list(problems(refused))) == (422, ["/role"])
    made = await join(town, kind="agent", name="bot", role="editor")
    raised = await town.ask("PATCH", f"/members/{made['id']}", role="admin", json={"role": "admin"})
    assert raised.status_code == 422
    for body in (
        {"kind": "system", "name": "x", "role": "admin"},
        {"kind": "user", "name": "x", "role": "system"},
    ):
        assert (await town.ask("POST", "/members", role="admin", json=body)).status_code == 422
    assert (
        await town.ask("PATCH", f"/members/{made['id']}", role="admin", json={"kind": "user"})
    ).status_code == 422


async def test_an_agent_sees_itself_alone_among_the_members(town: Town) -> None:
    bot = await join(town, kind="agent", name="bot")
    ana = await join(town)
    assert [each["id"] for each in (await town.ask("GET", "/members", role=bot["id"])).json()["items"]] == [
        bot["id"]
    ]
    same = {"X-Request-Id": "same-for-all"}
    foreign = await town.ask("GET", f"/members/{ana['id']}", role=bot["id"], headers=same)
    nobody = await town.ask("GET", f"/members/{uuid4()}", role=bot["id"], headers=same)
    assert (foreign.status_code, foreign.text) == (404, nobody.text)
    assert (await town.ask("GET", f"/members/{bot['id']}", role=bot["id"])).status_code == 200


async def test_machines_have_their_name_and_people_their_address_to_themselves(town: Town) -> None:
    await join(town, kind="service", name="robot")
    await join(town, email="ana@example.test")
    await join(town)  # people share names
    again = {"kind": "service", "name": "robot", "role": "viewer"}
    assert (await town.ask("POST", "/members", role="admin", json=again)).status_code == 409
    same = {"kind": "user", "name": "Other", "role": "viewer", "email": "ANA@example.test"}
    taken = await town.ask("POST", "/members", role="admin", json=same)
    assert (taken.status_code, list(problems(taken))) == (409, ["/email"])


async def test_members_come_by_page_and_by_kind(town: Town, clock: ManualClock) -> None:
    for n in range(3):
        clock.advance(SECOND)
        await join(town, kind="agent", name=f"bot-{n}")
    first = (await town.ask("GET", "/members?kind=agent&limit=2")).json()
    rest = (await town.ask("GET", f"/members?kind=agent&limit=2&cursor={first['next_cursor']}")).json()
    assert [each["name"] for each in first["items"] + rest["items"]] == ["bot-2", "bot-1", "bot-0"]
    assert rest["next_cursor"] is None
    assert (await town.ask("GET", "/members?cursor=nonsense")).status_code == 422
