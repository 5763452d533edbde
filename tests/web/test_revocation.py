"""What one node ends, every node refuses: at once where hints come through, within five seconds where they do not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2 as httpx
import pytest

from foliot.clock import monotonic
from foliot.engine.hints import HintListener
from foliot.services.hints import Announcer, Hint
from foliot.services.identity import authentication
from foliot.services.identity.authentication import Authenticator
from foliot.storage.identity import keys
from foliot.storage.tx import Database
from foliot.testing.clock import ManualClock
from foliot.web.app import create_app
from foliot.web.health import Readiness
from tests.web.conftest import ApiHarness

pytestmark = pytest.mark.anyio
PROMISED = 5.0  # seconds


@asynccontextmanager
async def another_node(login_url: str, *, hears: bool) -> AsyncIterator[httpx.AsyncClient]:
    async def probe() -> Readiness:
        return Readiness()

    async with Database(login_url, clock=ManualClock()) as database:
        authenticator = Authenticator(database)
        listening = HintListener(database, login_url, {Hint.KEYS: authenticator.forget})
        listener_task = asyncio.create_task(listening.step()) if hears else None
        app = create_app(probe, asyncio.Event(), database, lambda _: None, authenticator=authenticator)
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app), base_url="http://other.test"
        ) as http:
            yield http
        if listener_task is not None:
            listener_task.cancel()
            await asyncio.wait([listener_task])
        await authenticator.close()


async def end_by(api: ApiHarness, way: str) -> str:
    """Make a key, use it, and give back how to end it."""
    member = await api.request(
        "POST", "/members", role="admin", json={"kind": "user", "name": "Ana", "role": "editor"}
    )
    made = await api.request(
        "POST", "/keys", role="admin", json={"name": "k", "principal": member.json()["id"]}
    )
    api.keys["acme", "ended"] = made.json()["secret"]
    return {"key": f"/keys/{made.json()['id']}", "member": f"/members/{member.json()['id']}"}[way]


async def refused_after(other: httpx.AsyncClient, key: str) -> float:
    began = monotonic()
    while (await ask(other, key)) == 200:
        assert monotonic() - began < PROMISED
        await asyncio.sleep(0.01)
    return monotonic() - began


async def ask(other: httpx.AsyncClient, key: str) -> int:
    answer = await other.get("/api/v1/me", headers={"Authorization": f"Bearer {key}"})
    return int(answer.status_code)


@pytest.mark.parametrize("way", ["key", "member"])
async def test_a_node_that_hears_nothing_refuses_an_ended_key_within_five_seconds(
    api: ApiHarness, login_url: str, way: str
) -> None:
    async with another_node(login_url, hears=False) as other:
        path = await end_by(api, way)
        key = api.keys["acme", "ended"]
        assert await ask(other, key) == 200
        assert (await api.request("DELETE", path, role="admin")).status_code == 204
        assert (await api.request("GET", "/me", role="ended")).status_code == 401  # here at once
        assert await ask(other, key) == 200  # remembered there
        await refused_after(other, key)


async def test_a_node_that_hears_of_it_refuses_long_before(
    api: ApiHarness, login_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authentication, "FRESH", 3_600.0)  # only the hint can make it forget
    async with another_node(login_url, hears=True) as other:
        path = await end_by(api, "key")
        key = api.keys["acme", "ended"]
        assert await ask(other, key) == 200
        assert (await api.request("DELETE", path, role="admin")).status_code == 204
        assert api.hints[-1] == Hint.KEYS
        announcer = Announcer(api.database)
        async with asyncio.timeout(20):
            while await ask(other, key) == 200:  # it may not be listening yet
                announcer.announce(Hint.KEYS)
                await asyncio.sleep(0.01)
        await announcer.close()


async def test_a_changed_role_and_an_archived_workspace_come_through_as_well(
    api: ApiHarness, login_url: str
) -> None:
    async with another_node(login_url, hears=False) as other:
        headers: dict[str, Any] = {"Authorization": f"Bearer {api.keys['acme', 'editor']}"}
        assert (await other.get("/api/v1/me", headers=headers)).json()["role"] == "editor"
        mine = (await api.request("GET", "/me")).json()["principal"]["id"]
        await api.request("PATCH", f"/members/{mine}", role="admin", json={"role": "viewer"})
        began = monotonic()
        while (await other.get("/api/v1/me", headers=headers)).json()["role"] != "viewer":
            assert monotonic() - began < PROMISED
            await asyncio.sleep(0.01)
        await api.request("DELETE", "/workspaces/acme", who="system")
        await refused_after(other, api.keys["acme", "editor"])


async def test_what_was_read_before_a_change_is_not_remembered_after_it(
    database: Database, api: ApiHarness
) -> None:
    """The hint may come while the answer of the database is still under way."""
    authenticator = Authenticator(database)
    looking = asyncio.create_task(authenticator.enter(api.keys["acme", "editor"], None))
    await asyncio.sleep(0)
    authenticator.forget()
    assert await looking is not None
    assert not authenticator._admitted
    await authenticator.close()


async def test_requests_at_once_look_a_key_up_once_and_again_after_a_change(
    database: Database, api: ApiHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, read = [], keys.find_presented

    async def counted(tx: Any, key_hash: bytes) -> Any:
        found.append(await read(tx, key_hash))
        return found[-1]

    monkeypatch.setattr(keys, "find_presented", counted)
    authenticator, key = Authenticator(database), api.keys["acme", "editor"]
    first = [asyncio.create_task(authenticator.enter(key, None)) for _ in range(5)]
    await asyncio.sleep(0)
    first[0].cancel()  # the one that began it
    callers = await asyncio.gather(*first[1:])
    assert [len(found), *(each is not None for each in callers)] == [1, True, True, True, True]
    authenticator.forget()
    early = asyncio.create_task(authenticator.enter(key, None))
    await asyncio.sleep(0)
    authenticator.forget()
    await asyncio.gather(early, authenticator.enter(key, None))
    assert len(found) == 3
    await authenticator.close()
