"""Invites and sessions: links that work once, keys that last no longer than the key behind them."""

from __future__ import annotations

import asyncio
import re
from datetime import timedelta
from typing import Any

import pytest

from foliot.domain.access import MemberRole
from foliot.testing.clock import ManualClock
from foliot.web.console.session import COOKIE
from tests.web.conftest import ApiHarness

pytestmark = pytest.mark.anyio


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


async def invite(api: ApiHarness, key: str, **member: str) -> dict[str, Any]:
    wanted = {"kind": "user", "name": "ana", "role": "editor", **member}
    made = await api.http.post("/api/v1/members", json=wanted, headers=bearer(key))
    assert made.status_code == 201, made.text
    answer = await api.http.post(f"/api/v1/members/{made.json()['id']}/invite", json={}, headers=bearer(key))
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def accept(api: ApiHarness, secret: str) -> Any:
    return await api.http.post("/api/v1/invites/accept", headers=bearer(secret))


async def test_an_invite_becomes_a_lasting_key_once(api: ApiHarness) -> None:
    made = await invite(api, api.keys["acme", "admin"])
    assert (await api.http.get("/api/v1/me", headers=bearer(made["secret"]))).status_code == 403
    first = await accept(api, made["secret"])
    assert first.status_code == 201, first.text
    assert first.json()["expires_at"] is None
    me = (await api.http.get("/api/v1/me", headers=bearer(first.json()["secret"]))).json()
    assert (me["principal"]["name"], me["role"]) == ("ana", "editor")
    assert (await accept(api, made["secret"])).status_code in (401, 403)
    entries = await api.http.get("/api/v1/audit", headers=bearer(api.keys["acme", "admin"]))
    actions = [each["action"] for each in entries.json()["items"]]
    assert {"member.invited", "member.joined"} <= set(actions)


async def test_two_that_accept_an_invite_at_once_get_one_key(api: ApiHarness) -> None:
    made = await invite(api, api.keys["acme", "admin"])
    answers = await asyncio.gather(*(accept(api, made["secret"]) for _ in range(4)))
    assert min(each.status_code for each in answers) == 201
    assert sum(each.status_code == 201 for each in answers) == 1


async def test_an_invite_ends_after_a_week_or_when_its_key_is_revoked(
    api: ApiHarness, clock: ManualClock
) -> None:
    admin = api.keys["acme", "admin"]
    revoked = await invite(api, admin)
    await api.http.post(f"/api/v1/keys/{revoked['id']}/revoke", headers=bearer(admin))
    assert (await accept(api, revoked["secret"])).status_code == 401
    old = await invite(api, admin, name="bo")
    clock.advance(timedelta(days=7))
    assert (await accept(api, old["secret"])).status_code == 401


async def test_a_key_that_expires_invites_nobody_for_longer(api: ApiHarness, clock: ManualClock) -> None:
    ends = (clock.now() + timedelta(days=2)).isoformat()
    body = {"name": "short", "expires_at": ends}
    short = await api.http.post("/api/v1/keys", json=body, headers=bearer(api.keys["acme", "admin"]))
    made = await invite(api, short.json()["secret"])
    key = (await accept(api, made["secret"])).json()
    assert key["expires_at"] == short.json()["expires_at"]
    ended = await invite(api, short.json()["secret"], name="bo")
    await api.http.post(
        f"/api/v1/keys/{short.json()['id']}/revoke", headers=bearer(api.keys["acme", "admin"])
    )
    assert (await accept(api, ended["secret"])).status_code == 403


async def test_nobody_invites_by_a_plain_key_and_only_people_are_invited(api: ApiHarness) -> None:
    admin = bearer(api.keys["acme", "admin"])
    plain = await api.http.post("/api/v1/keys", json={"name": "x", "scopes": ["invite"]}, headers=admin)
    assert plain.status_code == 422
    service = await api.http.post(
        "/api/v1/members", json={"kind": "service", "name": "ci", "role": "editor"}, headers=admin
    )
    answer = await api.http.post(f"/api/v1/members/{service.json()['id']}/invite", json={}, headers=admin)
    assert answer.status_code == 422
    foreign = await api.http.post(
        f"/api/v1/members/{service.json()['id']}/invite", json={}, headers=bearer(api.keys["globex", "admin"])
    )
    assert foreign.status_code == 404


async def test_a_dry_run_of_an_invite_changes_nothing(api: ApiHarness) -> None:
    made = await invite(api, api.keys["acme", "admin"])
    tried = await api.http.post(
        "/api/v1/invites/accept", params={"dry_run": "true"}, headers=bearer(made["secret"])
    )
    assert tried.status_code == 200
    assert "secret" not in tried.json()["key"]
    assert (await accept(api, made["secret"])).status_code == 201


async def test_the_join_page_accepts_by_its_button_and_signs_in(api: ApiHarness) -> None:
    made = await invite(api, api.keys["acme", "admin"])
    for _ in range(2):  # a preview of the link uses nothing up
        page = await api.http.get(made["path"])
        assert page.status_code == 200
        assert "Join as ana" in page.text
    stranger = await api.http.post(
        "/console/join", data={"invite": made["secret"]}, headers={"Origin": "https://evil.test"}
    )
    assert stranger.status_code == 403
    joined = await api.http.post("/console/join", data={"invite": made["secret"]})
    assert joined.status_code == 200
    key = re.search(r"fol_\w+", joined.text.partition("own-key")[2])
    assert key is not None
    api.http.cookies.clear()
    today = await api.http.get("/console/", headers={"Cookie": f"{COOKIE}={joined.cookies[COOKIE]}"})
    assert today.status_code == 200
    assert "ana" in today.text
    again = await api.http.get(made["path"])
    assert again.status_code == 401
    assert "used already" in again.text


async def test_a_session_makes_keys_that_last_as_long_as_the_key_behind_it(
    api: ApiHarness, clock: ManualClock
) -> None:
    lasting = await api.create_key("acme", MemberRole.ADMIN)
    signed = await api.http.post("/console/sign-in", data={"key": lasting})
    session = bearer(signed.cookies[COOKIE])
    api.http.cookies.clear()
    made = await api.http.post("/api/v1/keys", json={"name": "for CI"}, headers=session)
    assert made.status_code == 201, made.text
    assert made.json()["expires_at"] is None
    me = (await api.http.get("/api/v1/me", headers=bearer(lasting))).json()
    assert made.json()["made_by"] == me["key"]["id"]  # the session's own key is no maker
    sessions = await api.http.get("/api/v1/keys", headers=session)
    assert [each["name"] for each in sessions.json()["items"] if each["session"]] == ["Console session"]
    await api.http.post(f"/api/v1/keys/{me['key']['id']}/revoke", headers=session)
    refused = await api.http.post("/api/v1/keys", json={"name": "late"}, headers=session)
    assert refused.status_code == 403


async def test_a_session_always_ends(api: ApiHarness) -> None:
    answer = await api.http.post(
        "/api/v1/keys", json={"name": "s", "session": True}, headers=bearer(api.keys["acme", "admin"])
    )
    assert answer.status_code == 422
