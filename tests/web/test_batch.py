"""Several writes in one transaction: all are kept, or none, under the same checks as each alone."""

from __future__ import annotations

from typing import Any

import pytest

from foliot.domain.access import MemberRole, PrincipalKind
from tests.web.conftest import ApiHarness, job

pytestmark = pytest.mark.anyio
CALENDAR = {
    "name": "Holidays",
    "kind": "blackout",
    "rules": [{"kind": "weekly", "start": "00:00", "end": "00:00"}],
}


def create(name: str, ref: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"method": "POST", "path": "/jobs", "body": job(name=name, **fields), "ref": ref}


async def names(api: ApiHarness) -> list[str]:
    return sorted(each["name"] for each in (await api.request("GET", "/jobs")).json()["items"])


async def test_all_writes_are_kept_and_later_ones_refer_to_earlier_ones(api: ApiHarness) -> None:
    writes = [
        {"method": "POST", "path": "/calendars", "body": CALENDAR, "ref": "@holidays"},
        create("extract", "@extract"),
        create("load", depends_on=[{"job": "@extract", "mode": "gate"}], calendars=["@holidays"]),
        {"method": "PUT", "path": "/limits", "body": {"key": "reports", "cap": 2}},
        {"method": "POST", "path": "/rooms", "body": {"name": "Ops", "key": "ops"}},
        {"method": "PATCH", "path": "/jobs/@extract", "body": {"priority": 7}},
    ]
    answer = await api.request("POST", "/batch", json={"writes": writes})
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["applied"] is True
    assert [each["status"] for each in found["items"]] == [201, 201, 201, 200, 201, 200]
    load = (await api.request("GET", f"/jobs/{found['items'][2]['id']}")).json()
    assert load["depends_on"][0]["job"] == found["items"][1]["id"]
    assert load["calendars"] == [found["items"][0]["id"]]
    assert (await api.request("GET", f"/jobs/{found['items'][1]['id']}")).json()["priority"] == 7


async def test_one_refusal_keeps_nothing_and_all_refusals_are_named(api: ApiHarness) -> None:
    old = await api.create_job(name="old")
    writes = [
        create("fine"),
        create("bad", "@bad", schedule={"kind": "cron", "expr": "61 * * * *"}),
        create("needs bad", depends_on=[{"job": "@bad"}]),
        {"method": "PUT", "path": f"/jobs/{old['id']}", "body": job(name="old"), "if_match": '"7"'},
        {"method": "POST", "path": "/jobs", "body": {"name": "x", "type": "http", "shedule": {}}},
    ]
    answer = await api.request("POST", "/batch", json={"writes": writes})
    assert answer.status_code == 422
    pointers = [each["pointer"] for each in answer.json()["errors"]]
    assert "/writes/1/body/schedule/expr" in pointers
    assert any(each.startswith("/writes/3") for each in pointers)
    assert "/writes/4/body/shedule" in pointers
    assert not any(each.startswith("/writes/2") for each in pointers), "it only lacks what was refused"
    assert await names(api) == ["old"]


async def test_writes_after_one_that_the_database_refuses_are_still_checked(api: ApiHarness) -> None:
    twice = {"method": "POST", "path": "/calendars", "body": CALENDAR}
    late = create("bad", schedule={"kind": "cron", "expr": "61 * * * *"})
    for query in ("", "?dry_run=true"):
        answer = await api.request(
            "POST", f"/batch{query}", json={"writes": [twice, twice, create("x"), late]}
        )
        assert answer.status_code == 422
        pointers = [each["pointer"] for each in answer.json()["errors"]]
        assert pointers == ["/writes/1", "/writes/3/body/schedule/expr"]
    assert await names(api) == []


async def test_jobs_of_a_batch_have_warnings_only_when_they_are_read(api: ApiHarness) -> None:
    unknown = create("x", type="no-such-type", config={})
    answer = await api.request("POST", "/batch", json={"writes": [unknown]})
    made = answer.json()["items"][0]["body"]
    assert made["warnings"] == []
    read = await api.request("GET", f"/jobs/{made['id']}?warnings=true")
    assert any("no-such-type" in each for each in read.json()["warnings"])


async def test_a_dry_run_validates_and_keeps_nothing(api: ApiHarness) -> None:
    answer = await api.request("POST", "/batch?dry_run=true", json={"writes": [create("fine")]})
    assert (answer.status_code, answer.json()["applied"]) == (200, False)
    bad = create("bad", schedule={"kind": "cron", "expr": "x"})
    refused = await api.request("POST", "/batch?dry_run=true", json={"writes": [create("fine"), bad]})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == "/writes/1/body/schedule/expr"
    assert await names(api) == []


