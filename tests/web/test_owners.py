"""The owner of a job: named on create, moved by who may, and what becomes of the jobs of a removed agent."""

from __future__ import annotations

from typing import Any

import pytest

from foliot.testing.clock import ManualClock
from tests.web.conftest import ApiHarness, job, problems
from tests.web.test_members import join

pytestmark = pytest.mark.anyio


async def agent(api: ApiHarness, name: str) -> dict[str, Any]:
    return await join(api, kind="agent", name=name)


async def get(api: ApiHarness, made: dict[str, Any], role: str = "editor") -> Any:
    return await api.request("GET", f"/jobs/{made['id']}", role=role)


async def delete(api: ApiHarness, member: dict[str, Any], **query: str) -> Any:
    return await api.request("DELETE", f"/members/{member['id']}", role="admin", params=query)


@pytest.mark.requirement("S4-3", "S4-CLI-2", "S4-CLI-5", "S4-10", "S4-26")
async def test_a_job_is_made_for_an_agent_and_moved_to_another(api: ApiHarness) -> None:
    frank, nova = await agent(api, "frank"), await agent(api, "nova")
    made = await api.create_job(owner="Frank")
    assert (made["owner"], made["owner_name"]) == (frank["id"], "frank")
    assert (await get(api, made, frank["id"])).status_code == 200
    assert (await get(api, made, nova["id"])).status_code == 404
    moved = await api.request("PATCH", f"/jobs/{made['id']}", json={"owner": nova["id"]})
    assert (moved.json()["owner_name"], moved.json()["revision"]) == ("nova", 2)
    assert (await get(api, made, frank["id"])).status_code == 404
    assert (await get(api, made, nova["id"])).status_code == 200
    [listed] = (await api.request("GET", "/jobs?owner=nova")).json()["items"]
    assert listed["owner_name"] == "nova"
    put = await api.request("PUT", f"/jobs/{made['id']}", json=job(name="bare"))
    assert put.json()["owner_name"] == "nova", "left out, the owner stays"
    back = await api.request("POST", f"/jobs/{made['id']}/revert", json={"revision": 1})
    assert (back.json()["name"], back.json()["owner_name"]) == ("beat", "nova"), "a revert keeps the owner"
    mine = await api.request("PATCH", f"/jobs/{made['id']}", json={"owner": "me"})
    assert mine.json()["owner"] == (await api.request("GET", "/me")).json()["principal"]["id"]


@pytest.mark.requirement("S4-3", "S4-27")
async def test_an_agent_names_no_other_owner_and_nobody_names_a_stranger(api: ApiHarness) -> None:
    frank = await agent(api, "frank")
    await agent(api, "nova")
    for other in ("nova", "nobody"):
        refused = await api.request("POST", "/jobs", role=frank["id"], json=job(owner=other))
        assert (refused.status_code, refused.json()["detail"]) == (403, "An agent owns its own jobs only.")
    own = await api.request("POST", "/jobs", role=frank["id"], json=job(owner="frank"))
    assert own.json()["owner"] == frank["id"]
    given = await api.request("PATCH", f"/jobs/{own.json()['id']}", role=frank["id"], json={"owner": "nova"})
    assert given.status_code == 403
    unknown = await api.request("POST", "/jobs", json=job(owner="nobody"))
    assert (unknown.status_code, problems(unknown)) == (422, {"/owner": 'There is no member "nobody".'})
    abroad = await api.request("POST", "/jobs", who="globex", json=job(owner=frank["id"]))
    assert abroad.status_code == 422


@pytest.mark.requirement("S4-3", "S2-36")
async def test_a_job_with_secrets_goes_only_to_an_agent_that_has_them(api: ApiHarness) -> None:
    frank = await agent(api, "frank")
    secret = await api.request(
        "POST", "/secrets", role="admin", json={"name": "crm", "value": "s3cr3t-value"}
    )
    config = {"url": "https://example.test", "headers": {"X-Key": {"secret": "crm"}}}
    made = await api.create_job(config=config)
    refused = await api.request("PATCH", f"/jobs/{made['id']}", json={"owner": "frank"})
    assert (refused.status_code, list(problems(refused))) == (422, ["/config/headers/X-Key"])
    assert (await api.request("POST", "/jobs", json=job(config=config, owner="frank"))).status_code == 422
    await api.request(
        "PATCH", f"/secrets/{secret.json()['id']}", role="admin", json={"agents": [frank["id"]]}
    )
    moved = await api.request("PATCH", f"/jobs/{made['id']}", json={"owner": "frank"})
    assert moved.status_code == 200, moved.text


