"""Members by the API: roles, the last administrator, and keys that follow their holder."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from foliot.testing.clock import ManualClock
from tests.web.conftest import ApiHarness, job, problems

pytestmark = pytest.mark.anyio
SECOND = timedelta(seconds=1)


async def join(api: ApiHarness, **fields: Any) -> dict[str, Any]:
    body = {"kind": "user", "name": "Ana", "role": "editor", **fields}
    answer = await api.request("POST", "/members", role="admin", json=body)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    key = await api.request("POST", "/keys", role="admin", json={"name": "k", "principal": made["id"]})
    api.keys["acme", made["id"]] = key.json()["secret"]
    return made


async def me(api: ApiHarness, role: str) -> str:
    found: str = (await api.request("GET", "/me", role=role)).json()["principal"]["id"]
    return found


async def test_a_changed_role_holds_from_the_next_request_on(api: ApiHarness) -> None:
    ana = await join(api)
    assert (await api.request("POST", "/jobs", role=ana["id"], json=job())).status_code == 201
    changed = await api.request("PATCH", f"/members/{ana['id']}", role="admin", json={"role": "viewer"})
    assert (changed.status_code, changed.json()["role"]) == (200, "viewer")
    assert (await api.request("POST", "/jobs", role=ana["id"], json=job())).status_code == 403


async def test_a_member_who_leaves_takes_the_keys_along_for_good(api: ApiHarness, clock: ManualClock) -> None:
    ana = await join(api)
    clock.advance(SECOND)
    assert (await api.request("GET", "/jobs", role=ana["id"])).status_code == 200
    assert (await api.request("DELETE", f"/members/{ana['id']}", role="admin")).status_code == 204
    assert (await api.request("GET", "/jobs", role=ana["id"])).status_code == 401
    clock.advance(SECOND)
    back = await api.request("PATCH", f"/members/{ana['id']}", role="admin", json={"active": True})
    assert back.json()["active"] is True
    assert (await api.request("GET", "/jobs", role=ana["id"])).status_code == 401
    entries = (await api.request("GET", f"/audit?object=member:{ana['id']}", role="admin")).json()["items"]
    assert [each["action"] for each in entries] == ["member.changed", "member.changed", "member.created"]
    assert (entries[1]["before"]["active"], entries[1]["after"]["revoked_keys"]) == (True, 1)


async def test_the_last_administrator_stays(api: ApiHarness) -> None:
    first = await me(api, "admin")
    for change in ({"role": "editor"}, {"active": False}):
        answer = await api.request("PATCH", f"/members/{first}", role="admin", json=change)
        assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert (await api.request("DELETE", f"/members/{first}", role="admin")).status_code == 409
    second = await join(api, role="admin")
    assert (await api.request("DELETE", f"/members/{first}", role="admin")).status_code == 204
    assert (await api.request("DELETE", f"/members/{second['id']}", role=second["id"])).status_code == 409


async def test_an_agent_is_never_an_administrator_and_nobody_is_made_a_system(api: ApiHarness) -> None:
    agent = {"kind": "agent", "name": "bot", "role": "admin"}
    refused = await api.request("POST", "/members", role="admin", json=agent)
    assert (refused.status_code, list(problems(refused))) == (422, ["/role"])
    made = await join(api, kind="agent", name="bot", role="editor")
    raised = await api.request("PATCH", f"/members/{made['id']}", role="admin", json={"role": "admin"})
    assert raised.status_code == 422
    for body in (
        {"kind": "system", "name": "x", "role": "admin"},
        {"kind": "user", "name": "x", "role": "system"},
    ):
        assert (await api.request("POST", "/members", role="admin", json=body)).status_code == 422
    assert (
        await api.request("PATCH", f"/members/{made['id']}", role="admin", json={"kind": "user"})
    ).status_code == 422


async def test_an_agent_sees_itself_alone_among_the_members(api: ApiHarness) -> None:
    bot = await join(api, kind="agent", name="bot")
    ana = await join(api)
    assert [
        each["id"] for each in (await api.request("GET", "/members", role=bot["id"])).json()["items"]
    ] == [bot["id"]]
    same = {"X-Request-Id": "same-for-all"}
    foreign = await api.request("GET", f"/members/{ana['id']}", role=bot["id"], headers=same)
    nobody = await api.request("GET", f"/members/{uuid4()}", role=bot["id"], headers=same)
    assert (foreign.status_code, foreign.text) == (404, nobody.text)
    assert (await api.request("GET", f"/members/{bot['id']}", role=bot["id"])).status_code == 200


async def test_machines_have_their_name_and_people_their_address_to_themselves(api: ApiHarness) -> None:
    await join(api, kind="service", name="robot")
    await join(api, email="ana@example.test")
    await join(api)  # people share names
    again = {"kind": "service", "name": "robot", "role": "viewer"}
    assert (await api.request("POST", "/members", role="admin", json=again)).status_code == 409
    same = {"kind": "user", "name": "Other", "role": "viewer", "email": "ANA@example.test"}
    taken = await api.request("POST", "/members", role="admin", json=same)
    assert (taken.status_code, list(problems(taken))) == (409, ["/email"])


async def test_members_come_by_page_and_by_kind(api: ApiHarness, clock: ManualClock) -> None:
    for n in range(3):
        clock.advance(SECOND)
        await join(api, kind="agent", name=f"bot-{n}")
    first = (await api.request("GET", "/members?kind=agent&limit=2")).json()
    rest = (await api.request("GET", f"/members?kind=agent&limit=2&cursor={first['next_cursor']}")).json()
    assert [each["name"] for each in first["items"] + rest["items"]] == ["bot-2", "bot-1", "bot-0"]
    assert rest["next_cursor"] is None
    assert (await api.request("GET", "/members?cursor=nonsense")).status_code == 422