async def test_a_stale_revision_alone_is_a_412(api: ApiHarness) -> None:
    old = await api.create_job(name="old")
    write = {"method": "PUT", "path": f"/jobs/{old['id']}", "body": job(name="old"), "if_match": '"7"'}
    answer = await api.request("POST", "/batch", json={"writes": [write]})
    assert answer.status_code == 412, answer.text


async def test_each_write_needs_the_permission_of_its_own_route(api: ApiHarness) -> None:
    old = await api.create_job(name="old")
    purge = {"method": "DELETE", "path": f"/jobs/{old['id']}?purge=true"}
    refused = await api.request("POST", "/batch", json={"writes": [create("new"), purge]})
    assert refused.status_code == 403, refused.text
    whole = {"method": "PUT", "path": "/limits", "body": {"key": None, "cap": 1}}
    assert (await api.request("POST", "/batch", json={"writes": [whole]})).status_code == 403
    assert (
        await api.request("POST", "/batch", role="viewer", json={"writes": [create("x")]})
    ).status_code == 403
    foreign = await api.create_job(who="globex", name="theirs")
    theirs = {"method": "PATCH", "path": f"/jobs/{foreign['id']}", "body": {"priority": 1}}
    assert (await api.request("POST", "/batch", json={"writes": [theirs]})).status_code == 404
    assert await names(api) == ["old"]


async def test_an_agent_writes_by_a_batch_what_it_may_write_alone(api: ApiHarness) -> None:
    api.keys["acme", "agent"] = await api.create_key("acme", MemberRole.EDITOR, kind=PrincipalKind.AGENT)
    others = await api.create_job(name="old")
    made = await api.request("POST", "/calendars", json=CALENDAR)
    calendar = f"/calendars/{made.json()['id']}"
    for write, status in (
        ({"method": "PATCH", "path": f"/jobs/{others['id']}", "body": {"priority": 1}}, 404),
        ({"method": "POST", "path": f"/jobs/{others['id']}/pause"}, 404),
        ({"method": "DELETE", "path": f"/jobs/{others['id']}"}, 404),
        ({"method": "POST", "path": "/calendars", "body": {**CALENDAR, "name": "another"}}, 403),
        ({"method": "PUT", "path": calendar, "body": CALENDAR}, 403),
        ({"method": "DELETE", "path": calendar}, 403),
        ({"method": "PUT", "path": "/limits", "body": {"key": "reports", "cap": 2}}, 403),
    ):
        for first in ([], [create("mine")]):
            sent = {"writes": [*first, write]}
            refused = await api.request("POST", "/batch", role="agent", json=sent)
            assert refused.status_code == status, (write, refused.text)
    assert await names(api) == ["old"]
    answer = await api.request("POST", "/batch", role="agent", json={"writes": [create("mine")]})
    assert answer.status_code == 200, answer.text
    assert await names(api) == ["mine", "old"]


@pytest.mark.parametrize("path", ["/keys", "/batch", "/jobs/../keys", "/members"])
async def test_a_batch_writes_only_what_a_file_can_hold(api: ApiHarness, path: str) -> None:
    write = {"method": "POST", "path": path, "body": {"name": "x"}}
    answer = await api.request("POST", "/batch", json={"writes": [write]})
    assert answer.status_code == 422, answer.text


async def test_a_repeat_with_the_same_key_is_done_once(api: ApiHarness) -> None:
    headers = {"Idempotency-Key": "once"}
    body = {"writes": [create("a"), create("b")]}
    first = await api.request("POST", "/batch", json=body, headers=headers)
    again = await api.request("POST", "/batch", json=body, headers=headers)
    assert first.json() == again.json()
    assert await names(api) == ["a", "b"]


async def test_an_archived_job_is_restored_with_its_history_and_stays_off_until_resumed(
    api: ApiHarness,
) -> None:
    made = await api.create_job(name="back")
    await api.request("DELETE", f"/jobs/{made['id']}")
    live = await api.create_job(name="live")
    assert (await api.request("POST", f"/jobs/{live['id']}/restore")).status_code == 409
    tried = await api.request("POST", f"/jobs/{made['id']}/restore?dry_run=true")
    assert tried.status_code == 200, tried.text
    assert await names(api) == ["live"]
    back = await api.request("POST", f"/jobs/{made['id']}/restore")
    assert (back.status_code, back.json()["status"], back.json()["next_run_at"]) == (200, "disabled", None)
    resumed = (await api.request("POST", f"/jobs/{made['id']}/resume")).json()
    assert resumed["status"] == "active"
    assert resumed["next_run_at"] is not None
    actions = (await api.request("GET", f"/audit?object=job:{made['id']}", role="admin")).json()["items"]
    assert sorted(each["action"] for each in actions) == [
        "job.archived",
        "job.created",
        "job.restored",
        "job.resumed",
    ]
