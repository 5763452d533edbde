"""`dry_run=true`: what a change would mean, and that nothing of it is kept."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.conftest import Town, job, problems

pytestmark = pytest.mark.anyio
DAILY = {"kind": "cron", "expr": "0 6 * * *"}
DRY = {"dry_run": "true"}


def everything(owner: Any) -> list[Any]:
    """All that a change could leave behind."""
    tables = ("jobs", "timers", "audit", "revisions", "runs", "ready", "waiting", "job_tags", "dependencies")
    return [owner.execute(f"SELECT * FROM foliot.{table} ORDER BY 1, 2, 3").fetchall() for table in tables]


async def test_creating_is_tried_with_its_sentence_and_its_times(town: Town, owner: Any) -> None:
    before = everything(owner)
    town.hints.clear()
    answer = await town.ask("POST", "/jobs", params=DRY, json=job(schedule=DAILY, tags=["x"]))
    told = answer.json()
    assert (answer.status_code, told["dry_run"], told["job"]["status"]) == (200, True, "active")
    assert told["words"] == told["job"]["schedule"]["words"]
    assert [each["planned_for"][:10] for each in told["items"]] == [f"2027-01-{day}" for day in range(16, 21)]
    assert (len(told["difference"]["added"]), told["difference"]["removed"]) == (30, [])
    assert (everything(owner), town.hints) == (before, [])
    assert "location" not in answer.headers


async def test_a_try_refuses_what_the_change_itself_would_refuse(town: Town) -> None:
    broken = await town.ask(
        "POST", "/jobs", params=DRY, json=job(schedule={"kind": "cron", "expr": "61 * * * *"})
    )
    assert (broken.status_code, list(problems(broken))) == (422, ["/schedule/expr"])
    made = await town.make()
    idle = await town.ask("POST", f"/jobs/{made['id']}/resume", params=DRY)
    assert (idle.status_code, idle.json()["code"]) == (409, "illegal_move")


async def test_stopping_and_starting_are_tried_by_what_they_take_and_give(town: Town, owner: Any) -> None:
    made = await town.make(schedule=DAILY)
    before = everything(owner)
    for verb in ("pause", "disable"):
        told = (await town.ask("POST", f"/jobs/{made['id']}/{verb}", params=DRY)).json()
        assert (told["job"]["status"], told["items"]) == (f"{verb}d", [])
        assert (len(told["difference"]["removed"]), told["difference"]["added"]) == (30, [])
    body = {"until": "2027-01-20T12:00:00Z"}
    told = (await town.ask("POST", f"/jobs/{made['id']}/pause", params=DRY, json=body)).json()
    assert (len(told["difference"]["removed"]), told["difference"]["unchanged"]) == (5, 25)
    assert everything(owner) == before
    await town.ask("POST", f"/jobs/{made['id']}/pause")
    town.hints.clear()
    told = (await town.ask("POST", f"/jobs/{made['id']}/resume", params=DRY)).json()
    assert (told["job"]["status"], len(told["difference"]["added"]), town.hints) == ("active", 30, [])
    assert (await town.ask("GET", f"/jobs/{made['id']}")).json()["status"] == "paused"


async def test_trying_another_workspaces_job_finds_nothing(town: Town) -> None:
    made = await town.make(who="globex")
    assert (await town.ask("POST", f"/jobs/{made['id']}/pause", params=DRY)).status_code == 404


async def test_an_edit_is_tried_with_the_runs_it_would_move(town: Town, owner: Any) -> None:
    made = await town.make(schedule=DAILY)
    before = everything(owner)
    town.hints.clear()
    path = f"/jobs/{made['id']}"
    patch = {"schedule": {"expr": "0 7 * * *"}}
    told = (await town.ask("PATCH", path, params=DRY, json=patch)).json()
    assert (len(told["difference"]["moved"]), told["difference"]["unchanged"]) == (30, 0)
    assert told["difference"]["moved"][0] == {
        "before": "2027-01-16T06:00:00Z",
        "after": "2027-01-16T07:00:00Z",
    }
    assert (told["job"]["revision"], told["job"]["schedule"]["expr"]) == (2, "0 7 * * *")
    whole = job(schedule={"kind": "cron", "expr": "0 6 * * mon-fri"})
    told = (await town.ask("PUT", path, params=DRY, json=whole)).json()
    assert (len(told["difference"]["removed"]), told["difference"]["added"]) == (10, [])
    stale = await town.ask("PUT", path, params=DRY, json=whole, headers={"If-Match": '"7"'})
    assert stale.status_code == 412
    assert (everything(owner), town.hints) == (before, [])


async def test_a_deletion_is_tried_by_what_it_would_take(town: Town, owner: Any) -> None:
    made = await town.make(schedule=DAILY)
    before = everything(owner)
    answer = await town.ask("DELETE", f"/jobs/{made['id']}", params=DRY)
    assert (answer.status_code, answer.json()["job"]["status"]) == (200, "archived")
    assert len(answer.json()["difference"]["removed"]) == 30
    gone = await town.ask("DELETE", f"/jobs/{made['id']}", role="admin", params={**DRY, "purge": "true"})
    assert (gone.status_code, gone.json()["job"]) == (200, None)
    assert everything(owner) == before


async def test_a_return_to_an_old_revision_is_tried_too(town: Town, owner: Any) -> None:
    made = await town.make(schedule=DAILY)
    path = f"/jobs/{made['id']}"
    await town.ask("PATCH", path, json={"schedule": {"expr": "0 7 * * *"}})
    before = everything(owner)
    told = (await town.ask("POST", f"{path}/revert", params=DRY, json={"revision": 1})).json()
    assert (told["job"]["revision"], told["job"]["schedule"]["expr"]) == (3, made["schedule"]["expr"])
    assert len(told["difference"]["moved"]) == 30
    assert everything(owner) == before