@pytest.mark.requirement("S4-3")
async def test_a_removed_agent_has_its_jobs_archived_handed_over_or_kept(
    api: ApiHarness, clock: ManualClock
) -> None:
    frank, nova, otto = await agent(api, "frank"), await agent(api, "nova"), await agent(api, "otto")
    jobs = [await api.create_job(name=f"job {n}", owner="frank") for n in range(3)]
    refused = await delete(api, frank)
    assert (refused.status_code, refused.json()["detail"]) == (409, "frank owns 3 jobs.")
    assert (await get(api, jobs[0], frank["id"])).status_code == 200, "nothing was done"
    tried = (await delete(api, frank, jobs="hand_over", to="nova", dry_run="true")).json()
    assert (tried["jobs"], tried["revoked_keys"], tried["member"]["active"]) == (3, 1, False)
    assert (await get(api, jobs[0])).json()["owner_name"] == "frank"
    assert (await delete(api, frank, jobs="hand_over")).status_code == 422
    assert (await delete(api, frank, jobs="hand_over", to="frank")).status_code == 422
    assert (await delete(api, frank, jobs="hand_over", to="nova")).status_code == 204
    assert {(await get(api, each)).json()["owner_name"] for each in jobs} == {"nova"}
    assert (await delete(api, nova, jobs="archive")).status_code == 204
    assert {(await get(api, each)).json()["status"] for each in jobs} == {"archived"}
    kept = await api.create_job(owner="otto")
    assert (await delete(api, otto, jobs="keep")).status_code == 204
    assert ((await get(api, kept)).json()["status"], (await get(api, kept)).json()["owner_name"]) == (
        "active",
        "otto",
    )
    late = await api.request("PATCH", f"/jobs/{kept['id']}", json={"owner": "nova"})
    assert problems(late) == {"/owner": 'There is no member "nova".'}, "it was removed"


@pytest.mark.requirement("S4-3")
async def test_jobs_that_cannot_be_archived_are_named_and_a_repeat_continues(api: ApiHarness) -> None:
    frank = await agent(api, "frank")
    first = await api.create_job(name="first", owner="frank")
    second = await api.create_job(
        name="second", schedule={"kind": "manual"}, depends_on=[{"job": first["id"]}]
    )
    refused = await delete(api, frank, jobs="archive")
    assert refused.status_code == 409
    assert refused.json()["detail"].startswith("The member is removed, and 1 of its jobs are left:")
    await api.request("PATCH", f"/jobs/{second['id']}", json={"depends_on": []})
    assert (await delete(api, frank, jobs="archive")).status_code == 204
    assert (await get(api, first)).json()["status"] == "archived"
    assert (await get(api, second)).json()["status"] == "active"


@pytest.mark.requirement("S4-3")
async def test_many_jobs_are_handed_over_by_filter(api: ApiHarness) -> None:
    await agent(api, "frank")
    for n in range(2):
        await api.create_job(name=f"job {n}", tags=["mail"])
    body = {"action": "hand_over", "q": "tag:mail", "expected_count": 2}
    missing = await api.request("POST", "/jobs/bulk", json=body)
    assert problems(missing) == {"/args/owner": "Who gets the jobs?"}
    done = (await api.request("POST", "/jobs/bulk", json={**body, "args": {"owner": "frank"}})).json()
    assert (done["done"], done["failed"]) == (2, 0)
    again = (await api.request("POST", "/jobs/bulk", json={**body, "args": {"owner": "frank"}})).json()
    assert (again["done"], again["already"]) == (0, 2)
    # An administrator of the installation is not a member.
    mine = await api.request(
        "POST",
        "/jobs/bulk",
        who="system",
        headers={"Foliot-Workspace": "acme"},
        json={**body, "args": {"owner": "me"}},
    )
    assert (mine.status_code, mine.json()["done"]) == (200, 2)
    denied = await api.request(
        "POST", "/jobs/bulk", role="operator", json={**body, "args": {"owner": "frank"}}
    )
    assert denied.status_code == 403
