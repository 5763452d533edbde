"""Runs by the API: found, read, cancelled, made again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from foliot.domain.access import MemberRole, PrincipalKind
from foliot.domain.ids import WorkerId
from foliot.domain.outcomes import Failed
from foliot.domain.run import RunError
from foliot.services.scheduling.tick import tick
from foliot.services.settlement.report import Report, report
from foliot.services.workers.claim import Turns, claim
from foliot.storage.queue.run_queue import Claimed
from foliot.testing.clock import ManualClock
from tests.web.conftest import ApiHarness, job, problems

pytestmark = pytest.mark.anyio
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
WORKER = WorkerId(uuid4())
MANUAL = {"kind": "manual"}
BROKE = Failed(RunError("boom", "It broke."), permanent=True)


async def taken(api: ApiHarness) -> list[Claimed]:
    return await claim(api.database, await api.register_worker(WORKER), "default", ["http"], 10, Turns())


async def ended(api: ApiHarness, runs: list[Claimed], outcome: Any) -> frozenset[Any]:
    return await report(
        api.database, [Report(run.run_id, run.job_id, run.fence, WORKER, outcome) for run in runs]
    )


async def listed(api: ApiHarness, role: str = "viewer", **params: Any) -> list[dict[str, Any]]:
    answer = await api.request("GET", "/runs", role=role, params=params)
    assert answer.status_code == 200, answer.text
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


@pytest.mark.requirement("S2-33")
async def test_runs_of_a_workspace_are_found_by_filter_and_by_parameters(
    api: ApiHarness, clock: ManualClock
) -> None:
    billing = await api.create_job(name="bill", tags=["billing"], schedule=MANUAL, queue="money")
    other = await api.create_job(name="mail", schedule={"kind": "interval", "every": "1h"})
    first = (await api.request("POST", f"/jobs/{billing['id']}/run")).json()
    clock.advance(HOUR)
    await tick(api.database)
    clock.advance(HOUR)
    await tick(api.database)  # the first is still live: skipped
    await api.create_job(who="globex", name="theirs")
    runs = await listed(api)
    assert [run["job_name"] for run in runs] == ["mail", "mail", "bill"]
    assert [run["attempts"] for run in runs] == [None] * 3
    skipped, hourly, _ = (run["id"] for run in runs)
    for asked, expected in (
        ({"q": "tag:billing"}, [first["id"]]),
        ({"tag": "billing"}, [first["id"]]),
        ({"queue": "money"}, [first["id"]]),
        ({"q": "bill"}, [first["id"]]),
        ({"job": other["id"]}, [skipped, hourly]),
        ({"status": "skipped"}, [skipped]),
        ({"status": ["skipped", "ready"], "q": "-tag:billing"}, [skipped, hourly]),
        ({"status": "running"}, []),
        ({"skip_reason": "overlap"}, [skipped]),
        ({"trigger": "manual"}, [first["id"]]),
        ({"since": "90m"}, [skipped, hourly]),
        ({"until": "2027-01-15T13:00:00Z"}, [hourly, first["id"]]),
        ({"since": "90m", "until": "30m"}, [hourly]),
        ({"worker": "nobody"}, []),
        ({"q": f"id:{hourly}"}, [hourly]),
        ({"q": "attempts:>0"}, []),
    ):
        assert [run["id"] for run in await listed(api, **asked)] == expected, asked
    own = await api.request("GET", f"/jobs/{other['id']}/runs", params={"status": "skipped"})
    assert [run["id"] for run in own.json()["items"]] == [skipped]


async def test_what_was_recorded_late_is_found_by_its_planned_time(
    api: ApiHarness, clock: ManualClock
) -> None:
    made = await api.create_job(schedule={"kind": "interval", "every": "1h"}, misfire="skip")
    await api.create_job(name="quiet", schedule=MANUAL)
    clock.advance(10 * HOUR + 30 * MINUTE)
    await tick(api.database)  # one gap record of ten times, made long after the first of them
    clock.advance(HOUR)
    (gap,) = await listed(api, until="2027-01-15T13:30:00Z")
    assert (gap["job_id"], gap["count"], gap["planned_for"]) == (made["id"], 10, "2027-01-15T13:00:00Z")
    assert await listed(api, since="2027-01-15T13:30:00Z", until="2027-01-15T14:30:00Z") == []


async def test_pages_of_a_workspace_follow_each_other(api: ApiHarness, clock: ManualClock) -> None:
    await api.create_job(schedule={"kind": "interval", "every": "1m"}, overlap="concurrent")
    for _ in range(5):
        clock.advance(MINUTE)
        await tick(api.database)
    seen, cursor = [], None
    for expected in (2, 2, 1):
        params = {"limit": 2, "until": "2027-01-15T13:00:00Z", **({"cursor": cursor} if cursor else {})}
        page = (await api.request("GET", "/runs", params=params)).json()
        assert len(page["items"]) == expected
        seen += [run["planned_for"] for run in page["items"]]
        cursor = page["next_cursor"]
    assert (cursor, seen) == (None, [f"2027-01-15T12:0{minute}:00Z" for minute in (5, 4, 3, 2, 1)])


@pytest.mark.parametrize(
    ("params", "pointer"),
    [
        ({"q": "statsu:failed"}, "/q"),
        ({"q": "status:faild"}, "/q"),
        ({"status": "broken"}, "/status/0"),
        ({"job": "x"}, "/job"),
        ({"since": "soon"}, "/since"),
        ({"cursor": "x"}, "/cursor"),
        ({"limit": 0}, "/limit"),
    ],
)
async def test_a_wrong_filter_is_named(shared_api: ApiHarness, params: dict[str, Any], pointer: str) -> None:
    answer = await shared_api.request("GET", "/runs", params=params)
    assert (answer.status_code, list(problems(answer))) == (422, [pointer]), answer.text


async def test_every_attempt_is_reported(api: ApiHarness, clock: ManualClock) -> None:
    retry = {"max": 1, "strategy": "fixed", "base": "1m"}
    made = await api.create_job(schedule=MANUAL, retry=retry)
    run = (await api.request("POST", f"/jobs/{made['id']}/run")).json()
    path = f"/runs/{run['id']}"
    assert (await api.request("GET", f"{path}/attempts")).json() == {"items": []}
    first = await taken(api)
    clock.advance(2 * MINUTE)
    await ended(api, first, Failed(RunError("boom", "It broke.")))
    clock.advance(MINUTE)
    await taken(api)
    one, two = (await api.request("GET", f"{path}/attempts")).json()["items"]
    assert (one["number"], one["status"], one["fence"], one["duration_ms"]) == (1, "failed", 1, 120_000)
    fingerprint = RunError("boom", "It broke.").fingerprint
    error = {"code": "boom", "message": "It broke.", "traceback": None, "fingerprint": fingerprint}
    assert (one["error"], one["worker"]) == (error, str(WORKER))
    assert (two["number"], two["status"], two["finished_at"], two["duration_ms"]) == (
        2,
        "running",
        None,
        None,
    )
    shown = (await api.request("GET", path)).json()
    assert (shown["status"], shown["attempt_count"], shown["attempts"]) == ("running", 2, [one, two])


async def test_a_run_that_nobody_has_is_cancelled_at_once_with_its_reason(api: ApiHarness) -> None:
    made = await api.create_job(schedule=MANUAL)
    run = (await api.request("POST", f"/jobs/{made['id']}/run")).json()
    path = f"/runs/{run['id']}/cancel"
    answer = await api.request("POST", path, role="operator", json={"reason": "wrong month"})
    assert (answer.status_code, answer.json()["status"], answer.json()["note"]) == (
        200,
        "cancelled",
        "wrong month",
    )
    again = await api.request("POST", path)
    assert (again.status_code, again.json()["code"]) == (409, "illegal_move")


async def test_a_running_run_is_asked_to_stop_or_taken_away_by_force(api: ApiHarness) -> None:
    made = await api.create_job(schedule=MANUAL)
    run = (await api.request("POST", f"/jobs/{made['id']}/run")).json()
    waiting = (await api.request("POST", f"/jobs/{made['id']}/run")).json()
    held = await taken(api)
    asked = (await api.request("POST", f"/runs/{run['id']}/cancel", json={"reason": "too slow"})).json()
    assert (asked["status"], asked["note"]) == ("running", "too slow")
    assert asked["cancel_requested_at"] is not None
    forced = (await api.request("POST", f"/runs/{run['id']}/cancel", json={"force": True})).json()
    assert (forced["status"], forced["note"], forced["attempts"][0]["status"]) == (
        "cancelled",
        "too slow",
        "cancelled",
    )
    assert await ended(api, held, BROKE) == frozenset(), "its worker is no longer heard"
    assert (await api.request("GET", f"/runs/{waiting['id']}")).json()["status"] == "ready"


@pytest.mark.requirement("S1-EC-3")
async def test_a_finished_run_is_made_again_with_its_input_or_another(api: ApiHarness) -> None:
    made = await api.create_job(schedule=MANUAL, payload={"month": 1, "full": True})
    run = (await api.request("POST", f"/jobs/{made['id']}/run", json={"input": {"month": 2}})).json()
    path = f"/runs/{run['id']}/retry"
    early = await api.request("POST", path)
    assert (early.status_code, early.json()["detail"]) == (409, "This run has not ended yet.")
    await ended(api, await taken(api), BROKE)
    answer = await api.request("POST", path, role="operator")
    again = answer.json()
    assert (answer.status_code, answer.headers["location"]) == (201, f"/api/v1/runs/{again['id']}")
    assert (again["trigger"], again["retry_of"], again["input"]) == (
        "retry",
        run["id"],
        {"month": 2, "full": True},
    )
    assert again["planned_for"] == run["planned_for"]
    other = (await api.request("POST", path, json={"input": {"month": 3}})).json()
    assert other["input"] == {"month": 3, "full": True}
    for body, pointer in (
        ({"inputs": {}}, "/inputs"),
        ({"input": 1}, "/input"),
        ({"override": "yes"}, "/override"),
    ):
        refused = await api.request("POST", path, json=body)
        assert (refused.status_code, list(problems(refused))) == (422, [pointer])


async def test_an_agent_reaches_the_runs_of_its_own_jobs_alone(api: ApiHarness, clock: ManualClock) -> None:
    api.keys["acme", "agent"] = await api.create_key("acme", MemberRole.EDITOR, kind=PrincipalKind.AGENT)
    others = await api.create_job(name="others", schedule=MANUAL)
    mine = (await api.request("POST", "/jobs", role="agent", json=job(name="mine", schedule=MANUAL))).json()
    theirs = (await api.request("POST", f"/jobs/{others['id']}/run")).json()
    own = (await api.request("POST", f"/jobs/{mine['id']}/run", role="agent")).json()
    assert [run["id"] for run in await listed(api, role="agent")] == [own["id"]]
    assert await listed(api, role="agent", job=others["id"]) == []
    assert await listed(api, role="agent", q=f"id:{theirs['id']}") == []
    for method, verb in (
        ("GET", ""),
        ("GET", "/attempts"),
        ("GET", "/explain"),
        ("POST", "/cancel"),
        ("POST", "/retry"),
    ):
        same = {"X-Request-Id": "same-for-all"}
        answer = await api.request(method, f"/runs/{theirs['id']}{verb}", role="agent", headers=same)
        nobody = await api.request(method, f"/runs/{uuid4()}{verb}", role="agent", headers=same)
        assert (answer.status_code, answer.text) == (404, nobody.text), verb
        assert (await api.request(method, f"/runs/{own['id']}{verb}", role="agent")).status_code in (
            200,
            201,
        ), verb
    for verb in ("/explain", "/stats", "/runs"):
        assert (await api.request("GET", f"/jobs/{others['id']}{verb}", role="agent")).status_code == 404
        assert (await api.request("GET", f"/jobs/{mine['id']}{verb}", role="agent")).status_code == 200
    assert (await api.request("GET", f"/runs/{theirs['id']}")).json()["status"] == "ready"
    stats = (await api.request("GET", "/stats", role="agent")).json()
    assert (stats["jobs"]["active"], stats["now"]["ready"]) == (1, 1)


async def test_recent_runs_of_several_jobs_come_in_one_answer(api: ApiHarness, clock: ManualClock) -> None:
    jobs = [await api.create_job(name=f"job {n}") for n in range(2)]
    theirs = await api.create_job(who="globex", name="theirs")
    for one in jobs:
        for _ in range(3):
            clock.advance(timedelta(seconds=1))
            await api.request("POST", f"/jobs/{one['id']}/run")
    await api.request("POST", f"/jobs/{theirs['id']}/run", who="globex")
    asked = [each["id"] for each in (*jobs, theirs)]
    answer = await api.request("GET", "/recent-runs", params={"job": asked, "limit": 2})
    assert answer.status_code == 200, answer.text
    found = answer.json()["items"]
    assert [each["job_id"] for each in found] == [each["id"] for each in jobs]
    assert [[run["number"] for run in each["runs"]] for each in found] == [[3, 2], [3, 2]]
    listed = (await api.request("GET", f"/jobs/{jobs[0]['id']}/runs", params={"limit": 2})).json()["items"]
    for run, short in zip(listed, found[0]["runs"], strict=True):
        assert {name: run[name] for name in short} == short
    later = {"job": asked, "since": listed[0]["planned_for"]}
    since = (await api.request("GET", "/recent-runs", params=later)).json()["items"]
    assert [[run["number"] for run in each["runs"]] for each in since] == [[3], [3, 2, 1]]
    assert (await api.request("GET", "/recent-runs")).status_code == 422


async def test_recent_runs_show_an_agent_its_own_jobs_alone(api: ApiHarness) -> None:
    job = await api.create_job(name="of a person")
    await api.request("POST", f"/jobs/{job['id']}/run")
    key = await api.create_key("acme", MemberRole.EDITOR, kind=PrincipalKind.AGENT)
    answer = await api.http.get(
        "/api/v1/recent-runs", params={"job": job["id"]}, headers={"Authorization": f"Bearer {key}"}
    )
    assert answer.json() == {"items": []}
