"""Running, pausing and resuming jobs by the API."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest

from foliot.domain.access import Scope
from foliot.domain.errors import NotFound, StaleRevision
from foliot.domain.ids import JobId, PrincipalId
from foliot.services.jobs import job_edits, job_status, jobs, revisions
from foliot.services.runs import run_control
from foliot.services.runs.backfill import backfill
from foliot.services.scheduling.tick import tick
from foliot.testing.clock import ManualClock
from foliot.testing.fixtures import TEST
from tests.web.conftest import ApiHarness, problems

pytestmark = pytest.mark.anyio


async def test_a_manual_run_is_made_at_once_with_its_own_input(api: ApiHarness) -> None:
    made = await api.create_job(payload={"full": False, "keep": 1})
    answer = await api.request(
        "POST", f"/jobs/{made['id']}/run", role="operator", json={"input": {"full": True}}
    )
    run = answer.json()
    assert (answer.status_code, answer.headers["location"]) == (201, f"/api/v1/runs/{run['id']}")
    assert (run["trigger"], run["status"], run["job_id"]) == ("manual", "ready", made["id"])
    assert run["input"] == {"full": True, "keep": 1}
    assert (await api.request("GET", f"/runs/{run['id']}")).json() == run
    assert (await api.request("GET", f"/jobs/{made['id']}")).json()["next_run_at"] == made["next_run_at"]


async def test_a_manual_run_needs_no_body_and_waits_behind_a_live_one(api: ApiHarness) -> None:
    made = await api.create_job(schedule={"kind": "manual"})
    statuses = [(await api.request("POST", f"/jobs/{made['id']}/run")).json()["status"] for _ in range(2)]
    assert statuses == ["ready", "waiting"]


@pytest.mark.requirement("S1-US4.T", "S4-AC-6", "S4-API-8")
async def test_a_paused_job_plans_nothing_until_it_is_resumed(api: ApiHarness, clock: ManualClock) -> None:
    made = await api.create_job(schedule={"kind": "interval", "every": "1m"})
    path = f"/jobs/{made['id']}"
    answer = await api.request("POST", f"{path}/pause", json={"reason": "maintenance"})
    paused = answer.json()
    assert (answer.status_code, answer.headers["etag"][:3]) == (200, '"1-')
    assert (paused["status"], paused["status_reason"], paused["next_run_at"]) == (
        "paused",
        "maintenance",
        None,
    )
    assert (await api.request("GET", f"{path}/next")).json()["items"] == []
    clock.advance(timedelta(minutes=5))
    await tick(api.database)
    assert (await api.request("GET", f"{path}/runs")).json()["items"] == []
    resumed = (await api.request("POST", f"{path}/resume")).json()
    assert (resumed["status"], resumed["next_run_at"]) == ("active", "2027-01-15T12:06:00Z")
    (gap,) = (await api.request("GET", f"{path}/runs")).json()["items"]
    assert (gap["status"], gap["skip_reason"], gap["count"]) == ("skipped", "paused", 5)
    assert (gap["planned_for"], gap["planned_until"]) == ("2027-01-15T12:01:00Z", "2027-01-15T12:05:00Z")


async def test_a_pause_may_have_an_end_in_the_future(api: ApiHarness) -> None:
    made = await api.create_job()
    path = f"/jobs/{made['id']}/pause"
    past = await api.request("POST", path, json={"until": "2027-01-15T11:00:00Z"})
    assert (past.status_code, list(problems(past))) == (422, ["/until"])
    ahead = await api.request("POST", path, json={"until": "2027-01-15T13:00:00+01:00"})
    assert ahead.status_code == 422
    ahead = await api.request("POST", path, json={"until": "2027-01-16T13:00:00+01:00"})
    assert (ahead.status_code, ahead.json()["paused_until"]) == (200, "2027-01-16T12:00:00Z")


async def test_a_move_that_cannot_be_made_says_which_can(api: ApiHarness) -> None:
    made = await api.create_job()
    answer = await api.request("POST", f"/jobs/{made['id']}/resume")
    assert (answer.status_code, answer.json()["code"]) == (409, "illegal_move")
    assert answer.json()["detail"] == "This job is already active."
    assert "pause" in answer.json()["errors"][0]["hint"]


@pytest.mark.parametrize(
    ("verb", "body", "pointer"),
    [
        ("run", {"inputs": {}}, "/inputs"),
        ("run", {"input": []}, "/input"),
        ("run", {"override": "yes"}, "/override"),
        ("pause", {"until": "tomorrow"}, "/until"),
        ("pause", {"reason": 7}, "/reason"),
        ("resume", {"catchup": True}, "/catchup"),
        ("resume", [], ""),
    ],
)
async def test_a_wrong_body_is_refused_where_it_is_wrong(
    api: ApiHarness, verb: str, body: Any, pointer: str
) -> None:
    made = await api.create_job()
    answer = await api.request("POST", f"/jobs/{made['id']}/{verb}", json=body)
    assert (answer.status_code, list(problems(answer))) == (422, [pointer])


async def test_a_job_after_another_names_it(api: ApiHarness) -> None:
    first = await api.create_job(name="extract")
    after = {"job": first["id"], "on": "success", "mode": "trigger", "delay": "5m", "max_age": None}
    second = await api.create_job(name="load", schedule={"kind": "manual"}, depends_on=[after])
    assert (second["depends_on"], second["depends_when"]) == ([after], "all")
    assert (await api.request("GET", f"/jobs/{second['id']}")).json() == second


async def test_what_can_start_something_hints_at_it(api: ApiHarness) -> None:
    made = await api.create_job()
    said = []
    for verb in ("run", "pause", "resume", "resume"):
        api.hints.clear()
        await api.request("POST", f"/jobs/{made['id']}/{verb}")
        said.append(sorted(api.hints))
    assert said == [["ready"], [], ["ready", "timers"], []]
    api.hints.clear()
    await api.create_job()
    assert api.hints == ["timers"]


async def test_what_was_done_is_in_the_audit(api: ApiHarness, owner: Any) -> None:
    made = await api.create_job()
    paused = await api.request("POST", f"/jobs/{made['id']}/pause", headers={"X-Forwarded-For": "192.0.2.7"})
    found = owner.execute(
        "SELECT action, actor, host(address), request_id, prefix FROM foliot.audit"
        " JOIN foliot.api_keys AS keys ON keys.id = key_id WHERE object_id = %s ORDER BY action",
        [made["id"]],
    ).fetchall()
    assert [row[0] for row in found] == ["job.created", "job.paused"]
    prefix = api.keys["acme", "editor"].split("_")[1]
    assert found[1][1:] == (made["owner"], "127.0.0.1", paused.headers["X-Request-Id"], prefix)


Verb = Callable[..., Awaitable[object]]
DAY_BEFORE = datetime(2027, 1, 14, tzinfo=UTC)


@pytest.mark.parametrize(
    "verb",
    [
        job_status.pause,
        job_status.disable,
        job_status.resume,
        run_control.run_now,
        partial(run_control.skip_next, reason="holiday"),
        run_control.undo_skip_next,
        partial(backfill, start=DAY_BEFORE, end=DAY_BEFORE + timedelta(hours=1), dry_run=False),
    ],
)
async def test_a_verb_looks_under_its_lock_whether_the_job_is_as_it_was_seen(
    api: ApiHarness, owner: Any, verb: Verb
) -> None:
    made = await api.create_job()
    edited = await api.request("PATCH", f"/jobs/{made['id']}", json={"name": "two"})
    before = owner.execute("SELECT count(*) FROM foliot.audit").fetchone()
    job_id, acme = JobId(UUID(made["id"])), api.ids["acme"]
    with pytest.raises(StaleRevision, match=r"editor-\w+ \([0-9a-f-]+\) changed it") as stale:
        await verb(api.database, Scope(acme, TEST, expected_revision=1), job_id)
    assert (stale.value.revision, edited.json()["revision"]) == (2, 2)
    assert owner.execute("SELECT count(*) FROM foliot.audit").fetchone() == before


async def test_an_agent_cannot_edit_what_is_no_longer_its_own(api: ApiHarness, owner: Any) -> None:
    made = await api.create_job()
    job_id, acme = JobId(UUID(made["id"])), api.ids["acme"]
    stranger = PrincipalId(uuid4())
    definition = (await jobs.get(api.database, acme, job_id)).definition
    for act in (
        job_edits.edit(api.database, Scope(acme, TEST, visible_owner=stranger), job_id, definition),
        revisions.revert(api.database, Scope(acme, TEST, visible_owner=stranger), job_id, 1),
    ):
        with pytest.raises(NotFound):
            await act
