"""Budgets of agents' keys: jobs that the agent may own, and the shortest time between planned times."""

from __future__ import annotations

from typing import Any

import pytest

from foliot.domain.access import MemberRole
from tests.web.conftest import ApiHarness, job, problems

pytestmark = pytest.mark.anyio
SLOW = {"kind": "interval", "every": "10m"}


async def agent_key(api: ApiHarness, role: str = "bounded", **fields: Any) -> dict[str, Any]:
    """Make an agent with one key; requests of `role` present it."""
    api.keys.setdefault(("acme", "boss"), await api.create_key("acme", MemberRole.ADMIN))
    member = await api.request(
        "POST", "/members", role="boss", json={"name": role, "kind": "agent", "role": "editor"}
    )
    made = await api.request(
        "POST", "/keys", role="boss", json={"name": role, "principal": member.json()["id"], **fields}
    )
    assert made.status_code == 201, made.text
    found: dict[str, Any] = made.json()
    api.keys["acme", role] = found["secret"]
    return found


async def create(api: ApiHarness, role: str = "bounded", **fields: Any) -> Any:
    return await api.request("POST", "/jobs", role=role, json=job(**{"schedule": SLOW, **fields}))


async def test_an_agent_makes_as_many_jobs_as_its_key_allows_and_no_faster_ones(api: ApiHarness) -> None:
    made = await agent_key(api, max_jobs=2, min_interval=60)
    assert (made["max_jobs"], made["min_interval"]) == (2, 60)
    fast = await create(api, schedule={"kind": "interval", "every": "30s"})
    assert (fast.status_code, fast.json()["quota"]) == (
        422,
        {"name": "min_interval", "limit": 60, "used": 30},
    )
    first = (await create(api, name="a")).json()
    assert (await create(api, name="b")).status_code == 201
    third = await create(api, name="c")
    assert (third.status_code, third.json()["quota"]) == (422, {"name": "own_jobs", "limit": 2, "used": 2})
    faster = await api.request(
        "PATCH",
        f"/jobs/{first['id']}",
        role="bounded",
        json={"schedule": {"kind": "interval", "every": "5s"}},
    )
    assert faster.json()["quota"]["name"] == "min_interval"
    assert (await api.request("DELETE", f"/jobs/{first['id']}", role="bounded")).status_code == 204
    assert (await create(api, name="c")).status_code == 201
    back = await api.request("POST", f"/jobs/{first['id']}/restore", role="bounded")
    assert back.json()["quota"]["name"] == "own_jobs"
    assert (await create(api, "editor", schedule={"kind": "interval", "every": "5s"})).status_code == 201


async def test_a_key_makes_none_with_a_larger_budget(api: ApiHarness) -> None:
    await agent_key(api, max_jobs=2, min_interval=60)
    for asked in ({}, {"max_jobs": 10, "min_interval": 1}):
        made = await api.request("POST", "/keys", role="bounded", json={"name": "more", **asked})
        assert (made.json()["max_jobs"], made.json()["min_interval"]) == (2, 60), made.text
    less = await api.request("POST", "/keys", role="bounded", json={"name": "less", "max_jobs": 0})
    api.keys["acme", "none"] = less.json()["secret"]
    assert (await create(api, "none")).json()["quota"]["limit"] == 0


async def test_people_see_budgets_in_the_list_of_keys_and_only_agents_have_them(api: ApiHarness) -> None:
    made = await agent_key(api, max_jobs=5)
    listed = (await api.request("GET", "/keys", role="boss")).json()["items"]
    assert [each["max_jobs"] for each in listed if each["id"] == made["id"]] == [5]
    refused = await api.request("POST", "/keys", role="boss", json={"name": "mine", "max_jobs": 5})
    assert (refused.status_code, list(problems(refused))) == (422, ["/max_jobs"])
    audit = (await api.request("GET", "/audit?action=key.created", role="boss")).json()["items"]
    assert [each["after"]["max_jobs"] for each in audit if "max_jobs" in each["after"]] == [5]


async def test_a_key_with_a_budget_cannot_end_or_change_a_wider_one_of_its_agent(api: ApiHarness) -> None:
    wide = await agent_key(api, "wide")
    narrow = await api.request("POST", "/keys", role="wide", json={"name": "narrow", "max_jobs": 2})
    api.keys["acme", "narrow"] = narrow.json()["secret"]
    twin = await api.request("POST", "/keys", role="narrow", json={"name": "twin"})
    api.keys["acme", "twin"] = twin.json()["secret"]
    assert twin.json()["max_jobs"] == 2
    sibling = await api.request("POST", "/keys", role="wide", json={"name": "sibling", "max_jobs": 3})
    for key in (wide, sibling.json()):
        for method, path in (("PATCH", ""), ("DELETE", ""), ("POST", "/revoke")):
            answer = await api.request(method, f"/keys/{key['id']}{path}", role="narrow", json={})
            assert answer.status_code == 403, (key["name"], method, path)
    assert (await api.request("GET", "/jobs", role="wide")).status_code == 200
    ended = await api.request("DELETE", f"/keys/{narrow.json()['id']}", role="twin")
    assert ended.status_code == 204, "a key that may as much rotates it"
