"""`dry_run=true`: what a change would mean, and that nothing of it is kept."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.conftest import ApiHarness, job, problems

pytestmark = pytest.mark.anyio
DAILY = {"kind": "cron", "expr": "0 6 * * *"}
DRY = {"dry_run": "true"}


def everything(owner: Any) -> list[Any]:
    """All that a change could leave behind."""
    tables = ("jobs", "timers", "audit", "revisions", "runs", "ready", "waiting", "job_tags", "dependencies")
    return [owner.execute(f"SELECT * FROM foliot.{table} ORDER BY 1, 2, 3").fetchall() for table in tables]


async def test_creating_is_tried_with_its_sentence_and_its_times(api: ApiHarness, owner: Any) -> None:
    before = everything(owner)
    api.hints.clear()
    answer = await api.request("POST", "/jobs", params=DRY, json=job(schedule=DAILY, tags=["x"]))
    reported = answer.json()
    assert (answer.status_code, reported["dry_run"], reported["job"]["status"]) == (200, True, "active")
    assert reported["words"] == reported["job"]["schedule"]["words"]
    assert [each["planned_for"][:10] for each in reported["items"]] == [
        f"2027-01-{day}" for day in range(16, 21)
    ]
    assert (len(reported["difference"]["added"]), reported["difference"]["removed"]) == (30, [])
    assert (everything(owner), api.hints) == (before, [])
    assert "location" not in answer.headers


async def test_a_try_refuses_what_the_change_itself_would_refuse(api: ApiHarness) -> None:
    broken = await api.request(
        "POST", "/jobs", params=DRY, json=job(schedule={"kind": "cron", "expr": "61 * * * *"})
    )
    assert (broken.status_code, list(problems(broken))) == (422, ["/schedule/expr"])
    made = await api.create_job()
    idle = await api.request("POST", f"/jobs/{made['id']}/resume", params=DRY)
    assert (idle.status_code, idle.json()["code"]) == (409, "illegal_move")


async def test_stopping_and_starting_are_tried_by_what_they_take_and_give(
    api: ApiHarness, owner: Any
) -> None:
    made = await api.create_job(schedule=DAILY)
    before = everything(owner)
    for verb in ("pause", "disable"):
        reported = (await api.request("POST", f"/jobs/{made['id']}/{verb}", params=DRY)).json()
        assert (reported["job"]["status"], reported["items"]) == (f"{verb}d", [])
        assert (len(reported["difference"]["removed"]), reported["difference"]["added"]) == (30, [])
    body = {"until": "2027-01-20T12:00:00Z"}
    reported = (await api.request("POST", f"/jobs/{made['id']}/pause", params=DRY, json=body)).json()
    assert (len(reported["difference"]["removed"]), reported["difference"]["unchanged"]) == (5, 25)
    assert everything(owner) == before
    await api.request("POST", f"/jobs/{made['id']}/pause")
    api.hints.clear()
    reported = (await api.request("POST", f"/jobs/{made['id']}/resume", params=DRY)).json()
    assert (reported["job"]["status"], len(reported["difference"]["added"]), api.hints) == ("active", 30, [])
    assert (await api.request("GET", f"/jobs/{made['id']}")).json()["status"] == "paused"


async def test_trying_another_workspaces_job_finds_nothing(api: ApiHarness) -> None:
    made = await api.create_job(who="globex")
    assert (await api.request("POST", f"/jobs/{made['id']}/pause", params=DRY)).status_code == 404


async def test_an_edit_is_tried_with_the_runs_it_would_move(api: ApiHarness, owner: Any) -> None:
    made = await api.create_job(schedule=DAILY)
    before = everything(owner)
    api.hints.clear()
    path = f"/jobs/{made['id']}"
    patch = {"schedule": {"expr": "0 7 * * *"}}
    reported = (await api.request("PATCH", path, params=DRY, json=patch)).json()
    assert (len(reported["difference"]["moved"]), reported["difference"]["unchanged"]) == (30, 0)
    assert reported["difference"]["moved"][0] == {
        "before": "2027-01-16T06:00:00Z",
        "after": "2027-01-16T07:00:00Z",
    }
    assert (reported["job"]["revision"], reported["job"]["schedule"]["expr"]) == (2, "0 7 * * *")
    whole = job(schedule={"kind": "cron", "expr": "0 6 * * mon-fri"})
    reported = (await api.request("PUT", path, params=DRY, json=whole)).json()
    assert (len(reported["difference"]["removed"]), reported["difference"]["added"]) == (10, [])
    stale = await api.request("PUT", path, params=DRY, json=whole, headers={"If-Match": '"7"'})
    assert stale.status_code == 412
    assert (everything(owner), api.hints) == (before, [])


async def test_a_deletion_is_tried_by_what_it_would_take(api: ApiHarness, owner: Any) -> None:
    made = await api.create_job(schedule=DAILY)
    before = everything(owner)
    answer = await api.request("DELETE", f"/jobs/{made['id']}", params=DRY)
    assert (answer.status_code, answer.json()["job"]["status"]) == (200, "archived")
    assert len(answer.json()["difference"]["removed"]) == 30
    gone = await api.request("DELETE", f"/jobs/{made['id']}", role="admin", params={**DRY, "purge": "true"})
    assert (gone.status_code, gone.json()["job"]) == (200, None)
    assert everything(owner) == before


async def test_a_return_to_an_old_revision_is_tried_too(api: ApiHarness, owner: Any) -> None:
    made = await api.create_job(schedule=DAILY)
    path = f"/jobs/{made['id']}"
    await api.request("PATCH", path, json={"schedule": {"expr": "0 7 * * *"}})
    before = everything(owner)
    reported = (await api.request("POST", f"{path}/revert", params=DRY, json={"revision": 1})).json()
    assert (reported["job"]["revision"], reported["job"]["schedule"]["expr"]) == (3, made["schedule"]["expr"])
    assert len(reported["difference"]["moved"]) == 30
    assert everything(owner) == before
