"""Keys by the API: made once, shown once, never stronger than their maker, narrowed and ended."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from foliot.domain.access import MemberRole, PrincipalKind
from foliot.storage.queries import SqlQuery
from foliot.storage.tx import Role
from foliot.testing.clock import ManualClock
from foliot.wire.instants import write_instant
from tests.polling import wait_until
from tests.web.conftest import ApiHarness, problems

pytestmark = pytest.mark.anyio


async def make(api: ApiHarness, role: str = "admin", who: str = "acme", **fields: Any) -> dict[str, Any]:
    answer = await api.request("POST", "/keys", who=who, role=role, json={"name": "mine", **fields})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    api.keys[who, made["id"]] = made["secret"]
    return made


async def member(api: ApiHarness, kind: str = "service", role: str = "editor", name: str = "robot") -> str:
    answer = await api.request(
        "POST", "/members", role="admin", json={"kind": kind, "name": name, "role": role}
    )
    assert answer.status_code == 201, answer.text
    found: str = answer.json()["id"]
    return found


async def test_a_secret_is_shown_once_and_stored_nowhere(
    api: ApiHarness, owner: psycopg.Connection[Any]
) -> None:
    made = await make(api)
    assert (await api.request("GET", "/jobs", role=made["id"])).status_code == 200
    listed = await api.request("GET", "/keys", role="admin")
    assert made["id"] in [each["id"] for each in listed.json()["items"]]
    assert (
        made["secret"]
        not in listed.text + (await api.request("GET", f"/keys/{made['id']}", role="admin")).text
    )
    for table in ("api_keys", "audit"):
        rows = owner.execute(f"SELECT t::text FROM foliot.{table} AS t").fetchall()
        assert made["secret"][13:] not in str(rows)


@pytest.mark.parametrize("role", ["viewer", "operator", "editor"])
async def test_whoever_is_no_administrator_makes_and_sees_keys_for_themselves_alone(
    api: ApiHarness, role: str
) -> None:
    robot = await member(api)
    for other in (robot, (await api.request("GET", "/me", role="admin")).json()["principal"]["id"]):
        refused = await api.request("POST", "/keys", role=role, json={"name": "x", "principal": other})
        assert (refused.status_code, refused.json()["code"]) == (403, "denied")
    others = await make(api)
    for method, path in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/revoke")):
        answer = await api.request(method, f"/keys/{others['id']}{path}", role=role, json={})
        assert answer.status_code == 404, (method, path)
    own = await make(api, role)
    assert {each["id"] for each in (await api.request("GET", "/keys", role=role)).json()["items"]} >= {
        own["id"]
    }
    listed = (await api.request("GET", "/keys", role=role)).json()["items"]
    assert {each["principal"]["id"] for each in listed} == {own["principal"]["id"]}


async def test_nobody_makes_a_key_stronger_than_their_own(api: ApiHarness) -> None:
    narrow = await make(api, scopes=["viewer"])
    for scopes in ([], ["admin"], ["operator"], ["viewer", "admin"], ["worker"], ["viewer", "worker"]):
        answer = await api.request("POST", "/keys", role=narrow["id"], json={"name": "x", "scopes": scopes})
        assert answer.status_code == 403, scopes
    like_it = await make(api, role=narrow["id"])
    assert (like_it["scopes"], like_it["role"]) == (["viewer"], "viewer")
    answer = await api.request("POST", "/keys", role="admin", json={"name": "x", "scopes": ["system"]})
    assert (answer.status_code, list(problems(answer))) == (422, ["/scopes"])


async def test_a_weak_key_cannot_end_or_change_the_strong_ones_of_its_holder(api: ApiHarness) -> None:
    strong = await make(api)
    weak = await make(api, scopes=["viewer"])
    for method, path in (("PATCH", ""), ("DELETE", ""), ("POST", "/revoke")):
        answer = await api.request(method, f"/keys/{strong['id']}{path}", role=weak["id"], json={})
        assert answer.status_code == 403, (method, path)
    assert (await api.request("DELETE", f"/keys/{weak['id']}", role=weak["id"])).status_code == 204
    assert (await api.request("GET", "/jobs", role=weak["id"])).status_code == 401
    assert (await api.request("GET", "/jobs", role=strong["id"])).status_code == 200


async def test_a_key_that_ends_cannot_prolong_itself(api: ApiHarness, clock: ManualClock) -> None:
    soon = write_instant(clock.now() + timedelta(hours=1))
    later = write_instant(clock.now() + timedelta(hours=2))
    short = await make(api, expires_at=soon)
    answer = await api.request("POST", "/keys", role=short["id"], json={"name": "x", "expires_at": later})
    assert answer.status_code == 403
    assert (await make(api, role=short["id"]))["expires_at"] == soon
    changed = await api.request("PATCH", f"/keys/{short['id']}", role="admin", json={"expires_at": later})
    assert (changed.status_code, list(problems(changed))) == (409, ["/expires_at"])
    clock.advance(timedelta(hours=1))
    assert (await api.request("GET", "/jobs", role=short["id"])).status_code == 401


async def test_a_key_that_ends_makes_no_endless_one_through_another_member(
    api: ApiHarness, clock: ManualClock
) -> None:
    soon = write_instant(clock.now() + timedelta(hours=1))
    short, other = await make(api, expires_at=soon), await member(api)
    later = {"name": "x", "principal": other, "expires_at": write_instant(clock.now() + timedelta(hours=2))}
    assert (await api.request("POST", "/keys", role=short["id"], json=later)).status_code == 403
    assert (await make(api, role=short["id"], principal=other))["expires_at"] == soon


async def test_a_demotion_that_this_node_has_not_heard_of_makes_no_strong_key(api: ApiHarness) -> None:
    other = await member(api, role="admin")
    me = (await api.request("GET", "/me", role="admin")).json()["principal"]["id"]
    async with api.database.tx(Role.APP, api.ids["acme"]) as tx:  # as another node does; no hint comes
        await tx.execute(
            SqlQuery("test.demote", b"UPDATE principals SET role = 'viewer' WHERE id = %(id)s"),
            {"id": UUID(me)},
        )
    answer = await api.request("POST", "/keys", role="admin", json={"name": "x", "principal": other})
    assert answer.status_code == 403, answer.text
    assert (await make(api))["role"] == "viewer"


async def test_a_key_is_only_ever_narrowed(api: ApiHarness) -> None:
    made = await make(api, scopes=["editor"])
    path = f"/keys/{made['id']}"
    for scopes in ([], ["admin"], ["editor", "worker"]):
        answer = await api.request("PATCH", path, role="admin", json={"scopes": scopes})
        assert (answer.status_code, answer.json()["code"]) == (409, "conflict"), scopes
    assert (await api.request("PATCH", path, role="admin", json={"scopes": ["viewer"]})).json()[
        "role"
    ] == "viewer"
    assert (await api.request("POST", "/jobs", role=made["id"], json={})).status_code == 403
    assert (await api.request("PATCH", path, role="admin", json={"name": "other"})).json()["name"] == "other"
    assert (await api.request("PATCH", path, role="admin", json={"secret": "x"})).status_code == 422


async def test_a_key_for_work_has_no_role_here_and_only_administrators_make_one(api: ApiHarness) -> None:
    robot = await member(api)
    made = await make(api, principal=robot, scopes=["worker"])
    assert (made["role"], made["principal"]["id"]) == (None, robot)
    assert (await api.request("GET", "/me", role=made["id"])).status_code == 403


async def test_a_key_is_for_a_member_of_the_own_workspace_alone(api: ApiHarness) -> None:
    foreign = (await api.request("GET", "/me", who="globex")).json()["principal"]["id"]
    system = (await api.request("GET", "/me", who="system")).json()["principal"]["id"]
    answers = [
        await api.request(
            "POST",
            "/keys",
            role="admin",
            json={"name": "x", "principal": other},
            headers={"X-Request-Id": "same-for-all"},
        )
        for other in (foreign, system, "00000000-0000-4000-8000-000000000000")
    ]
    assert {answer.status_code for answer in answers} == {422}
    assert len({answer.text for answer in answers}) == 1


async def test_a_key_of_the_installation_makes_and_sees_more_of_its_kind(api: ApiHarness) -> None:
    made = (await api.request("POST", "/keys", who="system", json={"name": "second"})).json()
    assert made["principal"]["kind"] == "system"
    api.keys["acme", "second"] = made["secret"]
    assert (await api.request("GET", "/workspaces", role="second")).status_code == 200
    narrow = (
        await api.request("POST", "/keys", who="system", json={"name": "n", "scopes": ["admin"]})
    ).json()
    api.keys["acme", "narrow"] = narrow["secret"]
    assert (await api.request("GET", "/workspaces", role="narrow")).status_code == 403
    shown = {each["id"] for each in (await api.request("GET", "/keys", who="system")).json()["items"]}
    assert {made["id"], narrow["id"]} <= shown
    assert not shown & {
        each["id"] for each in (await api.request("GET", "/keys", role="admin")).json()["items"]
    }
    assert (await api.request("GET", f"/keys/{made['id']}", role="admin")).status_code == 404
    assert (await api.request("DELETE", f"/keys/{made['id']}", role="narrow")).status_code == 403
    assert (await api.request("DELETE", f"/keys/{made['id']}", who="system")).status_code == 204
    assert (await api.request("GET", "/workspaces", role="second")).status_code == 401


async def test_when_a_key_was_used_is_written_beside_the_request_and_once_a_minute(
    api: ApiHarness, clock: ManualClock, owner: psycopg.Connection[Any]
) -> None:
    made = await make(api)

    def written() -> Any:
        found = owner.execute(
            "SELECT last_used_at FROM foliot.api_keys WHERE id = %s", [made["id"]]
        ).fetchone()
        return found and found[0]

    began = clock.now()
    await api.request("GET", "/jobs", role=made["id"])
    await wait_until(lambda: written() == began)
    authenticator = api.http._transport.app.state.authenticator  # type: ignore[attr-defined]
    for seconds in (30, 60):
        clock.set(began + timedelta(seconds=seconds))
        authenticator.forget()
        await api.request("GET", "/jobs", role=made["id"])
        await authenticator.close()
        assert written() == began + timedelta(seconds=seconds // 60 * 60)


async def test_who_am_i_tells_the_role_that_is_left_and_the_limits(api: ApiHarness) -> None:
    agent = await api.create_key("acme", MemberRole.ADMIN, kind=PrincipalKind.AGENT)
    api.keys["acme", "agent"] = agent
    me = (await api.request("GET", "/me", role="agent")).json()
    assert (me["principal"]["role"], me["role"], me["sees_only_own_jobs"]) == ("admin", "editor", True)
    assert (me["workspace"]["slug"], me["limits"]["jobs"], me["is_system"]) == ("acme", None, False)
    assert (await api.request("GET", "/me", who="system")).json()["is_system"]
    for path in ("/audit", "/workspaces"):
        assert (await api.request("GET", path, role="agent")).status_code == 403


async def test_making_and_ending_a_key_stands_in_the_audit(api: ApiHarness, clock: ManualClock) -> None:
    made = await make(api)
    clock.advance(timedelta(seconds=1))
    await api.request("POST", f"/keys/{made['id']}/revoke", role="admin")
    await api.request("POST", f"/keys/{made['id']}/revoke", role="admin")
    found = (await api.request("GET", f"/audit?object=key:{made['id']}", role="admin")).json()["items"]
    assert [each["action"] for each in found] == ["key.revoked", "key.created"]
    assert found[0]["actor"]["kind"] == "service"
    assert found[0]["request_id"]
    assert found[1]["after"]["prefix"] == made["prefix"]


async def test_a_workspace_has_as_many_valid_keys_as_its_quota_allows(api: ApiHarness) -> None:
    valid = (await api.request("GET", "/keys?revoked=false&limit=200", role="admin")).json()["items"]
    limit = len(valid) + 1
    changed = await api.request(
        "PATCH", f"/workspaces/{api.ids['acme']}", who="system", json={"quotas": {"keys": limit}}
    )
    assert changed.status_code == 200, changed.text
    made = await make(api)
    refused = await api.request("POST", "/keys", role="admin", json={"name": "one too many"})
    assert (refused.status_code, refused.json()["code"]) == (422, "quota_exceeded")
    assert (
        await api.request("POST", "/keys", who="globex", role="admin", json={"name": "b"})
    ).status_code == 201
    await api.request("POST", f"/keys/{made['id']}/revoke", role="admin")
    assert (await api.request("POST", "/keys", role="admin", json={"name": "after it"})).status_code == 201
