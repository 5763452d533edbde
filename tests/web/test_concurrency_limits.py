"""/limits: caps on runs under way, of the workspace and of concurrency keys."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.conftest import ApiHarness, problems

pytestmark = pytest.mark.anyio


async def put(api: ApiHarness, role: str = "admin", **body: Any) -> Any:
    return await api.request("PUT", "/limits", role=role, json=body)


async def test_caps_are_set_listed_changed_and_taken_away(api: ApiHarness) -> None:
    assert (await api.request("GET", "/limits", role="viewer")).json() == {"items": []}
    assert (await put(api, key="db", cap=2)).json() == {
        "key": "db",
        "cap": 2,
        "in_use": 0,
        "waiting": 0,
        "dry_run": False,
    }
    assert (await put(api, cap=10)).json()["key"] is None
    assert (await put(api, key="db", cap=3)).json()["cap"] == 3
    listed = (await api.request("GET", "/limits", role="viewer")).json()["items"]
    assert [(each["key"], each["cap"]) for each in listed] == [(None, 10), ("db", 3)]
    assert (await api.request("DELETE", "/limits", role="admin")).status_code == 204
    assert (await api.request("DELETE", "/limits?key=db", role="editor")).status_code == 204
    assert (await api.request("DELETE", "/limits?key=db", role="editor")).status_code == 404
    audit = (await api.request("GET", "/audit?action=limit", role="admin")).json()["items"]
    assert len(audit) == 5
    assert {each["action"] for each in audit} == {"limit.set", "limit.removed"}
    assert [each for each in audit if each["before"] == {"cap": 2}]


async def test_an_editor_caps_keys_and_an_administrator_the_workspace(api: ApiHarness) -> None:
    for role, status in (("viewer", 403), ("operator", 403), ("editor", 200)):
        assert (await put(api, role, key="db", cap=1)).status_code == status, role
    assert (await put(api, "editor", cap=1)).status_code == 403
    assert (await api.request("DELETE", "/limits", role="editor")).status_code == 403
    assert (await api.request("GET", "/limits", who="globex")).json() == {"items": []}


async def test_what_is_no_cap_is_refused_by_name(api: ApiHarness) -> None:
    for body, pointer in (({"cap": 0}, "/cap"), ({"key": "", "cap": 1}, "/key"), ({"key": "db"}, "/cap")):
        answer = await put(api, **body)
        assert (answer.status_code, list(problems(answer))) == (422, [pointer])
    answer = await put(api, key="k" * 201, cap=1)
    assert answer.status_code == 422
    assert (await api.request("DELETE", "/limits?key=", role="admin")).status_code == 422


async def test_raising_a_cap_wakes_the_workers(api: ApiHarness) -> None:
    api.hints.clear()
    await put(api, key="db", cap=2)
    assert api.hints == ["ready"]
