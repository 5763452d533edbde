"""Looking through the audit: filters, pages, and whose entries one sees."""

from __future__ import annotations

from datetime import timedelta

import pytest

from foliot.testing.clock import ManualClock
from foliot.wire.instants import write_instant
from tests.web.conftest import ApiHarness

pytestmark = pytest.mark.anyio


async def actions(api: ApiHarness, query: str = "", **who: str) -> list[str]:
    answer = await api.request("GET", f"/audit?{query}", **{"role": "admin", **who})
    assert answer.status_code == 200, answer.text
    return [each["action"] for each in answer.json()["items"]]


@pytest.mark.requirement("S2-45")
async def test_entries_are_found_by_who_what_which_and_when(api: ApiHarness, clock: ManualClock) -> None:
    made = await api.create_job()
    began = clock.advance(timedelta(minutes=1))
    await api.request("POST", f"/jobs/{made['id']}/pause", role="operator", json={"reason": "quiet"})
    clock.advance(timedelta(minutes=1))
    await api.request("POST", f"/jobs/{made['id']}/resume", role="operator")
    assert await actions(api) == ["job.resumed", "job.paused", "job.created"]
    operator = (await api.request("GET", "/me", role="operator")).json()["principal"]["id"]
    assert await actions(api, f"actor={operator}") == ["job.resumed", "job.paused"]
    assert await actions(api, "action=job.paused") == ["job.paused"]
    assert await actions(api, "action=job") == ["job.resumed", "job.paused", "job.created"]
    assert await actions(api, "action=jo") == []
    assert await actions(api, f"object=job:{made['id']}&until={write_instant(began)}") == ["job.created"]
    assert await actions(api, f"since={write_instant(began)}&object=job") == ["job.resumed", "job.paused"]
    assert await actions(api, "object=run") == []
    first = (await api.request("GET", "/audit?limit=2", role="admin")).json()
    assert await actions(api, f"limit=2&cursor={first['next_cursor']}") == ["job.created"]
    paused = first["items"][1]
    assert (paused["actor"]["id"], paused["object"]) == (operator, {"kind": "job", "id": made["id"]})
    assert paused["before"]["status"] == "active"


async def test_a_workspace_sees_its_own_entries_alone(api: ApiHarness) -> None:
    await api.create_job(name="canary-5b1f")
    assert await actions(api, who="globex") == []
    for role in ("viewer", "operator", "editor"):
        assert (await api.request("GET", "/audit", role=role)).status_code == 403
    assert (await api.request("GET", "/audit?installation=true", role="admin")).status_code == 403
    whole = await api.request("GET", "/audit?installation=true", who="system")
    assert whole.status_code == 200
    assert "canary" not in whole.text
    assert "key.created" in [each["action"] for each in whole.json()["items"]]


@pytest.mark.parametrize(
    "query",
    [
        "actor=%00",
        "object=%00",
        "object=job:%00",
        "action=%00",
        "cursor=AAAA",
        "cursor=MQoy",
        "since=noon",
        "limit=0",
    ],
)
async def test_what_cannot_be_looked_for_is_refused(shared_api: ApiHarness, query: str) -> None:
    assert (await shared_api.request("GET", f"/audit?{query}", role="admin")).status_code == 422


@pytest.mark.parametrize("path", ["%00", "%F0%9F%98%80", "No", "a" * 300])
async def test_what_names_no_workspace_is_not_there(shared_api: ApiHarness, path: str) -> None:
    assert (await shared_api.request("GET", f"/workspaces/{path}", who="system")).status_code in {404, 422}


async def test_a_cursor_for_workspaces_names_one(shared_api: ApiHarness) -> None:
    first = (await shared_api.request("GET", "/workspaces?limit=2", who="system")).json()
    rest = (
        await shared_api.request("GET", f"/workspaces?cursor={first['next_cursor']}", who="system")
    ).json()
    slugs = [each["slug"] for each in first["items"] + rest["items"]]
    assert slugs == sorted(slugs) == ["acme", "default", "globex", "outsider"]
    assert (await shared_api.request("GET", "/workspaces?cursor=AAAA", who="system")).status_code == 422
