"""/limits: caps on runs under way, of the workspace and of concurrency keys."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.conftest import Town, problems

pytestmark = pytest.mark.anyio


async def put(town: Town, role: str = "admin", **body: Any) -> Any:
    return await town.ask("PUT", "/limits", role=role, json=body)


async def test_caps_are_set_listed_changed_and_taken_away(town: Town) -> None:
    assert (await town.ask("GET", "/limits", role="viewer")).json() == {"items": []}
    assert (await put(town, key="db", cap=2)).json() == {
        "key": "db",
        "cap": 2,
        "in_use": 0,
        "waiting": 0,
        "dry_run": False,
    }
    assert (await put(town, cap=10)).json()["key"] is None
    assert (await put(town, key="db", cap=3)).json()["cap"] == 3
    listed = (await town.ask("GET", "/limits", role="viewer")).json()["items"]
    assert [(each["key"], each["cap"]) for each in listed] == [(None, 10), ("db", 3)]
    assert (await town.ask("DELETE", "/limits", role="admin")).status_code == 204
    assert (await town.ask("DELETE", "/limits?key=db", role="editor")).status_code == 204
    assert (await town.ask("DELETE", "/limits?key=db", role="editor")).status_code == 404
    audit = (await town.ask("GET", "/audit?action=limit", role="admin")).json()["items"]
    assert len(audit) == 5
    assert {each["action"] for each in audit} == {"limit.set", "limit.removed"}
    assert [each for each in audit if each["before"] == {"cap": 2}]


async def test_an_editor_caps_keys_and_an_administrator_the_workspace(town: Town) -> None:
    for role, status in (("viewer", 403), ("operator", 403), ("editor", 200)):
        assert (await put(town, role, key="db", cap=1)).status_code == status, role
    assert (await put(town, "editor", cap=1)).status_code == 403
    assert (await town.ask("DELETE", "/limits", role="editor")).status_code == 403
    assert (await town.ask("GET", "/limits", who="globex")).json() == {"items": []}


async def test_what_is_no_cap_is_refused_by_name(town: Town) -> None:
    for body, pointer in (({"cap": 0}, "/cap"), ({"key": "", "cap": 1}, "/key"), ({"key": "db"}, "/cap")):
        answer = await put(town, **body)
        assert (answer.status_code, list(problems(answer))) == (422, [pointer])
    answer = await put(town, key="k" * 201, cap=1)
    assert answer.status_code == 422
    assert (await town.ask("DELETE", "/limits?key=", role="admin")).status_code == 422


async def test_raising_a_cap_wakes_the_workers(town: Town) -> None:
    town.hints.clear()
    await put(town, key="db", cap=2)
    assert town.hints == ["ready"]
