"""What a host tells when it registers, and what it hears: its types and their schemas, the server's limits, the stops."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from foliot.domain.quotas import Quotas
from foliot.services.identity.authentication import Authenticator
from foliot.services.workers import remote, remote_register
from foliot.testing.clock import ManualClock
from tests.web.conftest import ApiHarness, problems
from tests.web.test_worker import begun, claimed, due, registered, say, shire

pytestmark = pytest.mark.anyio
__all__ = ["shire"]  # a fixture
SCHEMA = {
    "type": "object",
    "properties": {"source": {"type": "string", "pattern": "^(a+)+$"}},
    "required": ["source"],
}
SYNC = {"name": "DATA_SYNC", "description": "Copy tables.", "config_schema": SCHEMA}
HOST: dict[str, Any] = {"name": "h1/1", "types": ["DATA_SYNC"], "capacity": 4, "host": {"name": "h1"}}
LOOPS = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}


def sync(**config: Any) -> dict[str, Any]:
    return {"name": "s", "type": "DATA_SYNC", "schedule": {"kind": "manual"}, "config": config}


async def test_a_config_that_does_not_fit_what_a_host_reported_is_refused_in_its_workspace_alone(
    shire: ApiHarness,
) -> None:
    await say(shire, "register", **HOST, described=[SYNC])
    refused = await shire.request("POST", "/jobs", json=sync(source=1))
    assert (refused.status_code, list(problems(refused))) == (422, ["/config/source"])
    assert (await shire.request("POST", "/jobs", json=sync(source="aaa"))).status_code == 201
    assert (await shire.request("POST", "/jobs", who="globex", json=sync(source=1))).status_code == 201
    [mine] = [
        each
        for each in (await shire.request("GET", "/job-types")).json()["items"]
        if each["name"] == "DATA_SYNC"
    ]
    assert (mine["description"], mine["config_schema"], mine["active"]) == ("Copy tables.", SCHEMA, True)
    theirs = (await shire.request("GET", "/job-types", who="globex")).json()["items"]
    assert "DATA_SYNC" not in [each["name"] for each in theirs]


async def test_a_pattern_that_a_host_reported_cannot_hold_up_the_server(shire: ApiHarness) -> None:
    await say(shire, "register", **HOST, described=[SYNC])
    async with asyncio.timeout(10):
        refused = await shire.request("POST", "/jobs", json=sync(source="a" * 50_000 + "!"))
    assert refused.status_code == 422


@pytest.mark.parametrize("schema", [LOOPS, {"description": "x" * 40_000}, {"$ref": "https://example.test"}])
async def test_a_schema_that_could_take_for_ever_is_refused_by_its_place(
    shire: ApiHarness, schema: dict[str, Any]
) -> None:
    reported = [SYNC, {**SYNC, "name": "OTHER", "config_schema": schema}]
    refused = await shire.request(
        "POST", "/worker/register", role="worker", json={**HOST, "described": reported}
    )
    assert (refused.status_code, list(problems(refused))) == (422, ["/described/1/config_schema"])
    assert (await shire.request("GET", "/hosts")).json()["items"] == []


async def test_a_type_reported_twice_counts_as_reported_last_and_the_oldest_give_way(
    shire: ApiHarness, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_register, "MOST_TYPES", 2)
    for name in ("A", "B", "C"):
        reported = [{**SYNC, "name": name}, {**SYNC, "name": name, "description": "last"}]
        await say(shire, "register", **HOST, described=reported)
        clock.advance(remote.UNHEARD)
    listed = (await shire.request("GET", "/job-types")).json()["items"]
    assert [(each["name"], each["description"]) for each in listed if each["description"] == "last"] == [
        ("B", "last"),
        ("C", "last"),
    ]


async def test_a_host_hears_how_large_an_artifact_may_be(shire: ApiHarness) -> None:
    shire.http._transport.app.state.artifact_bytes = 100  # type: ignore[attr-defined]
    assert (await registered(shire))["artifact_bytes"] == 100


async def test_a_host_hears_of_a_cancel_while_it_waits_and_not_twice(
    shire: ApiHarness, clock: ManualClock
) -> None:
    worker = (await registered(shire, "h1", "pvp"))["worker_id"]
    await due(shire, clock, target={"server": "pvp"})
    [work] = await claimed(shire, worker)
    held = {"run_id": work["run_id"], "fence": work["fence"]}
    asked = {"worker_id": worker, "working_on": [held]}
    assert await say(shire, "stops", **asked, wait="0s") == {"cancels": [], "gone": []}
    waiting = asyncio.create_task(say(shire, "stops", **asked, wait="30s"))
    state = await begun(shire)
    await shire.request("POST", f"/runs/{work['run_id']}/cancel", json={})
    while not waiting.done():  # it may still be looking: the next ring is heard
        state.cancel_bell.ring()
        await asyncio.wait([waiting], timeout=0.05)
    assert waiting.result() == {"cancels": [held], "gone": []}
    again = await say(shire, "stops", worker_id=worker, stopping=[held], wait="0s")
    assert again == {"cancels": [], "gone": []}


async def test_what_was_taken_from_a_host_is_reported_as_gone_and_a_host_that_is_gone_itself_learns_it(
    shire: ApiHarness, clock: ManualClock
) -> None:
    worker = (await registered(shire, "h1", "pvp"))["worker_id"]
    await due(shire, clock, target={"server": "pvp"})
    [work] = await claimed(shire, worker)
    held = {"run_id": work["run_id"], "fence": work["fence"]}
    await shire.request("POST", f"/runs/{work['run_id']}/cancel", json={"force": True})
    reported = await say(shire, "stops", worker_id=worker, working_on=[held], wait="0s")
    assert reported == {"cancels": [], "gone": [held]}
    await say(shire, "leave", worker_id=worker)
    body = {"worker_id": worker, "wait": "0s"}
    refused = await shire.request("POST", "/worker/stops", role="worker", json=body)
    assert (refused.status_code, refused.json()["code"]) == (409, "worker_gone")


async def test_a_quota_bounds_hosts_and_servers_and_never_those_that_are_there_already(
    shire: ApiHarness,
) -> None:
    state = shire.http._transport.app.state  # type: ignore[attr-defined]
    state.authenticator = Authenticator(shire.database, Quotas(hosts=1, servers=2))
    host = (await registered(shire, "h1", "pvp", "pve"))["host_id"]
    again = await registered(shire, "h1", "pvp", "pve")  # it comes back, and nothing has grown
    assert again["host_id"] == host
    body = {"name": "h2/1", "types": ["http"], "capacity": 1, "host": {"name": "h2"}}
    refused = await shire.request("POST", "/worker/register", role="worker", json=body)
    assert (refused.status_code, refused.json()["code"]) == (422, "quota_exceeded")
    assert refused.json()["quota"] == {"name": "hosts", "limit": 1, "used": 1}
    for ask in (
        shire.request("POST", f"/hosts/{host}/instances", json={"name": "third"}),
        shire.request(
            "POST",
            "/worker/register",
            role="worker",
            json={**body, "host": {"name": "h1", "instances": ["third"]}},
        ),
    ):
        answer = await ask
        assert (answer.status_code, answer.json()["quota"]["name"]) == (422, "servers")
    [seen] = (await shire.request("GET", "/hosts")).json()["items"]
    assert [each["name"] for each in seen["instances"]] == ["pve", "pvp"]
    assert (await registered(shire, "h1", who="globex"))["host_id"] != host
