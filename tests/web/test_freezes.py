"""/freezes: turned on over everything or over what is named, looked at, lifted; and whose business they are."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from foliot.domain.access import MemberRole, PrincipalKind
from foliot.services.scheduling.tick import tick
from foliot.testing.clock import ManualClock
from foliot.wire.instants import write_instant
from tests.web.conftest import ApiHarness, job, problems

pytestmark = pytest.mark.anyio
TAGGED = {"tags": ["billing"]}


async def turned_on(api: ApiHarness, **fields: Any) -> dict[str, Any]:
    answer = await api.request("POST", "/freezes", role="operator", json={"reason": "a deploy", **fields})
    assert answer.status_code == 201, answer.text
    found: dict[str, Any] = answer.json()
    assert answer.headers["location"] == f"/api/v1/freezes/{found['id']}"
    return found


async def test_a_freeze_is_answered_as_it_was_written(api: ApiHarness, clock: ManualClock) -> None:
    begin, end = clock.now() + timedelta(hours=1), clock.now() + timedelta(hours=2)
    written = {
        "scope": {"everything": False, "jobs": [], "tags": ["billing"], "queues": ["mail"]},
        "start_at": write_instant(begin),
        "end_at": write_instant(end),
        "after": "all",
        "per_minute": 6,
        "running": "stop",
    }
    found = await turned_on(api, **written)
    assert {name: found[name] for name in written} == written
    assert (found["status"], found["reason"], found["lifted_at"]) == ("planned", "a deploy", None)
    for at, status in ((begin, "in_force"), (end, "over")):
        clock.set(at)
        shown = await api.request("GET", f"/freezes/{found['id']}", role="viewer")
        assert shown.json()["status"] == status


async def test_what_it_covers_is_skipped_and_says_so_until_it_is_lifted(
    api: ApiHarness, clock: ManualClock
) -> None:
    billed, other = await api.create_job(tags=["billing"]), await api.create_job(name="other")
    found = await turned_on(api, scope=TAGGED)
    assert found["status"] == "in_force"
    clock.advance(timedelta(minutes=10))
    await tick(api.database)
    skipped = (await api.request("GET", f"/jobs/{billed['id']}/runs")).json()["items"]
    assert [(run["status"], run["skip_reason"]) for run in skipped] == [("skipped", "frozen")]
    ran = (await api.request("GET", f"/jobs/{other['id']}/runs")).json()["items"]
    assert [run["status"] for run in ran] == ["ready"]
    api.hints.clear()
    lifted = await api.request("POST", f"/freezes/{found['id']}/lift", role="operator")
    assert (lifted.status_code, api.hints) == (204, ["timers", "ready"])
    again = await api.request("DELETE", f"/freezes/{found['id']}", role="operator")
    assert (again.status_code, again.json()["detail"]) == (409, "This freeze is over already.")
    assert (await api.request("GET", "/freezes")).json()["items"] == []
    past = (await api.request("GET", "/freezes", params={"ended": True})).json()["items"]
    assert [(each["id"], each["status"]) for each in past] == [(found["id"], "over")]
    assert past[0]["lifted_by"] is not None


async def test_one_that_has_not_begun_is_taken_back(api: ApiHarness, clock: ManualClock) -> None:
    found = await turned_on(api, start_at=write_instant(clock.now() + timedelta(days=1)))
    assert (await api.request("DELETE", f"/freezes/{found['id']}", role="operator")).status_code == 204
    assert (await api.request("GET", f"/freezes/{found['id']}")).status_code == 404


async def test_freezes_are_listed_newest_first_a_page_at_a_time(api: ApiHarness, clock: ManualClock) -> None:
    made = []
    for name in "abc":
        clock.advance(timedelta(seconds=1))
        made.append((await turned_on(api, scope={"queues": [name]}))["id"])
    first = (await api.request("GET", "/freezes", params={"limit": 2})).json()
    assert [each["id"] for each in first["items"]] == [made[2], made[1]]
    rest = (await api.request("GET", "/freezes", params={"cursor": first["next_cursor"]})).json()
    assert ([each["id"] for each in rest["items"]], rest["next_cursor"]) == ([made[0]], None)


async def test_a_preview_counts_what_it_would_hold_and_keeps_nothing(api: ApiHarness) -> None:
    made = await api.create_job(tags=["billing"])
    answer = await api.request(
        "POST", "/freezes/preview", role="operator", json={"reason": "x", "scope": TAGGED}
    )
    found = answer.json()
    assert (found["jobs"], found["planned_times"], found["is_exact"]) == (1, 143, True)
    [held] = found["sample"]
    assert (held["job_id"], held["job_name"]) == (made["id"], made["name"])
    assert held["planned_for"] == made["next_run_at"]
    assert (await api.request("GET", "/freezes")).json()["items"] == []


async def test_what_is_wrong_is_reported_where_it_stands(api: ApiHarness, clock: ManualClock) -> None:
    past = write_instant(clock.now() - timedelta(hours=1))
    theirs = await api.create_job("globex")
    for change, pointer in (
        ({"scope": {}}, "/scope"),
        ({"scope": {"everything": True, "tags": ["a"]}}, "/scope"),
        ({"scope": {"jobs": [str(uuid4())]}}, "/scope/jobs"),
        ({"scope": {"jobs": [theirs["id"]]}}, "/scope/jobs"),
        ({"start_at": past}, "/start_at"),
        ({"end_at": past}, "/end_at"),
        ({"after": "some"}, "/after"),
        ({"per_minute": 0}, "/per_minute"),
        ({"reason": ""}, "/reason"),
    ):
        answer = await api.request("POST", "/freezes", json={"reason": "a deploy", **change})
        assert answer.status_code == 422, (change, answer.text)
        assert pointer in problems(answer), (change, answer.text)


async def test_another_workspace_knows_nothing_of_them(api: ApiHarness) -> None:
    mine = await turned_on(api)
    assert (await api.request("GET", "/freezes", who="globex")).json()["items"] == []
    for method, path in (("GET", ""), ("POST", "/lift"), ("DELETE", "")):
        there = await api.request(method, f"/freezes/{mine['id']}{path}", who="globex")
        nowhere = await api.request(method, f"/freezes/{uuid4()}{path}", who="globex")
        assert there.status_code == 404
        assert there.json() | {"request_id": 0} == nowhere.json() | {"request_id": 0}


async def test_an_agent_sees_what_covers_its_own_jobs_and_changes_none(api: ApiHarness) -> None:
    api.keys["acme", "agent"] = await api.create_key("acme", MemberRole.ADMIN, kind=PrincipalKind.AGENT)
    others = await api.create_job(name="of others")
    own = (await api.request("POST", "/jobs", role="agent", json=job(name="own"))).json()
    everything = await turned_on(api)
    both = await turned_on(api, scope={"jobs": [own["id"], others["id"]]})
    hidden = await turned_on(api, scope={"jobs": [others["id"]]})
    seen = (await api.request("GET", "/freezes", role="agent")).json()["items"]
    assert {each["id"] for each in seen} == {everything["id"], both["id"]}
    assert [each["scope"]["jobs"] for each in seen if each["id"] == both["id"]] == [[own["id"]]]
    assert (await api.request("GET", f"/freezes/{hidden['id']}", role="agent")).status_code == 404
    for method, path, body in (
        ("POST", "/freezes", {"reason": "mine"}),
        ("POST", "/freezes/preview", {"reason": "mine"}),
        ("POST", f"/freezes/{everything['id']}/lift", None),
        ("DELETE", f"/freezes/{everything['id']}", None),
    ):
        answer = await api.request(method, path, role="agent", json=body)
        assert answer.status_code == 403, (method, path)
