"""Keys that made keys: who made which is kept, and a leaked one can be ended with all that came of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from foliot.services.identity import authentication
from tests.web.conftest import ApiHarness

pytestmark = pytest.mark.anyio


async def make(api: ApiHarness, by: str = "admin", who: str = "acme", **fields: Any) -> dict[str, Any]:
    """A key that is then known by its own name."""
    name = f"key-{len(api.keys)}"
    answer = await api.request("POST", "/keys", who=who, role=by, json={"name": name, **fields})
    assert answer.status_code == 201, answer.text
    api.keys["acme", name] = answer.json()["secret"]
    made: dict[str, Any] = answer.json()
    return made


async def opens(api: ApiHarness, key: dict[str, Any]) -> bool:
    return (await api.request("GET", "/jobs", role=key["name"])).status_code == 200


async def revoke(api: ApiHarness, key: dict[str, Any], by: str = "admin", **params: str) -> dict[str, Any]:
    answer = await api.request("POST", f"/keys/{key['id']}/revoke", role=by, params=params)
    assert answer.status_code == 200, answer.text
    reported: dict[str, Any] = answer.json()
    return reported


async def test_a_key_says_which_key_made_it(api: ApiHarness) -> None:
    first = await make(api)
    second = await make(api, first["name"])
    assert second["made_by"] == first["id"]
    shown = (await api.request("GET", f"/keys/{second['id']}", role="admin")).json()
    assert shown["made_by"] == first["id"]
    me = (await api.request("GET", "/me", role="admin")).json()["key"]["id"]
    listed = (await api.request("GET", "/keys", role="admin")).json()["items"]
    assert {each["id"]: each["made_by"] for each in listed}[first["id"]] == me
    assert None in [each["made_by"] for each in listed]


async def test_rotation_leaves_the_successor_and_tells_of_it(api: ApiHarness) -> None:
    old = await make(api)
    new = await make(api, old["name"])
    reported = await revoke(api, old, by=new["name"])
    assert (reported["made_valid"], reported["made_revoked"], reported["revoked_at"] is not None) == (
        1,
        0,
        True,
    )
    assert [await opens(api, each) for each in (old, new)] == [False, True]


async def test_a_leaked_key_ends_with_all_that_came_of_it(api: ApiHarness) -> None:
    leaked = await make(api)
    child = await make(api, leaked["name"])
    grandchild = await make(api, child["name"], scopes=["viewer"])
    beside = await make(api)
    reported = await revoke(api, leaked, made_too="true")
    assert (reported["made_valid"], reported["made_revoked"]) == (0, 2)
    found = [await opens(api, each) for each in (leaked, child, grandchild, beside)]
    assert found == [False, False, False, True]
    for each in (leaked, child, grandchild):
        entries = (await api.request("GET", f"/audit?object=key:{each['id']}", role="admin")).json()["items"]
        assert [entry["action"] for entry in entries].count("key.revoked") == 1


async def test_what_a_revoked_key_made_can_still_be_ended(api: ApiHarness) -> None:
    first = await make(api)
    second = await make(api, first["name"])
    third = await make(api, second["name"])
    await revoke(api, second)
    assert (await revoke(api, first))["made_valid"] == 1
    assert (await revoke(api, first, made_too="true"))["made_revoked"] == 1
    assert not await opens(api, third)
    assert (await revoke(api, first, made_too="true"))["made_revoked"] == 0
    answer = await api.request("DELETE", f"/keys/{first['id']}?made_too=true", role="admin")
    assert answer.status_code == 204


async def test_a_system_key_ends_what_it_made_in_every_workspace(api: ApiHarness) -> None:
    leaked = await make(api, who="system")
    robots = {}
    for slug in ("acme", "globex"):
        body = {"kind": "service", "name": "robot", "role": "admin"}
        headers = {"Foliot-Workspace": slug}
        robot = (await api.request("POST", "/members", who="system", json=body, headers=headers)).json()
        answer = await api.request(
            "POST",
            "/keys",
            role=leaked["name"],
            json={"name": slug, "principal": robot["id"]},
            headers=headers,
        )
        assert answer.status_code == 201, answer.text
        api.keys[slug, "robot"] = answer.json()["secret"]
        robots[slug] = answer.json()["id"]
    assert (
        await api.request("POST", f"/keys/{leaked['id']}/revoke", who="system", params={"dry_run": "true"})
    ).json()["made_valid"] == 2
    ended = await api.request("POST", f"/keys/{leaked['id']}/revoke?made_too=true", who="system")
    assert (ended.status_code, ended.json()["made_revoked"]) == (200, 2), ended.text
    for slug, key_id in robots.items():
        assert (await api.request("GET", "/jobs", who=slug, role="robot")).status_code == 401
        entries = (await api.request("GET", f"/audit?object=key:{key_id}", who=slug, role="admin")).json()[
            "items"
        ]
        assert {each["action"] for each in entries} == {"key.revoked", "key.created"}, slug


async def test_a_family_with_a_stronger_member_is_not_ended_by_a_weaker_key(api: ApiHarness) -> None:
    """The holder of a key that was made may have risen since."""
    body = {"kind": "service", "name": "robot", "role": "viewer"}
    robot = (await api.request("POST", "/members", role="admin", json=body)).json()
    weak = await make(api, scopes=["admin"])
    made = await make(api, weak["name"], principal=robot["id"], scopes=["viewer"])
    narrowed = await api.request("PATCH", f"/keys/{weak['id']}", role="admin", json={"scopes": ["viewer"]})
    assert narrowed.status_code == 200, narrowed.text
    refused = await api.request("POST", f"/keys/{weak['id']}/revoke?made_too=true", role=weak["name"])
    assert (refused.status_code, await opens(api, made)) == (403, True)
    assert (await revoke(api, weak, by=weak["name"]))["made_valid"] == 1


async def test_a_key_that_was_just_revoked_elsewhere_makes_no_other(
    api: ApiHarness, owner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The authentication cache trusts a key for some seconds; a key made in that time would outlive it."""
    monkeypatch.setattr(authentication, "FRESH", 3600.0)  # on a slow machine the seconds are over too soon
    thief = await make(api)
    assert await opens(api, thief)
    owner.execute("UPDATE foliot.api_keys SET revoked_at = now() WHERE id = %s", [thief["id"]])
    answer = await api.request("POST", "/keys", role=thief["name"], json={"name": "x"})
    assert (answer.status_code, answer.json()["code"]) == (403, "denied")


async def test_a_key_made_while_its_maker_is_revoked_ends_with_it_or_is_not_made(api: ApiHarness) -> None:
    for _ in range(5):
        thief = await make(api)
        made, _ = await asyncio.gather(
            api.request("POST", "/keys", role=thief["name"], json={"name": "late"}),
            api.request("POST", f"/keys/{thief['id']}/revoke?made_too=true", role="admin"),
        )
        if made.status_code == 201:
            api.keys["acme", "late"] = made.json()["secret"]
            assert (await api.request("GET", "/jobs", role="late")).status_code == 401
        else:
            assert made.status_code in {401, 403}


async def test_another_workspace_cannot_tell_or_end_a_family(api: ApiHarness) -> None:
    key = await make(api)
    await make(api, key["name"])
    for params in ({}, {"made_too": "true"}, {"made_too": "true", "dry_run": "true"}):
        answer = await api.request(
            "POST", f"/keys/{key['id']}/revoke", who="globex", role="admin", params=params
        )
        assert answer.status_code == 404
    assert await opens(api, key)
